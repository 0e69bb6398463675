"""Models: a torch module or a black box as it is asked, and what it says as it came."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from dear_plugin.data.encoder import Encoder
from dear_plugin.errors import ModelError
from dear_plugin.models.eval_mode import evaluating
from dear_plugin.models.output_kind import logits_of

# Words in what torch says of a tensor of a wrong shape.
SHAPES = ("shape", "size", "elements", "dimension", "channels")
OUT_OF_MEMORY = (torch.cuda.OutOfMemoryError, MemoryError)
# What to do with an object whose `predict` is something else.
NO_DECISION = (
    "`predict` beside `predict_proba` is taken for the model's decision; to decide by the"
    " probabilities alone, pass the function `model.predict_proba`"
)


class TorchModel:
    """A torch module, which is asked about encoded columns.

    Args:
        model: the module.
        encoder: the gate that expands rows.
        encode: a differentiable map from our encoded columns, (m, d), to the host's.
        stated: whether its user said what it returns.
    """

    def __init__(
        self,
        model: nn.Module,
        encoder: Encoder,
        encode: Callable[[Tensor], Tensor] | None,
        stated: bool,
    ) -> None:
        self.model, self.encoder, self.encode, self.stated = model, encoder, encode, stated

    @property
    def width(self) -> int:
        """How many numbers a row takes."""
        return self.encoder.d

    @property
    def home(self) -> Tensor:
        """A tensor of the module's device and dtype: its first floating parameter or buffer."""
        tensors: Iterator[Tensor] = chain(self.model.parameters(), self.model.buffers())
        for each in tensors:
            if each.is_floating_point():
                return each
        return torch.empty(0)

    @property
    def classes(self) -> Sequence[Hashable] | None:
        """The labels of the columns: a module names none."""
        return None

    def of_rows(self, rows: Tensor, keep_off_grid: bool = False) -> Tensor:
        """What it says of rows, (m, p), without gradients.

        Args:
            rows: m rows.
            keep_off_grid: makes no difference to a module.
        """
        with torch.no_grad(), evaluating(self.model):
            return self._said(self._seen(self.encoder.expand(rows)))

    def differentiable(self, x: Tensor) -> Tensor:
        """What it says of encoded columns, (m, d), with gradients to them."""
        with evaluating(self.model):
            return self._said(self._seen(x.clone()))

    def _seen(self, x: Tensor) -> Tensor:
        """Encoded columns as the module sees them."""
        home = self.home
        moved = x.to(device=home.device, dtype=home.dtype)
        return moved if self.encode is None else self.encode(moved)

    def _said(self, seen: Tensor) -> Tensor:
        with self._width_named(seen):
            raw: Any = self.model(seen) if self.stated else logits_of(lambda: self.model(seen))
        self.stated = True  # the first answer has shown what it is
        if not isinstance(raw, Tensor):
            raise ModelError(f"the module must return a tensor, {type(raw).__name__} came")
        return raw

    @contextmanager
    def _width_named(self, seen: Tensor) -> Iterator[None]:
        """Torch's error on a tensor of another shape than a module takes, told as what it is."""
        try:
            yield
        except (RuntimeError, IndexError) as error:
            if isinstance(error, OUT_OF_MEMORY) or not any(word in str(error) for word in SHAPES):
                raise
            made = "which encode= made of" if self.encode else "which are"
            raise ModelError(
                f"the module does not take rows of shape {tuple(seen.shape)}, {made} the"
                f" {self.encoder.d} encoded columns of the schema's {self.encoder.p} features"
                f" (torch: {error}). Train it on Encoder(schema).encode(frame), or give encode=, a"
                " map from these columns to its own"
            ) from error


