"""Functions: numbers that are sums, products, powers or logarithms of others, exact or near."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dear_plugin.data.definitions.forms import (
    FEW_ERRORS,
    Fit,
    exact_form,
    fitted,
    follows,
    near_form,
    zeros_agree,
)
from dear_plugin.data.definitions.numbers import Numbers
from dear_plugin.data.definitions.scale import FIT_ROWS, Scale
from dear_plugin.data.relations import Relation

# The least rows, and the least share of known values; the most columns that a sum adds.
FEWEST, KNOWN, MOST = 30, 0.5, 10
# The least correlation of a number with a logarithm that it is. What a second column of a
# near-function leaves at most of what the first one leaves.
STRAIGHT, SECOND = 0.995, 0.1
# Rounding error of a correlation.
ROUNDING = 1e-9


def fits(scale: Scale) -> tuple[list[Fit], list[Fit]]:
    """The exact fits of numbers, short ones first, that do not follow from others; near ones."""
    distinct = [len(np.unique(v)) for v in scale.others.T]
    wide = [j for j, count in enumerate(distinct) if count > 3 or not scale.kind.log]
    # A square comes before its root, which has the same count.
    order = sorted(wide, key=lambda j: (-distinct[j], -scale.spread[j] * scale.kind.log))
    both = [_fit(scale, y, [j for j in wide if j != y]) for y in order]
    exact, found = [fit for fit, _ in both if fit], list[Fit]()
    span = np.empty((0, len(scale.numbers.names) + 1))
    for each in sorted(exact, key=lambda fit: len(fit.relation.others)):
        row = scale.row(each.relation)
        if not follows(row, span) and zeros_agree(scale, each.relation):
            found, span = [*found, each], np.vstack([span, row])
    return found, [fit for _, fit in both if fit]


def stated_forms(scale: Scale, y: int, others: list[int]) -> Iterator[Relation]:
    """The exact and the near relation of a column to all of others, if there are."""
    here = scale.rows([y, *others])
    if here.sum() >= FEWEST:
        weights, residual, _ = fitted(scale.others[here][:, others], scale.own[here, y])
        exact = exact_form(scale, y, others, weights[1:], stated=True)
        near = near_form(scale, y, others, weights, residual)
        fits = [fit.relation for fit in (exact, near) if fit]
        yield from (each for each in fits if len(each.others) == len(others))


def switched(numbers: Numbers) -> list[Relation]:
    """The numbers that are another one, or 0 where a flag is."""
    table, names, found = numbers.values[:FIT_ROWS], numbers.names, []
    flags = np.flatnonzero(numbers.flags).tolist()
    for y in range(len(names)) if flags else ():
        known = ~np.isnan(table) & ~np.isnan(table[:, [y]])
        on = known & (table[:, [y]] != 0.0)
        same = (on & np.isclose(table, table[:, [y]])).sum(0) >= np.maximum(10, 0.99 * on.sum(0))
        for x in np.flatnonzero(same & ((known & ~on & (table != 0.0)).sum(0) >= 10)).tolist():
            here = known[:, x]
            product = table[here][:, flags] * table[here][:, [x]]
            agree = ((product != 0.0) == on[here][:, [x]]).mean(0) >= 1.0 - FEW_ERRORS
            both = [f for f, ok in zip(flags, agree, strict=True) if ok and f not in (x, y)][:1]
            product = Relation(names[y], (), weights=(1.0, 1.0), log=True, high=0.0)
            found += [replace(product, others=(names[x], names[f])) for f in both]
    return found


def _fit(scale: Scale, y: int, allowed: list[int]) -> tuple[Fit | None, Fit | None]:
    """The exact and the near relation of a column to some of others."""
    here = scale.rows([y])
    if here.sum() < FEWEST:
        return None, None
    r = scale.linked(scale.target(here, y), here)
    r[(~np.isnan(scale.others[here])).mean(0) <= KNOWN] = 0.0
    likely = [j for j in allowed if r[j] > 0.0]
    if not likely or (scale.kind.shift is not None and max(r[likely]) < STRAIGHT):
        return None, None
    exact, first = None, None
    for akin in (1.1, *np.sort(r[likely])[::-1][:3], 0.9):  # the most like may hide others
        exact, near, is_close = _forward(scale, y, [j for j in likely if r[j] < akin])
        first = first or near
        if exact or not is_close:
            break
    return exact, first


def _forward(scale: Scale, y: int, allowed: list[int]) -> tuple[Fit | None, Fit | None, bool]:
    """By forward selection; also whether the columns explain most of y."""
    exact, near, is_close, left, chosen = None, None, False, [1.0], list[int]()
    most, free = MOST if scale.kind.shift is None else 1, np.isin(np.arange(len(scale)), allowed)
    here = scale.rows([y])
    target = scale.target(here, y)
    while free.any() and len(chosen) < most:
        r = np.where(free, scale.linked(target, here), 0.0)
        if r.max() < (0.05 if chosen else 3.5 / np.sqrt(here.sum())):
            break
        # The first of those that differ by rounding only, such as a number and its square.
        chosen = [*chosen, int((r >= r.max() - ROUNDING).argmax())]
        here, free[chosen] = scale.rows([y, *chosen]), False
        if here.sum() < FEWEST:
            break
        weights, residual, size = fitted(scale.others[here][:, chosen], scale.own[here, y])
        left.append(float(residual.var() / scale.own[here, y].var()))
        is_close = is_close or bool(size <= 0.2 * scale.own[here, y].std())
        if len(chosen) == 1 or (len(chosen) == 2 and left[2] < SECOND * left[1]):
            near = near_form(scale, y, chosen, weights, residual)
        found = exact_form(scale, y, chosen, weights[1:]) if is_close else None
        if found and (exact is None or found.left < 0.5 * exact.left):
            exact = found
        if exact and (exact.left < 0.002 or not found):
            break
        target = np.zeros(len(here))  # a rare part is in the rows that are off
        target[here] = residual if exact else np.clip(residual, -size, size)
    return exact, near, is_close
