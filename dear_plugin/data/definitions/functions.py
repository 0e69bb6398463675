"""Functions: numbers that are sums, products, powers or logarithms of others, exact or near."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dear_plugin._lazy import lazy
from dear_plugin.data.definitions.evidence import ERRORS, fitted, follows, is_kept
from dear_plugin.data.definitions.numbers import Array, Indices, Numbers, Rows
from dear_plugin.data.relations import Relation

# The rows that are looked at, and the least of them; the most columns that a sum adds.
ROWS, FEWEST, MOST = 1000, 30, 10
# Factors are fractions with the first of these denominators that fits, powers are halves; a
# logarithm has one of these bases.
DENOMINATORS, HALVES, BASES = (1, 12, 100), (2,), (np.e, 10.0, 2.0)
# The least correlation of a number with a logarithm that it is.
STRAIGHT = 0.995
# A rounding error is at most this share of each term.
COARSE = 0.05
# Near-functions: the least share of the variance that others explain, and that a second other
# must leave at most of what the first one leaves; the distinct values and the share of rows.
EXPLAINED, SECOND, VALUES, KNOWN = 0.99, 0.1, 12, 0.5
# Their residuals: this share of rows at either end is left out, the rest widened by a share of
# its width and of the number's deviation. The share of rows with only some positive numbers.
ENDS, WIDER, ROUNDING, MIXED = 0.001, 0.1, 1e-3, 0.005


@dataclass(frozen=True)
class Fit:
    """A relation of a number.

    Attributes:
        relation: the relation.
        left: what it leaves: the share of rows that break it, or of the variance.
        rounded: whether it holds only up to the rounding of others.
    """

    relation: Relation
    left: float
    rounded: bool = False


@dataclass(frozen=True)
class Scale:
    """The numbers of some rows, as functions of others: of one kind, sums to logarithms.

    Attributes:
        numbers: the names and units.
        own: (n, m) the numbers, or their logarithms, as what is explained.
        others: (n, m) likewise, as what explains.
        kind: the relation without members.
    """

    numbers: Numbers
    own: Array
    others: Array
    kind: Relation

    @classmethod
    def all(cls, numbers: Numbers) -> tuple[Scale, ...]:
        """Sums, products, and the logarithms of numbers with 0 or 1 added."""
        raw, none = numbers.values[:ROWS], Relation("", (), weights=(), high=0.0)
        log, log1 = (np.log(np.where(raw + c > 0.0, raw + c, np.nan)) for c in (0.0, 1.0))
        return (
            cls(numbers, raw, raw, none),
            cls(numbers, log, log, replace(none, log=True)),
            cls(numbers, raw, log, replace(none, log=True, shift=0.0)),
            cls(numbers, raw, log1, replace(none, log=True, shift=1.0)),
        )

    def __len__(self) -> int:
        """The number of columns (m)."""
        return len(self.numbers.names)

    def fits(self, groups: Iterable[Iterable[str]]) -> tuple[list[Fit], list[Fit]]:
        """The exact fits of numbers, short ones first, that do not follow from others; near ones.

        Args:
            groups: columns of which exactly one is 1.
        """
        distinct, spread = [len(np.unique(v)) for v in self.others.T], np.nanstd(self.own, 0)
        wide = [j for j, count in enumerate(distinct) if count > 3 or not self.kind.log]
        # A square comes before its root, which has the same count.
        order = sorted(wide, key=lambda j: (-distinct[j], -spread[j] * self.kind.log))
        both = [self.fit(y, [j for j in wide if j != y]) for y in order]
        exact, found = [fit for fit, _ in both if fit], list[Fit]()
        names = self.numbers.names
        known = [*groups] if not self.kind.log else []
        span = np.array([[*(n in group for n in names), -1.0] for group in known])
        span = span.reshape(len(known), len(names) + 1)
        for each in sorted(exact, key=lambda fit: len(fit.relation.others)):
            row = self._row(each.relation)
            if not follows(row, span) and self._zeros_agree(each.relation):
                found, span = [*found, each], np.vstack([span, row])
        return found, [fit for _, fit in both if fit]

    def stated(self, y: int, others: list[int]) -> Iterator[Relation]:
        """The exact and the near relation of a column to all of others, if there are."""
        here = self._rows([y, *others])
        if here.sum() >= FEWEST:
            weights, residual, _ = fitted(self.others[here][:, others], self.own[here, y])
            exact = self.exact(y, others, weights[1:])
            near = self.near(y, others, weights, residual)
            fits = [fit.relation for fit in (exact, near) if fit]
            yield from (each for each in fits if len(each.others) == len(others))

    def fit(self, y: int, allowed: list[int]) -> tuple[Fit | None, Fit | None]:
        """The exact and the near relation of a column to some of others."""
        here = self._rows([y])
        if here.sum() < FEWEST:
            return None, None
        r = self._linked(self._target(here, y), here)
        r[(~np.isnan(self.others[here])).mean(0) <= KNOWN] = 0.0
        likely = [j for j in allowed if r[j] > 0.0]
        if not likely or (self.kind.shift is not None and max(r[likely]) < STRAIGHT):
            return None, None
        exact, first = None, None
        for akin in (1.1, *np.sort(r[likely])[::-1][:3], 0.9):  # the most like may hide others
            exact, near, is_close = self._forward(y, [j for j in likely if r[j] < akin])
            first = first or near
            if exact or not is_close:
                break
        return exact, first

    def _forward(self, y: int, allowed: list[int]) -> tuple[Fit | None, Fit | None, bool]:
        """By forward selection; also whether the columns explain most of y."""
        exact, near, is_close, left, chosen = None, None, False, [1.0], list[int]()
        most, free = MOST if self.kind.shift is None else 1, np.isin(np.arange(len(self)), allowed)
        here = self._rows([y])
        target = self._target(here, y)
        while free.any() and len(chosen) < most:
            r = np.where(free, self._linked(target, here), 0.0)
            if r.max() < (0.05 if chosen else 3.5 / np.sqrt(here.sum())):
                break
            chosen = [*chosen, int(r.argmax())]
            here, free[chosen] = self._rows([y, *chosen]), False
            if here.sum() < FEWEST:
                break
            weights, residual, size = fitted(self.others[here][:, chosen], self.own[here, y])
            left.append(float(residual.var() / self.own[here, y].var()))
            is_close = is_close or bool(size <= 0.2 * self.own[here, y].std())
            if len(chosen) == 1 or (len(chosen) == 2 and left[2] < SECOND * left[1]):
                near = self.near(y, chosen, weights, residual)
            found = self.exact(y, chosen, weights[1:]) if is_close else None
            if found and (exact is None or found.left < 0.5 * exact.left):
                exact = found
            if exact and (exact.left < 0.002 or not found):
                break
            target = np.zeros(len(here))  # a rare part is in the rows that are off
            target[here] = residual if exact else np.clip(residual, -size, size)
        return exact, near, is_close

    def _target(self, here: Rows, y: int) -> Array:
        """(n,) a column less its mean; 0 in other rows."""
        out: Array = np.where(here, self.own[:, y], 0.0)
        return np.where(here, out - out.sum() / max(here.sum(), 1), 0.0)

    def _linked(self, target: Array, here: Rows) -> Array:
        """(m,) the size of the correlations of columns with a target, (n,), in the rows here."""
        size = np.sqrt((target @ target) * (here @ self._centred**2))
        out: Array = np.abs(target @ self._centred) / np.where(size > 0.0, size, np.inf)
        return out

    @lazy
    def _centred(self) -> Array:
        """(n, m) columns less their means, 0 where unknown."""
        known = ~np.isnan(self.others)
        filled = np.where(known, self.others, 0.0)
        return np.where(known, filled - filled.sum(0) / np.maximum(known.sum(0), 1), 0.0)

    def exact(self, y: int, chosen: list[int], weights: Array) -> Fit | None:
        """The relation with simple factors near weights, if nearly all rows keep it."""
        here = self._rows([y, *chosen])
        t, x = self.own[here, y], self.others[here][:, chosen]
        size = np.abs(weights) * x.std(0)
        for simple in self._simple(weights):
            used = (simple != 0.0) & (size > 1e-4 * t.std())
            far = np.abs(simple - weights).max() > 0.02 * np.abs(weights).max()
            if used.any() and not far:
                least, columns = min(t.std(), size[used].min()), np.array(chosen)[used]
                if found := self._sharpest(here, y, columns, simple[used], COARSE * least):
                    return found
        return None

    def _sharpest(
        self, here: Rows, y: int, others: Indices, weights: Array, coarse: float
    ) -> Fit | None:
        """The relation solved for y, or for the column whose rounding explains what is left."""
        found = self._kept(here, y, others, weights, coarse)
        if not found or not found.rounded or self.kind.shift is not None:
            return found
        for i, j in enumerate(others.tolist()):
            factors = -weights / weights[i]
            factors[i] = 1.0 / weights[i]
            columns = np.where(others == j, y, others)
            other = self._kept(here, j, columns, factors, coarse / abs(weights[i]))
            found = other if other and not other.rounded else found
        return found

    def _simple(self, weights: Array) -> Iterator[Array]:
        """Simple factors near weights, (m,); any if there is one, but in products."""
        if self.kind.shift is not None:
            bases = 1.0 / np.log(BASES)
            yield bases[[int(np.abs(bases - weights[0]).argmin())]]
            return
        for most in HALVES if self.kind.log else DENOMINATORS:
            yield np.array([float(Fraction(w).limit_denominator(most)) for w in weights.tolist()])
        if not self.kind.log and len(weights) == 1:
            yield weights

    def _kept(
        self, here: Rows, y: int, others: Indices, weights: Array, coarse: float
    ) -> Fit | None:
        """The relation if the rows here keep it, up to the rounding of y, or also of others."""
        t, x, raw = self.own[here, y], self.others[here][:, others], self._raw[here]
        own, theirs = 0.5 * self.numbers.units[y], 0.5 * self.numbers.units[others]
        own = own / raw[:, y] if self._is_product else own
        theirs = theirs / np.exp(x) if self.kind.log else theirs
        rest, noise = t - x @ weights, 1e-5 * t.std()
        noise = noise if self.kind.shift is None else noise + 1e-4 * np.abs(t)
        for level, rounding in enumerate((0.0, own, own + theirs @ np.abs(weights))):
            usual, middle = np.median(rounding), float(np.median(rest))
            constant = middle if abs(middle) > usual + 1e-5 * t.std() else 0.0
            off = np.abs(rest - constant) > rounding + noise
            if usual <= coarse and is_kept(off, raw[:, [y, *others]]):
                left = rest - constant
                left = raw[:, y] * -np.expm1(-left) if self._is_product else left
                error = max(np.abs(left[~off]).max(), 0.5 * self.numbers.units[y] * bool(usual))
                error += 1e-9 * np.abs(raw[:, y]).max()
                found = self._relation(y, others.tolist(), weights, constant)
                return Fit(replace(found, error=float(error)), float(off.mean()), level == 2)
        return None

    def near(self, y: int, chosen: list[int], weights: Array, residual: Array) -> Fit | None:
        """The relation to all columns, if it leaves residuals, (n,), that are small."""
        columns = self.own[:, [y, *chosen]]
        known, deviation = ~np.isnan(columns), float(np.nanstd(columns[:, 0]))
        left = float(residual.var() / deviation**2)
        few = min(len(np.unique(v)) for v in columns.T) < VALUES
        if self.kind.shift is not None or few or left > 1.0 - EXPLAINED:
            return None
        low, high = np.quantile(residual, (ENDS, 1.0 - ENDS))
        slack = max(WIDER * (high - low), ROUNDING * deviation)
        mixed = self.kind.log and bool((known.any(1) & ~known.all(1)).mean() > MIXED)
        found = self._relation(y, chosen, weights[1:], float(weights[0]))
        low, high = float(low - slack), float(high + slack)
        return Fit(replace(found, low=low, high=high, mixed=mixed), left)

    def _rows(self, columns: list[int]) -> Rows:
        """(n,) bool, the rows that have the first column, and the others to explain it."""
        known = ~np.isnan(self.own[:, columns[0]])
        out: Rows = known & ~np.isnan(self.others[:, columns[1:]]).any(1)
        return out

    def _zeros_agree(self, relation: Relation) -> bool:
        """Whether a product is zero where a factor is."""
        y, *factors = map(self.numbers.names.index, relation.members)
        factors = [j for j, w in zip(factors, relation.weights, strict=True) if w > 0]
        same = (self._raw[:, y] == 0.0) == (self._raw[:, factors] == 0.0).any(1)
        return not factors or not self._is_product or bool(same.mean() >= 1.0 - ERRORS)

    def _relation(self, y: int, others: list[int], weights: Array, constant: float) -> Relation:
        """A relation; of a sum of parts, y = total - others, the total is the number."""
        names, pairs = self.numbers.names, dict(zip(others, weights.tolist(), strict=True))
        odd = [j for j, w in pairs.items() if w > 0]
        is_part = not self.kind.log and len(pairs) > 1 and constant == 0.0 and len(odd) == 1
        if is_part and pairs[odd[0]] == 1.0:
            total = odd[0]
            pairs = {y: 1.0, **{j: -w for j, w in pairs.items() if j != total}}
            y = total
        spread = np.nanstd(self.others, 0)
        most = sorted(pairs, key=lambda j: -abs(pairs[j]) * spread[j])
        members, factors = tuple(names[j] for j in most), tuple(pairs[j] for j in most)
        return replace(
            self.kind, name=names[y], others=members, weights=factors, constant=constant
        )

    def _row(self, relation: Relation) -> Array:
        """(m + 1,) the relation as coefficients that sum to 0."""
        row = np.zeros(len(self.numbers.names) + 1)
        at = [self.numbers.names.index(name) for name in relation.members]
        row[[*at, -1]] = [-1.0, *relation.weights, relation.constant]
        return row

    @property
    def _raw(self) -> Array:
        """(n, m) the numbers."""
        return self.numbers.values[:ROWS]

    @property
    def _is_product(self) -> bool:
        """Whether the logarithms of numbers are explained."""
        return self.kind.log and self.kind.shift is None