class FrameModel:
    """A model that is asked about frames.

    Args:
        model: an object with `predict_proba`, with `predict` for values, or any callable.
        encoder: the gate that writes frames.
        output: what it returns, see `Classifier`.

    Raises:
        ModelError: it cannot be asked.
    """

    def __init__(self, model: Any, encoder: Encoder, output: str) -> None:
        self.model, self.encoder, self.output = model, encoder, output
        if not callable(self._answer):
            raise ModelError(
                f"a model must be a torch module, have predict_proba, or be callable on frames;"
                f" {type(model).__name__} came"
            )

    @property
    def width(self) -> int:
        """How many numbers a row takes."""
        return self.encoder.p

    @property
    def home(self) -> Tensor:
        """A tensor of the device that answers: it is given none."""
        return torch.empty(0)

    @property
    def classes(self) -> Sequence[Hashable] | None:
        """The labels of the columns, where the model names them (scikit-learn's `classes_`)."""
        labels = getattr(self.model, "classes_", None)
        return None if labels is None else list(np.asarray(labels).tolist())

    def of_rows(self, rows: Tensor, keep_off_grid: bool = False) -> Tensor:
        """What it says of rows, (m, p), double.

        Args:
            rows: m rows.
            keep_off_grid: what does not move is a person's own, however fine.
        """
        return self.of_frame(self.encoder.frame(rows, keep_off_grid=keep_off_grid))

    def of_frame(self, frame: pd.DataFrame) -> Tensor:
        """What it says of a frame of the features alone, double."""
        raw = _array(self._answer(self._given(frame)))
        if raw.dtype.kind not in "fiub":
            raise ModelError(f"the model must return numbers, dtype {raw.dtype} came")
        # A copy: what pandas gives out may be read-only, and torch warns of that.
        told = torch.from_numpy(np.array(raw, dtype=np.float64, order="C"))
        # Alone, a column would be read as the chance of the second of two classes.
        sole = self.output == "probabilities" and len(self.classes or ()) == 1
        return torch.stack([told.flatten(), 1.0 - told.flatten()], 1) if sole else told

    @property
    def has_decisions(self) -> bool:
        """Whether it has a decision of its own: `predict` beside `predict_proba`."""
        both = (getattr(self.model, name, None) for name in ("predict", "predict_proba"))
        return self.output != "values" and all(map(callable, both))

    def decisions(self, frame: pd.DataFrame) -> Tensor:
        """(m,) int64, the columns of the classes that `predict` gives a frame of the features.

        Raises:
            ModelError: what it gives is no class of the model.
        """
        told, m = _array(self.model.predict(self._given(frame))), len(frame)
        if told.size != m:
            raise ModelError(
                f"`predict` was asked about m = {m} rows and returned shape {told.shape}; one"
                f" class a row is expected. {NO_DECISION}"
            )
        places, labels = pd.factorize(told.reshape(-1))
        known = {label: i for i, label in enumerate(self.classes or ())}
        columns = np.array([_column(label, known) for label in labels.tolist()], dtype=np.int64)
        if (places < 0).any() or (columns < 0).any():
            strange = [x for x in told.reshape(-1).tolist() if _column(x, known) < 0]
            raise ModelError(
                f"`predict` returned {strange[0]!r}, which is none of the model's classes"
                f" {list(known) or 'classes, numbers from 0: it has no classes_'}. {NO_DECISION}"
            )
        return torch.from_numpy(columns[places])

    def _given(self, frame: pd.DataFrame) -> Any:
        """A frame as the model takes it."""
        # An estimator fitted on plain arrays warns about column names it never saw.
        nameless = hasattr(self.model, "n_features_in_") and not hasattr(
            self.model, "feature_names_in_"
        )
        return frame.to_numpy() if nameless else frame

    @property
    def _answer(self) -> Any:
        named = "predict" if self.output == "values" else "predict_proba"
        return getattr(self.model, named, self.model)


def _array(answer: Any) -> npt.NDArray[Any]:
    """What a black box returned, as an array."""
    if isinstance(answer, Tensor):  # of whatever device or width, and with a gradient or not
        wide = torch.float64 if answer.is_floating_point() else answer.dtype
        return np.asarray(answer.detach().to("cpu", wide))
    return np.asarray(answer)


def _column(label: Any, known: Mapping[Any, int]) -> int:
    """The place of a label among a model's classes, or the number that it is; -1 for neither."""
    if known:
        return known.get(label, -1)
    number = float(label) if isinstance(label, Real) else -1.0
    return int(number) if number >= 0.0 and number.is_integer() else -1
