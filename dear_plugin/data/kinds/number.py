"""Number: amounts with their decimals, bounds and codes; columns in and out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd

from dear_plugin.data.attributes import Kind
from dear_plugin.data.grid import on_grid
from dear_plugin.data.kinds.cells import Array, Reading, ends_of, is_numeric, plain_dtype, unboxed
from dear_plugin.data.kinds.ordinal import Ordinal
from dear_plugin.data.kinds.remedies import OTHERS, as_numbers, conversion, line
from dear_plugin.data.kinds.steps import decimals, few_values, ordinary_values
from dear_plugin.data.special_values import SPECIAL, is_special, level_of
from dear_plugin.errors import SchemaError


class Number(Ordinal):
    """A column of numbers: amounts, and codes that are none."""

    holds_numbers = True

    @classmethod
    def takes(cls, kind: Any, given: Mapping[str, Any]) -> bool:
        """Numbers without levels."""
        return kind == Kind.NUMERIC and not given.get("levels")

    @classmethod
    def infer(
        cls, column: pd.Series, name: str, special: tuple[Any, ...] | None, as_category: bool
    ) -> Self | None:
        """See `Column`; all that is left."""
        codes = special or ()
        single = str(column.dtype).lower() == "float32"
        values = ordinary_values(column, codes)
        values = values[~np.isnan(values)].astype(np.float32 if single else np.float64)
        if not np.isfinite(values).all():
            raise SchemaError(f"column {name!r} holds infinite values: clip or drop them")
        places = decimals(values) if len(values) else 0
        values = on_grid(values, places)
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        feature = cls(
            name,
            Kind.NUMERIC,
            (low, high),
            precision=places,
            dtype=str(column.dtype),
            immutable=low == high,
            special=codes,
            observed=few_values(values, places),
            missing="nan" if column.isna().any() else "",
        )
        if is_special(low):
            lowest = f"numbers above {SPECIAL:.3g}, got {low:.3g}"
            raise SchemaError(f"column {name!r}: expected {lowest}: clip or drop such values")
        return feature

    @property
    def complaint(self) -> str:
        """See `Feature`."""
        own = f"feature {self.name!r}"
        if not pd.api.types.is_numeric_dtype(self.dtype):
            return f"{own}: a number cannot have dtype {self.dtype!r}"
        if self.step and not self.is_on_grid(self.step):
            return (
                f"{own}: step {self.step:g} must be a multiple of its last decimal,"
                f" {10.0 ** -(self.precision or 0):g}; schema.replace({self.name!r},"
                " precision=...) states another one"
            )
        return super().complaint

    def is_on_grid(self, value: float) -> bool:
        """Whether a number has no more decimals than the feature."""
        return self.precision is None or math.isclose(value, round(value, self.precision))

    @property
    def action_step(self) -> float:
        """The step of actions on it; 0 where there is none: any value, or the observed ones."""
        if self.observed:
            return 0.0
        return self.usual_step if self.step is None else self.step

    @property
    def is_flag(self) -> bool:
        """Whether it has the values 0 and 1."""
        return self.bounds == (0.0, 1.0) and self.precision == 0 and not self.special_levels

    def is_one(self, column: pd.Series) -> Array:
        """(n,) bool, the cells of a flag that are 1."""
        return np.asarray((column == 1).to_numpy(dtype=bool))

    def read_cells(self, column: pd.Series, accepted: Array | None) -> Reading:
        """See `Column`; new ones are numbers like others."""
        known = unboxed(column)
        dtype = known.dtype
        if not is_numeric(dtype):
            is_bool = pd.api.types.is_bool_dtype(dtype)  # pd.to_numeric would leave it as it is
            what, code = conversion(known)
            if not what or (what, code) == OTHERS:
                code = "{0}.astype(int)" if is_bool else as_numbers(known)
            text = f"must hold numbers, got dtype {dtype}: {line(self.name, code)}"
            return Reading.unreadable(f"column {self.name!r} {text}")
        plain = isinstance(dtype, np.dtype)
        own = known.to_numpy() if plain else known.to_numpy(dtype=np.float64, na_value=np.nan)
        return self.reading(column, on_grid(own, self.precision))

    def cells(self, values: Array) -> Array:
        """Row values of any shape as numbers, special levels as their codes or NaN."""
        cells = values + 0.0  # no negative zeros
        if self.special_levels:
            special = is_special(values)
            level = np.where(special, level_of(values), 0).astype(np.int64)
            cells = np.where(special, np.array([*self.special, np.nan])[level], cells)
        return cells

    def cells_in(self, values: Array, dtype: Any) -> Array:
        """See `Column`; with the decimals of the dtype."""
        cells, places = self.cells(values), self.decimals_in(dtype)
        cells = cells if places is None else np.round(cells, places)
        return cells.astype(np.int64) if dtype.kind == "O" and self.dtype == "int64" else cells

    def column(self, values: Array) -> pd.Series | Array:
        """See `Column`; floats where an integer dtype cannot hold them."""
        numbers = self.cells(values)
        whole = np.isnan(numbers) | (numbers == np.round(numbers))
        if not self.dtype.startswith("float") and not whole.all():
            return pd.Series(numbers)
        return self.typed(numbers)

    def is_narrow(self, dtype: Any) -> bool:
        """Whether a column of a dtype cannot hold all observed numbers."""
        low, high = ends_of(plain_dtype(dtype))
        return self.bounds[0] < low or high < self.bounds[1]
