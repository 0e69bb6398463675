"""Scores and decisions of the user's model, a torch module or a black box.

A model may predict another class than the likeliest one: scikit-learn's
`FixedThresholdClassifier` and `TunedThresholdClassifierCV` do. A search evaluates only
probabilities. It needs the *cutoff*, the margin at which the prediction changes. The cutoff is
estimated from training rows, so that a counterfactual does not depend on other rows of the query.

Errors and warnings are about unsuitable models: not fitted, random, or with labels as scores.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from numbers import Real
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from dear_plugin._threads import users_threads
from dear_plugin.data.cells import cells_of
from dear_plugin.data.encoder import Encoder
from dear_plugin.errors import ModelError, shown
from dear_plugin.models.foreign import evaluating, logits_of
from dear_plugin.problem.goals import ClassGoal, most_likely, probabilities

logger = logging.getLogger(__name__)
Output = Literal["logits", "probabilities", "values"]
OUTPUTS = get_args(Output)
# The largest difference of the sum of a row's probabilities from 1: half precision rounds.
APART = 1e-2
SEVERAL = (
    "for a model with several outputs, pass a function of one of them, such as"
    " lambda rows: model.predict_proba(rows)[{}]"
)
ROWS_A_CALL = 1 << 16
CELLS_A_CALL = 1 << 23


class Classifier:
    """The user's model, which returns scores, (m, c), of rows, (m, p).

    Scores are logits: one column is the log-odds of class 1, c columns are log-probabilities up
    to a constant. The score of a regression model (`output="values"`) is its value, in one column.

    Args:
        model: a `torch.nn.Module` on the encoded tensor, an object with `predict_proba` on
            frames (and perhaps `predict`, its decision), or any callable from a frame to
            probabilities.
        encoder: expands rows for modules and writes frames for black boxes.
        output: "logits" (the default for modules), "probabilities" (the default for black boxes)
            or "values" (regression). Without it, a module must not end in a sigmoid or a softmax.
        encode: for modules, a differentiable map from encoded columns (m, d) to their inputs.

    Raises:
        ModelError: another kind of model, or an unknown `output`.
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
        # Whether a second call has returned the same scores.
        self.repeats = False
        self.is_module = isinstance(model, nn.Module)
        if output is not None and str(output) not in OUTPUTS:
            raise ModelError(f"output must be one of {sorted(OUTPUTS)}, got {shown(output)}")
        self.output: Output = output or ("logits" if self.is_module else "probabilities")
        if encode is not None and not self.is_module:
            raise ModelError(f"encode= is for torch modules, got {type(model).__name__}: omit it")
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
            ModelError: the model returned NaN, infinity, a wrong shape, or values outside of
                [0, 1]; or a module ends in a sigmoid or softmax while `output` is not stated.
        """
        if not len(rows):
            return rows.new_zeros((0, 1))
        width = self.encoder.d if self.is_module else self.encoder.p
        most = max(1, min(ROWS_A_CALL, CELLS_A_CALL // width))
        # A model may cache tensors; inference tensors cannot be differentiated later.
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
            rows: (m, p) the same rows, if they are known.
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
        """Whether the model has both `predict`, its decision, and `predict_proba`."""
        return self._backend.has_decisions

    def decisions(self, frame: pd.DataFrame) -> Tensor | None:
        """(m,) int64, the score columns of the classes that the model predicts for a frame.

        It is None for a model without `predict`: a torch module, a function, a regression.

        Raises:
            ModelError: `predict` returned other values than classes of the model.
        """
        if not isinstance(self._backend, FrameModel) or not self._backend.has_decisions:
            return None
        if not len(frame):
            return torch.zeros(0, dtype=torch.int64)
        return self._backend.decisions(self.encoder.typed(frame))

    def decided(self, frame: pd.DataFrame, scores: Tensor) -> Tensor:
        """(m,) int64, the decided classes: the model's decisions, or else the likeliest classes.

        Args:
            frame: m rows.
            scores: (m, c) their scores.
        """
        own = self.decisions(frame)
        return most_likely(scores) if own is None else own

    def in_units(self, scores: Tensor) -> Tensor:
        """The probabilities of every class, or the values of a regression, from scores, (m, c)."""
        return scores.double() if self.output == "values" else probabilities(scores)

    def score_training_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Training rows, (n, p), and their scores; complete rows only if the model needs these."""
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
            raise ModelError("a black box has no gradient; use solver='line' or a torch module")
        return self._to_scores(self._backend.differentiable(x), len(x)).to(x.device)

    def _to_scores(self, raw: Tensor, m: int) -> Tensor:
        """Raw outputs as scores, (m, c); a `ModelError` for a wrong shape or value."""
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
            " state output='logits' for logits, or output='values' for predictions of a regression"
        )
    tiny = 1e-12 if raw.dtype == torch.float64 else 1e-7
    if raw.shape[1] == 1:
        return torch.logit(raw, eps=tiny)
    sums = raw.detach().double().sum(1)
    if bool(((sums - 1.0).abs() > APART).any()):
        bad = int((sums - 1.0).abs().argmax())
        raise ModelError(
            f"the probabilities of {raw.shape[1]} classes must sum to 1, and those of row {bad} of"
            f" {len(raw)} sum to {float(sums[bad]):.3g}; {SEVERAL.format(':, 1')}; for scores that"
            " are not probabilities, state output='logits'"
        )
    return raw.clamp_min(tiny).log()


