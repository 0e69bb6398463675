"""Explainer: DEAR behind the interface of Alibi's explainers."""

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

import dear_plugin
from dear_alibi.arguments import check_backend, decoder_of, without_effect
from dear_alibi.conditions import AlibiConstraints, Condition, Ranges
from dear_alibi.explanation import data_of, joined
from dear_alibi.predictor import Output, PredictorAdapter, preprocess_of
from dear_alibi.settings import conditions_params, kind, metadata, plain
from dear_alibi.table import Array, Table
from dear_alibi.targets import resolve, targets
from dear_alibi.verdict import Verdict
from dear_plugin import DEAR as Engine
from dear_plugin import Recourses, Search, Target

ROWS_A_BATCH = 4096


class DEAR(Explainer, FitMixin):
    """Which feature to act on, by how much, and what else is expected to move along with it.

    It takes what Alibi's `CounterfactualRLTabular` takes: label-encoded rows, a category map,
    immutable features, ranges and conditions; but no autoencoder, and its `fit` is independent of
    the predictor, the target and the conditions of a call. What moves along is an association in
    the data, not a causal effect.

    Args:
        predictor: a torch module, or a function of label-encoded rows (n, p) to probabilities
            (n, c) as `CounterfactualRLTabular` takes it. A module receives
            `dear_plugin.Encoder`'s tensor (n, d), or what `preprocessor` makes of the rows.
        feature_names: the name of every column.
        category_map: per categorical column, the string that each code stands for.
        immutable_features: features that never change, in any call.
        ranges: `{numeric feature: [low, high]}`, how far it may move in any call, in fractions of
            its width in the training rows: low in [-1, 0], high in [0, 1]. [0, 1] may only grow.
        act_on: feature names, or groups of them, to be acted on; None is every mutable feature,
            one at a time. The others may still move along.
        preprocessor: for torch modules, what turns label-encoded rows into their input: a
            function, a fitted scikit-learn transformer, or the pair of `get_he_preprocessor`, of
            which the first is used: rows never travel back through an inverse.
        output: "logits" (default for modules) or "probabilities" (default for functions).
        decoder: "transport" (people keep their rank), "autoencoder" (the paper's), or a decoder.
        search: how to search; None asks for credible answers, `Search.cheapest()` for the
            cheapest.
        min_confidence: the least share of redraws of the decoder under which an answer still has
            the target class; None is 0.9.
        max_reliance: the largest share of what is expected to follow that an answer may need: at
            0 the action alone is enough; None is 1.
        min_plausibility: the least plausibility of an answer, or the row's own where that is
            less; None is 0.05.
        pairs: act on all pairs of features from the start, besides the single ones.
        backend: "pytorch"; a TensorFlow model is a function, `model.predict`.
        device: where to put a torch predictor; None leaves it where it is.
        seed: of a decoder that is given by name and trained; nothing global is seeded.
        verbose: show progress bars.
        **of_others: what other explainers of Alibi take, such as `coeff_sparsity`: it has no
            effect, and the log says so. The same holds for `fit` and `explain`.

    Raises:
        InputError, SchemaError, ConstraintError, ModelError, SettingError: what came contradicts
            itself; all are `ValueError` too.
    """

    def __init__(
        self,
        predictor: Any,
        feature_names: Sequence[str],
        category_map: Mapping[int, Sequence[str]] | None = None,
        *,
        immutable_features: Sequence[str] | None = None,
        ranges: Ranges | None = None,
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
        without_effect(DEAR.__init__, of_others)
        check_backend(backend)
        decoder = decoder_of(decoder)
        self._table = Table.of(feature_names, category_map)
        self._always = AlibiConstraints.of(self._table.declared, immutable_features, ranges)
        self._asking = PredictorAdapter(preprocess_of(preprocessor), output, device)
        asked = {
            "min_confidence": min_confidence,
            "max_reliance": max_reliance,
            "min_plausibility": min_plausibility,
        }
        searching = dear_plugin.options.search_of(search, **asked)
        self._options = {"act_on": act_on, "decoder": decoder, "search": searching}
        self._pairs = dear_plugin.options.boolean("pairs", pairs)
        self._seed, self._verbose = seed, verbose
        self._engine: Engine | None = None
        self._dtype = np.dtype(np.float64)
        params = {
            **conditions_params(self._always),
            "preprocessor": plain(preprocessor),
            "output": output,
            **{name: plain(value) for name, value in self._options.items()},
            **{name: getattr(searching, name) for name in asked},
            "pairs": pairs,
            "backend": backend,
            "device": plain(device),
            "seed": seed,
            "verbose": verbose,
        }
        super().__init__(meta=metadata(predictor, self._table, params))
        self.reset_predictor(predictor)

    def fit(self, X: Any, **of_others: Any) -> Self:
        """Learn how features move together.

        Args:
            X: (n, p) label-encoded training rows; the predictor is not asked.
            **of_others: see the constructor.

        Raises:
            InputError, SchemaError, ConstraintError: rows that do not fit the description; all
                are `ValueError` too.
        """
        without_effect(self.fit, of_others)
        array = self._table.array_of(X)
        frame = self._table.frame(array)
        schema = self._table.schema(frame, self._always.immutable)
        options = copy.deepcopy(self._options)
        if options["act_on"] is None:
            # Whoever gave a feature a range has said how far it may move.
            told = self._always.ranges or {}
            dear_plugin.options.warn_of_actions(f for f in schema if f.name not in told)
            options["act_on"] = schema.actionable
        if self._pairs:
            options["act_on"] = dear_plugin.options.paired(schema, options["act_on"])
        engine = Engine(_no_predictor, schema, **options)
        if isinstance(self._options["decoder"], str):
            _instruct(engine.decoder, self._seed, self._verbose)
        engine.fit(frame)
        self._dtype = np.dtype(np.float64) if array.dtype == object else array.dtype
        self._engine = self._asking.bound(engine, self.predictor, self._table, self._dtype)
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
        batch_size: int = ROWS_A_BATCH,
        **of_others: Any,
    ) -> Explanation:
        """Recourse for n rows; none of the arguments needs a new fit.

        Args:
            X: (n, p) label-encoded rows.
            Y_t: the wanted class, or one per row; None is the other one of two classes.
            C: conditions, one for all rows or one per row: `{numeric feature: [-a, b]}`, how far
                it may move in its own units, and `{categorical feature: [strings]}`, what it may
                become besides what it is. None and [] are no condition.
            immutable_features: features that stay as they are, besides the explainer's own.
            ranges: as the explainer's own, which hold as well.
            batch_size: how many rows at once; it bounds memory and changes no answer.
            **of_others: see the constructor.

        Returns:
            An `Explanation` with the data of `DEFAULT_DATA_DEAR`; a failed row holds the last
            attempt and says so in `success`. Its `meta["params"]` tells the ranges and immutable
            features of this call.

        Raises:
            NotFittedError: `fit` was not called.
            InputError, TargetError, ConstraintError, ModelError: what came does not fit; all are
                `ValueError` too.
        """
        without_effect(self.explain, of_others)
        engine, array = self.engine, self._table.array_of(X)
        frame, wanted, conditions = self._question(array, Y_t, C, immutable_features, ranges)
        parts = []
        for rows in tqdm(_batches(len(array), batch_size), disable=not self._verbose):
            target = None if wanted is None else wanted[rows]
            answer = _answer(engine, frame.iloc[rows], target, conditions.select(rows))
            parts.append(data_of(self._table, array[rows], *answer))
        data = joined(parts) | {"condition": copy.deepcopy(C)}
        meta = copy.deepcopy(self.meta)
        meta["params"] |= conditions_params(conditions)
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
        return _answer(self.engine, *self._question(X, Y_t, C, immutable_features, ranges))[0]

    def frame(self, X: Any) -> pd.DataFrame:
        """Label-encoded rows as the frame that `engine` reads: words where there are categories.

        Raises:
            InputError: as in `fit`.
        """
        return self._table.frame(X)

    @property
    def engine(self) -> Engine:
        """The fitted `dear_plugin.DEAR`, with the present predictor.

        Raises:
            NotFittedError: `fit` was not called.
        """
        if self._engine is None:
            raise dear_plugin.errors.NotFittedError("DEAR is not fitted; call fit(X) first")
        return self._engine

    def reset_predictor(self, predictor: Any) -> None:
        """Explain another predictor; what `fit` learned does not depend on it.

        Args:
            predictor: as in the constructor.

        Raises:
            ModelError: what came cannot predict.
        """
        self.predictor = self._asking.accepted(predictor)
        self.meta["type"] = self.type = kind(predictor)
        if self._engine is not None:
            state = self._engine, self.predictor, self._table, self._dtype
            self._engine = self._asking.bound(*state)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the explainer without its predictor; a failure leaves all as it was.

        Args:
            path: a folder, made if it is not there; `Explainer.load(path, predictor)` reads it.
        """
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as draft:
            Explainer.save(copy.copy(self), draft)
            for file in Path(draft).iterdir():
                file.replace(folder / file.name)

    def __getstate__(self) -> dict[str, Any]:
        """The state; without a predictor, as Alibi saves it, the engine goes without one too."""
        state = dict(vars(self))
        if self.predictor is None and self._engine is not None:
            state["_engine"] = self._engine.with_model(_no_predictor)
        return state

    def _question(
        self,
        X: Any,
        Y_t: Any,
        C: Sequence[Condition] | None,
        immutable: Sequence[str] | None,
        ranges: Ranges | None,
    ) -> tuple[pd.DataFrame, Array | None, AlibiConstraints]:
        """The rows of a call, their wanted classes and their conditions, checked."""
        frame = self._table.frame(X)
        asked = AlibiConstraints.of(self._table.declared, immutable, ranges, C).of_rows(len(frame))
        return frame, targets(Y_t, len(frame)), self._always.within(asked)


def _answer(
    engine: Engine, frame: pd.DataFrame, wanted: Array | None, conditions: AlibiConstraints
) -> tuple[Recourses, tuple[Verdict, Verdict], Array]:
    """The engine's result on some rows, the predictor's answers around it, the targets."""
    before = Verdict.of(engine, frame)
    target = resolve(wanted, before)
    within = conditions.constraints(engine.schema, frame)
    recourses = engine.generate(
        frame, Target.of_class(target[:, 0]), within=within, on_error="raise"
    )
    return recourses, (before, Verdict.of(engine, recourses.counterfactuals)), target


def _batches(n: int, size: int) -> list[slice]:
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise dear_plugin.errors.InputError(
            f"batch_size must be a whole number, at least 1, got {size!r}"
        )
    return [slice(start, start + size) for start in range(0, n, size)]


def _instruct(decoder: Any, seed: int, verbose: bool) -> None:
    """Tell a decoder that came by name what the user said, where it trains something."""
    if hasattr(decoder, "seed"):
        decoder.seed = seed
    if hasattr(decoder, "training"):
        decoder.training = dataclasses.replace(decoder.training, progress=verbose)


def _no_predictor(frame: pd.DataFrame) -> Array:
    """What the engine asks while it fits, which it does not, and in a saved explainer."""
    raise dear_plugin.errors.ModelError("the explainer has no predictor; call reset_predictor")
