"""The columns that others determine: sums, products, logarithms and near-functions.

Each number is regressed on the others by forward selection. A fit with an exact form (see
`data.forms`) is a definition. It is solved for the column that is computed from the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from dear_plugin.data import forms
from dear_plugin.data.feature import Mask
from dear_plugin.data.forms import Fit, Indices, Numbers, Scale
from dear_plugin.data.numbers import Array
from dear_plugin.data.relations import Relation, expression

# The smallest share of known values.
KNOWN = 0.5
# The smallest correlation of a number with its logarithm. The largest share of the residual
# variance that a second column of a near-function may leave.
STRAIGHT, SECOND = 0.995, 0.1
# For pairs: the number of rows that are tested first, and of pairs that are tested further.
FEW_ROWS, MOST_PAIRS = 12, 20
# Rounding error of a correlation.
CORRELATION_ROUNDING = 1e-9
# The smallest weight of a part of a whole; rounding lowers weights.
LIKE_A_PART = 0.3


def definitions(numbers: Numbers) -> list[Relation]:
    """The definitions of numbers, followed by near-functions."""
    exact, near = list[Relation](), list[Fit]()
    for scale in Scale.all(numbers):
        found, close = fits(scale)
        exact, near = [*exact, *(fit.relation for fit in found)], [*near, *close, *shares(scale)]
    defined = {each.name for each in exact}
    exact += {each.name: each for each in pairs(numbers) if each.name not in defined}.values()
    # Of logarithms, those without a constant come first.
    exact.sort(key=lambda r: (r.shift is not None) * (r.constant != 0.0, r.error) or (False, 0.0))
    exact = [*{frozenset(each.members): each for each in exact[::-1]}.values()][::-1]
    every = chain(exact, _apart(near, exact))
    # A relation gets the form that it has when a user states it.
    stated = (
        each if each.formula else forms.form_of(numbers, each.name, each.others) for each in every
    )
    return [each for each in stated if each]


def _apart(near: Iterable[Fit], exact: Iterable[Relation]) -> list[Relation]:
    """The near-functions, one for the same members, without those that definitions link."""
    found = {
        frozenset(f.relation.members): f.relation for f in sorted(near, key=lambda f: -f.left)
    }
    linked: list[set[str]] = []
    for each in exact:
        met = [own for own in linked if own & {*each.members}]
        linked = [own for own in linked if own not in met]
        linked.append({*each.members}.union(*met))
    return [each for key, each in found.items() if all(len(key & own) < 2 for own in linked)]


def fits(scale: Scale) -> tuple[list[Fit], list[Fit]]:
    """The exact fits of numbers, short ones first, without those that follow, and near fits."""
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


def pairs(numbers: Numbers) -> Iterator[Relation]:
    """The numbers that are the larger, the smaller or the distance of two, or one times a flag."""
    table, flag = numbers.values, numbers.flags
    named = np.array(numbers.names, dtype=bool)
    few = table[(np.abs(table) > 0.0).sum(1).argsort(kind="stable")[::-1][:FEW_ROWS]]
    for text in forms.PAIRED:
        of, _ = expression(text.format("a", "b"), ("a", "b"))
        values = of({"a": few[:, :, None], "b": few[:, None]})
        fit = np.triu((flag[:, None] | flag) == (text == forms.SWITCHED), 1)
        fit &= named[:, None] & named
        for y in np.flatnonzero(~flag | (text == forms.SWITCHED)).tolist() if fit.any() else ():
            on = few[:, y] != 0.0
            same = (np.abs(values[on] - few[on][:, [[y]]]) <= numbers.errors[y]).sum(0) * fit
            same[:, y], same[y] = 0, 0
            likely = np.argwhere(same > max(4, 0.7 * on.sum()))[:MOST_PAIRS]
            a, b = np.moveaxis(table[: forms.FIT_ROWS, likely], 2, 0)
            off = np.abs(of({"a": a, "b": b}) - table[: forms.FIT_ROWS, [y]]) > numbers.errors[y]
            for pair in likely[off.mean(0) <= forms.ERRORS].tolist():
                yield from forms.of_two(numbers, y, pair)


def _fit(scale: Scale, y: int, allowed: list[int]) -> tuple[Fit | None, Fit | None]:
    """The exact and the near relation of a column to some of the others, or None."""
    here = scale.rows([y])
    if here.sum() < forms.FUNCTION_ROWS:
        return None, None
    r = scale.linked(scale.target(here, y), here)
    r[scale.known(here) <= KNOWN * here.sum()] = 0.0
    likely = [j for j in allowed if r[j] > 0.0]
    if not likely or (scale.kind.shift is not None and max(r[likely]) < STRAIGHT):
        return None, None
    exact, first = None, None
    for akin in (1.1, *np.sort(r[likely])[::-1][:3], 0.9):  # similar ones may hide others
        exact, near, is_close = _forward(scale, y, [j for j in likely if r[j] < akin])
        first = first or near
        if exact or not is_close:
            break
    return exact, first


def _forward(scale: Scale, y: int, allowed: list[int]) -> tuple[Fit | None, Fit | None, bool]:
    """The exact and near fit by forward selection, and whether they explain most of y."""
    exact, near, is_close, left, chosen = None, None, False, [1.0], list[int]()
    most, free = (
        forms.MOST if scale.kind.shift is None else 1,
        np.isin(np.arange(len(scale.spread)), allowed),
    )
    here = scale.rows([y])
    target = scale.target(here, y)
    while free.any() and len(chosen) < most:
        r = np.where(free, scale.linked(target, here), 0.0)
        if r.max() < (0.05 if chosen else 3.5 / np.sqrt(here.sum())):
            break
        # The first of those that differ by rounding only, such as a number and its square.
        chosen = [*chosen, int((r >= r.max() - CORRELATION_ROUNDING).argmax())]
        here, free[chosen] = scale.rows([y, *chosen]), False
        if here.sum() < forms.FUNCTION_ROWS:
            break
        own = scale.own[here, y]
        weights, residual, size = forms.fitted(scale.others[here][:, chosen], own)
        variance = float(own.var())
        left.append(float(residual.var() / variance) if len(chosen) < 3 else 0.0)
        is_close = is_close or bool(size <= 0.2 * variance**0.5)
        if len(chosen) == 1 or (len(chosen) == 2 and left[2] < SECOND * left[1]):
            near = forms.near_form(scale, y, chosen, weights, residual)
        found = computed(scale, y, chosen, weights[1:]) if is_close else None
        if found and (exact is None or found.left < 0.5 * exact.left):
            exact = found
        if exact and (exact.left < 0.002 or not found):
            break
        target = np.zeros(len(here))  # a rare part is in the rows that are off
        target[here] = residual if exact else np.clip(residual, -size, size)
    return exact, near, is_close


def computed(scale: Scale, y: int, chosen: list[int], weights: Array) -> Fit | None:
    """The exact form solved for the computed column; None if there is none."""
    for here, columns, simple, coarse in forms.simple_forms(scale, y, chosen, weights):
        if found := _solved(scale, here, y, columns, simple, coarse):
            return found
    return None


def _solved(
    scale: Scale, here: Mask, y: int, others: Indices, weights: Array, coarse: float
) -> Fit | None:
    """The relation solved for the column that is computed from the others.

    Only its residual is within rounding, and its decimals can hold every result. If that holds for
    several columns, it is the one with more decimals, the total of three or more, or the last one.
    """
    first = forms.kept_form(scale, y, here, others, weights, coarse)
    if not first or scale.kind.shift is not None:
        return first
    linear, found = not scale.kind.log and len(others) == 1, {(True, y): first}
    units = scale.numbers.units
    for i, j in enumerate(others.tolist()):
        factors = -weights / weights[i]
        factors[i] = 1.0 / weights[i]
        columns = np.where(others == j, y, others)
        other = forms.kept_form(scale, j, here, columns, factors, coarse / abs(weights[i]))
        if other and zeros_agree(scale, other.relation):
            found[linear or abs(weights[i]) == 1.0, j] = other

    def _key(at: tuple[bool, int]) -> tuple[float, ...]:
        (simple, j), fit = at, found[at]
        total = not scale.kind.log and len(others) > 2 and min(fit.relation.weights) > 0.0
        return not fit.rounded, simple, _is_exact(scale, fit.relation), -units[j], total, j

    return found[max(found, key=_key)]


def _is_exact(scale: Scale, relation: Relation) -> bool:
    """Whether the decimals of a column can hold every sum of the others."""
    own, *others = scale.numbers.units[[*map(scale.numbers.names.index, relation.members)]]
    if scale.kind.log or own == 0.0:
        return True
    steps = np.array(others) * relation.weights / own
    return min(others) > 0.0 and bool(np.abs(steps - steps.round()).max() < 1e-6)


def zeros_agree(scale: Scale, relation: Relation) -> bool:
    """Whether a product is zero where one of its factors is zero."""
    y, *factors = map(scale.numbers.names.index, relation.members)
    factors = [j for j, w in zip(factors, relation.weights, strict=True) if w > 0]
    same = (scale.raw[:, y] == 0.0) == (scale.raw[:, factors] == 0.0).any(1)
    return not factors or not scale.is_product or bool(same.mean() >= 1.0 - forms.ERRORS)


def follows(row: Array, span: Array) -> bool:
    """Whether a relation is a linear combination of others."""
    size = np.maximum(np.abs(span).max(0, initial=0.0), np.abs(row)) + 1e-12
    again = np.linalg.lstsq((span / size).T, row / size, rcond=None)[0] @ (span / size)
    return bool(np.abs(again - row / size).max() <= 1e-3)


def shares(scale: Scale) -> list[Fit]:
    """Fits of non-negative numbers with the same decimals whose sum is nearly constant."""
    found, units = list[Fit | None](), scale.numbers.units
    for unit in [] if scale.kind.log else np.unique(units[units > 0.0]):
        low = np.nanmin(scale.own, 0)
        columns = np.flatnonzero((units == unit) & (low >= 0.0) & ~scale.numbers.flags)
        centred = scale.centred[:, columns]
        spread = centred.T @ centred
        inverse = np.linalg.inv(spread + 1e-9 * np.trace(spread) * np.eye(len(columns)))
        for y, row, own in zip(columns.tolist(), inverse, np.diag(inverse), strict=True):
            others = [j for j in columns[row > LIKE_A_PART * own].tolist() if j != y]
            found += [forms.rounded_form(scale, y, others, -np.ones(len(others)))] * (
                len(others) > 1
            )
    return [fit for fit in found if fit]
