"""Classifier: scores and decisions of the user's model, a torch module or a black box."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, get_args

import pandas as pd
import torch
from torch import Tensor, nn

from dear_plugin.data.encoder import Encoder
from dear_plugin.errors import ModelError, shown
from dear_plugin.models.backends import FrameModel, TorchModel
from dear_plugin.problem.scores import most_likely, probabilities

Output = Literal["logits", "probabilities", "values"]
OUTPUTS = get_args(Output)
ROWS_A_CALL = 1 << 16
CELLS_A_CALL = 1 << 23


class Classifier:
    """Scores, (m, c), of rows, (m, p).

    Scores are logits: one column is the log-odds of class 1, c columns are log-probabilities up
    to a constant. The score of a regression model (`output="values"`) is its value, in one column.

    Args:
        model: a `torch.nn.Module` on the encoded tensor, an object with `predict_proba` on
            frames (and perhaps `predict`, its decision), or any callable from a frame to
            probabilities.
        encoder: expands rows for modules and writes frames for black boxes.
        output: "logits" (the default for modules), "probabilities" (the default for black boxes)
            or "values" (regression). It is not inferred from values; without it, a module must not
            end in a sigmoid or a softmax.
        encode: for modules, a differentiable map from encoded columns (m, d) to their inputs.

    Raises:
        ModelError: a model that is none of these, or an unknown `output`.
    """

    def __init__(
        self,
        model: Any,
        encoder: Encoder,
        *,
        output: Output | None = None,
        encode: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self.model, self.encoder = model, encoder
        # Whether it is known that a second call gives the same scores.
        self.repeats = False
        self.is_module = isinstance(model, nn.Module)
        if output is not None and str(output) not in OUTPUTS:
            raise ModelError(f"output must be one of {sorted(OUTPUTS)}, got {shown(output)}")
        self.output: Output = output or ("logits" if self.is_module else "probabilities")
        if encode is not None and not self.is_module:
            raise ModelError("encode= is for torch modules; a black box receives frames")
        self._backend: TorchModel | FrameModel = (
            TorchModel(model, encoder, encode, output is not None)
            if self.is_module
            else FrameModel(model, encoder, self.output)
        )

    @property
    def classes(self) -> Sequence[Hashable] | None:
        """The labels of the score columns, from scikit-learn's `classes_`; None without it."""
        return self._backend.classes

    def scores(self, rows: Tensor) -> Tensor:
        """The scores of rows, (m, p) -> (m, c), without gradients, on the rows' device.

        Args:
            rows: m rows.

        Raises:
            ModelError: NaN, infinity, a wrong shape, values that are no probabilities, or a
                module that ends in a sigmoid or softmax while `output` is not stated.
        """
        if not len(rows):
            return rows.new_zeros((0, 1))
        width = self.encoder.d if self.is_module else self.encoder.p
        most = max(1, min(ROWS_A_CALL, CELLS_A_CALL // width))
        # Tensors that the model caches in a call must not be inference tensors, which cannot be
        # differentiated later.
        with torch.inference_mode(mode=False):
            parts = [
                self._to_scores(self._backend.outputs(chunk), len(chunk))
                for chunk in rows.split(most)
            ]
        counts = sorted({part.shape[1] for part in parts})
        if len(counts) > 1:
            raise ModelError(f"the model returned {counts} columns for parts of the same rows")
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).to(rows.device)

    def frame_scores(self, frame: pd.DataFrame, rows: Tensor | None = None) -> Tensor:
        """The scores of a frame in user units, (m, c).

        Args:
            frame: m rows.
            rows: (m, p) the same rows, if the caller has read them already.
        """
        if not len(frame):
            return torch.zeros(0, 1)
        if isinstance(self._backend, FrameModel):
            raw = self._backend.frame_outputs(self.encoder.typed(frame))
            return self._to_scores(raw, len(frame))
        rows = self.encoder.rows(frame) if rows is None else rows
        return self.scores(rows)

    @property
    def has_decisions(self) -> bool:
        """Whether the model has decisions of its own: both `predict` and `predict_proba`."""
        return self._backend.has_decisions

    def decisions(self, frame: pd.DataFrame) -> Tensor | None:
        """(m,) int64, the score columns of the classes that the model predicts for a frame.

        None for a model without `predict`: a torch module, a function, a regression.

        Raises:
            ModelError: `predict` returns anything but classes of the model.
        """
        if not isinstance(self._backend, FrameModel) or not self._backend.has_decisions:
            return None
        if not len(frame):
            return torch.zeros(0, dtype=torch.int64)
        return self._backend.decisions(self.encoder.typed(frame))

    def decided(self, frame: pd.DataFrame, scores: Tensor) -> Tensor:
        """(m,) int64, the classes of a frame: the model's decisions, else the likeliest by scores.

        Args:
            frame: m rows.
            scores: (m, c) theirs.
        """
        own = self.decisions(frame)
        return most_likely(scores) if own is None else own

    def in_units(self, scores: Tensor) -> Tensor:
        """Scores, (m, c), as probabilities of every class, or as the values of a regression."""
        return scores.double() if self.output == "values" else probabilities(scores)

    def score_training_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Training rows, (n, p), and their scores; if it fails, those of the complete rows."""
        try:
            return rows, self.scores(rows)
        except Exception:
            complete = (rows != self.encoder.missing).all(1)
            if bool(complete.all()) or not bool(complete.any()):
                raise
            return rows[complete], self.scores(rows[complete])

    def differentiable(self, x: Tensor) -> Tensor:
        """The scores of encoded columns, (m, d) -> (m, c), with gradients to x.

        Raises:
            ModelError: a black box has no gradient.
        """
        if isinstance(self._backend, FrameModel):
            raise ModelError("a black box has no gradient; use solver='line'")
        return self._to_scores(self._backend.differentiable(x), len(x)).to(x.device)

    def _to_scores(self, raw: Tensor, m: int) -> Tensor:
        """Raw outputs as scores, (m, c); a `ModelError` if they are none."""
        if raw.ndim == 1 and len(raw) == m:
            raw = raw[:, None]
        if raw.ndim == 0 and m == 1:
            raw = raw.view(1, 1)
        valid = raw.ndim == 2 and len(raw) == m and raw.shape[1] > 0
        if not valid or (self.output == "values" and raw.shape[1] != 1):
            columns = "(m,) or (m, 1)" if self.output == "values" else "(m,), (m, 1) or (m, c)"
            raise ModelError(
                f"the model got m = {m} rows and returned shape {tuple(raw.shape)};"
                f" {columns} is expected"
            )
        # The sum is a cheap test: NaN and infinity propagate to it.
        if not math.isfinite(raw.detach().sum()) and not bool(torch.isfinite(raw).all()):
            bad = int((~torch.isfinite(raw)).any(1).nonzero()[0, 0])
            raise ModelError(f"the model returned NaN or infinity (first in row {bad} of {m})")
        return _from_probabilities(raw) if self.output == "probabilities" else raw


def _from_probabilities(raw: Tensor) -> Tensor:
    low, high = float(raw.detach().min()), float(raw.detach().max())
    if low < -1e-6 or high > 1.0 + 1e-6:
        raise ModelError(
            f"output='probabilities', but the model returned values from {low:.3g} to {high:.3g};"
            " pass output='logits' if these are logits, output='values' if they are predictions of"
            " a regression"
        )
    tiny = 1e-12 if raw.dtype == torch.float64 else 1e-7
    if raw.shape[1] == 1:
        return torch.logit(raw, eps=tiny)
    return raw.clamp_min(tiny).log()
