"""Explainer: DEAR with the interface of Alibi's explainers."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from alibi.api.interfaces import Explainer, Explanation, FitMixin
from tqdm import tqdm

from dear_alibi import arguments
from dear_alibi.arguments import AlibiConstraints, Condition, Ranges
from dear_alibi.explanation import data_of, joined, metadata_of, plain, type_of
from dear_alibi.predictor import Output, Prediction, PredictorAdapter
from dear_alibi.table import Array, Table
from dear_plugin import DEAR as Engine
from dear_plugin import Recourses, Search, Target, errors, options

BATCH_SIZE = 4096


class DEAR(Explainer, FitMixin):
    """Which feature to act on, by how much, and which other changes are expected to follow.

    It takes the arguments of Alibi's `CounterfactualRLTabular`, but no autoencoder. `fit` does not
    depend on the predictor, the target or the conditions of a call. Without `tiers`, indirect
    changes are associations in the data, not causal effects.

    Args:
        predictor: a torch module, or a function of label-encoded rows (n, p) to probabilities
            (n, c) as `CounterfactualRLTabular` takes it. A module receives the tensor (n, d) of
            `dear_plugin.Encoder`, or the output of `preprocessor`.
        feature_names: the name of every column.
        category_map: per categorical column, the string of each code.
        immutable_features: features that never change, in any call.
        ranges: `{numeric feature: [low, high]}`, its largest change in any call, as fractions of
            its width in the training rows: low in [-1, 0], high in [0, 1]. [0, 1] may only grow.
        tiers: features in tiers, the earliest causes first, as for `Schema.infer`.
        act_on: feature names, or groups of them, to act on; None is every mutable feature, one at
            a time. The others may change indirectly.
        preprocessor: for torch modules, from label-encoded rows to their input: a function, a
            fitted transformer, or the pair of `get_he_preprocessor`, whose inverse is not used.
        output: "logits" (default for modules) or "probabilities" (default for functions).
        decoder: "transport" (ranks are kept), "autoencoder" (the paper's), or a decoder.
        search: how to search; None is for credible answers, `Search.cheapest()` the cheapest.
        min_confidence: as in `Search`; None is 0.9.
        max_reliance: as in `Search`; None is 1.
        min_plausibility: as in `Search`; None is 0.05.
        pairs: act on all pairs of features as well.
        backend: "pytorch"; a TensorFlow model is passed as a function, `model.predict`.
        device: where to put a torch predictor; None leaves it where it is.
        seed: of a decoder that is given by name and trained; no global generator is seeded.
        verbose: show progress bars.
        **of_others: of Alibi's other explainers, as in `fit` and `explain`: logged and ignored.

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
        ranges: Ranges | None = None,
        tiers: Sequence[Sequence[str]] | None = None,
        act_on: Sequence[str | Sequence[str]] | None = None,
        preprocessor: Any = None,
        output: Output | None = None,
        decoder: Any = "transport",
        search: Search | None = None,
        min_confidence: float | None = None,
        max_reliance: float | None = None,
        min_plausibility: float | None = None,
        pairs: bool = False,
        backend: str = "pytorch",
        device: int | str | torch.device | None = None,
        seed: int = 0,
        verbose: bool = False,
        **of_others: Any,
    ) -> None:
        arguments.check_ignored(DEAR.__init__, of_others)
        arguments.check_backend(backend)
        decoder = arguments.decoder_of(decoder)
        self._table = Table.of(feature_names, category_map, tiers)
        self._always = AlibiConstraints.of(self._table.declared, immutable_features, ranges)
        self._adapter = PredictorAdapter.of(preprocessor, output, device)
        criteria = {
            "min_confidence": min_confidence,
            "max_reliance": max_reliance,
            "min_plausibility": min_plausibility,
        }
        searching = options.search_of(search, **criteria)
        self._options = {"act_on": act_on, "decoder": decoder, "search": searching}
        self._pairs = options.boolean("pairs", pairs)
        self._seed, self._verbose = seed, verbose
        self._engine: Engine | None = None
        self._dtype = np.dtype(np.float64)
        params = {
            **self._always.params,
            "preprocessor": plain(preprocessor),
            "output": output,
            **{name: plain(value) for name, value in self._options.items()},
            **{name: getattr(searching, name) for name in criteria},
            "pairs": pairs,
            "backend": backend,
            "device": plain(device),
            "seed": seed,
            "verbose": verbose,
        }
        super().__init__(meta=metadata_of(predictor, self._table, params))
        self.reset_predictor(predictor)

    def fit(self, X: Any, **of_others: Any) -> Self:
        """Learn how features change together.

        Args:
            X: (n, p) label-encoded training rows; the predictor is not called.
            **of_others: see the constructor.
        """
        arguments.check_ignored(self.fit, of_others)
        array = self._table.array_of(X)
        frame = self._table.frame(array)
        ranges = self._always.ranges or {}
        schema = self._table.schema(frame, self._always.immutable, ranges)
        settings = copy.deepcopy(self._options)
        if settings["act_on"] is None:
            options.warn_of_actions(f for f in schema if f.name not in ranges)
            settings["act_on"] = schema.actionable
        if self._pairs:
            settings["act_on"] = options.paired(schema, settings["act_on"])
        engine = Engine(_no_predictor, schema, **settings)
        if isinstance(self._options["decoder"], str):
            _configure(engine.decoder, self._seed, self._verbose)
        engine.fit(frame)
        self._dtype = np.dtype(np.float64) if array.dtype == object else array.dtype
        self._engine = self._adapter.bind(engine, self.predictor, self._table, self._dtype)
        self.meta["params"]["fitted_rows"] = len(array)
        return self

    def explain(
        self,
        X: Any,
        Y_t: Any = None,
        C: Sequence[Condition] | None = None,
        *,
        immutable_features: Sequence[str] | None = None,
        ranges: Ranges | None = None,
        batch_size: int = BATCH_SIZE,
        **of_others: Any,
    ) -> Explanation:
        """Recourse for n rows; no argument requires a new fit.

        Args:
            X: (n, p) label-encoded rows.
            Y_t: the wanted class, or one per row; None is the other one of two classes.
            C: conditions, one for all rows or one per row: `{numeric feature: [-a, b]}`, its
                largest change in its own units, and `{categorical feature: [strings]}`, the
                categories allowed besides the present one. None and [] are no condition.
            immutable_features: features that do not change, besides the explainer's own.
            ranges: as the explainer's own, which hold as well.
            batch_size: how many rows at once; it bounds memory and does not affect the result.
            **of_others: see the constructor.

        Returns:
            An `Explanation` with the data of `DEFAULT_DATA_DEAR`; a failed row holds the last
            attempt, and its `success` is False. `meta["params"]` has the ranges and immutable
            features of this call.

        Raises:
            NotFittedError: `fit` was not called.
            InputError, TargetError, ConstraintError, ModelError: invalid arguments; all are
                `ValueError` too.
        """
        arguments.check_ignored(self.explain, of_others)
        engine, array = self.engine, self._table.array_of(X)
        frame, wanted, constraints = self._call(array, Y_t, C, immutable_features, ranges)
        parts = []
        for rows in tqdm(_batches(len(array), batch_size), disable=not self._verbose):
            target = None if wanted is None else wanted[rows]
            result = _generate(engine, frame.iloc[rows], target, constraints.select(rows))
            parts.append(data_of(self._table, array[rows], *result))
        data = joined(parts) | {"condition": copy.deepcopy(C)}
        meta = copy.deepcopy(self.meta)
        meta["params"] |= constraints.params
        return Explanation(meta=meta, data=data)

    def recourses(
        self,
        X: Any,
        Y_t: Any = None,
        C: Sequence[Condition] | None = None,
        *,
        immutable_features: Sequence[str] | None = None,
        ranges: Ranges | None = None,
    ) -> Recourses:
        """The engine's own result, with `describe`, `support` and `alternatives`.

        Arguments and errors as in `explain`; row i of X has the index i.
        """
        return _generate(self.engine, *self._call(X, Y_t, C, immutable_features, ranges))[0]

    def frame(self, X: Any) -> pd.DataFrame:
        """Label-encoded rows as the frame that `engine` reads, with strings for categories."""
        return self._table.frame(X)

    @property
    def engine(self) -> Engine:
        """The fitted `dear_plugin.DEAR`, with the present predictor."""
        if self._engine is None:
            raise errors.NotFittedError("DEAR is not fitted; call fit(X) first")
        return self._engine

    def reset_predictor(self, predictor: Any) -> None:
        """Explain another predictor, as in the constructor, without a new fit."""
        self.predictor = self._adapter.checked(predictor)
        self.meta["type"] = self.type = type_of(predictor)
        if self._engine is not None:
            self._engine = self._adapter.bind(
                self._engine, self.predictor, self._table, self._dtype
            )

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
        if self.predictor is None and self._engine is not None:
            state["_engine"] = self._engine.with_model(_no_predictor)
        return state

    def _call(
        self, X: Any, Y_t: Any, C: Any, immutable: Any, ranges: Any
    ) -> tuple[pd.DataFrame, Array | None, AlibiConstraints]:
        """The n rows of a call, their wanted classes and their constraints, validated."""
        frame = self._table.frame(X)
        added = AlibiConstraints.of(self._table.declared, immutable, ranges, C)
        added.check_count(len(frame))
        return frame, arguments.target_classes(Y_t, len(frame)), self._always.within(added)


