"""Query: the arguments and rows of one call, and the outcome that it asks for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from raiutils.exceptions import UserConfigValidationException

from dear_dice.interface import Interface
from dear_dice.model import Outcomes, Scores
from dear_plugin import DEAR, Target

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# DiCE accepts a threshold of exactly 1, which no log-odds reach.
MAX_THRESHOLD = 1.0 - 1e-6
# The share of a range left free at its ends, where DiCE may round to the other side.
PADDING = 1e-4


@dataclass(frozen=True)
class Request:
    """The arguments of one `generate_counterfactuals`; `Interface.constraints` resolves them."""

    total_CFs: int
    desired_class: Any = "opposite"
    desired_range: Any = None
    permitted_range: Any = None
    features_to_vary: Any = "all"
    stopping_threshold: float = 0.5
    posthoc_sparsity_param: float | None = 0.1
    posthoc_sparsity_algorithm: str | None = "linear"
    verbose: bool = False
    feature_weights: Any = None

    @property
    def sparsity(self) -> list[str]:
        """DiCE's arguments on sparsity that ask for another one than its default, or none."""
        names = "posthoc_sparsity_param", "posthoc_sparsity_algorithm"
        return [n for n in names if getattr(self, n) not in (None, getattr(Request, n))]


@dataclass(frozen=True)
class DesiredOutcome:
    """The wanted class of every row, or the wanted range.

    Attributes:
        classes: (n,) class numbers, which are columns of the scores; empty for a regressor.
        least: the least probability of the wanted class; None leaves it to the model's decision.
        span: the range for a regressor.
    """

    classes: Rows
    least: float | None = None
    span: tuple[float, float] | None = None

    @classmethod
    def of_classes(cls, classes: Sequence[int], threshold: float, columns: int) -> DesiredOutcome:
        """Wanted classes, (n,), of a model whose scores have some columns.

        DiCE's `stopping_threshold` is the least probability of the wanted class, as documented;
        where class 0 of two is wanted it is also the greatest probability of class 1, as computed.
        Up to one half it requires no more than the model's decision.
        """
        both = columns <= 2 and 0 in classes
        least = min(max(threshold, 1.0 - threshold) if both else threshold, MAX_THRESHOLD)
        return cls(np.array(classes, dtype=np.int64), least if least > 0.5 else None)

    @classmethod
    def of_range(cls, span: Any) -> DesiredOutcome:
        """A regressor's `desired_range`."""
        return cls(np.empty(0, dtype=np.int64), span=(float(span[0]), float(span[1])))

    @property
    def target(self) -> Target:
        """The engine's target."""
        if self.span is None:
            return Target.of_class(self.classes, self.least)
        low, high = self.span
        padding = PADDING * (high - low) if math.isfinite(high - low) else 0.0
        return Target.of_range(low + padding, high - padding)

    def met(self, scores: Scores, outcomes: Outcomes, rows: Rows) -> Mask:
        """(m,) whether counterfactuals of rows, (m,), have the desired outcome.

        Scores, (m, c), and outcomes, (m,), are what DiCE reads off the model.
        """
        if self.span is not None:
            return np.asarray((outcomes >= self.span[0]) & (outcomes <= self.span[1]))
        wanted = self.classes[rows]
        probability = _probability(scores, wanted)
        return np.asarray((outcomes == wanted) & (probability >= (self.least or 0.0)))