# Words in torch's error messages on tensors of a wrong shape.
SHAPES = ("shape", "size", "elements", "dimension", "channels")
OUT_OF_MEMORY = (torch.cuda.OutOfMemoryError, MemoryError)
NO_DECISION = (
    "If a model has `predict` and `predict_proba`, `predict` is its decision. To decide by"
    " probabilities alone, pass the function `model.predict_proba`"
)


@dataclass(eq=False)
class TorchModel:
    """A torch module on encoded columns; it has no class labels and no `predict`.

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
        """The module's inputs: of the device and dtype of its first parameter or buffer."""
        tensors: Iterator[Tensor] = chain(self.model.parameters(), self.model.buffers())
        like = next((t for t in tensors if t.is_floating_point()), torch.empty(0))
        moved = x.to(device=like.device, dtype=like.dtype)
        return moved if self.encode is None else self.encode(moved)

    def _call(self, inputs: Tensor) -> Tensor:
        """Its outputs; torch's error on inputs of a wrong shape becomes one on the encoding."""
        try:
            raw: Any = self.model(inputs) if self.stated else logits_of(lambda: self.model(inputs))
        except (RuntimeError, IndexError) as error:
            if isinstance(error, OUT_OF_MEMORY) or not any(word in str(error) for word in SHAPES):
                raise
            made = "that encode= returned for" if self.encode else "which are"
            raise ModelError(
                f"the module does not take rows of shape {tuple(inputs.shape)}, {made} the"
                f" {self.encoder.d} encoded columns of the schema's {self.encoder.p} features"
                f" (torch: {error}). Train it on Encoder(schema).encode(frame), or pass as encode="
                " a map from these columns to its inputs"
            ) from error
        self.stated = True  # one call suffices to check the end of the module
        if not isinstance(raw, Tensor):
            raise ModelError(f"the module must return a tensor, got {type(raw).__name__}")
        return raw