def _generate(
    engine: Engine, frame: pd.DataFrame, wanted: Array | None, constraints: AlibiConstraints
) -> tuple[Recourses, Prediction, Prediction, Array]:
    """The engine's result on n rows, the predictions before and after, and the targets, (n, 1)."""
    before = Prediction.of(engine, frame)
    target = arguments.resolve_targets(wanted, before.classes, before.proba.shape[1])
    within = constraints.constraints(engine.schema, frame)
    recourses = engine.generate(
        frame, Target.of_class(target[:, 0]), within=within, on_error="raise"
    )
    return recourses, before, Prediction.of(engine, recourses.counterfactuals), target


def _batches(n: int, size: int) -> list[slice]:
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise errors.InputError(f"batch_size must be a whole number, at least 1, got {size!r}")
    return [slice(start, start + size) for start in range(0, n, size)]


def _configure(decoder: Any, seed: int, verbose: bool) -> None:
    """Set the seed and the progress bars of a decoder, where it has them."""
    if hasattr(decoder, "seed"):
        decoder.seed = seed
    if hasattr(decoder, "training"):
        decoder.training = dataclasses.replace(decoder.training, progress=verbose)


def _no_predictor(frame: pd.DataFrame) -> Array:
    """The model of an engine that is being fitted, which is not called, or saved."""
    raise errors.ModelError("the explainer has no predictor; call reset_predictor")
