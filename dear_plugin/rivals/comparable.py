"""The check that several methods can be compared on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dear_plugin.errors import SchemaError, SettingError
from dear_plugin.methods.base import RecourseMethod

# The largest relative difference of equal scales.
SAME_SCALE = 0.01


def check_comparable(methods: Any) -> None:
    """Raise an error unless the methods, by name, can be compared.

    Raises:
        SettingError: they are not a mapping of names to `RecourseMethod`, or an empty one.
        NotFittedError: a method is not fitted.
        SchemaError: the methods do not have the same features on the same scales.
    """
    if not isinstance(methods, Mapping) or not methods:
        got = type(methods).__name__ if methods else "none"
        raise SettingError(f"methods must be a mapping of names to fitted methods, got {got}")
    for name, method in methods.items():
        if not isinstance(method, RecourseMethod):
            raise SettingError(
                f"methods[{name!r}] must be a RecourseMethod, got {type(method).__name__}; wrap"
                " explainers of DiCE with dear_dice.wrap_dice, of Alibi with"
                " dear_alibi.wrap_alibi"
            )
        # An error if it is not fitted.
        _ = method.trained
    scales = {k: {f.name: f.unit_of_cost / f.cost for f in m.schema} for k, m in methods.items()}
    _check_scales(scales)


def _check_scales(scales: Mapping[str, Mapping[str, float]]) -> None:
    """Raise an error unless all methods have the features of the first, on the same scales.

    Args:
        scales: for each method, the change of each feature that costs 1.
    """
    (first, expected), *others = scales.items()
    for name, found in others:
        names = sorted(set(expected) ^ set(found))
        if names:
            raise SchemaError(
                f"the methods must have the same features: {names} are only in one of {first!r}"
                f" and {name!r}; make both for the same columns"
            )
        unequal = [f for f in expected if not np.isclose(found[f], expected[f], SAME_SCALE, 0.0)]
        if unequal:
            pairs = ", ".join(f"{f!r}: {expected[f]:g} and {found[f]:g}" for f in unequal)
            raise SchemaError(
                f"the methods must scale features alike, else their costs have different units;"
                f" got, as the change that costs 1 in {first!r} and {name!r}, {pairs}; fit both on"
                " the same rows, with the same central= and costs= (or Constraints(costs=) for"
                " all); wrap_alibi(explainer, schema) takes those of a schema"
            )