class _WithGradient(torch.autograd.Function):
    """The outputs of a module, with gradients computed on the user's threads, too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, call: Callable[[Tensor], Tensor]) -> Tensor:
        """The outputs, (m, c), of `call` on x, (m, d)."""
        with torch.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.raw = call(ctx.x)
        raw: Tensor = ctx.raw.detach()
        return raw

    @staticmethod
    def backward(ctx: Any, weights: Tensor) -> tuple[Tensor, None]:
        """The gradient with respect to x, (m, d), of outputs weighted by (m, c) weights."""
        with users_threads():
            (gradient,) = torch.autograd.grad(ctx.raw, ctx.x, weights)
        return gradient, None


class FrameModel:
    """A black box on frames in user units.

    Args:
        model: an object with `predict_proba`, with `predict` for values, or any callable.
        encoder: writes frames.
        output: the kind of its outputs, see `Classifier`.

    Raises:
        ModelError: the model has no such method and is not callable.
    """

    def __init__(self, model: Any, encoder: Encoder, output: str) -> None:
        self.model, self.encoder, self.output = model, encoder, output
        if isinstance(model, type):
            raise ModelError(f"expected a model, got its class: {model.__name__}(...).fit(X, y)")
        if not callable(self._function):
            raise ModelError(
                "a model must be a torch module, have predict_proba, or be callable on frames; got"
                f" {type(model).__name__}. For a regression, which has only predict, state"
                " output='values'. Wrap a classifier without probabilities, such as SVC:"
                " sklearn.calibration.CalibratedClassifierCV(model).fit(X, y). For a model whose"
                " decision_function above 0 accepts, such as outlier detectors, pass the function"
                " model.decision_function with output='logits'"
            )

    @property
    def classes(self) -> Sequence[Hashable] | None:
        """The labels of the output columns, from scikit-learn's `classes_`; None without it."""
        labels = getattr(self.model, "classes_", None)
        if labels is not None and any(map(np.ndim, labels)):
            raise ModelError(f"the model has {len(labels)} outputs: {SEVERAL.format(0)}")
        return None if labels is None else list(np.asarray(labels).tolist())

    def outputs(self, rows: Tensor) -> Tensor:
        """The raw outputs on rows, (m, p), double."""
        return self.frame_outputs(self.encoder.frame(rows))

    def frame_outputs(self, frame: pd.DataFrame) -> Tensor:
        """The raw outputs on a frame of the features alone, double."""
        with self._own_errors(frame), users_threads():
            raw = _array(self._function(self._inputs(frame)))
        if raw.dtype.kind not in "fiub":
            raise ModelError(f"the model must return numbers, got dtype {raw.dtype}")
        # A copy: torch warns of read-only arrays, which pandas may return.
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
        """(m,) int64, the score columns of the classes that `predict` returns for a frame.

        Raises:
            ModelError: `predict` returned other values than classes of the model.
        """
        with self._own_errors(frame), users_threads():
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
                f" {list(known) or '(no classes_, so numbers from 0)'}. {NO_DECISION}"
            )
        return torch.from_numpy(columns[codes])

    @contextmanager
    def _own_errors(self, frame: pd.DataFrame) -> Iterator[None]:
        """Add a note to an error of the model: the frame, (m, p), that it was called with."""
        try:
            yield
        except Exception as error:
            names = list(self.encoder.schema.names)
            trained = list(getattr(self.model, "feature_names_in_", names))
            note = (
                f"The model was called with a frame of the schema's columns, {names}. It must take"
                " such a frame: put encoders and scalers inside it, in a pipeline or a function"
            )
            if absent := [name for name in map(str, trained) if name not in names]:
                note = f"The model was trained on columns that the training rows lack: {absent}"
            elif sorted(map(str, trained)) == sorted(names) and trained != names:
                note = (
                    "The model was trained on these columns in another order. Infer the schema"
                    " from them in that order: Schema.infer(frame[model.feature_names_in_])"
                )
            rows = f"{len(frame)} rows, the first of them {frame.index[:3].tolist()}"
            error.add_note(f"The user's model raised this error for {rows}. {note}")
            raise

    def _inputs(self, frame: pd.DataFrame) -> Any:
        """A frame, or an array if the estimator was fitted on arrays."""
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
    if isinstance(output, list | tuple) and any(np.ndim(each) > 1 for each in output):
        raise ModelError(
            f"the model returned {len(output)} arrays, one is expected: {SEVERAL.format(0)}"
        )
    return np.asarray(output)


def _column(label: Any, known: Mapping[Any, int]) -> int:
    """The score column of a label: its place in the classes, or the label itself; -1 for none."""
    if known:
        return known.get(label, -1)
    number = float(label) if isinstance(label, Real) else -1.0
    return int(number) if number >= 0.0 and number.is_integer() else -1


# The number of training rows that are predicted first, and the number if `predict` differs from
# the likeliest class for some of them.
SOME_ROWS, MOST_ROWS = 2_000, 20_000
# The refinement: new rows in each round, recombined column by column from rows near the cutoff.
PARENTS, CHILDREN, ROUNDS = 40, 500, 5
# The cutoff is at most this far below the first accepted margin, in log-odds. The search aims
# slightly above it. It must not skip a score that many rows share, as trees return.
BEFORE = 2e-4
# The distance of the cutoff from the outermost row if all rows lie on one side, in log-odds.
FAR = 1.0
# At least so many rows above the second cutoff are all accepted.
RUN = 50

