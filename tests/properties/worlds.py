"""Worlds: random people, a schema, a model of theirs and a question, which fit together."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from hypothesis import strategies as st
from torch import nn

from dear_plugin import (
    DEAR,
    Constraints,
    Encoder,
    Kind,
    RecourseMethod,
    Recourses,
    Schema,
    Search,
    Target,
)
from tests.thresholded import Thresholded

LEAST_ROWS, MOST_ROWS = 5, 80
MOST_COLUMNS = 6
MOST_ASKED = 8

# Names that mean something to somebody else.
NAMES = ("a", "b c", "success", "index", "größe", "", "rank", "a + b", "cost", "A")


@dataclass(frozen=True)
class World:
    """Everything that one call of `generate` depends on.

    Attributes:
        frame: training rows.
        schema: what may change.
        model: what the method gets.
        accepts: (frame, encoder) -> (n,) bool, asked of the model itself.
        query: who asks.
        output: how the method is told what the model returns.
        options: the other arguments of DEAR.
        target: the wanted decision.
        within: what holds for this call.
        method: what is fitted.
    """

    frame: pd.DataFrame
    schema: Schema
    model: Any
    accepts: Callable[[pd.DataFrame, Encoder], np.ndarray] = field(repr=False)
    query: pd.DataFrame
    output: str | None
    options: dict[str, Any]
    target: Target | None
    within: Constraints | None
    method: Callable[..., RecourseMethod] = DEAR

    def fitted(self) -> RecourseMethod:
        """The method, fitted on the training rows."""
        method = self.method(self.model, self.schema, output=self.output, **self.options)
        return method.fit(self.frame)

    def ask(self, dear: RecourseMethod, k: int = 1) -> Recourses:
        """The whole question."""
        return dear.generate(self.query, self.target, within=self.within, k=k)

    def accepted(self, frame: pd.DataFrame) -> np.ndarray:
        """(n,) what the owner of the model says of rows."""
        return self.accepts(frame, Encoder(self.schema))


def sized(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers of any order of magnitude between two powers of ten."""
    return st.floats(low, high).map(lambda e: float(10.0**e))


# Numbers: (draw, rng, n) -> (n,) values.


def _integers(draw, rng, n):
    width = draw(st.sampled_from([2, 5, 40, 1000, 10**6, 2**40]))
    return rng.integers(0, width, n) + draw(st.sampled_from([0, -3, 10**5, -(2**31)]))


def _decimals(draw, rng, n):
    return np.round(rng.normal(0, 10.0, n), draw(st.integers(1, 5)))


def _floats(draw, rng, n):
    return rng.normal(draw(st.sampled_from([0.0, -1.0, 1e3])), draw(sized(-6, 12)), n)


def _tiny(draw, rng, n):
    """Denormal numbers, smaller than what a float can hold in full."""
    return rng.integers(0, 1000, n) * 5e-324


def _huge(draw, rng, n):
    return rng.normal(0, 1, n) * draw(st.sampled_from([1e18, 1e150, 1e300]))


def _constant(draw, rng, n):
    return np.full(n, draw(st.sampled_from([0.0, 1.5, -7.0, 1e9])))


def _atoms(draw, rng, n):
    """Most people have the same value, the others hardly any two."""
    share = draw(st.sampled_from([0.5, 0.9]))
    return np.where(rng.random(n) < share, 0.0, np.round(np.exp(rng.normal(5, 2, n)), 2))


def _single_floats(draw, rng, n):
    return rng.normal(0, 3.0, n).astype(np.float32)


def _nullable_integers(draw, rng, n):
    return pd.array(rng.integers(0, 30, n), dtype="Int64")


def _small_integers(draw, rng, n):
    return rng.integers(0, 200, n).astype(np.uint8)


# Categories.


def _two_numbers(draw, rng, n):
    return rng.integers(0, 2, n)


def _truths(draw, rng, n):
    return pd.array(rng.random(n) < 0.4, dtype=draw(st.sampled_from(["bool", "boolean"])))


def _words(draw, rng, n):
    # pandas takes "" and "\0" for the same.
    letters = st.text(st.characters(exclude_characters="\0"), max_size=3)
    levels = draw(st.lists(letters, min_size=2, max_size=5, unique=True))
    return _chosen(rng, levels, n)


