"""Inference: the features of a training frame."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data import ordered
from dear_plugin.data.codes import few_with_gaps, not_known
from dear_plugin.data.feature import Feature, Kind, ordinary_values
from dear_plugin.data.grid import ERROR, on_grid
from dear_plugin.data.inspection import inspect
from dear_plugin.errors import SchemaError, unknown

MAX_DECIMALS = 6


def misfit(frame: Any) -> str:
    """What keeps anything from being read as a frame; "" for nothing."""
    if not isinstance(frame, pd.DataFrame):
        kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__qualname__}"
        got = f"expected a pandas DataFrame, got {kind.removeprefix('builtins.')}"
        if hasattr(frame, "to_pandas"):
            return f"{got}: pass frame.to_pandas()"
        interchange = "pandas.api.interchange.from_dataframe(frame)"
        return f"{got}: pass {interchange}" if hasattr(frame, "__dataframe__") else got
    twice = frame.columns[frame.columns.duplicated()]
    if not len(twice):
        return ""
    return f"duplicate columns: {list(map(str, twice))}; rename or drop them"


def feature_names(frame: pd.DataFrame, target: str | None) -> list[str]:
    """The feature columns of a frame.

    Raises:
        SchemaError: no frame, no rows or columns, or columns without distinct names.
    """
    if complaint := misfit(frame):
        raise SchemaError(complaint)
    if not len(frame) or not len(frame.columns):
        raise SchemaError(f"expected a frame with rows and columns, got shape {frame.shape}")
    if target is not None and target not in frame.columns:
        raise SchemaError(unknown("target", [target], frame.columns))
    names = [n for n in frame.columns if n != target]
    others = [n for n in names if not isinstance(n, str)]
    if others:
        raise SchemaError(
            f"column names must be strings, got {others[:5]}: rename them with"
            " frame.columns = frame.columns.map(str)"
        )
    return names


def infer_features(
    frame: pd.DataFrame,
    names: Sequence[str],
    categorical: Iterable[str],
    numeric: Iterable[str],
    special: Mapping[str, Sequence[Any]],
    orders: Mapping[str, Sequence[Any]],
) -> list[Feature]:
    """The features of a frame's columns, (n, p), without the user's constraints on changes.

    Args:
        frame: training rows.
        names: its feature columns.
        categorical: numeric columns to be read as categories.
        numeric: columns that are amounts, whatever their values look like.
        special: `{column: values}` that are no amounts, or categories that are not known.
        orders: `{column: levels}` of categories with an order, the least first.

    Raises:
        SchemaError: unreadable columns; all complaints at once.
    """
    features, complaints, as_category, amounts = [], [], set(categorical), set(numeric)
    if both := sorted(as_category & amounts):
        raise SchemaError(f"both categorical and numeric: {both}")
    for name in names:
        codes = tuple(special.get(name, ())) if name in {*special, *amounts} else None
        try:
            column = ordered.stated(frame[name], name, orders.get(name))
            feature = _infer(column, name, name in as_category, codes)
            if name in orders:
                dtype, missing = str(frame[name].dtype), _missing(frame[name])
                feature = dataclasses.replace(feature, dtype=dtype, missing=missing)
            if name in amounts and feature.kind is not Kind.NUMERIC:
                raise SchemaError(f"numeric= names {name!r}: expected numbers, got categories")
            features.append(feature)
        except SchemaError as error:
            complaints.append(str(error))
    if complaints:
        raise SchemaError("; ".join(complaints))
    return inspect(frame, features, amounts, special)


def _infer(
    column: pd.Series, name: str, as_category: bool, special: tuple[Any, ...] | None
) -> Feature:
    if isinstance(column.dtype, pd.SparseDtype):
        raise SchemaError(sparse(name, column.dtype))
    if is_dated(column):
        raise SchemaError(dated(name, column.dtype))
    if unreadable(column.dtype):
        raise SchemaError(f"column {name!r} has dtype {column.dtype}: {unreadable(column.dtype)}")
    number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if not number or as_category or (special is None and column.nunique() == 2):
        return _discrete(column, name, special, as_category=as_category)
    return _number(column, name, special or ())


def _number(column: pd.Series, name: str, special: tuple[float, ...]) -> Feature:
    single = str(column.dtype).lower() == "float32"
    values = ordinary_values(column, special)
    values = values[~np.isnan(values)].astype(np.float32 if single else np.float64)
    if not np.isfinite(values).all():
        raise SchemaError(f"column {name!r} holds infinite values: clip or drop them")
    places = decimals(values) if len(values) else 0
    values = on_grid(values, places)
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
    return Feature(
        name,
        Kind.NUMERIC,
        (low, high),
        precision=places,
        dtype=str(column.dtype),
        immutable=low == high,
        special=special,
        observed=few_with_gaps(values, places),
        missing="nan" if column.isna().any() else "",
    )


def is_dated(column: pd.Series) -> bool:
    """Whether a column holds dates or durations."""
    if column.dtype == object:
        first = column.dropna().head(1)
        return len(first) > 0 and isinstance(first.iloc[0], datetime.date | datetime.timedelta)
    dtypes = pd.api.types
    return bool(dtypes.is_datetime64_any_dtype(column) or dtypes.is_timedelta64_dtype(column))


def dated(name: str, dtype: Any) -> str:
    """The error message on a column of dates."""
    cells = f"frame[{name!r}]"
    return (
        f"column {name!r} holds dates ({dtype}); convert them to numbers, e.g."
        f" {cells} = pd.to_datetime({cells}); {cells} = ({cells} -"
        ' pd.Timestamp("2000-01-01")).dt.days'
    )


def sparse(name: str, dtype: Any) -> str:
    """The error message on a sparse column, whose cells cannot be set one by one."""
    cells = f"frame[{name!r}]"
    return f"column {name!r} is sparse ({dtype}): {cells} = {cells}.sparse.to_dense()"


def unreadable(dtype: Any) -> str:
    """The advice on a dtype that is neither numbers nor categories; "" if it is supported."""
    if pd.api.types.is_complex_dtype(dtype):
        return "complex numbers have no order; use their real part or modulus (.abs())"
    text = str(dtype)
    if text.startswith("dictionary"):
        return 'an Arrow dictionary; use .astype("category")'
    if text.startswith("decimal"):
        return 'Arrow decimals; use .astype("float64")'
    nested = ("list", "struct", "map", "large_list", "fixed_size_list", "binary")
    if isinstance(dtype, pd.ArrowDtype) and text.startswith(nested):
        return "neither numbers nor text; make each of its parts a column"
    return ""


def _discrete(
    column: pd.Series, name: str, special: tuple[Any, ...] | None, *, as_category: bool
) -> Feature:
    present = column.dropna()
    try:
        observed = present.unique()
    except TypeError as error:  # lists and arrays are not hashable
        raise SchemaError(f"column {name!r} holds {error}: neither text nor numbers") from error
    dtype = column.dtype if isinstance(column.dtype, pd.CategoricalDtype) else None
    if dtype is not None:
        levels = _plain(name, dtype.categories)
        present_levels = set(observed)
        categories = tuple(c for c in levels if c in present_levels)
    else:
        levels = ()
        categories = _plain(name, sorted(observed, key=lambda c: (str(type(c).__name__), c)))
    missing, unknown = _missing(column), not_known(categories) if special is None else special
    in_order = dtype is not None and dtype.ordered and len(categories) > 2
    if in_order and not unknown and not as_category:
        return ordered.infer(column, name, levels, missing)
    if missing:
        categories = (*categories, None)
    return Feature(
        name,
        Kind.CATEGORICAL if missing or len(categories) > 2 else Kind.BINARY,
        categories=categories,
        dtype=str(column.dtype),
        immutable=len(categories) == 1,
        levels=levels,
        special=unknown,
        ordered=dtype is not None and bool(dtype.ordered),
        missing=missing,
    )


def _missing(column: pd.Series) -> Literal["", "nan", "none"]:
    """How the missing values of a column are written."""
    missing = column.isna()
    if not missing.any():
        return ""
    none = column.dtype == object and column[missing].iloc[0] is None
    return "none" if none else "nan"


def _plain(name: str, labels: Iterable[Any]) -> tuple[Hashable, ...]:
    """Categories as built-in Python values; an error if one is neither text nor a number."""
    plain = tuple(c.item() if isinstance(c, np.generic) else c for c in labels)
    if any(isinstance(c, decimal.Decimal) for c in plain):
        cells = f"frame[{name!r}]"
        raise SchemaError(
            f"column {name!r} holds decimal.Decimal objects: {cells} = {cells}.astype(float)"
        )
    if any(not isinstance(c, str | int | float | bool) for c in plain):
        raise SchemaError(f"column {name!r} holds values that are neither text nor numbers")
    return plain


def decimals(values: npt.NDArray[Any]) -> int | None:
    """The decimals that represent every value, or None when more than six are needed.

    Args:
        values: (n,) floats.
    """
    sample = np.unique(values)
    # Relative, so that values of size 1e-18 are not mistaken for rounding errors.
    tolerance = ERROR * np.finfo(values.dtype).eps * float(np.abs(sample).max())
    for places in range(MAX_DECIMALS + 1):
        if np.abs(np.round(sample, places) - sample).max() <= tolerance:
            return places
    return None
