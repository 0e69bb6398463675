"""Tables: random frames with the traits of tables in use, a query, and what may not change."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from tests.sweep.traits import EVIDENT, IDENTIFIERS, LATER, TEXTS, generator, limit_of

CHANCE = 0.35
JOBS, TOWNS, BRANDS = np.array(["civil", "office", "other"]), np.array(list("ABCD")), ["ab", "cd"]
CODES = (111, 112, 120)
DTYPES = {"text": object, "category": "category", "arrow": "string[pyarrow]"}
TRAITS = ("dummies", "codes", "identifier", "question", "new level", "nullable", "bool", "missing")
TRAITS += ("few rows", "retyped")
# Fewer rows are no evidence of some traits.
ENOUGH = 60


@dataclass
class Table:
    """Training rows, their label, four rows of a query and the rules for these.

    Attributes:
        traits: the names of its traits.
        groups: lists of binary columns of which exactly one is set.
        immutable: columns that never change.
        frozen: columns that do not change in this call.
        act_on: the columns to act on; None is all that may change.
        limit: what the amount of each row of the query may become at most, by its index, if given.
    """

    traits: tuple[str, ...]
    frame: pd.DataFrame
    label: pd.Series
    query: pd.DataFrame
    groups: list[list[str]] = field(default_factory=list)
    immutable: list[str] = field(default_factory=lambda: ["age"])
    frozen: list[str] = field(default_factory=list)
    act_on: list[str] | None = None
    limit: pd.Series | None = None

    @property
    def words(self) -> list[str]:
        """The columns of text or categories."""
        return list(self.frame.select_dtypes(exclude=["number", "bool"]))


def random_table(seed, kinds, without):
    """A table; categories are of one of the kinds of `DTYPES`, and it has none of some traits."""
    rng = np.random.default_rng(seed)
    traits = [trait for trait in TRAITS if rng.random() < CHANCE and trait not in without]
    kind = str(rng.choice(kinds))
    n = int(rng.integers(40, 80) if "few rows" in traits else rng.integers(150, 400))
    frame, score = _columns(n + 40, traits, DTYPES[kind], rng)
    without = {*without, *(EVIDENT if n < ENOUGH else ())}
    later = {t: generator(seed, t) for t in LATER if t not in without}
    added = {t: LATER[t](n + 40, own) for t, own in later.items() if own.random() < CHANCE}
    for columns, part in added.values():
        text = dict.fromkeys(set(TEXTS) & set(columns), DTYPES[kind])
        frame, score = frame.assign(**columns).astype(text), score + part
    traits = [*traits, *added]
    label = (score + rng.logistic(0, 0.3, n + 40) > score.median()).astype(int).rename("y")
    train, pool = frame.iloc[:n], frame.iloc[n:].loc[label.iloc[n:].sort_values().index[:4]]
    table = Table((kind, *traits), train, label.iloc[:n], _query(pool, train, traits))
    table.limit = limit_of(table.query, seed) if "limits" in traits else None
    group = [name for name in frame if name.startswith("job_")]
    table.groups = [group] if group else []
    free = [n for n in frame if n not in ("age", "brand", "opened", *IDENTIFIERS, *group)]
    table.frozen = [str(rng.choice(free))]
    table.act_on = [n for n in free if n not in table.frozen] if rng.random() < 0.3 else None
    if "brand" in frame:
        (table.immutable if rng.random() < 0.5 else table.frozen).append("brand")
    return table


def _columns(n, traits, dtype, rng):
    """A frame of n rows, and the score that decides about them."""
    town, job, amount = rng.integers(0, 4, n), rng.integers(0, 3, n), rng.gamma(3, 4, n).round(1)
    columns = {"age": rng.integers(18, 80, n), "amount": amount, "hours": rng.integers(10, 60, n)}
    columns["town"] = pd.Series(TOWNS[town]).astype(dtype)
    score = 0.3 * amount + 0.1 * columns["hours"] + 0.8 * job + 0.5 * town
    if "dummies" in traits:
        as_type = rng.choice([bool, int])
        columns |= {f"job_{name}": (job == j).astype(as_type) for j, name in enumerate(JOBS)}
    else:
        unknown = (rng.random(n) < 0.1) & ("question" in traits)
        columns["job"] = pd.Series(np.where(unknown, "?", JOBS[job])).astype(dtype)
    more = {
        "codes": lambda: ("status", rng.choice(CODES, n)),
        "identifier": lambda: ("customer_id", rng.permutation(n) + 1000),
        "new level": lambda: ("brand", pd.Series(rng.choice(BRANDS, n)).astype(dtype)),
        "nullable": lambda: ("hours", pd.array(columns["hours"], dtype="Int64")),
        "bool": lambda: ("member", rng.random(n) < 0.5),
        "missing": lambda: ("debt", np.where(rng.random(n) < 0.1, np.nan, amount[::-1])),
    }
    columns |= dict(column() for trait, column in more.items() if trait in traits)
    return pd.DataFrame(columns), pd.Series(score + (columns.get("status", 0) == 112) * 1.0)


def _query(rows, train, traits):
    """Rows within the ranges of the training rows, as their user passes them."""
    numbers = train.select_dtypes("number")
    rows = rows.assign(**{n: rows[n].clip(numbers[n].min(), numbers[n].max()) for n in numbers})
    if "brand" in rows:
        brands = ["dyson", *rows["brand"].iloc[1:]]
        rows["brand"] = pd.Series(brands, rows.index).astype(rows["brand"].dtype.name)
    rows.index = [f"row {i}" for i in range(len(rows))]
    # As a web service gets them.
    return pd.DataFrame(rows.to_dict("records"), rows.index) if "retyped" in traits else rows