def _many_words(draw, rng, n):
    return _chosen(rng, [f"w{i}" for i in range(draw(st.integers(6, 40)))], n)


def _text(draw, rng, n):
    return pd.array(_chosen(rng, ["x", "y", "z"], n), dtype="string")


def _labels(draw, rng, n):
    """A category dtype whose labels are neither sorted nor all in use."""
    levels = draw(st.permutations(["low", "mid", "high", "never", ""]))
    used = levels[: draw(st.integers(2, 4))]
    ordered = draw(st.booleans())
    return pd.Categorical(_chosen(rng, used, n), categories=levels, ordered=ordered)


def _number_labels(draw, rng, n):
    return pd.Categorical(rng.integers(1, draw(st.integers(3, 6)), n))


def _chosen(rng, levels, n):
    out = np.empty(n, dtype=object)
    out[:] = [levels[i] for i in rng.integers(0, len(levels), n)]
    return out


NUMBERS = (
    *(_integers, _decimals, _floats, _atoms, _single_floats, _nullable_integers),
    *(_small_integers, _constant, _tiny, _huge),
)
CATEGORIES = (*(_two_numbers, _truths, _words, _many_words, _text, _labels, _number_labels),)

INDEXES: dict[str, Callable[[int], Any]] = {
    "counted": lambda n: pd.RangeIndex(n),
    "words": lambda n: pd.Index([f"person {i}" for i in range(n)], name="who"),
    "doubled": lambda n: pd.Index([i // 2 for i in range(n)]),
    "descending": lambda n: pd.Index(range(n, 0, -1)),
    "halves": lambda n: pd.Index(np.arange(n) / 2, name="a"),
    "dates": lambda n: pd.date_range("2024-01-01", periods=n),
    "two levels": lambda n: pd.MultiIndex.from_tuples([(i % 2, f"{i}") for i in range(n)]),
}


@st.composite
def frames(draw) -> pd.DataFrame:
    """People with at least one number or category that is not the same for all."""
    n = draw(st.integers(LEAST_ROWS, MOST_ROWS))
    makers = draw(st.lists(st.sampled_from(NUMBERS + CATEGORIES), max_size=MOST_COLUMNS - 1))
    makers.append(draw(st.sampled_from([_integers, _decimals, _two_numbers])))
    names = draw(st.permutations(NAMES))[: len(makers)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    columns = {name: make(draw, rng, n) for name, make in zip(names, makers, strict=True)}
    frame = pd.DataFrame(columns)
    last = frame[names[-1]].to_numpy(copy=True)
    last[0], last[1] = 0, 1  # the one column that surely varies
    frame[names[-1]] = last
    return frame.set_axis(INDEXES[draw(st.sampled_from(sorted(INDEXES)))](n))


def some(items, least=0):
    """A few of several things, each once, in any order."""
    return (
        st.lists(st.sampled_from(list(items)), min_size=least, unique=True)
        if items
        else (st.just([]))
    )


# Columns that others determine or bound: (draw, rng, frame) -> a column.


def _total(draw, rng, frame):
    return frame[draw(some([*frame], least=2))].sum(axis=1)


def _share(draw, rng, frame):
    return (frame[draw(st.sampled_from([*frame]))] * rng.random(len(frame))).round()


def _product(draw, rng, frame):
    return frame[draw(some([*frame], least=2))[:2]].prod(axis=1)


def _index(draw, rng, frame):
    level = frame[draw(st.sampled_from([*frame]))]
    return level.map(dict(zip(level.unique(), rng.permutation(level.nunique()), strict=True)))


@st.composite
def related_frames(draw) -> pd.DataFrame:
    """People with amounts, and several columns that these determine or bound."""
    rng, n = np.random.default_rng(draw(st.integers(0, 2**32 - 1))), MOST_ROWS
    frame = pd.DataFrame(rng.integers(0, [40, 90, 6], (n, 3)), columns=["a", "b c", "A"])
    makers = draw(st.lists(st.sampled_from([_total, _share, _product, _index]), min_size=2))
    for name, make in zip(["success", "index", "rank"], makers, strict=False):
        frame[name] = make(draw, rng, frame)
    return frame.astype({"A": draw(st.sampled_from(["int64", "str"]))})


@st.composite
def schemas(draw, frame: pd.DataFrame) -> Schema:
    """A schema of a frame, in which at least one feature may change."""
    plain = Schema.infer(frame)
    mutable = [c.name for f in plain if not f.immutable for c in f.dummies or (f,)]
    marked = [f.name for f in plain if f.kind is not Kind.CATEGORICAL]
    increasing = draw(some(marked))
    decreasing = draw(some([n for n in marked if n not in increasing]))
    return Schema.infer(
        frame,
        immutable=draw(some(mutable[1:])),
        increasing=increasing,
        decreasing=decreasing,
        ranges={
            f.name: draw(intervals(f.bounds))
            for f in plain.columns
            if f.name in draw(some(_numbers(plain)))
        },
        **draw(orders(plain)),
    )


@st.composite
def orders(draw, schema: Schema) -> dict[str, Any]:
    """No order of causes, some features in one or two tiers, or a graph."""
    names = list(schema.names)
    if draw(st.booleans()):
        return {"causes": {name: draw(some(names[:i])) for i, name in enumerate(names)}}
    named = draw(some(names))
    cut = draw(st.integers(0, len(named)))
    return {"tiers": [tier for tier in (named[:cut], named[cut:]) if tier]}


def _numbers(schema: Schema) -> list[str]:
    return [column.name for column in schema.columns if not column.choices]


@st.composite
def intervals(draw, bounds: tuple[float, float]) -> tuple[float, float]:
    """A low and a high end in or about some bounds."""
    shares = st.sampled_from([-0.5, 0.0, 0.1, 1 / 3, 0.5, 0.77, 1.0, 1.5])
    low, high = sorted([draw(shares), draw(shares)])
    ends = [bounds[0] * (1.0 - t) + bounds[1] * t for t in (low, high)]
    finite = np.nan_to_num(ends, posinf=1e308, neginf=-1e308)
    return float(finite.min()), float(finite.max())


class Scores(nn.Module):
    """Logits, or values, or probabilities, in one of the shapes that a module may answer in."""

    def __init__(self, net: nn.Module, shape: str, output: str | None = None) -> None:
        super().__init__()
        self.net, self.shape, self.output = net, shape, output
        self.noise = nn.Dropout(0.5)

    def forward(self, x):
        z = self.net(self.noise(x))
        if self.shape == "(n,)":
            z = z[:, 0]
        if self.shape == "(n, 2)":
            z = torch.cat([-z, z], 1) / 2.0
        if self.shape == "(n, 3)":
            z = torch.cat([-z, 0.3 * z, z], 1)
        if self.output == "probabilities":
            return z.softmax(1) if self.shape in ("(n, 2)", "(n, 3)") else z.sigmoid()
        return z


def numbers(frame: pd.DataFrame, name: str) -> np.ndarray:
    """(n,) the numbers of a column, NaN where it is missing."""
    return frame[name].to_numpy(dtype=float, na_value=np.nan)


class Rules:
    """A black box: points for what a frame's cells say, without any encoding of ours.

    Numbers score in steps, as trees do: a hair on the wrong side of one is a refusal. What is
    missing has points as well if it is a category, and is below every step if it is a number.
    """

    def __init__(self, frame: pd.DataFrame, schema: Schema, rng: np.random.Generator) -> None:
        self.names, columns = schema.column_names, schema.columns
        self.steps = {f.name: self._step(frame, f, rng) for f in columns if not f.choices}
        levels = {f.name: f.choices for f in columns if f.choices}
        self.points = {
            name: dict(zip(known, rng.normal(0, 1, len(known)), strict=True))
            for name, known in levels.items()
        }
        self.shift = 0.0

    @staticmethod
    def _step(frame, feature, rng):
        cells = numbers(frame, feature.name)
        known = cells[~np.isnan(cells)]
        at = float(np.quantile(known, rng.random())) if len(known) else 0.0
        return at, float(rng.normal(0, 2.0))

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        if list(frame.columns) != list(self.names):
            raise AssertionError("the model sees the features alone, in the schema's order")
        total = np.zeros(len(frame))
        for name, (at, points) in self.steps.items():
            total += points * (numbers(frame, name) >= at)
        for name, points in self.points.items():
            cells = frame[name].astype(object)
            total += np.array([points.get(None if pd.isna(c) else c, 0.0) for c in cells])
        return total - self.shift

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        rng = 1.0 / (1.0 + np.exp(-self.score(frame)))
        return np.stack([1.0 - rng, rng], 1)


@dataclass(frozen=True)
class Judge:
    """A model, how it is declared, what it is asked for, and what its owner says of a frame."""

    model: Any
    accepts: Callable[[pd.DataFrame, Encoder], np.ndarray]
    output: str | None = None
    target: Target | None = None


def quantile(draw, scores: np.ndarray) -> float:
    """Where to draw the line: some, most, or all are refused, or none."""
    return float(np.quantile(scores, draw(st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]))))


@st.composite
def modules(draw, frame, schema, rng) -> Judge:
    """A network on the encoding, left in training mode by its owner."""
    encoder = Encoder(schema)
    shape = draw(st.sampled_from(["(n, 1)", "(n,)", "(n, 2)", "(n, 3)"]))
    output = draw(st.sampled_from([None, "probabilities", "values"]))
    if output == "values":
        shape = "(n, 1)"
    net = nn.Sequential(nn.Linear(encoder.d, 4), nn.Tanh(), nn.Linear(4, 1))
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.from_numpy(rng.normal(0, 1.5, p.shape)))
        raw = net(encoder.encode(frame))[:, 0].numpy()
        # Nobody stands on the line itself: there the owner's network decides by the batch's size.
        net[2].bias.sub_(quantile(draw, raw) + 1e-3 * float(raw.std()) + 1e-4)
    model = Scores(net, shape, output).train()
    target, decide = _wish(draw, shape, output, raw)

    def accepts(people, encoder):
        model.eval()
        with torch.no_grad():
            answer = decide(model(encoder.encode(people)))
        model.train()
        return answer.numpy()

    return Judge(model, accepts, output, target)


