"""Sentences: every sentence of `describe` and `letter` on random tables, read without the package.

python -m tests.sweep.sentences [tables] [first seed]
"""

import logging
import re
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dear_plugin import DEAR, Schema
from dear_plugin.tell.run import RANKS

NUMBER = r"-?[\d,]*\.?\d+(?:e-?\d+)?"
ACTS = r"(?:increase|reduce|change) {name} from \S+ to (?P<new>{number}|\w+)"
MUST = r"{name} (?:at|being) (?P<new>{number}|\w+)"
# What a square, a total, or a part of one may be told to be by definition.
DEFINED = {"visits", "visits_sq", "debt", "fees", "owed_in_all"}
BOUND = r"{name} cannot be (?:less|more) than (?P<new>{number})"
IS_SO = r"{name} (?:is|cannot be (?:less|more) than) (?P<new>{number})"
ROWS = 12


@dataclass(frozen=True)
class Table:
    """Applicants, what may change about them, and a model.

    Attributes:
        frame: training rows.
        query: refused rows.
        model: on frames.
        schema: the arguments of `Schema.infer`.
        act_on: what may be acted on; None for all.
    """

    frame: pd.DataFrame
    query: pd.DataFrame
    model: Any
    schema: dict[str, Any]
    act_on: list[str] | None


def fitted(frame, label, kind, seed):
    """A classifier of scikit-learn on numbers and codes of categories."""
    words = [name for name in frame if not is_numeric_dtype(frame[name])]
    codes = OneHotEncoder(sparse_output=False), words
    model = {
        "line": LogisticRegression(max_iter=500),
        "tree": DecisionTreeClassifier(max_depth=6, random_state=seed),
        "forest": RandomForestClassifier(15, max_depth=7, random_state=seed, n_jobs=1),
    }[kind]
    columns = make_column_transformer(codes, remainder="passthrough")
    return make_pipeline(columns, StandardScaler(), model).fit(frame, label)


def random_table(seed):
    """Numbers that follow one another, parts of a sum, a square, orders, categories and flags."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(300, 1200))
    age, pay = rng.integers(18, 75, n), (rng.lognormal(8, 0.4, n)).round(-1)
    columns = {"age": age, "pay": pay}
    debt = (rng.gamma(2, 1, n) * pay * rng.choice([0.3, 1.0])).round(int(rng.integers(0, 3)))
    years = (rng.poisson(6, n) + (pay > np.median(pay)) * rng.integers(0, 4, n)).astype(int)
    extra = {
        "debt": debt,
        "years": years,
        "rate": (3 + debt / debt.max() * 8 + rng.normal(0, 0.5, n)).round(2),
        "visits": rng.poisson(4, n) + 1,
        "job": np.array(["clerk", "nurse", "cook", "judge"], object)[
            np.clip((pay / pay.max() * 6 + rng.normal(0, 1, n)).astype(int), 0, 3)
        ],
        "owner": (rng.random(n) < 0.2 + 0.6 * (years > 6)).astype(int),
    }
    names = rng.permutation(list(extra))[: int(rng.integers(2, 7))]
    columns |= {str(name): extra[name] for name in names}
    if "visits" in columns and rng.random() < 0.5:
        columns["visits_sq"] = columns["visits"] ** 2
    if "debt" in columns and rng.random() < 0.5:
        columns["fees"] = rng.integers(0, 500, n)
        columns["owed_in_all"] = columns["debt"] + columns["fees"]
    if "years" in columns and rng.random() < 0.5:
        columns["years_here"] = rng.binomial(columns["years"], 0.5)
    frame = pd.DataFrame(columns)
    numbers = frame.select_dtypes("number").apply(lambda c: (c - c.mean()) / (c.std() or 1.0))
    weights = rng.normal(0, 1, numbers.shape[1]) * (rng.random(numbers.shape[1]) < 0.7)
    score = numbers.to_numpy() @ weights + rng.logistic(0, 0.5, n)
    if "job" in frame:
        score = score + (frame["job"] == "nurse")
    label = (score > np.quantile(score, 0.5)).astype(int)
    model = fitted(frame, label, rng.choice(["line", "tree", "forest"]), seed)
    refused = frame[model.predict(frame) == 0]
    mutable = [name for name in frame if name != "age"]
    some = [str(name) for name in rng.permutation(mutable)[: int(rng.integers(1, 4))]]
    schema = {"immutable": ["age"]}
    if rng.random() < 0.4:
        cut = int(rng.integers(1, len(mutable)))
        schema["tiers"] = [["age"], mutable[:cut], mutable[cut:]]
    return Table(frame, refused.head(ROWS), model, schema, some if rng.random() < 0.6 else None)


# Reading.


def value(text, column):
    """What a text says that a cell becomes, in the column's own kind."""
    if not is_numeric_dtype(column):
        return text
    return float(text.replace(",", ""))


