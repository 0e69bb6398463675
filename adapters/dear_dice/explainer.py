"""DiceDEAR: DEAR as an explainer of DiCE."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd
from raiutils.exceptions import UserConfigValidationException

from dear_dice.importances import Importances
from dear_dice.interface import Interface, as_numbers
from dear_dice.model import Host, Outcomes, Scores, as_configuration_error, engine_of
from dear_dice.options import check_ignored, logger
from dear_dice.query import (
    DesiredOutcome,
    Query,
    Request,
    as_frame,
    check_columns,
    check_missing,
    check_request,
    check_vary,
)
from dear_dice.results import Examples, Explanations, Results, to_dice
from dear_plugin import DEAR, Encoder, Recourses, Schema, Search

_TAKEN = tuple(field.name for field in fields(Request))
# The reasons in the error of a query without any counterfactual.
MOST_REASONS = 5


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
        immutable: features that never change.
        increasing: numeric or two-valued features that may only grow.
        tiers: features in tiers, the earliest causes first: an action changes no feature of an
            earlier tier; features that are not named form one more tier at the end.
        copies: `dice_ml.Model(...)` of the same kind, trained again, that should accept an answer.
        n_jobs: the number of processes that search the rows of a query; -1 for all cores.
        **of_features: what else `dear_plugin.Schema.infer` takes, with DiCE's names of features:
            `decreasing`, `ranges` (in every call and whatever `permitted_range` allows), `causes`,
            `ordered`, `labels`, `units`, `costs`, `steps` and others.

    Attributes:
        dear: the fitted engine; its features hold categories as text, as DiCE's data do.
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
        immutable: Sequence[str] = (),
        increasing: Sequence[str] = (),
        tiers: Sequence[Sequence[str]] = (),
        copies: Sequence[Any] = (),
        n_jobs: int = 1,
        **of_features: Any,
    ) -> None:
        super().__init__(data_interface)
        self._n_jobs = n_jobs
        marks = {"immutable": immutable, "increasing": increasing, "tiers": tiers, **of_features}
        self._interface = Interface(data_interface, **marks)
        self._host = Host(model_interface, data_interface)
        self.model = self._host.interface
        self._copies = [Host(each, data_interface) for each in copies]
        how = {"act_on": act_on, "decoder": decoder, "search": search}
        dear = engine_of([self._host, *self._copies], self._interface, **how)
        self.dear: DEAR = dear.fit(self._interface.frame)
        self._last_engine = self.dear
        self.cfs_preds: Any = None

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
        request = Request(
            total_CFs,
            desired_class,
            desired_range,
            permitted_range,
            features_to_vary if isinstance(features_to_vary, str) else list(features_to_vary),
            stopping_threshold,
            posthoc_sparsity_param,
            posthoc_sparsity_algorithm,
            verbose,
            feature_weights,
        )
        check_ignored([*of_others, *request.sparsity], _TAKEN)
        frame = as_frame(query_instances, self.data_interface)
        check_request(frame, request)
        check_missing(frame, self._interface)
        # DiCE would refuse the columns with missing values, of which it checks nothing else.
        complete = frame.drop(columns=self._interface.incomplete, errors="ignore")
        self._validate_counterfactual_configuration(complete, **vars(request))
        examples = self._examples(frame, request)
        try:
            self._check_any_counterfactuals_computed(cf_examples_arr=examples)
        except UserConfigValidationException as error:
            reasons = [*dict.fromkeys(example.reason for example in examples)][:MOST_REASONS]
            raise UserConfigValidationException("\n".join([str(error), *reasons])) from None
        return Explanations(examples)

    def __getstate__(self) -> dict[str, Any]:
        """The state without the engine of the last query's format."""
        return {**vars(self), "_last_engine": self.dear}

    def _generate_counterfactuals(
        self, query_instance: Any, total_CFs: int, **arguments: Any
    ) -> Examples:
        """One row's counterfactuals: the method that DiCE's base class calls per row."""
        own = {name: arguments.pop(name) for name in list(arguments) if name in _TAKEN}
        check_ignored(arguments, _TAKEN)
        request = Request(total_CFs, **own)
        return self._examples(as_frame(query_instance, self.data_interface), request)[0]

    def _examples(self, frame: pd.DataFrame, request: Request) -> list[Examples]:
        if not len(frame):
            return []
        request = replace(request, permitted_range=self._interface.text(request.permitted_range))
        vary = request.features_to_vary
        self.data_interface.check_features_to_vary(vary)
        vary = self._interface.names if vary == "all" else vary
        check_vary(vary, self._interface)
        query, k = self._query(frame, vary, request), int(request.total_CFs)
        typed = query.dear.encoder.typed(query.numeric)
        with self._host.knowing(typed, query.scores, query.outcomes):
            ranked = self._ranked(query, vary, request, k)
        results = Results.of(ranked, query, self._host)
        self.cfs_preds = results.outcomes[results.rows == len(frame) - 1]
        if unchanged := int((~results.acted.any(axis=1)).sum()):
            logger.warning(
                "%d of %d rows have the wanted outcome already and are returned unchanged",
                unchanged,
                len(frame),
            )
        return to_dice(query, results, request, self._host, self.data_interface)

    def _query(self, frame: pd.DataFrame, vary: Sequence[str], request: Request) -> Query:
        check_columns(frame, self._interface)
        rows = frame[self._interface.names]
        numeric = as_numbers(rows, self._interface.spans)
        read = self._interface.schema.in_text(numeric)
        acts = {name for names in self.dear.sets.names for name in names} & set(vary)
        self._check_values(read, vary, request.permitted_range, acts)
        try:
            schema, scores = self._accepted(numeric)
        except Exception:  # of a model that takes no new level: DiCE's message comes first
            self._check_values(read, vary, request.permitted_range, self._interface.levels)
            raise
        if self._last_engine.schema != schema:
            self._last_engine = self.dear.with_schema(schema)
        dear = self._last_engine
        outcomes = self._host.outcomes(dear.encoder.typed(numeric), scores)
        desired = self._desired(outcomes, scores.shape[1], request)
        return Query(rows, numeric, dear, scores, outcomes, desired)

    def _accepted(self, rows: pd.DataFrame) -> tuple[Schema, Scores]:
        """The schema of the first way of writing a query that the model takes, and the scores.

        A model that takes none raises its own error on the first.
        """
        own, *others = self._interface.written(rows)
        try:
            return own, self._scores(own, rows)
        except Exception:
            for other in others:
                with suppress(Exception):
                    return other, self._scores(other, rows)
            raise

    def _scores(self, schema: Schema, rows: pd.DataFrame) -> Scores:
        return self._host.scores(Encoder(schema).typed(rows))

    def _check_values(
        self, read: pd.DataFrame, vary: Sequence[str], permitted: Any, acts: Collection[str]
    ) -> None:
        """DiCE's own checks of names, and of the levels of some features, once per combination."""
        self.data_interface.check_permitted_range(permitted)
        levels = self._interface.levels
        # Neither a missing value nor one that is not acted on is a level to check.
        cells = {n: read[n].astype(object) for n in levels}
        known = {n: c.where(c.notna() & (n in acts), levels[n][0]) for n, c in cells.items()}
        read = read.assign(**known)
        # DiCE stores a call's ranges on the explainer; with a copy they end with the call.
        checker = copy.copy(self)
        checker.feature_range = self._interface.ranges(permitted)
        distinct = read.drop_duplicates(subset=list(levels)) if levels else read.head(1)
        for at in range(len(distinct)):
            row = distinct.iloc[at : at + 1]
            checker.check_query_instance_validity(vary, permitted, row, levels)

    def _desired(self, outcomes: Outcomes, columns: int, request: Request) -> DesiredOutcome:
        if self._host.regression:
            return DesiredOutcome.of_range(self.infer_target_cfs_range(request.desired_range))
        wanted = self._host.number_of(request.desired_class)
        # DiCE infers the present class from scores: these encode the model's decision.
        rows: Any = np.eye(columns)[outcomes] if columns > 1 else outcomes.astype(float).tolist()
        classes = [int(self.infer_target_cfs_class(wanted, row, columns)) for row in rows]
        return DesiredOutcome.of_classes(classes, request.stopping_threshold, columns)

    def _ranked(
        self, query: Query, vary: Sequence[str], request: Request, k: int
    ) -> list[Recourses]:
        """The engine's results over all rows, one per rank, the best first."""
        asked = request.permitted_range, vary, request.feature_weights
        within = self._interface.constraints(*asked)
        with as_configuration_error():
            target = query.desired.target
            how: dict[str, Any] = {"k": k, "on_error": "raise", "n_jobs": self._n_jobs}
            return query.dear.ways(query.numeric, target, within=within, **how)
