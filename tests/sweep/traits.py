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


def parts(n, rng):
    """A total of two to four parts."""
    columns = rng.gamma(2, 100, (n, rng.integers(2, 5))).round(-1).astype(int)
    named = {f"part_{k}": part for k, part in enumerate(columns.T)}
    return named | {"total": columns.sum(axis=1)}, columns.sum(axis=1) / 200


def product(n, rng):
    """An amount, a count, and their product."""
    price, units = rng.gamma(4, 5, n).round(1) + 1, rng.integers(1, 20, n)
    columns = {"price": price, "units": units, "revenue": (price * units).round(1)}
    return columns, columns["revenue"] / 200


def ratio(n, rng):
    """Two amounts, and one as a share of the other, rounded."""
    owed, income = rng.gamma(2, 900, n).round(), rng.gamma(6, 600, n).round() + 500
    return {"owed": owed, "income": income, "load": (owed / income).round(3)}, -2 * owed / income


def square(n, rng):
    """A count and its square."""
    visits = rng.integers(0, 15, n)
    return {"visits": visits, "visits_sq": visits**2}, visits / 5


def units(n, rng):
    """A percentage and dollars: it is the lower number in every row, and that is no order."""
    share, balance = rng.uniform(1, 60, n).round(1), (rng.gamma(3, 5000, n) + 100).round()
    return {"share": share, "balance": balance}, balance / 10_000 - share / 40


def typing_errors(n, rng):
    """An order that errors of two rows in a hundred break."""
    low = rng.normal(80, 10, n).round()
    high = low + rng.exponential(9, n).round()
    wrong = rng.permutation(n) < 0.015 * n
    return {"diastolic": np.where(wrong, 10 * low, low), "systolic": high}, -high / 20


def sparse_number(n, rng):
    """An identifier of nine digits."""
    number = rng.choice(np.arange(708_000_000, 828_000_000, 7), n, replace=False)
    return {"client": number}, (number - 768e6) / 5e7


def group_number(n, rng):
    """Numbers of groups, identifiers by their name alone."""
    group = (rng.choice(9000, 40, replace=False) + 100)[rng.permutation(n) % 40]
    return {"branch_id": group}, group / 5000


def text_identifier(n, rng):
    """Text that most rows have alone; at most as many levels as models of categories take."""
    number = rng.permutation(n) % 240
    return {"token": [f"t{k:04d}" for k in 37 * number]}, number / 200


def grids(n, rng):
    """Months in years, and rates in halves."""
    term, rate = rng.choice([12, 24, 36, 48, 60], n), rng.choice(np.arange(4, 13), n) / 2
    return {"term": term, "rate": rate}, term / 30 - rate / 3


def ordered_text(n, rng):
    """Years and sizes as text with an order."""
    years, size = rng.integers(0, 12, n), rng.integers(0, 4, n)
    years[:12] = range(12)  # DiCE takes levels of training rows only
    text = np.array(["<1", *map(str, range(1, 11)), ">10"])[years]
    sizes = np.array(["<10", "10-49", "50-99", "100+"])[size]
    return {"experience": text, "size": sizes}, years / 6 - size / 3


def lookup(n, rng):
    """A category, and an index that it determines."""
    city, index = rng.integers(0, 6, n), rng.choice(np.arange(450, 950), 6, replace=False) / 1000
    return {"city": [f"city {k}" for k in city], "index": index[city]}, 4 * index[city]


def off_grid(n, rng):
    """A count that is scaled to mean 0 and deviation 1, and one scaled to [0, 1]."""
    calls, trips = rng.poisson(3, n), rng.integers(0, 8, n)
    columns = {"calls_z": (calls - calls.mean()) / calls.std(), "trips_scaled": trips / 7}
    return columns, calls / 2 + trips / 5


def date_number(n, rng):
    """A date as a whole number, YYYYMMDD."""
    days = pd.to_datetime("2012-01-01") + pd.to_timedelta(rng.integers(0, 3000, n), "D")
    return {"opened": days.strftime("%Y%m%d").astype(int)}, rng.normal(0, 0.3, n)


def shares(n, rng):
    """Three shares of a whole, each rounded, so that they add up to nearly 100."""
    whole = (100 * rng.dirichlet([4, 2, 2], n)).round(1)
    return {f"share_{name}": whole[:, k] for k, name in enumerate("abc")}, whole[:, 0] / 15


def states(n, rng):
    """A state without which there is no number of shifts."""
    works = rng.random(n) < 0.7
    shifts = np.where(works, rng.integers(1, 12, n), 0)
    return {"work": np.where(works, "yes", "none"), "shifts": shifts}, shifts / 4


LATER = {"object cells": object_cells, "limits": limits, "labels": labels, "parts": parts}
LATER |= {"product": product, "ratio": ratio, "square": square, "units": units, "grids": grids}
LATER |= {"typing errors": typing_errors, "ordered text": ordered_text, "lookup": lookup}
LATER |= {"sparse number": sparse_number, "group number": group_number}
LATER |= {"text identifier": text_identifier, "off grid": off_grid, "states": states}
LATER |= {"date number": date_number, "shares": shares}
EVIDENT = ("grids", "sparse number", "group number", "text identifier", "typing errors")
EVIDENT += ("states", "off grid", "date number", "shares")
TEXTS = ("token", "experience", "size", "city", "work")
IDENTIFIERS = ("customer_id", "client", "branch_id", "token")
STEPS = {"term": 12, "rate": 0.5}
# Of a frame, and the training rows: whether each row keeps what is true by definition.
DEFINITIONS = {
    "parts": lambda f, _: f["total"] == f.filter(like="part_").sum(axis=1),
    "product": lambda f, _: (f["revenue"] - f["price"] * f["units"]).abs() < 0.0501,
    "ratio": lambda f, _: (f["load"] - f["owed"] / f["income"]).abs() < 0.000501,
    "square": lambda f, _: f["visits_sq"] == f["visits"] ** 2,
    "typing errors": lambda f, _: f["diastolic"] <= f["systolic"],
    "lookup": lambda f, rows: (
        f["index"]
        == f["city"].map(dict(zip(rows["city"], rows["index"], strict=True))).astype(float)
    ),
    # DiCE keeps its numbers in single precision.
    "off grid": lambda f, rows: (
        f["calls_z"].round(5).isin(rows["calls_z"].round(5))
        & f["trips_scaled"].round(5).isin(rows["trips_scaled"].round(5))
    ),
    "date number": lambda f, _: pd.to_datetime(
        f["opened"].astype(str), format="%Y%m%d", errors="coerce"
    ).notna(),
    "shares": lambda f, rows: (
        f.filter(like="share_")
        .sum(axis=1)
        .between(*rows.filter(like="share_").sum(axis=1).agg(["min", "max"]).add([-1e-6, 1e-6]))
    ),
    # Of fewer rows a pair that none has is no evidence that it cannot be.
    "states": lambda f, rows: (
        ((f["work"].astype(str) == "none") == (f["shifts"] == 0)) | (len(rows) < 300)
    ),
}


def limit_of(query, seed):
    """(n,) what the amount of each row may become at most, in another order."""
    rng = generator(seed, "limits")
    limit = (query["amount"] * rng.uniform(1.0, 1.6, len(query))).round(1)
    return limit.sample(frac=1.0, random_state=int(rng.integers(1000)))
