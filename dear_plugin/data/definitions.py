"""What holds between the columns of training rows, found in them or stated by the user.

Exact relations are looked for first (sums, products, powers, logarithms, lookups), then numbers
that are nearly a function of others, then orders: numbers of which one is at most another in every
row, up to errors. A definition has a sharp edge: few of the rows near it break it, where habits
and unlike units have from 5 to 100 %.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from dear_plugin._threads import lazy
from dear_plugin.data.feature import Array, Feature, Mask
from dear_plugin.data.numbers import gross, ordinary_values
from dear_plugin.data.relations import Lookup, Relation, expression, in_words
from dear_plugin.errors import SchemaError, unknown

__all__ = ["infer_relations"]

Stated = Mapping[str, Sequence[str] | str] | None
Pairs = Iterable[tuple[str, str]] | None


def infer_relations(
    frame: pd.DataFrame,
    features: Sequence[Feature],
    *,
    pairs: Pairs = None,
    stated: Stated = None,
    within: Mapping[str, float] | None = None,
) -> tuple[Relation | Lookup, ...]:
    """The definitions and near-functions, the exact ones first, and then the orders.

    The log tells of all that are inferred.

    Args:
        frame: training rows.
        features: the features of its columns.
        pairs: the orders, (a, b) for a <= b; None infers them.
        stated: `{name: others}` of what others determine; None infers it.
        within: `{name: number}`, how far stated formulas may be off.
    """
    numbers = Numbers.of(frame, features)
    with np.errstate(all="ignore"):
        found = [] if stated == {} else _functions(frame, features, numbers)
        if stated is not None:
            given = [*_named(stated, features, within or {})]
            known = {
                _key(each.name, getattr(each, "formula", "") or each.members[1:]): each
                for each in found
            }
            kept = [known.get(_key(*each)) or _stated(frame, numbers, *each) for each in given]
            found = [*(e for e in found if e in kept), *(e for e in kept if e not in found)]
        ordered = (
            _orders(numbers, found) if pairs is None else [_order(pair, numbers) for pair in pairs]
        )
    inferred = [*found] * (stated is None) + [*ordered] * (pairs is None)
    for how, text in in_words(inferred):
        logger.info("%s: %s", how, text)
    if inferred:
        logger.info("definitions={...} and orders=[...] of Schema.infer state others, or none")
    return (*found, *ordered)


def _order(pair: Any, numbers: Numbers) -> Relation:
    """A stated order.

    Raises:
        SchemaError: no pair, or most training rows break it, as where the pair is swapped.
    """
    if not _are_names(pair) or len(pair) != 2:
        raise SchemaError(f"orders must be pairs (a, b) of features with a <= b, got {pair!r}")
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
    if wrong := [name for name in within if name not in texts]:
        raise SchemaError(f"within: {unknown('formulas', wrong, texts)}")
    for name, others in stated.items():
        lists = [others] if isinstance(others, str) or not all(map(_are_names, others)) else others
        for some in lists:
            names = [name] if isinstance(some, str) else [name, *some]
            if wrong := [each for each in names if each not in owners]:
                raise SchemaError(f"definitions: {unknown('features', wrong, owners)}")
            own, *rest = dict.fromkeys(owners[each] for each in names)
            yield own, some if isinstance(some, str) else tuple(rest), within.get(name)


def _key(name: str, others: str | Iterable[str], within: float | None = None) -> Hashable:
    """What tells one definition from another, whatever the order of its columns."""
    return name, others if isinstance(others, str) else frozenset(others), within


def _are_names(value: Any) -> bool:
    """Whether a value is a list of at least one name."""
    return isinstance(value, Iterable) and not isinstance(value, str) and bool([*value])


def _functions(
    frame: pd.DataFrame, features: Sequence[Feature], numbers: Numbers
) -> list[Relation | Lookup]:
    """The definitions of columns, and then the near-functions."""
    exact: list[Relation] = []
    near: list[Fit] = []
    for scale in Scale.all(numbers):
        found, close = fits(scale)
        exact, near = [*exact, *(fit.relation for fit in found)], [*near, *close]
        near += shares(scale)
    defined = {each.name for each in exact}
    exact += {each.name: each for each in of_two(numbers) if each.name not in defined}.values()
    exact = [*{frozenset(each.members): each for each in _by_fit(exact)[::-1]}.values()][::-1]
    return [*lookups(frame, features, exact), *exact, *_apart(near, exact)]


def _by_fit(found: Iterable[Relation]) -> list[Relation]:
    """The definitions first, and of the logarithms those without a constant, which fit best."""

    def key(each: Relation) -> tuple[bool, bool, float]:
        is_log = each.shift is not None
        return not each.is_definition, is_log and each.constant != 0.0, is_log * each.error

    return sorted(found, key=key)


def _apart(near: Iterable[Fit], exact: Iterable[Relation]) -> list[Relation]:
    """One near-function for the same members; none where definitions link two of these."""
    found = {
        frozenset(f.relation.members): f.relation for f in sorted(near, key=lambda f: -f.left)
    }
    linked: list[set[str]] = []
    for each in exact:
        met = [own for own in linked if own & {*each.members}]
        linked = [own for own in linked if own not in met]
        linked.append({*each.members}.union(*met))
    return [each for key, each in found.items() if all(len(key & own) < 2 for own in linked)]


def _orders(numbers: Numbers, found: Sequence[Relation | Lookup]) -> list[Relation]:
    """The orders of numbers; those of logarithms, squares and roots follow from the others."""
    exact = [f for f in found if isinstance(f, Relation) and f.is_definition]
    powers = [f for f in exact if f.log and len(f.others) == 1]
    own = [f.name for f in powers if f.shift is not None or f.weights[0] not in (1.0, -1.0)]
    sums = [f for f in exact if f.weights and not f.log]
    both = chain(orders(numbers, own), implied(sums, numbers))
    return [*{(each.others, each.name): each for each in both}.values()]


def _stated(
    frame: pd.DataFrame,
    numbers: Numbers,
    name: str,
    others: str | tuple[str, ...],
    within: float | None,
) -> Relation | Lookup:
    """The relation of a column to others, in the form that fits it, or to those of a formula.

    Raises:
        SchemaError: no form fits.
    """
    if isinstance(others, str):
        return stated_formula(numbers, name, others, within)
    are_numbers = {name, *others} <= {*numbers.names}
    if are_numbers:
        y, *x = (numbers.names.index(each) for each in (name, *others))
        forms = [each for scale in Scale.all(numbers) for each in stated_forms(scale, y, x)]
        forms += [
            each for each in of_two(numbers) if each.name == name and {*each.others} == {*others}
        ]
        if found := _by_fit(forms):
            return found[0]
    if len(others) == 1 and (not are_numbers or _is_function(frame, name, *others)):
        return tabulated(frame, name, *others)
    raise SchemaError(
        f"definitions: {name!r} is no function of {[*others]}: expected a sum, a product, a"
        " logarithm, or one category that determines it"
    )


# How far a formula is off is what so many rows keep; it fits if that is at most such a share of
# the number's central 90 %, or, where it is stated, if half of the rows keep it.
NEARLY, LOOSE = 0.9, 0.25


def stated_formula(numbers: Numbers, name: str, text: str, within: float | None) -> Relation:
    """The relation that a formula states, times a power of ten where it is one of percent.

    Raises:
        SchemaError: it is no formula of numbers, or does not fit.
    """
    if name not in numbers.names:
        raise SchemaError(f"definitions: {unknown('numeric features', [name], numbers.names)}")
    found, own, value, index = _by_formula(numbers, name, text)
    if not len(own):
        raise SchemaError(f"definitions: {found.text} gives no number in any training row")
    ratio = np.median(own[:, 0] / np.where(value, value, np.nan))
    if abs(factor := int(np.round(np.log10(ratio))) if ratio > 0.0 else 0) > 1:
        found, own, value, index = _by_formula(numbers, name, f"{10.0**factor:g} * ({text})")
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


def _by_formula(numbers: Numbers, name: str, text: str) -> tuple[Relation, Array, Array, pd.Index]:
    """A formula as if it held, and of n rows the number and its others, what it gives, labels."""
    of, others = expression(text, [each for each in numbers.names if each != name])
    table = numbers.values[:, [*map(numbers.names.index, (name, *others))]]
    value = of(dict(zip(others, torch.from_numpy(table.T[1:]), strict=True))).numpy()
    here, error = np.isfinite(value + table[:, 0]), numbers.errors[numbers.names.index(name)]
    found = Relation(name, others, 0.0, (), high=0.0, error=float(error), formula=text)
    return found, table[here], value[here], numbers.index[here]


# Rows that break an order by more than the usual distance are errors, at most this share.
ORDER_ERRORS = 0.025
# Values are near if they differ by this share of the smaller central range; the least share of
# near rows, and if the names share a word. Values are close if they differ by this share of the
# upper one; the least share of close rows.
NEAR, NEAR_ROWS, NEAR_AKIN, CLOSE, CLOSE_ROWS = 0.1, 0.02, 0.004, 0.2, 0.005
# The most rows that break an order, as a share of the near ones; how many times as many would if
# the columns were independent, and the least share of them.
BROKEN, ODDS, EXPECTED = 0.02, 10.0, 0.02
# Of orders whose values are never near: the least usual ratio, the rows that may break it, and
# the share and number that would.
ALIKE, FAR_BROKEN, FAR_EXPECTED, FAR_ROWS = 0.5, 0.0005, 0.0015, 5.0
# Of two flags: the rows that would break it, and the share that may.
FLAGS_EXPECTED, FLAGS_BROKEN = 20.0, 0.005
ORDER_ROWS, HEAD = 30, 500


def orders(numbers: Numbers, skipped: Iterable[str]) -> list[Relation]:
    """The orders of numbers but those skipped, such as logarithms of others."""
    table, names = numbers.values, numbers.names
    known, low = ~np.isnan(table), np.nanmin(table, 0) if table.size else np.zeros(0)
    some = np.nanquantile(table, np.linspace(0, 1, 50), 0).T if table.size else table.T
    unit = np.subtract(*np.nanquantile(table, (0.95, 0.05), 0)) if table.size else low
    words, skipped, found = [_words(name) for name in names], {*skipped}, []
    flag = numbers.flags
    for i in [j for j, name in enumerate(names) if name not in skipped]:
        a, head = table[:, i], table[:HEAD]
        both = known[:HEAD] & known[:HEAD, [i]]
        likely = ((head < head[:, [i]]) & both).sum(0) <= 0.04 * both.sum(0)
        likely &= (some[i, :, None] > some[:, None]).mean((1, 2)) >= 0.001  # the ranges overlap
        likely[i] = False
        kept = known[:, i] & (a > low[i]) & (a != _mode(a[known[:, i]], low[i]))
        for j in np.flatnonzero(likely & (flag == flag[i])).tolist():
            here, b = kept & known[:, j], table[:, j]
            if names[j] in skipped or here.sum() < ORDER_ROWS:
                continue
            if flag[i]:
                is_order = _implies(b[here], float((b[known[:, j]] == 0.0).mean()))
            else:
                akin = bool(words[i] & words[j])
                is_order = _is_order(a[here], b[here], min(unit[i], unit[j]), akin)
            found += [Relation(names[j], (names[i],))] * is_order
    return found


def implied(sums: Iterable[Relation], numbers: Numbers) -> list[Relation]:
    """Each part is at most the total, if no part is negative."""
    low = dict(zip(numbers.names, np.nanmin(numbers.values, 0), strict=True)) if sums else {}
    return [
        Relation(total, (part,))
        for total, parts in map(_total, sums)
        if len(parts) > 1 and all(w > 0 and low[part] >= 0 for part, w in parts.items())
        for part, weight in parts.items()
        if weight >= 1.0
    ]


def _total(relation: Relation) -> tuple[str, dict[str, float]]:
    """What a sum is the total of, by weight: none with a constant or a logarithm."""
    weights = dict(zip(relation.others, relation.weights, strict=True))
    added = [name for name, weight in weights.items() if weight > 0]
    if relation.log or relation.constant != 0.0:
        return relation.name, {}
    if len(added) == 1 < len(weights) and weights[added[0]] == 1.0:
        (total,) = added  # the number is what is left of it
        rest = {name: -w for name, w in weights.items() if name != total}
        return total, {relation.name: 1.0, **rest}
    return relation.name, weights


def _is_order(a: Array, b: Array, unit: float, akin: bool) -> bool:
    """Whether a <= b, (n,) each, is no coincidence."""
    gap = b - a
    kept = gap >= -max(float(np.median(np.abs(gap))), unit)
    if kept.mean() < 1.0 - ORDER_ERRORS:
        return False
    gap, a, b, n = gap[kept], a[kept], b[kept], int(kept.sum())
    broken, near = (gap < 0).sum(), ((gap >= 0) & (gap <= NEAR * unit)).sum()
    expected = np.searchsorted(np.sort(b), a).sum() / n
    close = ((gap >= 0) & (gap <= CLOSE * np.abs(b))).sum()
    enough = near >= (max(5, NEAR_AKIN * n) if akin else max(10, NEAR_ROWS * n))
    sharp = broken <= BROKEN * near and expected >= max(10, ODDS * broken, EXPECTED * n)
    if enough and close >= max(3, CLOSE_ROWS * n) and sharp:
        return True
    alike = a.min() > 0 and np.median(a / np.where(b > 0, b, np.inf)) >= ALIKE
    rare = broken <= FAR_BROKEN * n and expected >= max(FAR_ROWS, FAR_EXPECTED * n)
    return bool(alike and rare)


def _implies(b: Array, zeros: float) -> bool:
    """Whether a flag, (n,), is 1 where another one is; given its share of zeros."""
    broken = int((b == 0.0).sum())
    return bool(len(b) * zeros >= FLAGS_EXPECTED and broken <= FLAGS_BROKEN * len(b))


def _mode(values: Array, least: float) -> float:
    """A value near the least that a fifth of the rows near it have; else the least one."""
    distinct, counts = np.unique(values, return_counts=True)
    at = int(counts.argmax())
    often = counts[:at].sum() < 0.1 * counts.sum() <= 0.5 * counts[at]
    return float(distinct[at]) if often else least


def _words(name: str) -> set[str]:
    return {w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name) if len(w) > 2}


# Of neighbours with one level, those that differ are at most this share of those that would by
# chance, and these are so many.
DIFFER, LOOKUP_PAIRS = 0.01, 30
# The most levels of a number, and the least rows of each; its levels have no wide gaps. The least
# rows of a level of a category.
MOST_LEVELS, ROWS_A_LEVEL, GAPS, ROWS_A_CATEGORY = 60, 20, 3, 5

logger = logging.getLogger(__name__)


def lookups(
    frame: pd.DataFrame, features: Sequence[Feature], exact: Sequence[Relation]
) -> list[Lookup]:
    """The columns that others determine; the log tells of those that identifiers determine.

    Args:
        frame: training rows.
        features: the features of its columns.
        exact: exact relations, whose members determine each other otherwise.
    """
    at = np.random.default_rng(0).permutation(len(frame))[:ROWS]
    some = frame[[f.name for f in features]].iloc[at]
    table = np.array([pd.factorize(some[name])[0] for name in some]).T
    pairs: dict[tuple[str, str], bool] = {}
    # Of two that determine each other a number is the base: it has an order.
    for x in sorted(range(len(features)), key=lambda j: bool(features[j].categories)):
        base, levels = features[x], int(table[:, x].max()) + 1
        sure = _decides(some[base.name], base, levels)
        likely = sure or (levels > 1 and not base.actionable and 2 * levels <= len(some))
        found = [features[j] for j in _determined(table, x)] if likely else []
        pairs |= {
            (y.name, base.name): sure
            for y in found
            if (base.name, y.name) not in pairs and not y.immutable
        }
    for each in exact:
        apart = len(each.others) > 1 and all((o, each.name) in pairs for o in each.others)
        if not apart:
            pairs = {pair: sure for pair, sure in pairs.items() if not {*pair} <= {*each.members}}
    for name, base_name in (pair for pair, sure in pairs.items() if not sure):
        logger.info(
            "column %r is a function of %r, an identifier: if by definition and not by what one"
            " person or group is, declare it with definitions={%r: [%r]}",
            *(name, base_name, name, base_name),
        )
    return [tabulated(frame, *pair) for pair, sure in pairs.items() if sure]


def tabulated(frame: pd.DataFrame, name: str, other: str) -> Lookup:
    """The commonest value of a column for each level of another one."""
    pairs = frame[[other, name]].dropna().astype(object)
    counted = pairs.value_counts(sort=True).index.to_frame(index=False)
    table = counted.drop_duplicates(other).to_numpy(dtype=object).tolist()
    return Lookup(name, other, tuple((_plain(x), _plain(y)) for x, y in table))


def _is_function(frame: pd.DataFrame, name: str, other: str) -> bool:
    """Whether another column determines a column in nearly all rows."""
    codes = np.array([pd.factorize(frame[each])[0] for each in (other, name)]).T
    return _determined(codes, 0) == [1]


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    return value.item() if isinstance(value, np.generic) else value


def _determined(table: npt.NDArray[np.int64], x: int) -> list[int]:
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


def _decides(column: pd.Series, feature: Feature, levels: int) -> bool:
    """Whether a column may determine others."""
    if feature.choices:
        return levels > 1 and ROWS_A_CATEGORY * levels <= len(column)
    values = column[~column.isin(feature.special)].dropna().to_numpy(dtype=np.float64)
    few = 1 < levels <= MOST_LEVELS and ROWS_A_LEVEL * levels <= len(values)
    if not few or not feature.actionable or (values % 1.0).any():
        return False
    steps = np.diff(np.unique(values)).astype(np.int64)
    return bool(np.ptp(values) < GAPS * levels * np.gcd.reduce(steps))


# The least rows, and the least share of known values; the most columns that a sum adds.
FUNCTION_ROWS, KNOWN, MOST = 30, 0.5, 10
# The least correlation of a number with a logarithm that it is. What a second column of a
# near-function leaves at most of what the first one leaves.
STRAIGHT, SECOND = 0.995, 0.1
# What is computed of two numbers; the rows that are looked at first, and the most pairs then.
SWITCHED = "{} * {}"
PAIRED = "max({}, {})", "min({}, {})", "abs({} - {})", SWITCHED
FEW_ROWS, MOST_PAIRS = 12, 20
# Rounding error of a correlation.
CORRELATION_ROUNDING = 1e-9


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
    if here.sum() >= FUNCTION_ROWS:
        weights, residual, _ = fitted(scale.others[here][:, others], scale.own[here, y])
        exact = exact_form(scale, y, others, weights[1:], stated=True)
        near = near_form(scale, y, others, weights, residual)
        rounded = rounded_form(scale, y, others, np.sign(weights[1:]))
        fits = [fit.relation for fit in (exact, rounded, near) if fit]
        yield from (each for each in fits if len(each.others) == len(others))


def of_two(numbers: Numbers) -> Iterator[Relation]:
    """The numbers that are the larger, the smaller, or the distance of two others, or switched.

    A number is switched that is another one, or 0 where a flag is.
    """
    table, names, flag = numbers.values, numbers.names, numbers.flags
    named = np.array(names, dtype=bool)
    few = table[(np.abs(table) > 0.0).sum(1).argsort(kind="stable")[::-1][:FEW_ROWS]]
    for text in PAIRED:
        of, _ = expression(text.format("a", "b"), ("a", "b"))
        values = of({"a": few[:, :, None], "b": few[:, None]})
        fit = np.triu((flag[:, None] | flag) == (text == SWITCHED), 1)
        fit &= named[:, None] & named
        for y in np.flatnonzero(~flag | (text == SWITCHED)).tolist():
            on = few[:, y] != 0.0
            same = (np.abs(values[on] - few[on][:, [[y]]]) <= numbers.errors[y]).sum(0) * fit
            same[:, y], same[y] = 0, 0
            pairs = np.argwhere(same > max(4, 0.7 * on.sum()))[:MOST_PAIRS]
            a, b = np.moveaxis(table[:FIT_ROWS, pairs], 2, 0)
            off = np.abs(of({"a": a, "b": b}) - table[:FIT_ROWS, [y]]) > numbers.errors[y]
            for pair in pairs[off.mean(0) <= ERRORS].tolist():
                whole = text.format(*(names[j] for j in sorted(pair, key=lambda j: flag[j])))
                found, rows, value, _ = _by_formula(numbers, names[y], whole)
                own, a, b = rows.T
                # It is neither one of the two, nor always the same difference.
                others = (np.abs(value - x) > found.error for x in (a, b, a - b, b - a))
                kept = is_kept(np.abs(own - value) > found.error, rows)
                if kept and min(map(np.mean, others)) > ERRORS:
                    yield found


def _fit(scale: Scale, y: int, allowed: list[int]) -> tuple[Fit | None, Fit | None]:
    """The exact and the near relation of a column to some of others."""
    here = scale.rows([y])
    if here.sum() < FUNCTION_ROWS:
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
        chosen = [*chosen, int((r >= r.max() - CORRELATION_ROUNDING).argmax())]
        here, free[chosen] = scale.rows([y, *chosen]), False
        if here.sum() < FUNCTION_ROWS:
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

# Parts of a whole: the least weight, as rounding takes away; the most variance of their sum, in
# units of that of rounding, and of that of independent numbers.
LIKE_A_PART, ROUNDED, UNLIKE_CHANCE = 0.3, 1.5, 0.1


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


def shares(scale: Scale) -> list[Fit]:
    """Numbers of the same decimals, none of them negative, of which the sum is nearly constant."""
    found, units = list[Fit | None](), scale.numbers.units
    for unit in [] if scale.kind.log else np.unique(units[units > 0.0]):
        low = np.nanmin(scale.own, 0)
        columns = np.flatnonzero((units == unit) & (low >= 0.0) & ~scale.numbers.flags)
        centred = scale.centred[:, columns]
        spread = centred.T @ centred
        inverse = np.linalg.inv(spread + 1e-9 * np.trace(spread) * np.eye(len(columns)))
        for y, row, own in zip(columns.tolist(), inverse, np.diag(inverse), strict=True):
            others = [j for j in columns[row > LIKE_A_PART * own].tolist() if j != y]
            found += [rounded_form(scale, y, others, -np.ones(len(others)))] * (len(others) > 1)
    return [fit for fit in found if fit]


def rounded_form(scale: Scale, y: int, others: list[int], signs: Array) -> Fit | None:
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

    def __len__(self) -> int:
        """The number of columns (m)."""
        return len(self.numbers.names)

    def rows(self, columns: list[int]) -> Mask:
        """(n,) bool, the rows that have the first column, and the others to explain it."""
        known = ~np.isnan(self.own[:, columns[0]])
        out: Mask = known & ~np.isnan(self.others[:, columns[1:]]).any(1)
        return out

    def target(self, here: Mask, y: int) -> Array:
        """(n,) a column less its mean; 0 in other rows."""
        out: Array = np.where(here, self.own[:, y], 0.0)
        return np.where(here, out - out.sum() / max(here.sum(), 1), 0.0)

    def linked(self, target: Array, here: Mask) -> Array:
        """(m,) the size of the correlations of columns with a target, (n,), in the rows here."""
        size = np.sqrt((target**2).sum() * _product(here.astype(np.float64), self._squares))
        sums = np.abs(_product(target, self.centred))
        out: Array = sums / np.where(size > 0.0, size, np.inf)
        return out

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

    def relation(self, y: int, others: list[int], weights: Array, constant: float) -> Relation:
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


def _product(row: Array, table: Array) -> Array:
    """(m,) the product of a row, (n,), and a table, (n, m); torch has one thread here."""
    out: Array = (torch.from_numpy(row) @ torch.from_numpy(table)).numpy()
    return out


# The rows that are looked at, and the least known values of a column. The largest number, and the
# inverse of the smallest, of which squares can be summed.
ROWS, FEWEST, LARGEST = 4000, 20, 1e100

Indices = npt.NDArray[np.intp]


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
            if f.is_flag or (not f.choices and f.actionable and f.bounds[0] < f.bounds[1]):
                values = _values(frame[f.name], f)[at]
                known = values[~np.isnan(values)]
                wide = len(known) >= FEWEST and known.min() < known.max()
                if wide and 1 / LARGEST < np.abs(known).max() < LARGEST:
                    found[f.name] = values
                    places = 0 if f.is_flag else f.precision
                    units.append(0.0 if places is None else 10.0**-places)
        table = np.array([*found.values()]).reshape(len(found), len(at)).T
        return cls((*found,), table, np.array(units), frame.index[at])

    @lazy
    def errors(self) -> Array:
        """(m,) how far rounding may move the numbers."""
        out: Array = 0.5 * self.units + 1e-7 * np.nanmax(np.abs(self.values), 0, initial=0.0)
        return out

    @lazy
    def flags(self) -> Mask:
        """(m,) bool, those that are 0 or 1."""
        return np.array([{*np.unique(v[~np.isnan(v)])} == {0.0, 1.0} for v in self.values.T], bool)


def _values(column: pd.Series, feature: Feature) -> Array:
    """(n,) the numbers of a column, 0 and 1 of a flag, NaN for gross ones."""
    if feature.choices:
        return feature.is_one(column).astype(np.float64)
    values = ordinary_values(column, feature.special)
    known = np.flatnonzero(~np.isnan(values))
    values[known[gross(values[known])]] = np.nan
    return values
