"""Traits: one function each, which adds columns to a table, or a limit; `LATER` lists them.

Each is drawn from a generator of its own, so that one more changes no other table of a seed. A
function takes the number of rows and the generator; it gives columns and their part of the score.
"""

from zlib import crc32

import numpy as np
import pandas as pd


def generator(seed, trait):
    """The generator of a trait of the table of a seed."""
    return np.random.default_rng([seed, crc32(trait.encode())])


def object_cells(n, rng):
    """Whole numbers, floats or booleans in a column of objects."""
    kind, levels = [(int, 2), (int, 3), (float, 3), (bool, 2)][rng.integers(4)]
    values = rng.integers(0, levels, n)
    return {"cabin": pd.Series([kind(v) for v in values.tolist()], dtype=object)}, 0.6 * values


def limits(n, rng):
    """No column: each row of the query has a limit of its own, see `limit_of`."""
    return {}, 0.0


def labels(n, rng):
    """No column: the model returns labels, not probabilities."""
    return {}, 0.0


LATER = {"object cells": object_cells, "limits": limits, "labels": labels}


def limit_of(query, seed):
    """(n,) what the amount of each row may become at most, in another order."""
    rng = generator(seed, "limits")
    limit = (query["amount"] * rng.uniform(1.0, 1.6, len(query))).round(1)
    return limit.sample(frac=1.0, random_state=int(rng.integers(1000)))
