"""`DEAR`, with the interface of Alibi's explainers."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self, get_args

import numpy as np
import pandas as pd
from alibi.api.interfaces import Explainer, Explanation, FitMixin
from torch import Tensor

from dear_alibi import arguments
from dear_alibi.explanation import data_of, metadata_of, type_of
from dear_alibi.table import OF_FEATURES, Array, Output, Table, checked, model_of
from dear_plugin import DEAR as Engine
from dear_plugin import Decoder, Recourses, Search, Target, errors

# What Alibi calls arguments of the engine.
NAMES = {"immutable": "immutable_features", "threshold": "target_proba", "k": "num_samples"}
NAMES |= dict.fromkeys(("ranges", "categories"), "C")


class DEAR(Explainer, FitMixin):
    """Which feature to act on, by how much, and which other changes are expected to follow.

    It takes the arguments of Alibi's `CounterfactualRLTabular`, but no autoencoder. `fit` does not
    depend on the predictor, the target or the conditions of a call. Without `tiers` or `causes`,
    indirect changes are associations in the data, not causal effects.

    Args:
        predictor: a torch module, or a function of label-encoded rows (n, p) to probabilities
            (n, c) as `CounterfactualRLTabular` takes it. A module receives the tensor (n, d) of
            `dear_plugin.Encoder`.
        feature_names: the name of every column.
        category_map: per categorical column, the string of each code.
        immutable_features: features that never change, in any call.
        ranges: `{numeric feature: [low, high]}`, its largest change in any call, as fractions of
            its width in the training rows: low in [-1, 0], high in [0, 1]. [0, 1] may only grow.
        act_on: feature names, or groups of them, to act on; None is every mutable feature, one at
            a time. The others may change indirectly.
        output: "logits" (default for modules) or "probabilities" (default for functions).
        decoder: "transport" (ranks are kept), "autoencoder" (the paper's), or a
            `dear_plugin.Decoder`. Any other object is one of `of_others`.
        search: how to search; None is for credible answers, `Search.cheapest()` the cheapest.
        copies: predictors of the same kind, trained again, that should accept an answer, too.
        n_jobs: the number of threads that fit and search; -1 for all cores.
        **of_others: what `Schema.infer` takes of features: `tiers` (the earliest causes first) or
            `causes`, `ordered` (names of the category map whose codes have an order, the least
            first), `labels`, `units`, `costs`, `steps`, `special`, `identifiers` and others;
            arguments of `CounterfactualRLTabular`, such as its `decoder`, as in `fit` and
            `explain`: logged and ignored.

    Raises:
        DearError: arguments that contradict each other; every such error is a `ValueError` too.

    Example:
        >>> from dear_plugin.datasets import load_loan
        >>> X = load_loan(1_000).frame[["savings"]].to_numpy()
        >>> predictor = lambda X: np.hstack([1 - X / 60, X / 60])
        >>> DEAR(predictor, ["savings"]).fit(X).explain(X[:3], Y_t=1).data["success"].all()
        True
    """

    def __init__(
        self,
        predictor: Any,
        feature_names: Sequence[str],
        category_map: Mapping[int, Sequence[str]] | None = None,
        *,
        immutable_features: Sequence[str] | None = None,
        ranges: arguments.Ranges | None = None,
        act_on: Sequence[str | Sequence[str]] | None = None,
        output: Output | None = None,
        decoder: Any = "transport",
        search: Search | None = None,
        copies: Sequence[Any] = (),
        n_jobs: int = 1,
        **of_others: Any,
    ) -> None:
        if output not in (None, *get_args(Output)):
            words = "output must be 'logits' or 'probabilities' (dear_plugin.DEAR has regressions)"
            raise errors.ModelError(f"{words}, got {output!r}")
        if not isinstance(decoder, str | Decoder | type):
            of_others, decoder = {"decoder": decoder, **of_others}, "transport"
        marks = {name: of_others.pop(name) for name in [*of_others] if name in OF_FEATURES}
        arguments.check_ignored(DEAR.__init__, of_others)
        self._table = Table.of(feature_names, category_map, marks.pop("ordered", None) or ())
        self._ranges = arguments.ranges_of(self._table.declared, ranges)
        immutable = () if immutable_features is None else immutable_features
        self._marks = {"immutable": immutable, "tiers": (), **marks}
        self._output, self._n_jobs = output, n_jobs
        self._options = {"act_on": act_on, "decoder": decoder, "search": search}
        self._engine: Engine | None = None
        self._dtype = np.dtype(np.float64)
        params: dict[str, Any] = {NAMES.get(n, n): value for n, value in self._marks.items()}
        params |= {"ranges": self._ranges, "output": output, **self._options}
        super().__init__(meta=metadata_of(predictor, self._table, params))
        self.reset_predictor(predictor, copies)

    def fit(self, X: Any, **of_others: Any) -> Self:
        """Learn how features change together.

        Args:
            X: (n, p) label-encoded training rows; the predictor is not called.
            **of_others: see the constructor.
        """
        arguments.check_ignored(self.fit, of_others)
        array = self._table.array_of(X)
        frame = self._table.frame(array)
        with errors.naming(**NAMES):
            schema = self._table.schema(frame, self._ranges, **self._marks)
            engine = Engine(_no_predictor, schema, **self._options).fit(frame, n_jobs=self._n_jobs)
        self._dtype = np.dtype(np.float64) if array.dtype == object else array.dtype
        self._engine = self._bound(engine)
        causes = {name: list(each) for name, each in schema.causes}
        self.meta["params"] |= {"fitted_rows": len(array), "causes": causes}
        return self

    def explain(
        self,
        X: Any,
        Y_t: Any = None,
        C: Sequence[arguments.Condition] | None = None,
        batch_size: int | None = None,
        diversity: bool = False,
        num_samples: int = 1,
        target_proba: float | None = None,
        **of_others: Any,
    ) -> Explanation:
        """Recourse for n rows; no argument requires a new fit.

        Args:
            X: (n, p) label-encoded rows.
            Y_t: the wanted class, or one per row; None is the other one of two classes.
            C: conditions, one for all rows or one per row: `{numeric feature: [-a, b]}`, its
                largest change in its own units, and `{categorical feature: [strings]}`, the
                categories allowed besides the present one; [0, 0] and [] fix a feature. None is no
                condition.
            batch_size: accepted as in `CounterfactualRLTabular`; no result depends on it.
            diversity: several answers for one row, see `Recourses.alternatives`.
            num_samples: the largest number of them, up to 100; used with `diversity` alone.
            target_proba: the probability of the wanted class to reach, the threshold of
                `dear_plugin.Target.of_class`; None is the predictor's decision. (Alibi's
                `Counterfactual` may stop `tol` short of its own.)
            **of_others: see the constructor.

        Returns:
            An `Explanation` with the data of `DEFAULT_DATA_DEAR`; a failed row holds the last
            attempt, and its `success` is False. With `diversity` `orig` has one row, and all else
            a row per answer, the best first.

        Raises:
            NotFittedError: `fit` was not called.
            InputError, TargetError, ConstraintError, ModelError: invalid arguments; all are
                `ValueError` too.
        """
        arguments.check_ignored(self.explain, of_others)
        array = self._table.array_of(X)
        if diversity and len(array) != 1:
            raise errors.InputError(f"diversity=True takes one row of X, got {len(array)} rows")
        k = num_samples if diversity else 1
        found, orig, target = self._answered(X, Y_t, C, target_proba, k)
        data = data_of(self._table, self.engine, found, orig | {"X": array.copy()}, target)
        data |= {"condition": copy.deepcopy(C), "target_proba": target_proba}
        if not self._copies:
            data["agreement"] = None
        return Explanation(meta=copy.deepcopy(self.meta), data=data)

    def recourses(
        self,
        X: Any,
        Y_t: Any = None,
        C: Sequence[arguments.Condition] | None = None,
        *,
        target_proba: float | None = None,
    ) -> Recourses:
        """The engine's own result, with `describe`, `support` and `alternatives`.

        Arguments and errors as in `explain`; row i of X has the index i.
        """
        return self._answered(X, Y_t, C, target_proba)[0]

    def frame(self, X: Any) -> pd.DataFrame:
        """Label-encoded rows as the frame that `engine` reads, with strings for categories.

        Codes of immutable features that are not in the category map are passed to the predictor.
        """
        return self._table.frame(X, [c.name for c in self.engine.schema.columns if c.immutable])

    @property
    def engine(self) -> Engine:
        """The fitted `dear_plugin.DEAR`, with the present predictor."""
        if self._engine is None:
            raise errors.NotFittedError("DEAR is not fitted; call fit(X) first")
        if len(self._copies) != (count := self.meta["params"]["copies"]):
            raise errors.NotFittedError(
                f"the explainer was saved with {count} copies of the predictor, which are not part"
                " of a save: call reset_predictor(predictor, copies=[...])"
            )
        return self._engine

    def reset_predictor(self, predictor: Any, copies: Sequence[Any] | None = None) -> None:
        """Explain another predictor, as in the constructor, without a new fit.

        Args:
            predictor: as in the constructor.
            copies: likewise; None keeps those that there are.
        """
        self.predictor = checked(predictor)
        if copies is not None:
            self._copies = [checked(each) for each in copies]
            self.meta["params"]["copies"] = len(copies)
        self.meta["type"] = self.type = type_of(predictor)
        if self._engine is not None:
            self._engine = self._bound(self._engine)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the explainer without its predictor; a failure changes no existing file.

        Args:
            path: a folder, created if missing; `Explainer.load(path, predictor)` reads it.
        """
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as draft:
            Explainer.save(copy.copy(self), draft)
            for file in Path(draft).iterdir():
                file.replace(folder / file.name)

    def __getstate__(self) -> dict[str, Any]:
        """The state; Alibi saves it with predictor None, and the engine then has none either."""
        state = dict(vars(self))
        if self.predictor is None:
            state["_copies"] = []
            if self._engine is not None:
                state["_engine"] = self._engine.with_model(_no_predictor, copies=())
        return state

    def _bound(self, engine: Engine) -> Engine:
        every = (self.predictor, *self._copies)
        model, *copies = (model_of(each, self._table, self._dtype) for each in every)
        return engine.with_model(model, output=self._output, copies=copies)

    def _answered(
        self, X: Any, Y_t: Any, C: Any, target_proba: float | None, k: int = 1
    ) -> tuple[Recourses, dict[str, Array], Array]:
        """The engine's answers for n rows, or k for one; the predictions before, and targets."""
        engine, frame, said = self.engine, self.frame(X), {}
        index = X.index if isinstance(X, pd.DataFrame) else frame.index
        limits: Any = {"ranges": self._ranges, "C": C, "index": index}
        within = arguments.constraints_of(self._table.declared, engine.schema, frame, **limits)

        def target(scores: Tensor, classes: Tensor) -> Target:
            said["proba"] = engine.classifier.in_units(scores).numpy()
            said["class"], count = classes[:, None].numpy(), said["proba"].shape[1]
            said["target"] = arguments.targets_of(Y_t, said["class"], count, index)
            wanted = np.asarray(engine.classifier.classes or range(count))[said["target"][:, 0]]
            return Target.of_class(wanted, target_proba)

        with errors.naming(**NAMES):
            how: Any = {"on_error": "raise", "n_jobs": self._n_jobs}
            found = engine.generate(frame, target, within=within, k=k, **how)
        return found, said, said.pop("target")


def _no_predictor(frame: pd.DataFrame) -> Array:
    """The model of an engine that is being fitted, which is not called, or saved."""
    raise errors.ModelError("the explainer has no predictor; call reset_predictor")
