"""Logarithms: numbers that are the logarithm of another one, or of it plus 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dear_plugin.data.definitions.numbers import Numbers, correlations
from dear_plugin.data.definitions.sums import ERRORS, FEWEST, ROWS
from dear_plugin.data.relations import Relation

SHIFTS, BASES = (0.0, 1.0), (np.e, 10.0, 2.0)


def logarithms(numbers: Numbers) -> list[Relation]:
    """One relation for each number that is a logarithm."""
    return [*{each.name: each for each in _all(numbers)}.values()]


def _all(numbers: Numbers) -> Iterator[Relation]:
    table, units, names = numbers.values[:ROWS], numbers.units, numbers.names
    for shift in SHIFTS[::-1]:
        logs = np.log(np.where(table + shift > 0.0, table + shift, np.nan))
        for y in np.flatnonzero(units < 0.1).tolist():
            here = ~np.isnan(table[:, y])
            for x in np.flatnonzero(correlations(logs[here], table[here, y]) > 0.995).tolist():
                both = here & ~np.isnan(logs[:, x])
                u, t = logs[both, x], table[both, y]
                if x == y or len(u) < FEWEST or len(np.unique(u)) < 4:
                    continue
                slope = float(np.polyfit(u, t, 1)[0])
                weight = min((float(1 / np.log(b)) for b in BASES), key=lambda w: abs(w - slope))
                rest, own = t - weight * u, units[y] + 1e-4 * np.abs(t) + 1e-6 * t.std()
                middle = float(np.median(rest))
                for error in (own, own + 0.5 * units[x] / np.exp(u)):
                    off = np.abs(rest - middle) > error
                    if off.mean() <= ERRORS and np.median(error) < 0.05 * t.std():
                        constant = middle if abs(middle) > np.median(error) else 0.0
                        left = float(np.abs(rest - constant)[~off].max())
                        found = Relation(names[y], (names[x],), constant, (weight,), log=True)
                        yield replace(found, high=0.0, shift=shift, error=left + units[y] / 2)
                        break
