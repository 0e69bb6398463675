"""What a user states of several columns, in the form that fits: definitions and orders.

A definition that names others is a sum, a product, a logarithm, the larger or the smaller of two,
or a table of a category's levels: the first that training rows keep, up to rounding and a few
errors; else a sum or product that they nearly keep. A text is a formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from dear_plugin._threads import lazy
from dear_plugin.data.cells import is_one
from dear_plugin.data.feature import Feature, Mask
from dear_plugin.data.numbers import Array, gross, ordinary_values, times
from dear_plugin.data.relations import Lookup, Relation, expression
from dear_plugin.errors import SchemaError, require_known

Indices = npt.NDArray[np.intp]


def relations_of(
    frame: pd.DataFrame,
    features: Sequence[Feature],
    *,
    definitions: Any = None,
    orders: Iterable[Any] | None = None,
    within: Mapping[str, float] | None = None,
) -> tuple[Relation | Lookup, ...]:
    """The stated definitions, and then the orders.

    Args:
        frame: training rows.
        features: the features of its columns.
        definitions: `{name: others}` of what others determine.
        orders: the orders, (a, b) for a <= b.
        within: `{name: number}`, how far stated formulas may be off.

    Raises:
        SchemaError: no form fits, or most training rows break an order.
    """
    given = [*_named(definitions or {}, features, within or {})]
    pairs = [_pair(each) for each in orders or ()]
    named = {name for name, others, _ in given for name in (name, *others)} | {*chain(*pairs)}
    formulas = any(isinstance(others, str) for _, others, _ in given)
    numbers = Numbers.of(frame, [f for f in features if formulas or f.name in named])
    with np.errstate(all="ignore"):
        found = [relation_of(frame, numbers, *each) for each in given]
        return (*found, *(_order(pair, numbers) for pair in pairs))


def _pair(pair: Any) -> tuple[str, str]:
    if not _are_names(pair) or len(pair) != 2:
        raise SchemaError(f"orders must be pairs (a, b) of features with a <= b, got {pair!r}")
    return pair[0], pair[1]


def _order(pair: tuple[str, str], numbers: Numbers) -> Relation:
    """A stated order.

    Raises:
        SchemaError: most training rows break it, as where the pair is swapped.
    """
    one, other = pair
    if {one, other} <= {*numbers.names}:
        low, high = (numbers.values[:, numbers.names.index(name)] for name in pair)
        if 2 * (broken := int((low > high).sum())) > len(low):
            raise SchemaError(
                f"orders: {one} <= {other} does not hold in {broken} of {len(low)} training rows:"
                " swap the pair, or leave it out"
            )
    return Relation(other, (one,))


def _named(
    stated: Any, features: Sequence[Feature], within: Mapping[str, float]
) -> Iterator[tuple[str, str | tuple[str, ...], float | None]]:
    """The stated definitions: a feature, a formula or lists of others, how far it may be off.

    Raises:
        SchemaError: no such mapping, or unknown features.
    """
    if not isinstance(stated, Mapping) or not all(
        isinstance(own, str) or _are_names(own) for own in stated.values()
    ):
        raise SchemaError(
            f"definitions must be {{feature: [other features] or 'formula'}}, got {stated!r}"
        )
    owners = {each.name: f.name for f in features for each in (f, *f.dummies)}
    texts = [name for name, own in stated.items() if isinstance(own, str)]
    require_known("within", "formulas", within, texts)
    for name, others in stated.items():
        lists = [others] if isinstance(others, str) or not all(map(_are_names, others)) else others
        for some in lists:
            names = [name] if isinstance(some, str) else [name, *some]
            require_known("definitions", "features", names, owners)
            own, *rest = dict.fromkeys(owners[each] for each in names)
            yield own, some if isinstance(some, str) else tuple(rest), within.get(name)


def _are_names(value: Any) -> bool:
    """Whether a value is a list of at least one name."""
    return isinstance(value, Iterable) and not isinstance(value, str) and bool([*value])


# The least rows; the most numbers that a sum adds, of which more are parts of a whole; the most
# levels of a number that has a table and not a near-function.
FUNCTION_ROWS, MOST, MOST_LEVELS = 30, 10, 60


def relation_of(
    frame: pd.DataFrame,
    numbers: Numbers,
    name: str,
    others: str | tuple[str, ...],
    within: float | None = None,
) -> Relation | Lookup:
    """The relation of a column to others, in the form that fits it, or to those of a formula.

    Raises:
        SchemaError: no form fits.
    """
    if isinstance(others, str):
        return stated_formula(numbers, name, others, within)
    are_numbers = {name, *others} <= {*numbers.names}
    found = form_of(numbers, name, others) if are_numbers else None
    if found and (found.is_definition or frame[others[0]].nunique() > MOST_LEVELS):
        return found
    if len(others) == 1 and (not are_numbers or is_function(frame, name, *others)):
        return tabulated(frame, name, *others)
    if found:
        return found
    raise SchemaError(
        f"definitions: {name!r} is no function of {[*others]}: expected a sum, a product, a"
        " logarithm, or one category that determines it"
    )


def form_of(numbers: Numbers, name: str, others: Sequence[str]) -> Relation | None:
    """The relation of a number to all of others, an exact one first; None if nothing fits."""
    numbers, (y, *x) = numbers.only((name, *others)), range(len(others) + 1)
    near, logs = list[Fit](), list[Relation]()
    for scale in Scale.all(numbers):
        is_log, here = scale.kind.shift is not None, scale.rows([y, *x])
        few = is_log and (len(x) > 1 or len(np.unique(scale.others[:, x])) <= 3)
        if here.sum() < FUNCTION_ROWS or few:
            continue
        weights, residual, _ = fitted(scale.others[here][:, x], scale.own[here, y])
        rounded = rounded_form(scale, y, x, np.sign(weights[1:]))
        exact = exact_form(scale, y, x, weights[1:])
        exact = exact if exact and len(exact.relation.others) == len(x) else None
        if exact and is_log:
            logs.append(exact.relation)
        elif exact and (len(x) <= MOST or not rounded):
            return exact.relation
        near += [fit for fit in (rounded, near_form(scale, y, x, weights, residual)) if fit]
    # Of logarithms, one without a constant fits best.
    logs.sort(key=lambda each: (each.constant != 0.0, each.error))
    pairs = of_two(numbers, y, x) if len(x) == 2 else ()
    best = (fit.relation for fit in sorted(near, key=lambda fit: fit.left))
    return next(chain(logs, pairs, best), None)


# How far a formula is off is what so many rows keep; it fits if that is at most such a share of
# the number's central 90 %, or, where it is stated, if half of the rows keep it.
NEARLY, LOOSE = 0.9, 0.25


def stated_formula(numbers: Numbers, name: str, text: str, within: float | None) -> Relation:
    """The relation that a formula states, times a power of ten where it is one of percent.

    Raises:
        SchemaError: it is no formula of numbers, or does not fit.
    """
    require_known("definitions", "numeric features", [name], numbers.names)
    found, own, value, index = by_formula(numbers, name, text)
    if not len(own):
        raise SchemaError(f"definitions: {found.text} gives no number in any training row")
    ratio = np.median(own[:, 0] / np.where(value, value, np.nan))
    if abs(factor := int(np.round(np.log10(ratio))) if ratio > 0.0 else 0) > 1:
        found, own, value, index = by_formula(numbers, name, f"{10.0**factor:g} * ({text})")
    off = np.abs(own[:, 0] - value)
    if is_kept(off > found.error, own):
        return found
    far = float(np.quantile(off, NEARLY)) if within is None else float(within)
    loose = within is None and far > LOOSE * np.subtract(*np.quantile(own[:, 0], (0.95, 0.05)))
    if (count := (off > far + found.error).sum()) > len(off) / 2 or loose:
        most = ", ".join(f"{index[i]} (by it {value[i]:g})" for i in np.argsort(-off)[:3])
        raise SchemaError(
            f"definitions: {found.text} is off by more than {far:.4g} in {count} of {len(off)}"
            f" training rows, most in {most}: correct it, or state within={{{name!r}: ...}}"
        )
    return replace(found, low=-far, high=far)


def by_formula(numbers: Numbers, name: str, text: str) -> tuple[Relation, Array, Array, pd.Index]:
    """A formula as if it held, and of n rows the number and its others, what it gives, labels."""
    of, others = expression(text, [each for each in numbers.names if each != name])
    table = numbers.values[:, [*map(numbers.names.index, (name, *others))]]
    value = of(dict(zip(others, torch.from_numpy(table.T[1:]), strict=True))).numpy()
    here, error = np.isfinite(value + table[:, 0]), numbers.errors[numbers.names.index(name)]
    found = Relation(name, others, 0.0, (), high=0.0, error=float(error), formula=text)
    return found, table[here], value[here], numbers.index[here]


# What is computed of two numbers.
SWITCHED = "{} * {}"
PAIRED = "max({}, {})", "min({}, {})", "abs({} - {})", SWITCHED


def of_two(numbers: Numbers, y: int, pair: Sequence[int]) -> Iterator[Relation]:
    """A number as the larger, the smaller, or the distance of two others, or as one switched.

    A number is switched that is another one, or 0 where a flag is.
    """
    names, flag = numbers.names, numbers.flags
    for text in PAIRED:
        if (flag[pair[0]] or flag[pair[1]]) == (text == SWITCHED):
            whole = text.format(*(names[j] for j in sorted(pair, key=lambda j: flag[j])))
            found, rows, value, _ = by_formula(numbers, names[y], whole)
            own, a, b = rows.T
            # It is neither one of the two, nor always the same difference.
            others = (np.abs(value - x) > found.error for x in (a, b, a - b, b - a))
            kept = is_kept(np.abs(own - value) > found.error, rows)
            if kept and min(map(np.mean, others)) > ERRORS:
                yield found


# The share of rows that may break a definition, also among those in which a column has not its
# commonest value; the share if all have so few values that many rows keep it by chance.
ERRORS, FEW_ERRORS, FEW_VALUES = 0.03, 0.005, 12
# Factors are fractions with the first of these denominators that fits, powers are halves; a
# logarithm has one of these bases.
DENOMINATORS, HALVES, BASES = (1, 12, 100), (2,), (np.e, 10.0, 2.0)
# Constants have as few digits as are within so many errors of a median, or this share of them.
ERROR, EXACT, DIGITS = 4.0, 1e-9, 16
# Larger numbers are no multiples of a unit.
WHOLE = 1e15
# A rounding error is at most this share of each term.
COARSE = 0.05
# Near-functions: the least share of the variance that others explain, and the distinct values.
EXPLAINED, VALUES = 0.99, 12
# Their residuals: this share of rows at either end is left out, the rest widened by a share of
# its width and of the number's deviation.
ENDS, WIDER, ROUNDING = 0.001, 0.1, 1e-3
# The most variance of the sum of parts of a whole, in units of that of rounding, and of that of
# independent numbers.
ROUNDED, UNLIKE_CHANCE = 1.5, 0.1


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


def exact_form(scale: Scale, y: int, chosen: Sequence[int], weights: Array) -> Fit | None:
    """The relation with simple factors near weights, if nearly all rows keep it."""
    forms = simple_forms(scale, y, chosen, weights)
    return next(filter(None, (kept_form(scale, y, *form) for form in forms)), None)


def simple_forms(
    scale: Scale, y: int, chosen: Sequence[int], weights: Array
) -> Iterator[tuple[Mask, Indices, Array, float]]:
    """Rows, columns, simple factors near weights, and the largest rounding error."""
    here = scale.rows([y, *chosen])
    t, x = scale.own[here, y], scale.others[here][:, chosen]
    size, deviation = np.abs(weights) * x.std(0), float(t.std())
    for simple in _simple(scale, weights):
        used = (simple != 0.0) & (size > 1e-4 * deviation)
        far = np.abs(simple - weights).max() > 0.02 * np.abs(weights).max()
        if used.any() and not far:
            least = min(deviation, float(size[used].min()))
            yield here, np.array(chosen)[used], simple[used], COARSE * least


def near_form(
    scale: Scale, y: int, chosen: Sequence[int], weights: Array, residual: Array
) -> Fit | None:
    """The relation to all columns, if it leaves residuals, (n,), that are small."""
    columns = scale.own[:, [y, *chosen]]
    deviation = float(np.nanstd(columns[:, 0]))
    left = float(residual.var() / deviation**2)
    few = min(len(np.unique(v)) for v in columns.T) < VALUES
    if scale.kind.shift is not None or few or left > 1.0 - EXPLAINED:
        return None
    low, high = np.quantile(residual, (ENDS, 1.0 - ENDS))
    slack = max(WIDER * (high - low), ROUNDING * deviation)
    found = scale.relation(y, chosen, weights[1:], float(weights[0]))
    low, high = float(low - slack), float(high + slack)
    return Fit(replace(found, low=low, high=high), left)


def rounded_form(scale: Scale, y: int, others: Sequence[int], signs: Array) -> Fit | None:
    """The sum of numbers, each rounded, within those of training rows; None if it varies more."""
    last, here = scale.numbers.units[[y, *others]], scale.rows([y, *others])
    if scale.kind.log or not last.all() or (np.abs(signs) != 1.0).any():
        return None
    parts = scale.own[here][:, [y, *others]] * [1.0, *-signs]
    units = [max(unit, _unit(v, unit)) for v, unit in zip(parts.T, last, strict=True)]
    rest, noise = parts.sum(1), float(np.square(units).sum()) / 12.0
    if rest.var() > min(ROUNDED * noise, UNLIKE_CHANCE * parts.var(0).sum()):
        return None
    middle, error = float(np.median(rest)), 1e-6 * float(last.min())
    low, high = float(rest.min()) - middle, float(rest.max()) - middle
    found = scale.relation(y, others, signs, middle)
    return Fit(replace(found, low=low, high=high, error=error), rest.var() / parts[:, 0].var())


def _simple(scale: Scale, weights: Array) -> Iterator[Array]:
    """Simple factors near weights, (m,); any if there is one, but in products."""
    if scale.kind.shift is not None:
        bases = 1.0 / np.log(BASES)
        yield bases[[int(np.abs(bases - weights[0]).argmin())]]
        return
    for most in HALVES if scale.kind.log else DENOMINATORS:
        yield np.array([float(Fraction(w).limit_denominator(most)) for w in weights.tolist()])
    if not scale.kind.log and len(weights) == 1:
        inverse = 1.0 / weights[0]
        if np.isfinite(inverse) and (w := Fraction(inverse).limit_denominator(DENOMINATORS[-1])):
            yield np.array([1.0 / float(w)])
        yield weights


def kept_form(
    scale: Scale, y: int, here: Mask, others: Indices, weights: Array, coarse: float
) -> Fit | None:
    """The relation if the rows here keep it, up to the rounding of y, or also of others."""
    t, x, raw = scale.own[here, y], scale.others[here][:, others], scale.raw[here]
    own, theirs = 0.5 * scale.numbers.units[y], 0.5 * scale.numbers.units[others]
    own = own / raw[:, y] if scale.is_product else own
    theirs = theirs / np.exp(x) if scale.kind.log else theirs
    rest, noise = t - x @ weights, 1e-5 * t.std()
    noise = noise if scale.kind.shift is None else noise + 1e-4 * np.abs(t)
    for level, rounding in enumerate((0.0, own, own + theirs @ np.abs(weights))):
        usual, middle = np.median(rounding), float(np.median(rest))
        constant = middle if abs(middle) > usual + 1e-5 * t.std() else 0.0
        constant = _shortest(constant, rest, rounding + noise, is_factor=scale.is_product)
        off = np.abs(rest - constant) > rounding + noise
        if usual <= coarse and is_kept(off, raw[:, [y, *others]]):
            left = rest - constant
            left = raw[:, y] * -np.expm1(-left) if scale.is_product else left
            error = max(np.abs(left[~off]).max(), 0.5 * scale.numbers.units[y] * bool(usual))
            error += 1e-9 * np.abs(raw[:, y]).max()
            unit = _unit(raw[~off, y], scale.numbers.units[y])
            found = scale.relation(y, others.tolist(), weights, constant)
            found = replace(found, error=float(error), unit=unit if unit <= 3.0 * error else 0.0)
            return Fit(found, float(off.mean()), level == 2)
    return None


def _unit(values: Array, last: float) -> float:
    """What numbers, (n,), are multiples of, if that is more than their last decimal; else 0."""
    steps = np.round(values / last) if last else values[:0]
    size = np.gcd.reduce(steps.astype(np.int64)) if np.abs(steps).max(initial=0.0) < WHOLE else 1
    return float(size * last) if size > 1 else 0.0


def _shortest(constant: float, rest: Array, most: Array, *, is_factor: bool) -> float:
    """The constant of the fewest digits that fits residuals, (n,), as well: 100 for 99.994."""
    error = ERROR * float(np.median(np.abs(rest - constant))) / len(rest) ** 0.5
    size = float(np.exp(constant)) if is_factor else constant
    for digits in range(1, DIGITS):
        short = float(f"{size:.{digits}g}")
        short = float(np.log(short)) if is_factor else short
        fits = (np.abs(rest - short) > most).sum() <= (np.abs(rest - constant) > most).sum()
        if fits and abs(short - constant) <= max(error, EXACT * abs(constant)):
            return short
    return constant


def fitted(x: Array, t: Array) -> tuple[Array, Array, float]:
    """Weights, (m,), residuals, (n,), and the size of all residuals but errors."""
    spread, mean = x.std(0), x.mean(0)
    spread[spread == 0.0] = 1.0
    table = np.column_stack([np.ones(len(t)), (x - mean) / spread, t])
    most, kept = int((1.0 - ERRORS) * (len(t) - 1)), table
    for _ in range(2):
        products = kept.T @ table
        weights = np.linalg.lstsq(products[:-1, :-1], products[:-1, -1], rcond=1e-12)[0]
        residual = t - np.einsum("ij,j->i", table[:, :-1], weights)
        size = np.partition(np.abs(residual), most)[most]
        kept = table * (np.abs(residual) <= size)[:, None]
    weights[1:] /= spread
    weights[0] -= weights[1:] @ mean
    return weights, residual, float(size)


def is_kept(off: Mask, columns: Array) -> bool:
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


# Of neighbours with one level, those that differ are at most this share of those that would by
# chance, and these are so many.
DIFFER, LOOKUP_PAIRS = 0.01, 30


def tabulated(frame: pd.DataFrame, name: str, other: str) -> Lookup:
    """The commonest value of a column for each level of another one."""
    pairs = frame[[other, name]].dropna().astype(object)
    counted = pairs.value_counts(sort=True).index.to_frame(index=False)
    table = counted.drop_duplicates(other).to_numpy(dtype=object).tolist()
    return Lookup(name, other, tuple((_plain(x), _plain(y)) for x, y in table))


def is_function(frame: pd.DataFrame, name: str, other: str) -> bool:
    """Whether another column determines a column in nearly all rows."""
    codes = np.array([pd.factorize(frame[each])[0] for each in (other, name)]).T
    return determined(codes, 0) == [1]


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    return value.item() if isinstance(value, np.generic) else value


def determined(table: npt.NDArray[np.int64], x: int) -> list[int]:
    """The columns of codes, (n, m), that column x determines; -1 is no value."""
    rows = table[table[:, x] >= 0]
    chance = ((rows[1:] != rows[:-1]) & (rows[1:] >= 0) & (rows[:-1] >= 0)).mean(0)
    rows = rows[np.argsort(rows[:, x], kind="stable")]
    same = rows[1:, x] == rows[:-1, x]
    a, b = rows[1:][same], rows[:-1][same]
    known = (a >= 0) & (b >= 0)
    differ, expected = ((a != b) & known).sum(0), chance * known.sum(0)
    sure = (expected >= LOOKUP_PAIRS) & (differ <= DIFFER * expected)
    return [int(j) for j in np.flatnonzero(sure) if j != x]


# The rows that are looked at.
FIT_ROWS = 1000


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
        raw, none = numbers.values[:FIT_ROWS], Relation("", (), weights=(), high=0.0)
        log, log1 = (np.log(np.where(raw + c > 0.0, raw + c, np.nan)) for c in (0.0, 1.0))
        return (
            cls(numbers, raw, raw, none),
            cls(numbers, log, log, replace(none, log=True)),
            cls(numbers, raw, log, replace(none, log=True, shift=0.0)),
            cls(numbers, raw, log1, replace(none, log=True, shift=1.0)),
        )

    def rows(self, columns: Sequence[int]) -> Mask:
        """(n,) bool, the rows that have the first column, and the others to explain it."""
        y, *others = columns
        out: Mask = ~np.isnan(self.own[:, y]) & ~np.isnan(self.others[:, others]).any(1)
        return out

    def target(self, here: Mask, y: int) -> Array:
        """(n,) a column less its mean; 0 in other rows."""
        out: Array = np.where(here, self.own[:, y], 0.0)
        return np.where(here, out - out.sum() / max(here.sum(), 1), 0.0)

    def linked(self, target: Array, here: Mask) -> Array:
        """(m,) the size of the correlations of columns with a target, (n,), in the rows here."""
        size = np.sqrt((target**2).sum() * times(here.astype(np.float64), self._squares))
        sums = np.abs(times(target, self.centred))
        return np.divide(sums, np.where(size > 0.0, size, np.inf))

    def known(self, here: Mask) -> Array:
        """(m,) the number of known values of columns in the rows here."""
        return times(here.astype(np.float64), self._known)

    @lazy
    def _known(self) -> Array:
        return (~np.isnan(self.others)).astype(np.float64)

    @lazy
    def spread(self) -> Array:
        """(m,) the standard deviations of columns."""
        out: Array = np.sqrt((self.centred**2).sum(0) / (~np.isnan(self.others)).sum(0).clip(1))
        return out

    @lazy
    def centred(self) -> Array:
        """(n, m) columns less their means, 0 where unknown."""
        known = ~np.isnan(self.others)
        filled = np.where(known, self.others, 0.0)
        return np.where(known, filled - filled.sum(0) / np.maximum(known.sum(0), 1), 0.0)

    @lazy
    def _squares(self) -> Array:
        """(n, m) their squares."""
        return self.centred**2

    @property
    def raw(self) -> Array:
        """(n, m) the numbers."""
        return self.numbers.values[:FIT_ROWS]

    @property
    def is_product(self) -> bool:
        """Whether the logarithms of numbers are explained."""
        return self.kind.log and self.kind.shift is None

    def relation(self, y: int, others: Sequence[int], weights: Array, constant: float) -> Relation:
        """A relation of a column to others, those that vary most first."""
        names, pairs = self.numbers.names, dict(zip(others, weights.tolist(), strict=True))
        most = sorted(pairs, key=lambda j: -abs(pairs[j]) * self.spread[j])
        members, factors = tuple(names[j] for j in most), tuple(pairs[j] for j in most)
        return replace(
            self.kind, name=names[y], others=members, weights=factors, constant=constant
        )

    def row(self, relation: Relation) -> Array:
        """(m + 1,) the relation as coefficients that sum to 0."""
        row = np.zeros(len(self.numbers.names) + 1)
        at = [self.numbers.names.index(name) for name in relation.members]
        row[[*at, -1]] = [-1.0, *relation.weights, relation.constant]
        return row


# The rows that are looked at, and the least known values of a column. The largest number, and the
# inverse of the smallest, of which squares can be summed.
ROWS, FEWEST, LARGEST = 4000, 20, 1e100


@dataclass(frozen=True)
class Numbers:
    """m numbers, flags among them, in some training rows in random order.

    Attributes:
        names: (m,) their names.
        values: (n, m) NaN where a number is missing, special, or gross.
        units: (m,) one unit of the last decimal; 0 where there is none.
        index: (n,) the labels of the rows.
    """

    names: tuple[str, ...]
    values: Array
    units: Array
    index: pd.Index

    @classmethod
    def of(cls, frame: pd.DataFrame, features: Iterable[Feature]) -> Numbers:
        """The numbers of a frame but identifiers."""
        at = np.random.default_rng(0).permutation(len(frame))[:ROWS]
        found, units = {}, []
        for f in features:
            if f.is_flag or (not f.choices and f.bounds[0] < f.bounds[1]):
                values = _values(frame[f.name], f)[at]
                known = values[~np.isnan(values)]
                wide = len(known) >= FEWEST and known.min() < known.max()
                if wide and 1 / LARGEST < np.abs(known).max() < LARGEST:
                    found[f.name] = values
                    places = 0 if f.is_flag else f.precision
                    units.append(0.0 if places is None else 10.0**-places)
        table = np.array([*found.values()]).reshape(len(found), len(at)).T
        return cls((*found,), table, np.array(units), frame.index[at])

    def only(self, names: Sequence[str]) -> Numbers:
        """Some of these numbers."""
        at = [*map(self.names.index, names)]
        return replace(self, names=(*names,), values=self.values[:, at], units=self.units[at])

    @lazy
    def errors(self) -> Array:
        """(m,) how far rounding may move the numbers."""
        return np.add(0.5 * self.units, 1e-7 * np.nanmax(np.abs(self.values), 0, initial=0.0))

    @lazy
    def flags(self) -> Mask:
        """(m,) bool, those that are 0 or 1."""
        return np.array([{*np.unique(v[~np.isnan(v)])} == {0.0, 1.0} for v in self.values.T], bool)


def _values(column: pd.Series, feature: Feature) -> Array:
    """(n,) the numbers of a column, 0 and 1 of a flag, NaN for gross ones."""
    if feature.choices:
        return is_one(feature, column).astype(np.float64)
    values = ordinary_values(column, feature.special)
    known = np.flatnonzero(~np.isnan(values))
    values[known[gross(values[known])]] = np.nan
    return values
