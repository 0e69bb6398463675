"""One call of DiCE: its arguments, its rows and the outcome that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from raiutils.exceptions import UserConfigValidationException

from dear_dice.interface import Interface, is_real, logger
from dear_dice.model import Host, Outcomes
from dear_plugin import DEAR

# DiCE accepts a threshold of exactly 1, which no log-odds reach.
MAX_THRESHOLD = 1.0 - 1e-6


# The arguments of one `generate_counterfactuals` by name; `Interface.constraints` resolves them.
Request = SimpleNamespace


@dataclass
class Query:
    """n validated rows, and what the model says of them once it has scored them.

    Attributes:
        rows: the features, in the user's values and dtypes.
        numeric: the same, without numbers that are text or objects.
        dear: the engine, whose schema writes labels as the rows do.
        outcomes: (n,) the numbers of the rows' classes, or their predicted values.
        wanted: (n,) the numbers of the wanted classes; empty for a regressor.
    """

    rows: pd.DataFrame
    numeric: pd.DataFrame
    dear: DEAR
    outcomes: Outcomes = field(init=False)
    wanted: Outcomes = field(default_factory=lambda: np.empty(0))

    def written(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Counterfactuals with the dtypes of the rows."""
        own, dtypes = self.rows.dtypes, self.numeric.dtypes
        return frame.astype({name: own[name] for name in own.index[own != dtypes]})


def least_probability(wanted: Collection[int], threshold: float, columns: int) -> float | None:
    """The least probability of the wanted classes; None leaves it to the model's decision.

    DiCE's `stopping_threshold` is the least probability of the wanted class, as documented; where
    class 0 of two is wanted it is also the greatest probability of class 1, as computed. Up to
    one half it requires no more than the model's decision.

    Args:
        wanted: the numbers of the classes.
        threshold: DiCE's.
        columns: how many the model's scores have.
    """
    both = columns <= 2 and 0 in wanted
    least = min(max(threshold, 1.0 - threshold) if both else threshold, MAX_THRESHOLD)
    return least if least > 0.5 else None


def number_of(wanted: Any, host: Host) -> Any:
    """A `desired_class` that is a label of the model as its number; others as DiCE has them.

    An integer is a number, not a label, as in DiCE.
    """
    labels = host.classes_.tolist() if hasattr(host, "classes_") else []
    pairs = [f"{i} for {x!r}" if x != i else f"{i}" for i, x in enumerate(labels)]
    known = f"the number of a class ({', '.join(pairs) or 'the model names none'})"
    what = f"The target class for {wanted} could not be identified:"
    if isinstance(wanted, Integral):
        if not labels or wanted in range(len(labels)):
            if wanted in labels and labels.index(wanted) != wanted:
                logger.warning("desired_class=%r is, as in DiCE, %s", wanted, known)
            return int(wanted)
        what = "Desired class not present in training data!"
    elif not np.ndim(wanted) and wanted in (*labels, "opposite"):
        return labels.index(wanted) if wanted in labels else wanted
    raise UserConfigValidationException(f"{what} expected 'opposite' or {known}, got {wanted!r}")


def as_frame(query: Any, data: Any) -> pd.DataFrame:
    """A query as one frame: it may be a frame, a list of frames, a dict or a list of dicts."""
    is_array = isinstance(query, np.ndarray) and query.ndim > 1
    if is_array or isinstance(query, str) or not isinstance(query, Iterable):
        raise UserConfigValidationException(
            "query_instances should be a frame, a list of frames, a dict or a list of dicts, got"
            f" {'an array' if is_array else repr(query)}: pandas.DataFrame(rows,"
            f" columns={list(data.feature_names)}) makes a frame"
        )
    if isinstance(query, pd.DataFrame | dict):
        return pd.DataFrame(data.query_instance_to_df(query))
    # A Series is a row by its names, which may be in another order.
    each = [query] if isinstance(query, pd.Series) else query
    rows = [dict(row) if isinstance(row, pd.Series) else row for row in each]
    if not rows or isinstance(rows[0], pd.DataFrame):
        return pd.concat(rows) if rows else pd.DataFrame()
    return pd.DataFrame(data.query_instance_to_df(rows))


def as_list(value: Any) -> Any:
    """Several values as a list, whatever has them; another value as it is."""
    several = isinstance(value, Iterable) and not isinstance(value, str)
    return list(value) if several else value


def _are_ranges(given: Any) -> bool:
    """Whether a call's ranges are each a list of values that are no lists."""
    values = map(as_list, given.values()) if isinstance(given, Mapping) else [0]
    return all(isinstance(value, list) and not any(map(np.ndim, value)) for value in values)


def _are_real(given: Any) -> bool:
    return isinstance(given, list) and all(map(is_real, given))


# What DiCE's own checks let through: the valid values of arguments, and what is expected.
RANGES = "the same for all rows, {feature: [low, high]} or {feature: [levels]}"
EXPECTED: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "total_CFs": (lambda x: is_real(x) and x % 1 == 0, "a positive integer"),
    # DiCE would take letters for names.
    "features_to_vary": (lambda x: x == "all" or type(x) is list, "'all' or a list of features"),
    "permitted_range": (_are_ranges, RANGES),
    "desired_range": (_are_real, "two numbers, -inf or inf for an open end"),
    "stopping_threshold": (is_real, "a number from 0 to 1"),
    "posthoc_sparsity_param": (is_real, "None or a number from 0 to 1"),
}
OPTIONAL = ("permitted_range", "desired_range", "posthoc_sparsity_param")
MISSING = (
    "missing values in {}, where DiCE's data have none (dice_ml.Data makes missing text a category"
    " 'None' or 'nan'; it keeps missing numbers, and with pandas below 3 those of dtype category)"
)


def check_request(frame: pd.DataFrame, request: Request, interface: Interface) -> None:
    """Refuse what DiCE's own checks let through, or refuse without a name.

    A column may have missing values where DiCE's data have some.
    """
    for name, (is_valid, expected) in EXPECTED.items():
        given = getattr(request, name)
        if not is_valid(given) and (given is not None or name not in OPTIONAL):
            raise UserConfigValidationException(f"{name} should be {expected}, got {given!r}")
    if not len(frame):
        raise UserConfigValidationException("The query has no rows, at least one is needed.")
    gaps = [column.name for column in interface.schema.columns if column.missing]
    missing = frame.columns[frame.isna().any()].difference(gaps)
    infinite = frame.columns[frame.isin([np.inf, -np.inf]).any()]
    for names, what in ((infinite, "infinite values in {}"), (missing, MISSING)):
        if len(names):
            raise UserConfigValidationException(
                f"The query instance(s) should not have any {what.format(list(names))}."
                " Please impute them and try again."
            )


def check_vary(vary: Sequence[str], interface: Interface) -> None:
    """Refuse columns to vary of which the schema lets none change."""
    schema = interface.schema
    if all(schema.features[j].immutable for j in schema.index(vary)):
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