def told(pattern, text, frame):
    """{feature: value} of the matches of a pattern with the groups `name` and `new`."""
    names = "|".join(sorted(map(re.escape, frame), key=len, reverse=True))
    whole = pattern.format(name=rf"(?P<name>{names})", number=NUMBER)
    found = re.finditer(whole, text, re.IGNORECASE)
    return {m["name"]: value(m["new"], frame[m["name"]]) for m in found}


def places_of(column):
    """The decimals of a column of numbers, up to six."""
    return next((n for n in range(6) if np.allclose(column, column.round(n), atol=1e-9)), 6)


def step_of(column):
    """The largest of 1, 2, 5 x 10^k that is at most a hundredth of the central 98 %."""
    low, high = np.quantile(column.astype(float), (0.01, 0.99))
    if high <= low:
        return np.inf
    sizes = [m * 10.0**k for k in range(-6, 9) for m in (1, 2, 5)]
    return max((size for size in sizes if size <= 0.01 * (high - low) * (1 + 1e-9)), default=0.0)


@dataclass(frozen=True)
class Reader:
    """One answer and what is said of it.

    Attributes:
        table: the table of its row.
        label: of the row.
        before: the factual.
        after: the counterfactual.
        direct: what is acted on.
        forced: what the action forces.
        text: its description.
        letter: what the letter of the row says of it; "" where it does not tell it.
        lines: its lines of `changes`.
    """

    table: Table
    label: Any
    before: pd.Series
    after: pd.Series
    direct: dict[str, Any]
    forced: dict[str, Any]
    text: str
    letter: str
    lines: pd.DataFrame

    def accepted(self, *changes):
        """Whether the model accepts the factual with some changes, and nothing else."""
        row = self.table.query.loc[[self.label]].copy()
        told = {name: new for change in changes for name, new in change.items()}
        for name, new in told.items():
            row[name] = pd.Series([new], row.index, dtype=object).infer_objects()
        # A reader knows what a total and a square are; what is acted on alone is asked as it is.
        if len(changes) > 1 and "visits_sq" in row and "visits" in told:
            row["visits_sq"] = row["visits"] ** 2
        if len(changes) > 1 and "owed_in_all" in row and {"debt", "fees"} & {*told}:
            row["owed_in_all"] = row["debt"] + row["fees"]
        return bool(self.table.model.predict(row)[0])

    def inside(self, text):
        """What must follow by a text: numbers at several places between their ends."""
        frame = self.table.frame
        first = told(MUST, text, frame)
        last = first | told(r"{name} at {number} to (?P<new>{number})", text, frame)
        for share in np.linspace(0.0, 1.0, 7):
            yield {
                name: old
                if old == last[name]
                else round(old + share * (last[name] - old), places_of(frame[name]))
                for name, old in first.items()
            }

    def close(self, name, said, exact=1e-4):
        """Whether a text's number is that of a cell, up to the digits that are shown."""
        if isinstance(said, str):
            return str(said) == str(self.after[name])
        return abs(said - float(self.after[name])) <= exact * max(1.0, abs(said))

    @property
    def acted(self):
        """What is acted on and changes; other features of a set are held at their values."""
        return {name for name, new in self.direct.items() if new != self.before[name]}

    @property
    def needed(self):
        """What has to follow."""
        follows = self.lines[self.lines["kind"] == "indirect"]
        return {*follows.loc[follows["least"].notna(), "feature"]}

    def described(self):
        """The faults of the description."""
        frame, text = self.table.frame, self.text
        acts = told(
            r"(?:raise|lower|change) {name} from \S+ to (?P<new>[\w.e-]*[\w])", text, frame
        )
        is_so = re.search(r"with it(?: alone)?, (.*?)(?:; |\. |\.$)", text)
        forced = told(IS_SO, is_so[1], frame) if is_so else {}
        needs = re.search(r"with what is expected to follow: (.*?)\.(?: |$)", text)
        needed = told(MUST, needs[1], frame) if needs else {}
        alone = self.accepted(self.direct)
        yield "an action is not told", set(acts) != self.acted
        yield "an action is told wrongly", not all(self.close(n, v) for n, v in acts.items())
        yield "what is forced is not told", set(forced) != set(self.forced)
        if "The action is enough by itself" in text:
            yield "enough by itself, and refused alone", not alone
            yield "enough by itself, and something is forced", bool(forced)
        if "The action is enough, with" in text:
            yield "enough, and refused", not self.accepted(self.direct, self.forced)
        if "The action alone is accepted" in text:
            yield "accepted alone, and is not", not self.accepted(self.direct, self.forced)
        if "The action alone is not enough" in text:
            yield "needs, and is accepted alone", self.accepted(self.direct, self.forced)
            for some in self.inside(needs[1] if needs else ""):
                changes = self.direct, self.forced, some
                yield "what must follow is refused", not self.accepted(*changes)
            yield "it needs nothing", not needed
        if "The action alone is not feasible" in text:
            yield "it cannot be, and is refused", not self.accepted(self.direct, self.forced)
        for name, verb in self.expected().items():
            up = float(self.after[name]) > float(self.before[name])
            yield "a direction is wrong", verb != ("rise" if up else "fall")
        yield "neither enough nor needed", "The action" not in text

    def expected(self):
        """{feature: "rise" or "fall"} of the expected changes with one direction."""
        names = "|".join(sorted(map(re.escape, self.table.frame), key=len, reverse=True))
        found = re.finditer(rf"(?P<name>{names}) to (?P<verb>rise|fall) (?:by|from) ", self.text)
        some = {m["name"]: (m["verb"], self.text[m.end() : m.end() + 60]) for m in found}
        return {n: v for n, (v, rest) in some.items() if " or rise by up to" not in rest}

    def written(self):
        """The faults of the letter."""
        letter, frame = self.letter, self.table.frame
        effects = "tiers" in self.table.schema
        if not letter:
            return
        weak = self.text.startswith("Weak") or "does not clearly favour" in self.text
        yield "a weak answer is recommended", weak
        yield "recommended, though it depends", "it depends on how much" in self.text
        yield "without an order something will follow", not effects and " will " in letter
        acts = told(ACTS, letter, frame)
        is_so = re.search(r"By definition, this sets (.*?)\.(?: |$)", letter)
        forced = told(r"{name} to (?P<new>{number})", is_so[1], frame) if is_so else {}
        bounds = told(BOUND, letter, frame)
        forced |= bounds
        only = re.search(r"enough only together with (.*?)\.(?: |$)", letter)
        needed = told(MUST, only[1], frame) if only else {}
        for some in self.inside(only[1] if only else ""):
            yield "what the letter says is refused", not self.accepted(acts, forced, some)
        alone = only and "cannot be" not in self.text and self.accepted(acts, forced)
        yield "alone is not enough, and accepted", alone
        if "Nothing else has to change" in letter:
            yield "something else has to change", bool(forced or needed)
            yield "nothing else, and refused", not self.accepted(acts)
        far = (
            abs(v - float(self.after[n])) > step_of(frame[n]) * (1 + 1e-9) + 1e-9
            for n, v in acts.items()
            if not isinstance(v, str)
        )
        yield "an amount is farther than a step from the answer", any(far)
        names = "|".join(sorted(map(re.escape, frame), key=len, reverse=True))
        usual = re.findall(rf"({names}) will usually (rise|fall)", letter)
        yield (
            "a direction that is open",
            any(self.expected().get(n) == ("fall" if v == "rise" else "rise") for n, v in usual),
        )
        along = re.findall(rf"({names}) (?:will usually|at about|being)", letter)
        chosen = self.table.act_on or [n for n in frame if n != "age"]
        yield "a choice just happens", bool((set(along) - set(needed)) & set(chosen))
        kinds = self.lines.set_index("feature")["kind"]
        tiers = {n: i for i, tier in enumerate(self.table.schema.get("tiers", [])) for n in tier}
        mates = {name for name in tiers if tiers[name] in {tiers[a] for a in self.acted}}
        yield "a mate of a tier will follow", bool({name for name, _ in usual} & mates)
        yield "an order is told as a definition", not {*forced} - {*bounds} <= DEFINED
        follows = {*along, *needed}
        yield "what follows has no line", not follows <= set(kinds.index[kinds == "indirect"])
        yield (
            "what is needed has no bound",
            any(
                line.least == line.old
                for line in self.lines.itertuples()
                if line.feature in needed
            ),
        )
        yield "the past is asked for", "please check" in letter
        yield "of one there is no plural", bool(re.search(r"\b1 \w+s\b", letter))
        pairs = re.findall(rf"from ({NUMBER}) to ({NUMBER})(?=[ .,;]|$)", letter)
        places = [{len(each.partition(".")[2]) for each in pair} for pair in pairs]
        yield "old and new have other decimals", any(len(each) > 1 for each in places)


