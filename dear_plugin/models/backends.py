"""Backends: raw outputs of a torch module on encoded columns, or of a black box on frames."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from dear_plugin._threads import users_threads
from dear_plugin.data.encoder import Encoder
from dear_plugin.errors import ModelError
from dear_plugin.models.foreign import evaluating, logits_of

# Words in torch's error messages on tensors of a wrong shape.
SHAPES = ("shape", "size", "elements", "dimension", "channels")
OUT_OF_MEMORY = (torch.cuda.OutOfMemoryError, MemoryError)
NO_DECISION = (
    "If a model has `predict` and `predict_proba`, `predict` is its decision; to decide by the"
    " probabilities alone, pass the function `model.predict_proba`"
)


@dataclass(eq=False)
class TorchModel:
    """A torch module on encoded columns, without names or decisions of classes.

    Attributes:
        model: the module.
        encoder: expands rows.
        encode: a differentiable map from encoded columns, (m, d), to the module's inputs.
        stated: whether the user stated `output`; if not, the first call checks for a sigmoid or
            softmax at the end of the module.
    """

    model: nn.Module
    encoder: Encoder
    encode: Callable[[Tensor], Tensor] | None
    stated: bool
    classes: ClassVar[Sequence[Hashable] | None] = None
    has_decisions: ClassVar[bool] = False

    @property
    def reference(self) -> Tensor:
        """A tensor of the module's device and dtype: its first floating parameter or buffer."""
        tensors: Iterator[Tensor] = chain(self.model.parameters(), self.model.buffers())
        return next((t for t in tensors if t.is_floating_point()), torch.empty(0))

    def outputs(self, rows: Tensor) -> Tensor:
        """The raw outputs on rows, (m, p), without gradients."""
        x = self.encoder.expand(rows)
        with torch.no_grad(), evaluating(self.model):
            return self._call(self._inputs(x))

    def differentiable(self, x: Tensor) -> Tensor:
        """The raw outputs on encoded columns, (m, d), with gradients."""
        raw: Tensor = _WithGradient.apply(x, self._evaluated)  # type: ignore[no-untyped-call]
        return raw

    def _evaluated(self, x: Tensor) -> Tensor:
        with evaluating(self.model):
            return self._call(self._inputs(x.clone()))

    def _inputs(self, x: Tensor) -> Tensor:
        """Encoded columns as the module's inputs."""
        reference = self.reference
        moved = x.to(device=reference.device, dtype=reference.dtype)
        return moved if self.encode is None else self.encode(moved)

    def _call(self, inputs: Tensor) -> Tensor:
        with self._shape_errors(inputs):
            raw: Any = self.model(inputs) if self.stated else logits_of(lambda: self.model(inputs))
        self.stated = True  # one call suffices to check the end of the module
        if not isinstance(raw, Tensor):
            raise ModelError(f"the module must return a tensor, got {type(raw).__name__}")
        return raw

    @contextmanager
    def _shape_errors(self, inputs: Tensor) -> Iterator[None]:
        """Replace torch's errors on inputs of a wrong shape by one that states the encoding."""
        try:
            yield
        except (RuntimeError, IndexError) as error:
            if isinstance(error, OUT_OF_MEMORY) or not any(word in str(error) for word in SHAPES):
                raise
            made = "which encode= made of" if self.encode else "which are"
            raise ModelError(
                f"the module does not take rows of shape {tuple(inputs.shape)}, {made} the"
                f" {self.encoder.d} encoded columns of the schema's {self.encoder.p} features"
                f" (torch: {error}). Train it on Encoder(schema).encode(frame), or pass encode=, a"
                " map from these columns to its inputs"
            ) from error


