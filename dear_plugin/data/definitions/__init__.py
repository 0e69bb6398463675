"""Definitions: what holds between the columns of training rows, inferred or stated.

Exact relations come first, then numbers that are nearly a function of others, then orders.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.data.definitions import lookups as tables
from dear_plugin.data.definitions.forms import Fit
from dear_plugin.data.definitions.functions import fits, stated_forms, switched
from dear_plugin.data.definitions.numbers import Numbers
from dear_plugin.data.definitions.orders import implied, orders
from dear_plugin.data.definitions.scale import Scale
from dear_plugin.data.feature import Feature
from dear_plugin.data.relations import Lookup, Relation, in_words
from dear_plugin.errors import SchemaError, unknown

__all__ = ["infer_relations"]

Stated = Mapping[str, Sequence[str]] | None
Pairs = Iterable[tuple[str, str]] | None

logger = logging.getLogger(__name__)


def infer_relations(
    frame: pd.DataFrame,
    features: Sequence[Feature],
    *,
    pairs: Pairs = None,
    stated: Stated = None,
) -> tuple[Relation | Lookup, ...]:
    """The definitions and near-functions, the exact ones first, and then the orders.

    The log tells of all that are inferred.

    Args:
        frame: training rows.
        features: the features of its columns.
        pairs: the orders, (a, b) for a <= b; None infers them.
        stated: `{name: others}` of what others determine; None infers it.
    """
    numbers = Numbers.of(frame, features)
    with np.errstate(all="ignore"):
        if stated is None:
            found = _functions(frame, features, numbers)
        else:
            found = [_stated(frame, features, numbers, *each) for each in _named(stated)]
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


def _named(stated: Any) -> Iterable[tuple[str, Sequence[str]]]:
    """The stated definitions: a feature, and those that determine it."""
    if not isinstance(stated, Mapping) or not all(map(_are_names, stated.values())):
        raise SchemaError(f"definitions must be {{feature: [other features]}}, got {stated!r}")
    return stated.items()


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
    exact += switched(numbers)
    exact = [*{frozenset(each.members): each for each in reversed(exact)}.values()][::-1]
    return [*tables.lookups(frame, features, exact), *exact, *_apart(near, exact)]


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
    sums = [f for f in exact if not f.log]
    both = chain(orders(numbers, own), implied(sums, numbers))
    return [*{(each.others, each.name): each for each in both}.values()]


def _stated(
    frame: pd.DataFrame,
    features: Sequence[Feature],
    numbers: Numbers,
    name: str,
    others: Sequence[str],
) -> Relation | Lookup:
    """The relation of a column to others, in the form that fits it.

    Raises:
        SchemaError: unknown columns, or no form fits.
    """
    owners = {each.name: f.name for f in features for each in (f, *f.dummies)}
    if wrong := [each for each in (name, *others) if each not in owners]:
        raise SchemaError(f"definitions: {unknown('features', wrong, owners)}")
    name, *others = dict.fromkeys(owners[each] for each in (name, *others))
    if {name, *others} <= {*numbers.names}:
        y, *x = (numbers.names.index(each) for each in (name, *others))
        forms = [each for scale in Scale.all(numbers) for each in stated_forms(scale, y, x)]
        forms += [each for each in switched(numbers) if each.members == (name, *others)]
        if found := sorted(forms, key=lambda each: not each.is_definition):
            return found[0]
    elif len(others) == 1:
        return tables.tabulated(frame, name, others[0])
    raise SchemaError(
        f"definitions: {name!r} is no function of {[*others]}: expected a sum, a product, a"
        " logarithm, or one category that determines it"
    )
