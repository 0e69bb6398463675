"""Classifier: the user's model, a torch module or a black box, as scores of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from dear_plugin.chain import chained, links
from dear_plugin.encoding import Encoder
from dear_plugin.ending import logits_of
from dear_plugin.errors import ModelError
from dear_plugin.evaluation import evaluating

Output = Literal["logits", "probabilities", "values"]
ROWS_A_CALL = 1 << 16
CELLS_A_CALL = 1 << 23


class Classifier:
    """Scores, (m, c), of rows, (m, p).

    Scores are logits: one column is the log-odds of class 1, c columns are log-probabilities up
    to a constant. A regression model (`output="values"`) gives its value in one column.

    Args:
        model: a `torch.nn.Module` on the encoded tensor, an object with `predict_proba` on
            frames, or any callable from a frame to probabilities.
        encoder: the gate that expands rows for modules and writes frames for black boxes.
        output: "logits" (the default for modules), "probabilities" (the default for black boxes)
            or "values" (regression). It is stated, never guessed from values; a module of which
            it is not stated must not end in a sigmoid or a softmax.
        encode: for modules, a differentiable map from our encoded columns (m, d) to the host's.

    Raises:
        ModelError: a model that is neither, or an unknown `output`.
    """

    def __init__(
        self,
        model: Any,
        encoder: Encoder,
        *,
        output: Output | None = None,
        encode: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self.model = model
        self.encoder = encoder
        self.encode = encode
        self.is_module = isinstance(model, nn.Module)
        self._stated = output is not None or not self.is_module
        self.output: Output = output or ("logits" if self.is_module else "probabilities")
        if self.output not in _TO_SCORES:
            raise ModelError(f"output must be one of {sorted(_TO_SCORES)}, {output!r} came")
        if not self.is_module and not callable(_ask(model, self.output)):
            raise ModelError(
                f"a model must be a torch module, have predict_proba, or be callable on frames;"
                f" {type(model).__name__} came"
            )
        if encode is not None and not self.is_module:
            raise ModelError("encode= is for torch modules; a black box receives frames")

    @property
    def classes(self) -> Sequence[Hashable] | None:
        """The labels of the columns, where the model names them (scikit-learn's `classes_`)."""
        labels = None if self.is_module else getattr(self.model, "classes_", None)
        return None if labels is None else list(np.asarray(labels).tolist())

    @property
    def device(self) -> torch.device:
        """Where the module lives; the CPU for black boxes."""
        return self._home.device

    def scores(self, rows: Tensor, quick: bool = False) -> Tensor:
        """The scores of rows, (m, p) -> (m, c), without gradients, on the rows' device.

        Args:
            rows: m rows.
            quick: they are wanted for a search: a chain of small layers is multiplied out as is
                quickest, which may change last digits. What a user is told is never quick.

        Raises:
            ModelError: NaN, infinity, a wrong shape, values that are no probabilities, or a
                module that ends in some without having said so.
        """
        if not len(rows):
            return rows.new_zeros((0, 1))
        ask = self._module_scores if self.is_module else self._frame_scores
        if quick and self.is_module:
            ask = self._quick_scores
        # The search may have switched torch to inference. What the model keeps of a call must not
        # be marked by it, or it could not be differentiated later.
        with torch.inference_mode(mode=False):
            parts = [ask(chunk) for chunk in rows.split(self._rows_a_call)]
        counts = sorted({part.shape[1] for part in parts})
        if len(counts) > 1:
            raise ModelError(f"the model returned {counts} columns for parts of the same rows")
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).to(rows.device)

    def frame_scores(self, frame: pd.DataFrame, rows: Tensor | None = None) -> Tensor:
        """The scores of a frame in user units, (m, c): what the user's own model says of it.

        Args:
            frame: m rows.
            rows: (m, p) the same, where somebody has read it already.
        """
        if self.is_module:
            read = self.encoder.rows(frame) if rows is None else rows
            return self.scores(read.to(self.device)).cpu()
        return self._checked(self._ask_frame(frame[list(self.encoder.schema.names)]), len(frame))

    def differentiable(self, x: Tensor) -> Tensor:
        """The scores of encoded columns, (m, d) -> (m, c), with gradients to x.

        Raises:
            ModelError: a black box has no gradient.
        """
        if not self.is_module:
            raise ModelError("a black box has no gradient; use solver='line'")
        with evaluating(self.model):
            return self._checked(self._forward(x.clone()), len(x)).to(x.device)

    def _module_scores(self, rows: Tensor) -> Tensor:
        with torch.no_grad(), evaluating(self.model):
            return self._checked(self._forward(self.encoder.expand(rows)), len(rows))

    def _quick_scores(self, rows: Tensor) -> Tensor:
        layers = links(self.model) if self._stated else ()
        with torch.no_grad():
            seen = self._seen(self.encoder.expand(rows)) if layers else rows
            if not layers or seen.ndim != 2:
                return self._module_scores(rows)
            return self._checked(chained(layers, seen), len(rows))

    def _seen(self, x: Tensor) -> Tensor:
        """Encoded columns as the module sees them."""
        home = self._home
        moved = x.to(device=home.device, dtype=home.dtype)
        return moved if self.encode is None else self.encode(moved)

    def _forward(self, x: Tensor) -> Tensor:
        seen = self._seen(x)
        raw: Any = self.model(seen) if self._stated else logits_of(lambda: self.model(seen))
        self._stated = True  # the first answer has shown what it is
        if not isinstance(raw, Tensor):
            raise ModelError(f"the module must return a tensor, {type(raw).__name__} came")
        return raw

    @property
    def _rows_a_call(self) -> int:
        """How many rows a module is asked about at once: many, unless they are very wide."""
        width = self.encoder.d if self.is_module else self.encoder.p
        return max(1, min(ROWS_A_CALL, CELLS_A_CALL // width))

    @property
    def _home(self) -> Tensor:
        """A tensor of the module's device and dtype: its first floating parameter or buffer."""
        if not self.is_module:
            return torch.empty(0)
        tensors: Iterator[Tensor] = chain(self.model.parameters(), self.model.buffers())
        for tensor in tensors:
            if tensor.is_floating_point():
                return tensor
        return torch.empty(0)

    def _frame_scores(self, rows: Tensor) -> Tensor:
        return self._checked(self._ask_frame(self.encoder.frame(rows)), len(rows))

    def _ask_frame(self, frame: pd.DataFrame) -> Tensor:
        # An estimator fitted on plain arrays warns about column names it never saw.
        nameless = hasattr(self.model, "n_features_in_") and not hasattr(
            self.model, "feature_names_in_"
        )
        answer = _ask(self.model, self.output)(frame.to_numpy() if nameless else frame)
        if isinstance(answer, Tensor):  # of whatever device or width, and with a gradient or not
            answer = answer.detach().to("cpu", torch.float64)
        raw = np.asarray(answer)
        if raw.dtype.kind not in "fiub":
            raise ModelError(f"the model must return numbers, dtype {raw.dtype} came")
        # A copy: what pandas gives out may be read-only, and torch warns of that.
        told = torch.from_numpy(np.array(raw, dtype=np.float64, order="C"))
        # Alone, a column would be read as the chance of the second of two classes.
        sole = self.output == "probabilities" and len(self.classes or ()) == 1
        return torch.stack([told.flatten(), 1.0 - told.flatten()], 1) if sole else told

    def _checked(self, raw: Tensor, m: int) -> Tensor:
        """Raw answers as scores, (m, c), or a clear refusal."""
        if raw.ndim == 1 and len(raw) == m:
            raw = raw[:, None]
        if raw.ndim == 0 and m == 1:
            raw = raw.view(1, 1)
        fits = raw.ndim == 2 and len(raw) == m and raw.shape[1] > 0
        if not fits or (self.output == "values" and raw.shape[1] != 1):
            columns = "(m,) or (m, 1)" if self.output == "values" else "(m,), (m, 1) or (m, c)"
            raise ModelError(
                f"the model was asked about m = {m} rows and returned shape {tuple(raw.shape)};"
                f" {columns} is expected"
            )
        # One pass finds NaN and infinity alike.
        if not math.isfinite(raw.detach().sum()) and not bool(torch.isfinite(raw).all()):
            bad = int((~torch.isfinite(raw)).any(1).nonzero()[0, 0])
            raise ModelError(f"the model returned NaN or infinity (first in row {bad} of {m})")
        return _TO_SCORES[self.output](raw)


def _from_probabilities(raw: Tensor) -> Tensor:
    low, high = float(raw.detach().min()), float(raw.detach().max())
    if low < -1e-6 or high > 1.0 + 1e-6:
        raise ModelError(
            f"output='probabilities', but the model returned values from {low:.3g} to {high:.3g};"
            " if these are logits, say output='logits'"
        )
    tiny = 1e-12 if raw.dtype == torch.float64 else 1e-7
    if raw.shape[1] == 1:
        return torch.logit(raw, eps=tiny)
    return raw.clamp_min(tiny).log()


def _unchanged(raw: Tensor) -> Tensor:
    return raw


_TO_SCORES: dict[str, Callable[[Tensor], Tensor]] = {
    "logits": _unchanged,
    "values": _unchanged,
    "probabilities": _from_probabilities,
}


def _ask(model: Any, output: str) -> Any:
    """The method of a black box that answers with this kind of output."""
    named = "predict" if output == "values" else "predict_proba"
    return getattr(model, named, model)
