"""Schema: the features of a frame, what they are and what may change."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.errors import SchemaError, unknown
from dear_plugin.feature import Feature, Kind

__all__ = ["Feature", "Kind", "Schema"]

MAX_DECIMALS = 6


@dataclass(frozen=True)
class Schema:
    """The features in frame order and the name of the target column, if any.

    Build it with `Schema.infer(frame)`; change single features with `replace`.
    """

    features: tuple[Feature, ...]
    target: str | None = None

    @classmethod
    def infer(
        cls,
        frame: pd.DataFrame,
        target: str | None = None,
        *,
        immutable: Iterable[str] = (),
        increasing: Iterable[str] = (),
        decreasing: Iterable[str] = (),
        categorical: Iterable[str] = (),
        ranges: Mapping[str, tuple[float, float]] | None = None,
    ) -> Schema:
        """Read a schema off a frame of (n, p) features, the target may be among them.

        Object, bool, string and category columns are categorical; any column with at most two
        values is binary; other numbers are numeric, with the precision of their decimals.
        Constant columns are immutable.

        Args:
            frame: training rows in user units, without missing values.
            target: the column that is no feature.
            immutable: features that never change.
            increasing: numeric or binary features that may only grow.
            decreasing: numeric or binary features that may only fall.
            categorical: numeric columns to be read as categories.
            ranges: `{feature: (low, high)}` in user units; a range restricts, it never scales.

        Raises:
            SchemaError: unknown names, duplicate columns, an empty frame, missing or infinite
                values, dtypes that are neither numbers nor categories; all complaints at once.
        """
        names = _feature_names(frame, target)
        marks = {
            "immutable": _listed("immutable", immutable),
            "increasing": _listed("increasing", increasing),
            "decreasing": _listed("decreasing", decreasing),
            "categorical": _listed("categorical", categorical),
            "ranges": tuple(ranges or ()),
        }
        wrong = {k: [n for n in v if n not in names] for k, v in marks.items()}
        if any(wrong.values()):
            lines = [f"{k}: {unknown('features', v, names)}" for k, v in wrong.items() if v]
            raise SchemaError("; ".join(lines))
        features = [_infer(frame[n], n, n in marks["categorical"]) for n in names]
        rising, falling = set(marks["increasing"]), set(marks["decreasing"])
        if rising & falling:
            raise SchemaError(f"both increasing and decreasing: {sorted(rising & falling)}")
        marked = [
            dataclasses.replace(
                f,
                immutable=f.immutable or f.name in marks["immutable"],
                direction=int(f.name in rising) - int(f.name in falling),
                limits=_limits(f, (ranges or {}).get(f.name)),
            )
            for f in features
        ]
        return cls(tuple(marked), target)

    def __post_init__(self) -> None:
        """Refuse a schema that contradicts itself."""
        twice = {n for n in self.names if self.names.count(n) > 1}
        if twice:
            raise SchemaError(f"features named twice: {sorted(twice)}; rename them")
        for feature in self.features:
            if feature.direction and feature.kind is Kind.CATEGORICAL:
                raise SchemaError(
                    f"{feature.name!r} has {len(feature.categories)} categories without an order:"
                    " it cannot be increasing or decreasing"
                )
            if not math.isfinite(feature.width):
                raise SchemaError(
                    f"column {feature.name!r} spans {feature.bounds}, more than a float can hold:"
                    " give it in larger units"
                )

    def __len__(self) -> int:
        """How many features there are (p)."""
        return len(self.features)

    def __iter__(self) -> Iterator[Feature]:
        """The features in frame order."""
        return iter(self.features)

    @property
    def names(self) -> tuple[str, ...]:
        """The feature names in frame order."""
        return tuple(f.name for f in self.features)

    @property
    def mutable(self) -> tuple[str, ...]:
        """The features that may change."""
        return tuple(f.name for f in self.features if not f.immutable)

    def index(self, names: Iterable[str]) -> tuple[int, ...]:
        """The positions of some features.

        Raises:
            SchemaError: a name that is no feature.
        """
        where = {n: i for i, n in enumerate(self.names)}
        wanted = tuple(names)
        if any(n not in where for n in wanted):
            raise SchemaError(unknown("features", [n for n in wanted if n not in where], where))
        return tuple(where[n] for n in wanted)

    def replace(self, name: str, **changes: Any) -> Schema:
        """A copy in which one feature has other attributes (see `Feature`)."""
        (i,) = self.index([name])
        features = list(self.features)
        features[i] = dataclasses.replace(features[i], **changes)
        return Schema(tuple(features), self.target)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; it knows no infinity, so an open end of a range is None."""
        features = [
            {
                **dataclasses.asdict(f),
                "kind": f.kind.value,
                "limits": f.limits and [e if math.isfinite(e) else None for e in f.limits],
            }
            for f in self.features
        ]
        return {"target": self.target, "features": features}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Schema:
        """The inverse of `to_dict`."""
        features = []
        for item in values["features"]:
            tuples = {k: tuple(item[k]) for k in ("bounds", "categories", "levels") if k in item}
            limits = None if item["limits"] is None else _opened(*item["limits"])
            features.append(Feature(**{**item, **tuples, "limits": limits}))
        return cls(tuple(features), values["target"])


