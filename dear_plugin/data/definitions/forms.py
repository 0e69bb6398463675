"""Forms: weights of columns in, the exact or near relation with simple factors out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import torch

from dear_plugin.data.definitions.numbers import Indices
from dear_plugin.data.definitions.scale import Scale
from dear_plugin.data.kinds.cells import Array, Mask
from dear_plugin.data.relations import Relation

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


def exact_form(
    scale: Scale, y: int, chosen: list[int], weights: Array, *, stated: bool = False
) -> Fit | None:
    """The relation with simple factors near weights, if nearly all rows keep it.

    It is solved for y if that is stated, else for the column that is computed.
    """
    solved = _kept if stated else _computed
    here = scale.rows([y, *chosen])
    t, x = scale.own[here, y], scale.others[here][:, chosen]
    size = np.abs(weights) * x.std(0)
    for simple in _simple(scale, weights):
        used = (simple != 0.0) & (size > 1e-4 * t.std())
        far = np.abs(simple - weights).max() > 0.02 * np.abs(weights).max()
        if used.any() and not far:
            least, columns = min(t.std(), size[used].min()), np.array(chosen)[used]
            if found := solved(scale, here, y, columns, simple[used], COARSE * least):
                return found
    return None


def near_form(
    scale: Scale, y: int, chosen: list[int], weights: Array, residual: Array
) -> Fit | None:
    """The relation to all columns, if it leaves residuals, (n,), that are small."""
    columns = scale.own[:, [y, *chosen]]
    known, deviation = ~np.isnan(columns), float(np.nanstd(columns[:, 0]))
    left = float(residual.var() / deviation**2)
    few = min(len(np.unique(v)) for v in columns.T) < VALUES
    if scale.kind.shift is not None or few or left > 1.0 - EXPLAINED:
        return None
    low, high = np.quantile(residual, (ENDS, 1.0 - ENDS))
    slack = max(WIDER * (high - low), ROUNDING * deviation)
    mixed = scale.kind.log and bool((known.any(1) & ~known.all(1)).mean() > MIXED)
    found = scale.relation(y, chosen, weights[1:], float(weights[0]))
    low, high = float(low - slack), float(high + slack)
    return Fit(replace(found, low=low, high=high, mixed=mixed), left)


def _computed(
    scale: Scale, here: Mask, y: int, others: Indices, weights: Array, coarse: float
) -> Fit | None:
    """The relation solved for the column that is computed from the others.

    Rounding explains what is left of it alone; its decimals hold what any others give; it has more
    decimals, or is the total of three or more, or it comes after the others.
    """
    first = _kept(scale, here, y, others, weights, coarse)
    if not first or scale.kind.shift is not None:
        return first
    linear, found = not scale.kind.log and len(others) == 1, {(True, y): first}
    units = scale.numbers.units
    for i, j in enumerate(others.tolist()):
        factors = -weights / weights[i]
        factors[i] = 1.0 / weights[i]
        columns = np.where(others == j, y, others)
        other = _kept(scale, here, j, columns, factors, coarse / abs(weights[i]))
        if other and zeros_agree(scale, other.relation):
            found[linear or abs(weights[i]) == 1.0, j] = other

    def key(at: tuple[bool, int]) -> tuple[float, ...]:
        (simple, j), fit = at, found[at]
        total = not scale.kind.log and len(others) > 2 and min(fit.relation.weights) > 0.0
        return not fit.rounded, simple, _is_exact(scale, fit.relation), -units[j], total, j

    return found[max(found, key=key)]


def _is_exact(scale: Scale, relation: Relation) -> bool:
    """Whether a sum of any numbers with the decimals of theirs has those of its own."""
    own, *others = scale.numbers.units[[*map(scale.numbers.names.index, relation.members)]]
    if scale.kind.log or own == 0.0:
        return True
    steps = np.array(others) * relation.weights / own
    return min(others) > 0.0 and bool(np.abs(steps - steps.round()).max() < 1e-6)


def zeros_agree(scale: Scale, relation: Relation) -> bool:
    """Whether a product is zero where a factor is."""
    y, *factors = map(scale.numbers.names.index, relation.members)
    factors = [j for j, w in zip(factors, relation.weights, strict=True) if w > 0]
    same = (scale.raw[:, y] == 0.0) == (scale.raw[:, factors] == 0.0).any(1)
    return not factors or not scale.is_product or bool(same.mean() >= 1.0 - ERRORS)


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


def _kept(
    scale: Scale, here: Mask, y: int, others: Indices, weights: Array, coarse: float
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
    design = torch.from_numpy(np.column_stack([np.ones(len(t)), x, t]))
    kept, most = torch.ones(len(t), dtype=torch.bool), int((1.0 - ERRORS) * (len(t) - 1))
    for _ in range(2):
        # Of torch: numpy's has all threads, which wait for each other beside busy cores.
        some = design[kept]
        weights = torch.linalg.lstsq(some[:, :-1], some[:, -1:], driver="gelsd").solution
        residual = design[:, -1] - (design[:, :-1] @ weights)[:, 0]
        size = residual.abs().kthvalue(most + 1).values
        kept = residual.abs() <= size
    return weights[:, 0].numpy(), residual.numpy(), float(size)


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


def follows(row: Array, span: Array) -> bool:
    """Whether a relation is a combination of others."""
    size = np.maximum(np.abs(span).max(0, initial=0.0), np.abs(row)) + 1e-12
    again = np.linalg.lstsq((span / size).T, row / size, rcond=None)[0] @ (span / size)
    return bool(np.abs(again - row / size).max() <= 1e-3)