def _wish(draw, shape, output, raw):
    """A target and the same in the words of the model's owner."""
    if output == "values":
        low = float(np.float32(np.std(raw) * draw(st.sampled_from([0.0, 0.5]))))
        return Target.of_range(low), lambda out: out[:, 0] >= low
    wanted = draw(st.integers(0, 2 if shape == "(n, 3)" else 1))
    half = 0.5 if output == "probabilities" else 0.0
    if shape in ("(n, 2)", "(n, 3)"):
        decide = lambda out: out.argmax(1) == wanted  # noqa: E731
    else:
        decide = lambda out: (out.reshape(-1) > half) == bool(wanted)  # noqa: E731
    unsaid = wanted == 1 and draw(st.booleans())
    return None if unsaid else Target.of_class(wanted), decide


@st.composite
def black_boxes(draw, frame, schema, rng) -> Judge:
    """Something that sees frames."""
    rules = Rules(frame, schema, rng)
    rules.shift = quantile(draw, rules.score(frame[list(schema.column_names)]))
    if draw(st.booleans()):
        return draw(deciders(rules))
    model = rules if draw(st.booleans()) else rules.predict_proba

    def accepts(people, encoder):
        rng = rules.predict_proba(people[list(encoder.schema.column_names)])
        return rng[:, 1] > rng[:, 0]

    return Judge(model, accepts)