def _opened(low: float | None, high: float | None) -> tuple[float, float]:
    """A range whose open ends are written as None."""
    return -math.inf if low is None else low, math.inf if high is None else high


def _feature_names(frame: pd.DataFrame, target: str | None) -> list[str]:
    if not isinstance(frame, pd.DataFrame):
        raise SchemaError(f"a pandas DataFrame is needed, {type(frame).__name__} came")
    if not len(frame) or not len(frame.columns):
        raise SchemaError(f"a frame with rows and columns is needed, shape {frame.shape} came")
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise SchemaError(f"duplicate columns: {list(map(str, twice))}; rename or drop them")
    if target is not None and target not in frame.columns:
        raise SchemaError(unknown("target", [target], frame.columns))
    names = [n for n in frame.columns if n != target]
    odd = [n for n in names if not isinstance(n, str)]
    if odd:
        raise SchemaError(
            f"column names must be strings, {odd[:5]} came: frame.columns.map(str) mends it"
        )
    return names


def _listed(what: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise SchemaError(f"{what} must be a list of features, {names!r} came")
    return tuple(names)


def _infer(column: pd.Series, name: str, as_category: bool) -> Feature:
    if isinstance(column.dtype, pd.SparseDtype):
        raise SchemaError(sparse(name, column.dtype))
    missing = int(column.isna().sum())
    if missing:
        raise SchemaError(
            f"column {name!r} has {missing} missing values: drop those rows or fill them in"
        )
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        raise SchemaError(f"column {name!r} holds dates ({column.dtype}): turn it into a number")
    number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if not number or as_category or column.nunique() == 2:
        return _discrete(column, name)
    single = str(column.dtype).lower() == "float32"
    values = column.to_numpy(dtype=np.float32 if single else np.float64)
    if not np.isfinite(values).all():
        raise SchemaError(f"column {name!r} holds infinite values: clip or drop them")
    low, high = float(values.min()), float(values.max())
    return Feature(
        name,
        Kind.NUMERIC,
        (low, high),
        precision=decimals(values),
        dtype=str(column.dtype),
        immutable=low == high,
    )


def sparse(name: str, dtype: Any) -> str:
    """What to do about a column whose cells cannot be written one by one."""
    cells = f"frame[{name!r}]"
    return f"column {name!r} is sparse ({dtype}): {cells} = {cells}.sparse.to_dense()"


def _discrete(column: pd.Series, name: str) -> Feature:
    try:
        seen = column.unique()
    except TypeError as error:  # lists and arrays have no hash
        raise SchemaError(f"column {name!r} holds {error}: neither text nor numbers") from error
    own = column.dtype if isinstance(column.dtype, pd.CategoricalDtype) else None
    if own is not None:
        present = set(seen)
        levels = _plain(name, own.categories)
        categories = tuple(c for c in levels if c in present)
    else:
        levels = ()
        categories = _plain(name, sorted(seen, key=lambda c: (str(type(c).__name__), c)))
    return Feature(
        name,
        Kind.BINARY if len(categories) <= 2 else Kind.CATEGORICAL,
        categories=categories,
        dtype=str(column.dtype),
        immutable=len(categories) == 1,
        levels=levels,
        ordered=own is not None and bool(own.ordered),
    )


def _plain(name: str, labels: Iterable[Any]) -> tuple[Hashable, ...]:
    """Categories as Python's own values.

    Raises:
        SchemaError: one that is neither text nor a number.
    """
    plain = tuple(c.item() if isinstance(c, np.generic) else c for c in labels)
    if any(not isinstance(c, str | int | float | bool) for c in plain):
        raise SchemaError(f"column {name!r} holds values that are neither text nor numbers")
    return plain


def decimals(values: npt.NDArray[Any]) -> int | None:
    """The decimals that hold every value, or None when more than six are needed.

    Args:
        values: (n,) floats.
    """
    sample = np.unique(values)
    # Relative to the values: 1e-18 is no rounding error where all are as small.
    slack = 4.0 * np.finfo(values.dtype).eps * float(np.abs(sample).max())
    for places in range(MAX_DECIMALS + 1):
        if np.abs(np.round(sample, places) - sample).max() <= slack:
            return places
    return None


def _limits(feature: Feature, pair: tuple[float, float] | None) -> tuple[float, float] | None:
    if pair is None:
        return None
    if feature.kind is not Kind.NUMERIC:
        raise SchemaError(f"ranges[{feature.name!r}]: it has categories, a range needs numbers")
    low, high = float(pair[0]), float(pair[1])
    if not low <= high:
        raise SchemaError(f"ranges[{feature.name!r}] = {pair}: low must not exceed high")
    return low, high