@dataclass(frozen=True)
class Query:
    """n validated rows.

    Attributes:
        rows: the features, in the user's values and dtypes.
        numeric: the same, without numbers that are text or objects.
        dear: the engine, whose schema writes labels as the rows do.
        scores: (n, c) the model's output for the rows.
        outcomes: (n,) the outcomes of the rows.
        desired: what they should become.
    """

    rows: pd.DataFrame
    numeric: pd.DataFrame
    dear: DEAR
    scores: Scores
    outcomes: Outcomes
    desired: DesiredOutcome

    def written(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Counterfactuals with the dtypes of the rows."""
        own, dtypes = self.rows.dtypes, self.numeric.dtypes
        return frame.astype({name: own[name] for name in own.index[own != dtypes]})


def as_frame(query: Any, data: Any) -> pd.DataFrame:
    """A query as one frame: it may be a frame, a list of frames, a dict or a list of dicts."""
    if isinstance(query, np.ndarray) and query.ndim > 1:
        raise UserConfigValidationException(
            "query_instances should be a frame, a list of frames, a dict or a list of dicts, got"
            f" an array: pandas.DataFrame(rows, columns={list(data.feature_names)}) makes a frame"
        )
    rows = query if isinstance(query, pd.DataFrame | dict) else list(query)
    if isinstance(rows, list) and not rows:
        return pd.DataFrame()
    if isinstance(rows, list) and rows and isinstance(rows[0], pd.DataFrame):
        return pd.concat(rows)
    frame: pd.DataFrame = data.query_instance_to_df(rows)
    return frame


def check_missing(frame: pd.DataFrame, interface: Interface) -> None:
    """Refuse missing values where DiCE's data have none."""
    missing = frame.columns[frame.isna().any()].difference(interface.incomplete).tolist()
    if missing:
        raise UserConfigValidationException(
            f"The query instance(s) should not have any missing values in {missing}, where DiCE's"
            " data have none (dice_ml.Data makes missing text a category 'None' or 'nan'; it keeps"
            " missing numbers and pandas categories). Please impute them and try again."
        )


def check_request(frame: pd.DataFrame, request: Request) -> None:
    """Refuse what DiCE's own checks let through: no rows, infinity, half a counterfactual."""
    count: Any = request.total_CFs
    whole = isinstance(count, Integral) or (isinstance(count, float) and count.is_integer())
    if not whole or isinstance(count, bool):
        raise UserConfigValidationException(
            "The number of counterfactuals generated per query instance (total_CFs) should be a"
            f" positive integer, got {count!r}."
        )
    _check_lists(request)
    if not len(frame):
        raise UserConfigValidationException("The query has no rows, at least one is needed.")
    numbers = frame.select_dtypes("number")
    infinite = numbers.columns[np.isinf(numbers.to_numpy(dtype=float, na_value=np.nan)).any(0)]
    if len(infinite):
        raise UserConfigValidationException(
            f"The query instance(s) should not have any infinite values, columns {list(infinite)}"
            " have some. Please replace them and try again."
        )


def _check_lists(request: Request) -> None:
    """Refuse a value in the place of a list, whose letters DiCE would take for names."""
    vary, span = request.features_to_vary, request.desired_range
    if isinstance(vary, str) and vary != "all":
        raise UserConfigValidationException(
            f"features_to_vary should be 'all' or a list of features, got {vary!r}"
        )
    for name, values in (request.permitted_range or {}).items():
        is_list = isinstance(values, Iterable) and not isinstance(values, str)
        if not is_list or any(map(np.ndim, values)):
            raise UserConfigValidationException(
                "permitted_range should be, the same for all rows, {feature: [low, high]} or"
                f" {{feature: [levels]}}, got {'several' if is_list else repr(values)} for {name}"
            )
    numbers = isinstance(span, Iterable) and all(isinstance(end, Real) for end in span)
    if span is not None and not numbers:
        raise UserConfigValidationException(
            f"desired_range should be two numbers, -inf or inf for an open end, got {span!r}"
        )


def check_vary(vary: Sequence[str], interface: Interface) -> None:
    """Refuse features to vary of which the schema lets none change."""
    if not set(vary) & set(interface.schema.mutable):
        raise UserConfigValidationException(
            f"Some features need to be varied for generating counterfactuals, but {list(vary)} are"
            " immutable: vary another feature, or leave one out of immutable=."
        )


def check_columns(frame: pd.DataFrame, interface: Interface) -> None:
    """Refuse a query whose columns are not the features, with DiCE's messages where it has one."""
    for name in frame.columns:
        if name == interface.data.outcome_name:
            raise ValueError("Target", name, "present in query instance")
        if name not in interface.names:
            raise ValueError("Feature", name, "not present in training data!")
    missing = [name for name in interface.names if name not in frame.columns]
    if missing or not frame.columns.is_unique:
        raise UserConfigValidationException(
            "The query instance(s) should have every feature once. Missing features:"
            f" {missing}; the columns are {list(frame.columns)}"
        )


def _probability(scores: Scores, wanted: Rows) -> Scores:
    """(m,) the probability of the wanted class; a single column is that of class 1."""
    both = np.column_stack([1.0 - scores, scores]) if scores.shape[1] == 1 else scores
    own = np.take_along_axis(both, wanted[:, None], 1)[:, 0]
    return np.asarray(own / both.sum(1))
