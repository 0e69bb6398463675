"""Switched: numbers that are another one, or 0 where a flag is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dear_plugin.data.definitions.evidence import FEW_ERRORS
from dear_plugin.data.definitions.numbers import Numbers
from dear_plugin.data.definitions.scale import ROWS
from dear_plugin.data.relations import Relation


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
            product = Relation(names[y], (), weights=(1.0, 1.0), log=True, high=0.0)
            found += [replace(product, others=(names[x], names[f])) for f in both]
    return found
