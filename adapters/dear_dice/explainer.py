"""`DiceDEAR`: DEAR as an explainer of DiCE."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from raiutils.exceptions import UserConfigValidationException
from torch import Tensor

from dear_dice import query as calls
from dear_dice.interface import Interface, as_numbers, check_ignored, logger
from dear_dice.model import Host, as_configuration_error, engine_of
from dear_dice.query import Query, Request
from dear_dice.results import Examples, Explanations, Importances, examples_of
from dear_plugin import DEAR, Encoder, Search, Target, errors

# What is no argument of DEAR's own, and DiCE's defaults of what it ignores.
_OTHERS = ("self", "query_instances", "of_others")
_SPARSITY = {"posthoc_sparsity_param": 0.1, "posthoc_sparsity_algorithm": "linear"}
# What DiCE calls arguments of the engine.
NAMES = {"ranges": "permitted_range", "categories": "permitted_range", "costs": "feature_weights"}


class DiceDEAR(Importances):
    """DEAR in the place of one of DiCE's methods.

    The constructor fits it on the rows of the data interface; all rows of a query are processed
    together.

    Args:
        data_interface: a public data interface, `dice_ml.Data(dataframe=...)`.
        model_interface: `dice_ml.Model(...)` of any backend. A torch module with
            `func="ohe-min-max"` is called directly, any other model through DiCE.
        act_on: feature names, or groups of them, to act on; None is every feature that may
            change, one at a time.
        decoder: "transport" (ranks are kept), "autoencoder" (the paper's), or a decoder.
        search: how to search; None asks for credible counterfactuals, `Search.cheapest()` for the
            cheapest, `Search(min_support=0.6)` for those that resemble accepted training rows.
        copies: `dice_ml.Model(...)` of the same kind, trained again, that should accept an answer.
        n_jobs: the number of threads that fit and search; -1 for all cores.
        **of_features: what `dear_plugin.Schema.infer` takes, with DiCE's names of features:
            `immutable` (they never change), `increasing` and `decreasing`, `tiers` (the earliest
            causes first: an action changes no feature of an earlier tier) or `causes`, `ranges`
            (in every call and whatever `permitted_range` allows), `ordered`, `labels`, `units`,
            `costs`, `steps` and others.

    Attributes:
        cfs_preds: the outcomes of the last row's counterfactuals, as DiCE's methods keep them.

    Raises:
        UserConfigValidationException: private data, or a model that returns no probabilities.
        ArgumentError: an option that neither has; it is a `TypeError`.
        SchemaError, SettingError: invalid options; they are a `ValueError`.

    Example:
        >>> import dice_ml
        >>> from dear_dice import DiceDEAR
        >>> from dear_plugin.datasets import load_loan
        >>> from sklearn.linear_model import LogisticRegression
        >>> frame, names = load_loan(1_000).frame[["savings", "approved"]], ["savings"]
        >>> data = dice_ml.Data(
        ...     dataframe=frame, continuous_features=names, outcome_name="approved"
        ... )
        >>> classifier = LogisticRegression().fit(frame[names], frame["approved"])
        >>> explainer = DiceDEAR(data, dice_ml.Model(model=classifier, backend="sklearn"))
        >>> result = explainer.generate_counterfactuals(frame[names].head(2), 1, desired_class=1)
        >>> len(result.cf_examples_list)
        2
    """

    def __init__(
        self,
        data_interface: Any,
        model_interface: Any,
        *,
        act_on: Sequence[str | Sequence[str]] | None = None,
        decoder: Any = "transport",
        search: Search | None = None,
        copies: Sequence[Any] = (),
        n_jobs: int = 1,
        **of_features: Any,
    ) -> None:
        super().__init__(data_interface)
        self._n_jobs = n_jobs
        self._interface = Interface(data_interface, **of_features)
        self._host = Host(model_interface, data_interface)
        self.model = self._host.interface
        hosts = [self._host, *(Host(each, data_interface) for each in copies)]
        dear = engine_of(hosts, self._interface, act_on=act_on, decoder=decoder, search=search)
        self._fitted: DEAR = dear.fit(self._interface.frame, n_jobs=n_jobs)
        # How the last query was written, and the engine that reads it.
        self._last: tuple[Any, DEAR] = None, self._fitted
        self.cfs_preds: Any = None

    @property
    def dear(self) -> DEAR:
        """The fitted engine. It reads rows that are written as the last query was.

        Before the first one it reads rows with categories as text, as DiCE's data have them.
        """
        return self._last[1]

    def generate_counterfactuals(
        self,
        query_instances: Any,
        total_CFs: int,
        desired_class: Any = "opposite",
        desired_range: Any = None,
        permitted_range: Any = None,
        features_to_vary: Any = "all",
        stopping_threshold: float = 0.5,
        posthoc_sparsity_param: float | None = 0.1,
        posthoc_sparsity_algorithm: str | None = "linear",
        verbose: bool = False,
        feature_weights: Any = None,
        **of_others: Any,
    ) -> Explanations:
        """Counterfactuals for every row of a query, each another way to act.

        A row that already has the wanted outcome is its own single counterfactual; a row without
        a feasible counterfactual has None in the place of its frame, and a `reason`.

        Args:
            query_instances: a frame, a list of one-row frames, a dict or a list of dicts.
            total_CFs: the most per row, the best first; fewer where fewer sets of features lead
                to the wanted outcome.
            desired_class: "opposite" (two classes), the number of a class, or a label of the
                model that is no integer.
            desired_range: a regressor's range.
            permitted_range: `{feature: [low, high]}` or `{feature: [levels]}` for this call; it
                replaces the data interface's for the features that it names, and never reaches
                beyond the training rows. A row outside of it keeps its value or moves inside.
            features_to_vary: the features that may change, directly or indirectly. The others
                keep their exact values; the indirect change that this suppresses is in
                `actions["suppressed_cost"]`.
            stopping_threshold: the least probability of the wanted class; where class 0 is wanted
                also the greatest probability of class 1. Up to one half it adds nothing to the
                model's own decision.
            posthoc_sparsity_param: checked as DiCE does, otherwise ignored, which the log says
                of a value that is not the default: DiCE's sparsity resets
                single features to the query, which contradicts the indirect changes that DEAR
                expects. `final_cfs_df_sparse` is `final_cfs_df`.
            posthoc_sparsity_algorithm: likewise.
            verbose: log a description of each counterfactual, at a level that is shown.
            feature_weights: `{feature: weight}`, "inverse_mad" or "equal": what a unit of each
                feature costs, by DiCE's definition, in the place of `costs`; 1 where DiCE has no
                weight. None leaves `costs`.
            **of_others: arguments of DiCE's other methods, such as `sample_size`: ignored with a
                warning in the log. The same query always has the same result.

        Raises:
            ArgumentError: an argument of no method; it is a `TypeError`.
            UserConfigValidationException, ValueError: as DiCE's own methods, with its messages.
        """
        given = {name: value for name, value in locals().items() if name not in _OTHERS}
        given |= {n: calls.as_list(given[n]) for n in ("features_to_vary", "desired_range")}
        sparser = [n for n, usual in _SPARSITY.items() if given[n] not in (None, usual)]
        check_ignored([*of_others, *sparser], given)
        request = Request(**given)
        frame = calls.as_frame(query_instances, self.data_interface)
        calls.check_request(frame, request, self._interface)
        self._validate_counterfactual_configuration(frame, **given)
        examples = self._examples(frame, request)
        try:
            self._check_any_counterfactuals_computed(cf_examples_arr=examples)
        except UserConfigValidationException as error:
            reasons = [*dict.fromkeys(example.reason for example in examples)][:5]
            raise UserConfigValidationException("\n".join([str(error), *reasons])) from None
        return Explanations(examples)

    def __getstate__(self) -> dict[str, Any]:
        """The state without the engine of the last query's format."""
        return {**vars(self), "_last": (None, self._fitted)}

    def _generate_counterfactuals(
        self, query_instance: Any, total_CFs: int, **arguments: Any
    ) -> Examples:
        """One row's counterfactuals: the method that DiCE's base class calls per row."""
        known = inspect.signature(self.generate_counterfactuals).parameters
        usual = {name: each.default for name, each in known.items() if name not in _OTHERS}
        check_ignored([name for name in arguments if name not in usual], usual)
        request = Request(**{**usual, **arguments, "total_CFs": total_CFs})
        return self._examples(calls.as_frame(query_instance, self.data_interface), request)[0]

    def _examples(self, frame: pd.DataFrame, request: Request) -> list[Examples]:
        permitted = self._interface.text(request.permitted_range)
        self.data_interface.check_features_to_vary(request.features_to_vary)
        every = request.features_to_vary == "all"
        vary = self._interface.names if every else request.features_to_vary
        calls.check_vary(vary, self._interface)
        with as_configuration_error(), errors.naming(**NAMES):
            query = self._query(frame, vary, permitted)
            limits = permitted, vary, request.feature_weights
            within = self._interface.constraints(query.dear.schema, *limits)
            how: dict[str, Any] = {"on_error": "raise", "n_jobs": self._n_jobs, "within": within}
            target, k = partial(self._target, query, request), int(request.total_CFs)
            try:
                found = query.dear.generate(query.numeric, target, k=k, **how)
            except Exception:  # of a model that takes no new level: DiCE's message comes first
                self._check_levels(query.numeric, vary, permitted, self._interface.levels)
                raise
        # Those of the last row.
        start = int(np.flatnonzero(found.starts)[-1])
        last = found.scores[start:, 0][found.success[start:]].numpy()
        self.cfs_preds = last if self._host.regression else query.wanted[-1:].repeat(len(last))
        if unchanged := int(found.proposal.accepted.sum()):
            text = "%d of %d rows have the wanted outcome already and are returned unchanged"
            logger.warning(text, unchanged, len(frame))
        examples = examples_of(found, query, request, self._host, self.data_interface)
        for index, example in zip(frame.index, examples, strict=True) if request.verbose else ():
            texts = example.describe() or [f"no counterfactual found: {example.reason}"]
            # A level that is shown unless it is switched off, for it was requested.
            logger.warning("\n".join(f"query {index}: {text}" for text in texts))
        return examples

    def _query(self, frame: pd.DataFrame, vary: Sequence[str], permitted: Any) -> Query:
        calls.check_columns(frame, self._interface)
        rows = frame[self._interface.names]
        numeric = as_numbers(rows, self._interface.spans)
        acts = {name for names in self._fitted.sets.names for name in names} & set(vary)
        self._check_levels(numeric, vary, permitted, acts)
        return Query(rows, numeric, self._reading(numeric))

    def _target(self, query: Query, request: Request, scores: Tensor, classes: Tensor) -> Target:
        """What is wanted of a query, of which it notes the outcomes."""
        if self._host.regression:
            query.outcomes = scores[:, 0].numpy()
            return Target.of_range(*self.infer_target_cfs_range(request.desired_range))
        query.outcomes, columns = classes.numpy(), scores.shape[1]
        number, outcomes = calls.number_of(request.desired_class, self._host), query.outcomes
        # DiCE infers the present class from scores: these encode the model's decision.
        each: Any = np.eye(columns)[outcomes] if columns > 1 else outcomes.astype(float).tolist()
        wanted = [int(self.infer_target_cfs_class(number, i, columns)) for i in each]
        query.wanted = np.array(wanted)
        least = calls.least_probability(wanted, request.stopping_threshold, columns)
        return Target.of_class(self._host.labels(query.wanted), least)

    def _reading(self, rows: pd.DataFrame) -> DEAR:
        """The engine for rows as they are written, in the first way that the model takes."""
        form, (known, engine) = self._interface.form(rows), self._last
        if form != known:
            others = self._interface.written(rows)
            own = next(others)
            takes = (w for w in chain([own], others) if self._host.takes(Encoder(w).typed(rows)))
            schema = own if self._host.is_module else next(takes, own)
            engine = engine if engine.schema == schema else self._fitted.with_schema(schema)
            self._last = form, engine
        return engine

    def _check_levels(
        self, rows: pd.DataFrame, vary: Sequence[str], permitted: Any, acts: Collection[str]
    ) -> None:
        """Refuse levels of some features as DiCE does, with its messages."""
        self._interface.check(permitted)
        read = self._interface.schema.in_text(rows)
        for name, levels in self._interface.levels.items():
            cells = read[name].dropna()
            if name in acts and not cells.isin(levels).all():
                raise ValueError("Feature", name, "has a value outside the dataset.")
            kept = name in (permitted or {}) and name not in vary
            if kept and not cells.isin(permitted[name]).all():
                words = "is outside the permitted range and isn't allowed to vary."
                raise ValueError("Feature:", name, words)
