"""Sums: exact relations of any number of columns, on their own scale or that of logarithms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dear_plugin.data.definitions.numbers import Array, Numbers, correlations
from dear_plugin.data.relations import Relation

# The rows that are looked at, and the least of them; the most columns that a sum adds.
ROWS, FEWEST, MOST = 1000, 30, 10
# The share of rows that may break a definition, also among those in which a column has not its
# commonest value; the share if all have so few values that many rows keep it by chance.
ERRORS, FEW_ERRORS, FEW_VALUES = 0.03, 0.005, 12
# Factors are fractions with the first of these denominators that fits, powers are halves. None:
# any factor of one column.
DENOMINATORS, HALVES = (1, 12, 100, None), (2,)
# A rounding error is at most this share of each term.
COARSE = 0.05


@dataclass(frozen=True)
class Found:
    """A relation of columns: y = constant + sum(weights * others).

    Attributes:
        y: the column.
        weights: of the other columns.
        constant: of the sum.
        error: what rounding y leaves at most, in its units.
        off: the share of rows that break it.
    """

    y: int
    weights: dict[int, float]
    constant: float
    error: float
    off: float


@dataclass(frozen=True)
class Scale:
    """The numbers of some rows on their own scale, or that of logarithms.

    Attributes:
        numbers: the names and units.
        raw: (n, m) the numbers.
        values: (n, m) on the scale.
        log: whether it is that of logarithms.
    """

    numbers: Numbers
    raw: Array
    values: Array
    log: bool

    @classmethod
    def of(cls, numbers: Numbers, log: bool) -> Scale:
        """The scale of the first rows."""
        raw = numbers.values[:ROWS]
        return cls(numbers, raw, np.log(np.where(raw > 0, raw, np.nan)) if log else raw, log)

    def relations(self, groups: Iterable[Iterable[str]]) -> list[Relation]:
        """The exact relations of all columns, without those that follow from others.

        Args:
            groups: columns of which exactly one is 1.
        """
        distinct = [len(np.unique(v)) for v in self.values.T]
        wide = [j for j, count in enumerate(distinct) if count > 3 or not self.log]
        found, span = [], np.zeros((0, len(distinct) + 1))
        for group in groups:
            one = np.array([*(name in group for name in self.numbers.names), -1.0])
            span = np.vstack([span, one])
        spread = np.nanstd(self.values, 0)  # of logarithms: squares before their roots
        for y in sorted(wide, key=lambda j: (-distinct[j], -spread[j] * self.log)):
            each = self._of_any(y, wide)
            if each is None:
                continue
            row = np.zeros(span.shape[1])
            row[[y, *each.weights, -1]] = [-1.0, *each.weights.values(), each.constant]
            if not _follows(row, span) and self._zeros_agree(each):
                found, span = [*found, each], np.vstack([span, row])
        return [self._relation(each) for each in found]

    def of_columns(self, y: int, others: list[int]) -> Relation | None:
        """The exact relation of a column to all of others."""
        rows = self.values[~np.isnan(self.values[:, [y, *others]]).any(1)]
        if len(rows) < FEWEST:
            return None
        found = self._exact(rows, y, others, _fitted(rows[:, others], rows[:, y])[0])
        return self._relation(found) if found and len(found.weights) == len(others) else None

    def _of_any(self, y: int, others: Sequence[int]) -> Found | None:
        """The exact relation of a column to some of others."""
        rows = self.values[~np.isnan(self.values[:, y])]
        known = ~np.isnan(rows)
        allowed = [j for j in others if j != y and known[:, j].mean() > 0.5]
        if not allowed or len(rows) < FEWEST:
            return None
        r = np.abs(correlations(rows[:, allowed], rows[:, y]))
        found, is_close = None, False
        for akin in (1.1, *np.sort(r)[::-1][:3], 0.9):  # those most like it may hide the others
            some = [j for j, k in zip(allowed, r, strict=True) if k < akin]
            found, is_close = self._forward(rows, y, some)
            if found or not is_close:
                break
        return found

    def _forward(self, rows: Array, y: int, allowed: list[int]) -> tuple[Found | None, bool]:
        """By forward selection; also whether the columns explain most of y."""
        chosen: list[int] = []
        best, is_close, here, residual = None, False, rows, rows[:, y]
        while allowed and len(chosen) < MOST:
            r = np.abs(correlations(here[:, allowed], residual))
            if r.max() < (0.05 if chosen else 3.5 / np.sqrt(len(here))):
                break
            chosen.append(allowed.pop(int(r.argmax())))
            here = rows[~np.isnan(rows[:, chosen]).any(1)]
            if len(here) < FEWEST:
                break
            weights, residual, size = _fitted(here[:, chosen], here[:, y])
            is_close = is_close or bool(size <= 0.2 * here[:, y].std())
            found = self._exact(here, y, chosen, weights) if is_close else None
            if found and (best is None or found.off < 0.5 * best.off):
                best = found
            if best and (best.off < 0.002 or not found):
                break
            if not best:  # a rare part is in the rows that are off
                residual = np.clip(residual, -size, size)
        return best, is_close

    def _exact(self, rows: Array, y: int, chosen: list[int], weights: Array) -> Found | None:
        """The relation of columns, (n, m), with simple factors near weights."""
        size = np.abs(weights) * rows[:, chosen].std(0) / rows[:, y].std()
        for most in HALVES if self.log else DENOMINATORS:
            simple = weights
            if most:
                simple = np.array([float(Fraction(w).limit_denominator(most)) for w in weights])
            used = (simple != 0.0) & (size > 1e-4)
            far = np.abs(simple - weights).max() > 0.02 * np.abs(weights).max()
            if not far and used.any() and (most or used.sum() == 1):
                others = np.array(chosen)[used]
                if found := self._kept(rows, y, others, simple[used]):
                    return found
        return None

    def _kept(self, rows: Array, y: int, others: Array, weights: Array) -> Found | None:
        """The relation with these weights if nearly all rows keep it, up to rounding."""
        t, x, units = rows[:, y], rows[:, others], self.numbers.units
        own, theirs = 0.5 * units[y], 0.5 * units[others]
        if self.log:
            own, theirs = own / np.exp(t), theirs / np.exp(x)
        rest, least = t - x @ weights, min(t.std(), (np.abs(weights) * x.std(0)).min())
        for rounding in (0.0, own, own + theirs @ np.abs(weights)):
            usual, middle = np.median(rounding), float(np.median(rest))
            constant = middle if abs(middle) > usual + 1e-9 else 0.0
            off = np.abs(rest - constant) > rounding + 1e-5 * t.std()
            if usual <= COARSE * least and _is_kept(off, rows[:, [y, *others]]):
                left = np.exp(t) * -np.expm1(constant - rest) if self.log else rest - constant
                error = max(np.abs(left[~off]).max(), 0.5 * units[y] * bool(np.any(rounding)))
                pairs = dict(zip(others.tolist(), weights.tolist(), strict=True))
                return Found(y, pairs, constant, float(error), float(off.mean()))
        return None

    def _zeros_agree(self, found: Found) -> bool:
        """Whether a product is zero where a factor is."""
        factors = self.raw[:, [j for j, w in found.weights.items() if w > 0]]
        if not self.log or not factors.shape[1]:
            return True
        same = (self.raw[:, found.y] == 0.0) == (factors == 0.0).any(1)
        return bool(same.mean() >= 1.0 - ERRORS)

    def _relation(self, found: Found) -> Relation:
        """As a relation; of a sum of parts, the total is the number."""
        y, weights, constant, error = found.y, dict(found.weights), found.constant, found.error
        odd = [j for j, w in weights.items() if w > 0]
        is_part = not self.log and len(weights) > 1 and constant == 0.0 and len(odd) == 1
        if is_part and weights[odd[0]] == 1.0:  # y = total - others
            total = odd[0]
            weights = {y: 1.0, **{j: -w for j, w in weights.items() if j != total}}
            y = total
        spread = np.nanstd(self.values, 0)
        others = sorted(weights, key=lambda j: -abs(weights[j]) * spread[j])
        names = self.numbers.names
        return Relation(
            names[y],
            tuple(names[j] for j in others),
            constant,
            tuple(weights[j] for j in others),
            self.log,
            high=0.0,
            error=error + 1e-9 * float(np.nanmax(np.abs(self.raw[:, y]))),
        )


def switched(numbers: Numbers) -> list[Relation]:
    """The numbers that are another one, or 0 where a flag is."""
    table, names, found = numbers.values[:ROWS], numbers.names, []
    flags = [j for j, v in enumerate(table.T) if set(np.unique(v[~np.isnan(v)])) == {0.0, 1.0}]
    for y in range(len(names)) if flags else ():
        known = ~np.isnan(table) & ~np.isnan(table[:, [y]])
        on = known & (table[:, [y]] != 0.0)
        same = (on & np.isclose(table, table[:, [y]])).sum(0) >= np.maximum(10, 0.99 * on.sum(0))
        for x in np.flatnonzero(same & ((known & ~on & (table != 0.0)).sum(0) >= 10)).tolist():
            here = known[:, x]
            product = table[here][:, flags] * table[here][:, [x]]
            agree = ((product != 0.0) == on[here][:, [x]]).mean(0) >= 1.0 - FEW_ERRORS
            both = [f for f, ok in zip(flags, agree, strict=True) if ok and f not in (x, y)][:1]
            found += [_product(names[y], (names[x], names[f])) for f in both]
    return found


def _product(name: str, others: tuple[str, ...]) -> Relation:
    return Relation(name, others, weights=(1.0,) * len(others), log=True, high=0.0)


def _fitted(x: Array, t: Array) -> tuple[Array, Array, float]:
    """Weights, (m,), residuals, (n,), and the size of all residuals but errors."""
    design, kept = np.column_stack([np.ones(len(t)), x]), np.ones(len(t), dtype=bool)
    most = int((1.0 - ERRORS) * (len(t) - 1))
    for _ in range(3):
        weights = np.linalg.lstsq(design[kept], t[kept], rcond=None)[0]
        residual = t - design @ weights
        size = float(np.partition(np.abs(residual), most)[most])
        kept = np.abs(residual) <= size
    return weights[1:], residual, size


def _is_kept(off: Array, columns: Array) -> bool:
    """Whether rows keep a relation, also those with another than the commonest value."""
    counted = [np.unique(v, return_counts=True) for v in columns.T]
    few = all(len(distinct) <= FEW_VALUES for distinct, _ in counted)
    if off.mean() > (FEW_ERRORS if few else ERRORS):
        return False
    for v, (distinct, counts) in zip(columns.T, counted, strict=True):
        rare = off[v != distinct[counts.argmax()]]
        if len(rare) < 10 or rare.mean() > ERRORS:
            return False
    return True


def _follows(row: Array, span: Array) -> bool:
    """Whether a relation is a combination of others."""
    size = np.maximum(np.abs(span).max(0, initial=0.0), np.abs(row)) + 1e-12
    again = np.linalg.lstsq((span / size).T, row / size, rcond=None)[0] @ (span / size)
    return bool(np.abs(again - row / size).max() <= 1e-3)