@st.composite
def deciders(draw, rules: Rules) -> Judge:
    """Something with `predict` beside `predict_proba`, and perhaps another least probability."""
    classes = draw(st.sampled_from([(0, 1), (False, True), ("approved", "rejected"), (2, 1)]))
    threshold = draw(st.sampled_from([0.5, 0.05, 0.3, 0.7, 0.99]))
    rules.classes_ = np.array(classes)
    model = Thresholded(rules, threshold)
    column, least = draw(st.integers(0, 1)), draw(st.sampled_from([None, None, 0.2, 0.8]))
    wanted = classes[column]
    unsaid = column == 1 and set(classes) == {0, 1} and least is None

    def accepts(people, encoder):
        seen = people[list(encoder.schema.column_names)]
        likely = model.predict_proba(seen)[:, column] >= (least or 0.0)
        if least is not None and least < 0.5:
            return likely
        return likely & (model.predict(seen) == wanted)

    target = None if unsaid and draw(st.booleans()) else Target.of_class(wanted, least)
    return Judge(model, accepts, target=target)


@st.composite
def queries(draw, frame: pd.DataFrame, schema: Schema, rng) -> pd.DataFrame:
    """Some of the people, some of them in other company or with numbers nobody has had."""
    m = draw(st.integers(1, MOST_ASKED))
    query = frame.iloc[rng.integers(0, len(frame), m)].copy()
    if draw(st.booleans()):
        query = query[draw(st.permutations(list(query.columns)))]
    if draw(st.booleans()):
        query["note"] = [object() for _ in range(m)]
    for name in draw(some(_numbers(schema))):
        query[name] = _strange(draw, query[name])
    return query