class _WithGradient(torch.autograd.Function):
    """The outputs of a module; their gradient is taken with the user's threads, too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, call: Callable[[Tensor], Tensor]) -> Tensor:
        with torch.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.raw = call(ctx.x)
        raw: Tensor = ctx.raw.detach()
        return raw

    @staticmethod
    def backward(ctx: Any, weights: Tensor) -> tuple[Tensor, None]:
        with users_threads():
            (gradient,) = torch.autograd.grad(ctx.raw, ctx.x, weights)
        return gradient, None


class FrameModel:
    """A model on frames in user units.

    Args:
        model: an object with `predict_proba`, with `predict` for values, or any callable.
        encoder: writes frames.
        output: what it returns, see `Classifier`.

    Raises:
        ModelError: it has none of these.
    """

    def __init__(self, model: Any, encoder: Encoder, output: str) -> None:
        self.model, self.encoder, self.output = model, encoder, output
        if isinstance(model, type):
            raise ModelError(f"expected a model, got its class: {model.__name__}(...).fit(X, y)")
        if not callable(self._function):
            raise ModelError(
                "a model must be a torch module, have predict_proba, or be callable on frames; got"
                f" {type(model).__name__}. A regression, which has predict only, needs"
                " output='values'; a classifier without probabilities, such as SVC, is wrapped:"
                " sklearn.calibration.CalibratedClassifierCV(model).fit(X, y). Where a"
                " decision_function above 0 accepts, as of outlier detectors, pass this function,"
                " model.decision_function, with output='logits'"
            )

    @property
    def classes(self) -> Sequence[Hashable] | None:
        """The labels of the output columns, from scikit-learn's `classes_`; None without it."""
        labels = getattr(self.model, "classes_", None)
        return None if labels is None else list(np.asarray(labels).tolist())

    def outputs(self, rows: Tensor) -> Tensor:
        """The raw outputs on rows, (m, p), double."""
        return self.frame_outputs(self.encoder.frame(rows))

    def frame_outputs(self, frame: pd.DataFrame) -> Tensor:
        """The raw outputs on a frame of the features alone, double."""
        with self._own_errors(), users_threads():
            raw = _array(self._function(self._inputs(frame)))
        if raw.dtype.kind not in "fiub":
            raise ModelError(f"the model must return numbers, got dtype {raw.dtype}")
        # A copy: arrays from pandas may be read-only, of which torch warns.
        out = torch.from_numpy(np.array(raw, dtype=np.float64, order="C"))
        # The single column of a one-class model is not the probability of a second class.
        one_class = self.output == "probabilities" and len(self.classes or ()) == 1
        return torch.stack([out.flatten(), 1.0 - out.flatten()], 1) if one_class else out

    @property
    def has_decisions(self) -> bool:
        """Whether it has both `predict`, its decision, and `predict_proba`."""
        both = (getattr(self.model, name, None) for name in ("predict", "predict_proba"))
        return self.output != "values" and all(map(callable, both))

    def decisions(self, frame: pd.DataFrame) -> Tensor:
        """(m,) int64, the columns of the classes that `predict` gives a frame of the features.

        Raises:
            ModelError: `predict` returns anything but classes of the model.
        """
        with users_threads():
            labels, m = _array(self.model.predict(self._inputs(frame))), len(frame)
        if labels.size != m:
            raise ModelError(
                f"`predict` got m = {m} rows and returned shape {labels.shape}; one class per row"
                f" is expected. {NO_DECISION}"
            )
        codes, distinct = pd.factorize(labels.reshape(-1))
        known = {label: i for i, label in enumerate(self.classes or ())}
        columns = np.array([_column(label, known) for label in distinct.tolist()], dtype=np.int64)
        if (codes < 0).any() or (columns < 0).any():
            unknown = [x for x in labels.reshape(-1).tolist() if _column(x, known) < 0]
            raise ModelError(
                f"`predict` returned {unknown[0]!r}, which is none of the model's classes"
                f" {list(known) or 'classes, numbers from 0: it has no classes_'}. {NO_DECISION}"
            )
        return torch.from_numpy(columns[codes])

    @contextmanager
    def _own_errors(self) -> Iterator[None]:
        """Add to an error of the model's own what it was called with, as a note."""
        try:
            yield
        except Exception as error:
            names = list(self.encoder.schema.names)
            trained = list(getattr(self.model, "feature_names_in_", names))
            note = (
                f"The model was called with a frame of the schema's columns, {names}: encoders and"
                " scalers must be inside it, a pipeline or a function of such a frame"
            )
            if absent := [name for name in map(str, trained) if name not in names]:
                note = f"The model was trained on columns that the training rows lack: {absent}"
            elif sorted(map(str, trained)) == sorted(names) and trained != names:
                note = (
                    "The model was trained on these columns in another order: the schema's is that"
                    " of its frame, Schema.infer(frame[model.feature_names_in_])"
                )
            error.add_note(note)
            raise

    def _inputs(self, frame: pd.DataFrame) -> Any:
        """A frame, or an array for an estimator fitted on arrays, which warns of column names."""
        on_arrays = hasattr(self.model, "n_features_in_") and not hasattr(
            self.model, "feature_names_in_"
        )
        return frame.to_numpy() if on_arrays else frame

    @property
    def _function(self) -> Any:
        name = "predict" if self.output == "values" else "predict_proba"
        return getattr(self.model, name, self.model)


def _array(output: Any) -> npt.NDArray[Any]:
    """The output of a black box as an array; tensors of any device and dtype are converted."""
    if isinstance(output, Tensor):
        dtype = torch.float64 if output.is_floating_point() else output.dtype
        return np.asarray(output.detach().to("cpu", dtype))
    return np.asarray(output)


def _column(label: Any, known: Mapping[Any, int]) -> int:
    """The index of a label among the classes; without these, the label itself; -1 for neither."""
    if known:
        return known.get(label, -1)
    number = float(label) if isinstance(label, Real) else -1.0
    return int(number) if number >= 0.0 and number.is_integer() else -1
