"""Tables: random frames with the traits of tables in use, a query, and what may not change."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

CHANCE = 0.35
JOBS, TOWNS, BRANDS = ["civil", "office", "other"], list("ABCD"), ["acer", "bosch", "cobra"]
CODES = (111, 112, 120)
DTYPES = {"text": object, "category": "category", "arrow": "string[pyarrow]"}
TRAITS = (
    *("dummies", "codes", "identifier", "question", "new level", "nullable", "bool"),
    *("missing", "few rows", "retyped", "pairs"),
)


@dataclass
class Table:
    """Training rows, their label, four rows of a query and the rules for these.

    Attributes:
        traits: the names of its traits.
        groups: lists of binary columns of which exactly one is set.
        immutable: columns that never change.
        frozen: columns that do not change in this call.
        act_on: the columns to act on; None is all that may change.
    """

    seed: int
    traits: tuple[str, ...]
    frame: pd.DataFrame
    label: pd.Series
    query: pd.DataFrame = field(default_factory=pd.DataFrame)
    groups: list[list[str]] = field(default_factory=list)
    immutable: list[str] = field(default_factory=lambda: ["age"])
    frozen: list[str] = field(default_factory=list)
    act_on: list[str] | None = None

    @property
    def words(self) -> list[str]:
        """The columns of text or categories."""
        numbers = self.frame.select_dtypes(["number", "bool"]).columns
        return [name for name in self.frame if name not in numbers]


def random_table(seed: int, kinds: tuple[str, ...], without: set[str]) -> Table:
    """A table; categories are of one of the kinds of `DTYPES`, and it has none of some traits."""
    rng = np.random.default_rng(seed)
    traits = [trait for trait in TRAITS if rng.random() < CHANCE and trait not in without]
    kind = str(rng.choice(kinds))
    n = int(rng.integers(40, 80) if "few rows" in traits else rng.integers(150, 400))
    frame, score = _columns(n + 40, traits, DTYPES[kind], rng)
    label = (score + rng.logistic(0, 0.3, n + 40) > score.median()).astype(int).rename("y")
    table = Table(seed, (kind, *traits), frame.iloc[:n], label.iloc[:n])
    table.groups = [[c for c in frame if c.startswith("job_")]] if "dummies" in traits else []
    table.query = _query(table, frame.iloc[n:], label.iloc[n:])
    _rules(table, rng)
    return table


def _columns(n, traits, dtype, rng):
    """A frame of n rows, and the score that decides about them."""
    age = rng.integers(18, 80, n)
    amount = rng.gamma(3, 4, n).round(1) + 0.1 * age.round(1)
    town, job = rng.integers(0, 4, n), rng.integers(0, 3, n)
    columns = {"age": age, "amount": amount.round(1), "hours": rng.integers(10, 60, n)}
    columns["town"] = pd.Series(np.array(TOWNS)[town]).astype(dtype)
    if "dummies" in traits:
        as_type = rng.choice([bool, int])
        columns |= {f"job_{name}": (job == j).astype(as_type) for j, name in enumerate(JOBS)}
    else:
        names = np.where(rng.random(n) < 0.1, "?", np.array(JOBS)[job])
        names = names if "question" in traits else np.array(JOBS)[job]
        columns["job"] = pd.Series(names).astype(dtype)
    if "codes" in traits:
        columns["status"] = rng.choice(CODES, n)
    if "identifier" in traits:
        columns["customer_id"] = rng.permutation(n) + 1000
    if "new level" in traits:
        columns["brand"] = pd.Series(rng.choice(BRANDS, n)).astype(dtype)
    if "nullable" in traits:
        columns["hours"] = pd.array(columns["hours"], dtype="Int64")
    if "bool" in traits:
        columns["member"] = rng.random(n) < 0.5
    if "missing" in traits:
        columns["debt"] = np.where(rng.random(n) < 0.1, np.nan, rng.gamma(2, 3, n).round(2))
    if "pairs" in traits:
        columns["spent"] = (columns["amount"] * rng.random(n)).round(1)
    hours = np.asarray(columns["hours"], dtype=float)
    score = 0.3 * amount + 0.1 * hours + 0.8 * job + 0.5 * town
    return pd.DataFrame(columns), pd.Series(score + (columns.get("status", 0) == 112) * 1.0)


def _query(table: Table, pool: pd.DataFrame, label: pd.Series) -> pd.DataFrame:
    """Four rows that are not of the training rows, within their ranges, mostly refused."""
    rows = pool.loc[label.sort_values(kind="stable").index[:4]].copy()
    for name in set(rows) - set(table.words):
        if not pd.api.types.is_bool_dtype(rows[name].dtype):
            low, high = table.frame[name].min(), table.frame[name].max()
            rows[name] = rows[name].clip(low, high)
    if "new level" in table.traits:
        rows["brand"] = rows["brand"].astype(object)
        rows.iloc[0, rows.columns.get_loc("brand")] = "dyson"
        rows["brand"] = rows["brand"].astype(DTYPES[table.traits[0]])
    rows.index = [f"row {i}" for i in range(len(rows))]
    if "retyped" in table.traits:  # as a web service gets them
        rows = pd.DataFrame(rows.to_dict("records"), index=rows.index)
    return rows


def _rules(table: Table, rng: np.random.Generator) -> None:
    grouped = {name for group in table.groups for name in group}
    free = [n for n in table.frame if n not in (*table.immutable, *grouped, "brand")]
    table.frozen = [str(rng.choice([n for n in free if n != "customer_id"]))]
    if rng.random() < 0.3:
        table.act_on = [n for n in free if n not in (*table.frozen, "customer_id")]
    if "brand" in table.frame:
        (table.immutable if rng.random() < 0.5 else table.frozen).append("brand")