def _strange(draw, column: pd.Series) -> pd.Series:
    """The same people with a number outside what was observed, if the column can hold it."""
    if not pd.api.types.is_float_dtype(column.dtype):
        return column
    return (column * draw(st.sampled_from([1.0, -3.0, 1.5]))).astype(column.dtype)


@st.composite
def constraints(draw, schema: Schema, query: pd.DataFrame) -> Constraints | None:
    """What one call asks for: for all, or one by one."""
    if draw(st.booleans()):
        return None
    names, m = schema.column_names, len(query)

    def each(one, ok=True):
        return (
            draw(st.lists(one, min_size=m, max_size=m))
            if ok and draw(st.booleans())
            else (draw(one))
        )

    return Constraints(
        frozen=each(some(names)),
        act_on=each(some(names, least=1)) if draw(st.booleans()) else None,
        ranges=each(ranges(schema)),
        categories=each(levels(schema)),
        costs=each(st.dictionaries(st.sampled_from(names), sized(-2, 2), max_size=3)),
    )


@st.composite
def ranges(draw, schema: Schema) -> dict[str, tuple]:
    """Ranges of some of the numbers, perhaps open at one end."""
    out = {}
    for feature in schema.columns:
        if not feature.choices and draw(st.booleans()):
            low, high = draw(intervals(feature.bounds))
            out[feature.name] = draw(st.sampled_from([(low, high), (None, high), (low, None)]))
    return out


@st.composite
def levels(draw, schema: Schema) -> dict[str, list]:
    """Allowed values of some of the categories; those with an order are neighbours."""
    return {
        f.name: draw(some(f.categories, least=1) if f.categories else neighbours(f.levels))
        for f in schema.columns
        if f.choices and draw(st.booleans())
    }


@st.composite
def neighbours(draw, items) -> list:
    """Some things that stand beside each other."""
    first = draw(st.integers(0, len(items) - 1))
    return list(items[first : draw(st.integers(first + 1, len(items)))])


@st.composite
def searches(draw) -> Search:
    """How to search: by default, for actions that suffice alone, or for the cheapest; little."""
    alone = partial(Search, max_reliance=0.0)
    ask = draw(st.sampled_from([Search, alone, Search.cheapest]))
    return ask(
        min_support=draw(st.sampled_from([None, None, 0.6])),
        max_features=draw(st.sampled_from([1, 1, 1, 3])),
    )


@st.composite
def worlds(draw, people: st.SearchStrategy[pd.DataFrame] | None = None) -> World:
    """A question that can be asked of some people."""
    frame = draw(frames() if people is None else people)
    schema = draw(schemas(frame))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    judge = draw(st.one_of(modules(frame, schema, rng), black_boxes(frame, schema, rng)))
    query = draw(queries(frame, schema, rng))
    options: dict[str, Any] = {"search": draw(searches())}
    # What looks like an identifier is acted on where it is named alone.
    if draw(st.booleans()) or not schema.actionable:
        options["act_on"] = draw(action_sets(schema))
    return World(
        frame,
        schema,
        judge.model,
        judge.accepts,
        query,
        judge.output,
        options,
        judge.target,
        draw(constraints(schema, query)),
    )


@st.composite
def action_sets(draw, schema: Schema) -> list:
    """Some features, and perhaps two of them together."""
    names = draw(some(schema.mutable, least=1))
    return [*names, tuple(names[:2])] if len(names) > 1 and draw(st.booleans()) else names
