"""Classifier: the user's model, a torch module or a black box, as scores of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal

import pandas as pd
import torch
from torch import Tensor, nn

from dear_plugin._batches import chunks
from dear_plugin.data.encoder import Encoder
from dear_plugin.errors import ModelError
from dear_plugin.models.backends import FrameModel, TorchModel

Output = Literal["logits", "probabilities", "values"]
ROWS_A_CALL = 1 << 16
CELLS_A_CALL = 1 << 23


class Classifier:
    """Scores, (m, c), of rows, (m, p).

    Scores are logits: one column is the log-odds of class 1, c columns are log-probabilities up
    to a constant. A regression model (`output="values"`) gives its value in one column.

    Args:
        model: a `torch.nn.Module` on the encoded tensor, an object with `predict_proba` on
            frames (and perhaps `predict`, its decision), or any callable from a frame to
            probabilities.
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
        self.encoder = encoder
        self.is_module = isinstance(model, nn.Module)
        self.output: Output = output or ("logits" if self.is_module else "probabilities")
        if self.output not in _TO_SCORES:
            raise ModelError(f"output must be one of {sorted(_TO_SCORES)}, {output!r} came")
        if encode is not None and not self.is_module:
            raise ModelError("encode= is for torch modules; a black box receives frames")
        self._asked: TorchModel | FrameModel = (
            TorchModel(model, encoder, encode, output is not None)
            if self.is_module
            else FrameModel(model, encoder, self.output)
        )

    @property
    def model(self) -> Any:
        """The user's model."""
        return self._asked.model

    @property
    def classes(self) -> Sequence[Hashable] | None:
        """The labels of the columns, where the model names them (scikit-learn's `classes_`)."""
        return self._asked.classes

    @property
    def device(self) -> torch.device:
        """Where the module lives; the CPU for black boxes."""
        return self._asked.home.device

    def scores(self, rows: Tensor, keep_off_grid: bool = False) -> Tensor:
        """The scores of rows, (m, p) -> (m, c), without gradients, on the rows' device.

        Args:
            rows: m rows.
            searching: they are wanted for a search: a chain of small layers is multiplied out as
                is quickest, which may change last digits, and black boxes see people's own numbers
                where these are finer than the schema. What a user is told is asked otherwise.

        Raises:
            ModelError: NaN, infinity, a wrong shape, values that are no probabilities, or a
                module that ends in some without having said so.
        """
        if not len(rows):
            return rows.new_zeros((0, 1))
        # Many at once, unless they are very wide.
        most = max(1, min(ROWS_A_CALL, CELLS_A_CALL // self._asked.width))
        # The search may have switched torch to inference. What the model keeps of a call must not
        # be marked by it, or it could not be differentiated later.
        with torch.inference_mode(mode=False):
            parts = [
                self._checked(self._asked.of_rows(chunk, keep_off_grid), len(chunk))
                for chunk in chunks(rows, most)
            ]
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
        if not len(frame):
            return torch.zeros(0, 1)
        if isinstance(self._asked, FrameModel):
            raw = self._asked.of_frame(frame[list(self.encoder.schema.names)])
            return self._checked(raw, len(frame))
        read = self.encoder.rows(frame) if rows is None else rows
        return self.scores(read.to(self.device)).cpu()

    @property
    def has_decisions(self) -> bool:
        """Whether the model has a decision beside its scores, as objects with `predict` do."""
        return isinstance(self._asked, FrameModel) and self._asked.has_decisions

    def decisions(self, frame: pd.DataFrame) -> Tensor | None:
        """(m,) int64, the columns that the user's own model decides for, of a frame.

        None where it has no decision but its scores: a torch module, a function, a regression.

        Raises:
            ModelError: what its `predict` gives is no class of the model.
        """
        if not isinstance(self._asked, FrameModel) or not self._asked.has_decisions:
            return None
        if not len(frame):
            return torch.zeros(0, dtype=torch.int64)
        return self._asked.decisions(frame[list(self.encoder.schema.names)])

    def score_training_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Training rows, (n, p), and their scores; the complete ones where it takes no others."""
        try:
            return rows, self.scores(rows)
        except Exception:
            levels = self.encoder.levels
            complete = None if levels is None else (rows != levels.missing).all(1)
            if complete is None or bool(complete.all()) or not bool(complete.any()):
                raise
            return rows[complete], self.scores(rows[complete])

    def differentiable(self, x: Tensor) -> Tensor:
        """The scores of encoded columns, (m, d) -> (m, c), with gradients to x.

        Raises:
            ModelError: a black box has no gradient.
        """
        if isinstance(self._asked, FrameModel):
            raise ModelError("a black box has no gradient; use solver='line'")
        return self._checked(self._asked.differentiable(x), len(x)).to(x.device)

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
