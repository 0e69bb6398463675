"""Targets: Alibi's `Y_t`, one wanted class per row."""

from __future__ import annotations

from typing import Any

import numpy as np

import dear_plugin
from dear_alibi.table import Array
from dear_alibi.verdict import Verdict

TargetError = dear_plugin.errors.TargetError


def targets(Y_t: Any, n: int) -> Array | None:
    """Wanted classes, (n, 1) int64; None stays None.

    Args:
        Y_t: one class or one per row: an int, a list, or an array (1,), (n,), (1, 1) or (n, 1).
        n: how many rows there are.

    Raises:
        TargetError: another shape, or classes that are no whole numbers from 0.
    """
    if Y_t is None:
        return None
    given = np.asarray(Y_t)
    if given.size not in (1, n) or given.ndim > 2 or given.shape[1:] not in ((), (1,)):
        raise TargetError(
            f"Y_t must be one class or one per row, n = {n}; shape {given.shape} came"
        )
    return np.broadcast_to(_classes(given).reshape(-1, 1), (n, 1))


def _classes(given: Array) -> Array:
    numbers = _numbers(given)
    if not (np.isfinite(numbers) & (numbers >= 0) & (numbers == np.round(numbers))).all():
        raise TargetError(
            f"Y_t must hold classes, whole numbers from 0; {given.ravel()[:3].tolist()} came"
        )
    return numbers.astype(np.int64)


def _numbers(given: Array) -> Array:
    """The values as floats, NaN where they are none."""
    if given.dtype.kind not in "iufO":
        return np.array(np.nan)
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError):
        return np.array(np.nan)


def resolve(wanted: Array | None, before: Verdict) -> Array:
    """The wanted class of some rows, (m, 1): their `wanted`, or the other one of two.

    Args:
        wanted: (m, 1) from `targets`, or None.
        before: the predictor's answer on those rows.

    Raises:
        TargetError: a class the predictor does not have, or "the other one" of more than two.
    """
    if wanted is None:
        return _other(before)
    count = before.proba.shape[1]
    if wanted.max() >= count:
        raise TargetError(
            f"Y_t asks for class {wanted.max()}; the predictor has classes 0 ... {count - 1}"
        )
    return wanted


def _other(before: Verdict) -> Array:
    count = before.proba.shape[1]
    if count > 2:
        raise TargetError(
            f"Y_t=None means the other class, but the predictor has {count}; say which"
        )
    return np.where(before.classes == 0, 1, 0)
