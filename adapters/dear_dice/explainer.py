"""DiceDEAR: DEAR as an explainer of DiCE."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd
from dice_ml.explainer_interfaces.explainer_base import ExplainerBase

from dear_dice.answers import Results
from dear_dice.arguments import without_effect
from dear_dice.dialect import QueryFormat
from dear_dice.examples import Examples, Explanations
from dear_dice.interface import Interface
from dear_dice.model import BlackBox, Decided, Host, probabilities_expected, to_ask
from dear_dice.native import native
from dear_dice.options import Options
from dear_dice.request import Query, Request, as_frame, check_columns
from dear_dice.wish import DesiredOutcome
from dear_plugin import DEAR, Recourses

_TAKEN = tuple(field.name for field in fields(Request))


class DiceDEAR(ExplainerBase):
    """DEAR in the place of one of DiCE's methods.

    It learns from the data interface's rows when it is built; rows are then answered all at once.

    Args:
        data_interface: a public data interface, `dice_ml.Data(dataframe=...)`.
        model_interface: `dice_ml.Model(...)` of any backend. A torch module with
            `func="ohe-min-max"` is asked directly, any other model through DiCE.
        **options: see `Options`.

    Attributes:
        dear: the fitted engine; its features hold categories as text, as DiCE's data do.
        options: the options.
        cfs_preds: the outcomes of the last row's counterfactuals, as DiCE's methods keep them.

    Raises:
        UserConfigValidationException: private data, or a model whose answers are no probabilities.
        ArgumentError: an unknown option; it is a `TypeError`.
        SettingError: options that contradict each other; it is a `ValueError`.
    """

    def __init__(self, data_interface: Any, model_interface: Any, **options: Any) -> None:
        super().__init__(data_interface)
        self.options = Options.of(options)
        self._interface = Interface(data_interface, self.options.marks)
        self._host = Host(model_interface, data_interface)
        self.model = self._host.interface
        asked = to_ask(self._host, self._interface)
        schema = self._interface.schema
        dear = DEAR(schema=schema, **asked, **self.options.engine(schema))
        if dear.classifier.is_module:
            with probabilities_expected():
                dear.classifier.frame_scores(self._interface.sample)
        self.dear: DEAR = dear.fit(self._interface.frame)
        self._spoken: tuple[QueryFormat | None, DEAR] = (None, self.dear)
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
        random_seed: int | None = None,
        **of_others: Any,
    ) -> Explanations:
        """Counterfactuals for every row of a query, each acting on another set of features.

        A row that already has the wanted outcome comes back as itself, once; a row that cannot
        get it has an empty frame.

        Args:
            query_instances: a frame, a list of one-row frames, a dict or a list of dicts.
            total_CFs: how many a row at most, the cheapest first.
            desired_class: "opposite" (two classes), or the number of a class.
            desired_range: a regressor's range.
            permitted_range: `{feature: [low, high]}` or `{feature: [levels]}` for this call; for
                a feature that it names it replaces the data interface's. It restricts: nothing is
                advised beyond what the training rows hold. Who is outside of it stays as they are
                or comes inside.
            features_to_vary: the features that may change, directly or indirectly. Any other is
                never acted on and stays exactly as it is; what DEAR would have moved there is in
                `actions["suppressed_cost"]`.
            stopping_threshold: the least probability of the wanted class, as given; where class 0
                is wanted also the greatest probability of class 1. Up to one half it adds nothing
                to the model's own decision.
            posthoc_sparsity_param: DiCE's sparsity moves single features back to the query, and
                so breaks what DEAR expects to move together. `final_cfs_df_sparse` is therefore
                `final_cfs_df`, unless the explainer was built with `undo_indirect=True` and this
                is above 0: then each indirect change is undone that the outcome can do without.
            posthoc_sparsity_algorithm: checked as DiCE does; nothing depends on it.
            verbose: log each counterfactual in plain words, at level INFO.
            random_seed: taken and not needed: the same query has the same answer.
            **of_others: what other methods of DiCE take, such as `sample_size` or
                `proximity_weight`: it has no effect, and the log says so.

        Raises:
            ArgumentError: an argument that no method takes; it is a `TypeError`.
            UserConfigValidationException, ValueError: as DiCE's own methods, in the same words.
        """
        without_effect(of_others, _TAKEN)
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
            random_seed,
        )
        frame = as_frame(query_instances, self.data_interface)
        self._validate_counterfactual_configuration(frame, **vars(request))
        examples = self._examples(frame, request)
        self._check_any_counterfactuals_computed(cf_examples_arr=examples)
        return Explanations(examples)

    def feature_importance(self, *args: Any, **kwargs: Any) -> Any:
        """DiCE's importances, in DEAR's kind of result where the examples are DEAR's.

        Args:
            *args: as in DiCE.
            **kwargs: as in DiCE.
        """
        plain = super().feature_importance(*args, **kwargs)
        examples = plain.cf_examples_list
        if not all(isinstance(example, Examples) for example in examples):
            return plain
        return Explanations(examples, plain.local_importance, plain.summary_importance)

    def _generate_counterfactuals(
        self, query_instance: Any, total_CFs: int, **arguments: Any
    ) -> Examples:
        """One row's counterfactuals, as DiCE's own loop would ask for them."""
        own = {name: arguments.pop(name) for name in list(arguments) if name in _TAKEN}
        without_effect(arguments, _TAKEN)
        request = Request(total_CFs, **own)
        return self._examples(as_frame(query_instance, self.data_interface), request)[0]

    def _examples(self, frame: pd.DataFrame, request: Request) -> list[Examples]:
        if not len(frame):
            return []
        request = replace(request, permitted_range=self._interface.text(request.permitted_range))
        vary = request.features_to_vary
        self.data_interface.check_features_to_vary(vary)
        vary = self._interface.names if vary == "all" else vary
        query = self._query(frame, vary, request)
        k = int(request.total_CFs)
        answers = Results.of(self._results(query, vary, request, k), query, self._host, k)
        undo = self.options.undo_indirect and bool(request.posthoc_sparsity_param)
        sparse = answers.undone(query, self._host) if undo and len(answers.rows) else answers
        self.cfs_preds = answers.decided[answers.rows == len(frame) - 1]
        return native(query, answers, sparse, request, self._host, self.data_interface)

    def _query(self, frame: pd.DataFrame, vary: Sequence[str], request: Request) -> Query:
        check_columns(frame, self._interface)
        rows = frame[self._interface.names]
        dialect = QueryFormat.of(rows, self.dear.schema)
        read = dialect.read(rows)
        self._check_values(read, vary, request.permitted_range)
        scores = self._host.scores(rows)
        decided = self._host.decided(rows, scores)
        return Query(rows, read, dialect, decided, self._wish(decided, scores.shape[1], request))

    def _check_values(self, read: pd.DataFrame, vary: Sequence[str], permitted: Any) -> None:
        """DiCE's own checks of names and levels, once per combination of levels."""
        self.data_interface.check_permitted_range(permitted)
        levels = self._interface.levels
        # DiCE keeps a call's ranges on the explainer; a copy keeps them from the next call.
        checker = copy.copy(self)
        checker.feature_range = self._interface.ranges(permitted)
        distinct = read.drop_duplicates(subset=list(levels)) if levels else read.head(1)
        for at in range(len(distinct)):
            row = distinct.iloc[at : at + 1]
            checker.check_query_instance_validity(vary, permitted, row, levels)

    def _wish(self, decided: Decided, nodes: int, request: Request) -> DesiredOutcome:
        if self._host.regression:
            return DesiredOutcome.of_range(self.infer_target_cfs_range(request.desired_range))
        asked = request.desired_class
        wanted = int(asked) if isinstance(asked, np.integer) else asked
        # DiCE reads the present outcome off scores: these have no other than the decision.
        rows: Any = np.eye(nodes)[decided] if nodes > 1 else decided.astype(float).tolist()
        classes = [int(self.infer_target_cfs_class(wanted, row, nodes)) for row in rows]
        return DesiredOutcome.of_classes(classes, request.stopping_threshold, nodes)

    def _results(
        self, query: Query, vary: Sequence[str], request: Request, k: int
    ) -> list[Recourses]:
        """The engine's results over all rows, the best one first."""
        dear = self._speaking(query.dialect)
        within = self._interface.constraints(request.permitted_range, vary)
        with probabilities_expected():
            best = dear.generate(query.read, query.wish.target, within=within, on_error="raise")
            # One more than is needed, for the first of them may act on the best one's set.
            return [best, *best.hooks.alternatives(k + 1)] if k > 1 else [best]

    def _speaking(self, dialect: QueryFormat) -> DEAR:
        """The engine, handing a black box rows as the query writes them."""
        if not isinstance(self.dear.classifier.model, BlackBox):
            return self.dear
        spoken, dear = self._spoken
        if spoken != dialect:
            model = BlackBox(self._host, dialect)
            dear = self.dear.with_model(model, output=self.dear.classifier.output)
            self._spoken = (dialect, dear)
        return dear