Ends = tuple[float, float]


def cutoffs(classifier: Classifier, rows: Tensor) -> Tensor | None:
    """(2, c) double, two cutoffs per class: margins from which on the model predicts it.

    The first cutoff has the fewest errors; no row just above the second one is rejected. They are
    equal if the prediction depends on the margin alone. The result is None if the model has no
    `predict`, or predicts the likeliest class.

    Args:
        classifier: the model.
        rows: (n, p) training rows.
    """
    if not classifier.has_decisions:
        return None
    rng = torch.Generator().manual_seed(0)
    order = torch.randperm(len(rows), generator=rng)
    sample = _Predicted.of(classifier, rows[order[:SOME_ROWS]])
    if bool((most_likely(sample.scores) == sample.decisions).all()):
        return None
    if len(rows) > SOME_ROWS:
        sample = _Predicted.of(classifier, rows[order[:MOST_ROWS]])
    classes = max(sample.scores.shape[1], 2)
    pairs = [_cutoff(classifier, sample, label, rng) for label in range(classes)]
    return torch.tensor(pairs, dtype=torch.float64).T


@dataclass(frozen=True)
class _Predicted:
    """The scores, (m, c), and the decisions, (m,), of m rows, (m, p)."""

    rows: Tensor
    scores: Tensor
    decisions: Tensor

    @classmethod
    def of(cls, classifier: Classifier, rows: Tensor) -> _Predicted:
        """Evaluate rows."""
        frame = classifier.encoder.frame(rows)
        scores = classifier.frame_scores(frame)
        return cls(rows, scores, classifier.decided(frame, scores))

    def joined(self, other: _Predicted) -> _Predicted:
        """The rows of both."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Predicted(*map(torch.cat, pairs))


def _cutoff(
    classifier: Classifier, sample: _Predicted, label: int, rng: torch.Generator
) -> tuple[float, float]:
    """The two cutoffs of a class: with the fewest errors, and the strict one.

    Training rows may be sparse near the cutoff. Rows on both sides are recombined in several
    rounds until the cutoff is bracketed closely.
    """
    order, position, ends, strict = _scan(sample, label)
    for _ in range(ROUNDS):
        if ends[1] - ends[0] <= BEFORE:
            break
        before = ends
        near = sample.rows[order[max(0, position - PARENTS) : position + PARENTS]]
        picks = torch.randint(len(near), (CHILDREN, near.shape[1]), generator=rng)
        sample = sample.joined(_Predicted.of(classifier, near.gather(0, picks)))
        order, position, ends, strict = _scan(sample, label)
        if ends == before:
            break
    return _between(*ends), _between(*strict)


def _scan(sample: _Predicted, label: int) -> tuple[Tensor, int, Ends, Ends]:
    """(m,) the order by margin, the place of the cutoff, and the margins around both cutoffs."""
    goal = ClassGoal(torch.full((len(sample.rows),), label))
    margin, order = goal.margin(sample.scores).double().sort()
    rejected = (sample.decisions != label)[order].long()
    # (m + 1,) the errors of a cutoff before each row, and after the last one.
    above = pad(rejected.flip(0).cumsum(0).flip(0), (0, 1))
    errors = above + pad((1 - rejected).cumsum(0), (1, 0))
    position = _least(errors, margin)
    strict = above - pad(above[RUN:], (0, min(RUN, len(above))))
    strict[:position] = RUN
    return order, position, _around(margin, position), _around(margin, _least(strict, margin))


def _least(errors: Tensor, margin: Tensor) -> int:
    """The place with the fewest errors, (m + 1,), that is not between equal margins, (m,)."""
    tied = pad(margin[1:] == margin[:-1], (1, 1))
    return int(errors.masked_fill(tied, torch.iinfo(torch.int64).max).argmin())


def _around(margin: Tensor, position: int) -> Ends:
    """The margins before and after a place; at either end they are `FAR` apart."""
    low = float(margin[position - 1]) if position else float(margin[0]) - FAR
    return low, float(margin[position]) if position < len(margin) else low + FAR


def _between(low: float, high: float) -> float:
    """The cutoff between two margins."""
    return max((low + high) / 2.0, high - BEFORE)


def share_of(margins: Tensor, accepted: Tensor, least: float) -> tuple[Tensor, Tensor]:
    """(m,) double, the share of r judges that accept, and (m,) how much margin is missing.

    It is missing for the judge that decides whether a share is reached; 0 where none is.

    Args:
        margins: (m, r) by judge.
        accepted: (m, r) bool.
        least: the share to reach.
    """
    count = margins.shape[-1]
    decides = min(int((1.0 - least) * count + 1e-6), count - 1) + 1
    missing = -margins.kthvalue(decides, dim=-1).values
    missing = missing.where(missing.isfinite(), 0.0).clamp_min(0.0)
    return accepted.double().mean(-1), missing


UNUSED = (
    "Schema.infer(frame, target=...) leaves out the column of decisions; drop other unused columns"
    " from the frame"
)
DECISION = (
    "column {0!r} has the model's classes, and the model was not trained on it. If it is the"
    " decision, Schema.infer(frame, target={0!r}) leaves it out. If it is a feature that the model"
    " does not use, pass lambda rows: model.predict_proba(rows[model.feature_names_in_])"
)
AS_LABELS = (
    "if these are labels, pass a function of probabilities, such as model.predict_proba. With"
    " labels, the search does not see how near a row is to the decision boundary"
)
# The largest difference of two calls that may be rounding, as a share of the largest score.
# Probabilities that are so near to 0 or 1 count as labels.
UNLIKE, SURE = 1e-2, 1e-6
# The number of rows that are scored twice.
REPEATED = 10


def check_estimator(classifier: Classifier, rows: Tensor) -> None:
    """Check that an estimator is fitted, and warn of columns that it was not trained on.

    Args:
        classifier: the model.
        rows: (n, p) training rows.

    Raises:
        ModelError: it is not fitted, or such a column has its classes, like the decision.
    """
    if classifier.is_module:
        return
    model, schema = classifier.model, classifier.encoder.schema
    try:
        if hasattr(model, "fit"):
            classifier.scores(rows[:1])
    except Exception as error:  # other errors concern a row that the model does not take
        if type(error).__name__ == "NotFittedError":
            kind = type(model).__name__
            raise ModelError(f"the model, a {kind}, is not fitted: fit it first") from error
    used = getattr(model, "feature_names_in_", schema.column_names)
    unused = [name for name in schema.column_names if name not in used]
    for j in schema.index(unused):
        values = cells_of(schema.features[j], rows[:, j].unique().numpy())
        if {*values.tolist()} == {*(classifier.classes or ())}:
            raise ModelError(DECISION.format(schema.names[j]))
    if unused:
        logger.warning("the model was not trained on %s: %s", unused, UNUSED)


def check_repeats(
    classifier: Classifier, frame: pd.DataFrame, rows: Tensor, scores: Tensor
) -> None:
    """Check that a second call returns the same scores, once for each model.

    Args:
        classifier: the model.
        frame: m rows.
        rows: (m, p) the same rows.
        scores: (m, c) their scores.

    Raises:
        ModelError: the scores differ by more than rounding.
    """
    if classifier.repeats or not len(frame):
        return
    again = classifier.frame_scores(frame.iloc[:REPEATED], rows[:REPEATED])
    first, again = (classifier.in_units(each) for each in (scores[:REPEATED], again))
    apart = float((first - again).abs().max())
    if apart > UNLIKE * float(first.abs().max()):
        raise ModelError(
            f"the model's scores of the same rows differ by up to {apart:.2g} between two calls."
            " They must be equal: fix the seed of the model in every call, or switch dropout off"
        )
    classifier.repeats = True


def warn_of_labels(classifier: Classifier, scores: Tensor) -> None:
    """Warn if all probabilities of training rows, from scores (n, c), are 0 or 1."""
    p = classifier.in_units(scores)
    if classifier.output == "probabilities" and bool(((p < SURE) | (p > 1.0 - SURE)).all()):
        logger.warning("the model returned only 0 and 1 for %d rows: %s", len(scores), AS_LABELS)