def ways_of(letter):
    """The ways that a letter tells."""
    lines = [re.sub(r"^\d\. ", "", each) for each in letter.split("\n")]
    return [
        each
        for each in lines
        if re.match(r"To get the|Increase|Reduce|Change|Have|No longer have", each)
    ]


def distance(way, frame, after):
    """How far what a way says to do is from an answer."""
    said = told(ACTS, way, frame).items()
    return sum(v != after[n] if isinstance(v, str) else abs(v - float(after[n])) for n, v in said)


def readers(table):
    """The answers that act, with what is said of them, and the ways that are no answer's."""
    dear = DEAR(table.model, Schema.infer(table.frame, **table.schema), act_on=table.act_on)
    every = dear.fit(table.frame).generate(table.query, k=RANKS)
    table_of = every.alternatives(RANKS)
    lines = dict(tuple(every.changes.groupby(["row", "rank"])))
    texts, found, left = every.describe(), {}, []
    for i, action in enumerate(table_of.itertuples(index=False)):
        if not (action.success and action.acted_on):
            continue
        known = [frame.iloc[i].dropna().to_dict() for frame in (every.direct, every.forced)]
        rows = every.factuals.iloc[i], every.counterfactuals.iloc[i]
        reader = Reader(
            table, action.index, *rows, *known, texts.iloc[i], "", lines[action.index, action.rank]
        )
        found.setdefault(action.index, []).append(reader)
    for label, letter in every.letter(ways=3).items():
        for way in ways_of(letter):
            acted, own = set(told(ACTS, way, table.frame)), found.get(label, [])
            # Two answers may act on the same features: a way is of the nearer one. It may ask for
            # what has to follow.
            near = [
                (distance(way, table.frame, each.after), at)
                for at, each in enumerate(own)
                if each.acted <= acted <= each.acted | each.needed
            ]
            if not near:
                left.append(way)
                continue
            at = min(near)[1]
            own[at] = replace(own[at], letter=" ".join(filter(None, [own[at].letter, way])))
    return [each for own in found.values() for each in own], left


def audited(seed):
    """How many answers of the table of a seed were read, and their faults."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read, left = readers(random_table(seed))
        faults = [("a way of a letter is no answer", way) for way in left]
        faults += [
            (kind, reader)
            for reader in read
            for kind, wrong in (*reader.described(), *reader.written())
            if wrong
        ]
    return read, faults


def main(tables=1000, first=0):
    """Audit tables; print how many answers there were, and an example of each fault."""
    logging.disable(logging.WARNING)
    counts, examples, answers, advised = Counter(), {}, 0, 0
    for seed in range(first, first + tables):
        read, faults = audited(seed)
        answers += len(read)
        advised += sum(bool(reader.letter) for reader in read)
        for kind, reader in faults:
            counts[kind] += 1
            examples.setdefault(kind, (seed, reader))
    print(f"{tables} tables, {answers} answers, of which letters tell {advised}")
    for kind, count in counts.most_common():
        seed, reader = examples[kind]
        print(f"{count} x {kind}; seed {seed}")
        print(
            f"{reader.label}: {reader.text}\n{reader.letter}"
            if isinstance(reader, Reader)
            else reader
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
