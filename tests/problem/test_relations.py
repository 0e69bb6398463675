"""Relations: what is true by definition stays so in every answer; a row is repaired alone."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Encoder, Schema, Search
from dear_plugin.data.relations import Relation
from dear_plugin.problem.constraints import admissible
from dear_plugin.problem.rules import Rules

N = 1500


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """Parts of a total, a product, a ratio, a square, a logarithm, and an index of the city."""
    rng = np.random.default_rng(0)
    city = rng.integers(0, 30, N)
    frame = pd.DataFrame(rng.gamma(4, 50, (N, 3)).round(), columns=["rent", "food", "fun"])
    frame["total"] = frame["rent"] + frame["food"] + frame["fun"]
    frame["months"] = rng.integers(0, 40, N)
    frame["cost"] = frame["months"] * frame["fun"]
    frame["share"] = (100 * frame["rent"] / frame["total"]).round(1)
    frame["squared"], frame["log"] = frame["months"] ** 2, np.log(frame["months"] + 1)
    frame["city"] = [f"city {c}" for c in city]
    frame["index"] = rng.permutation(900)[city] / 1000
    return frame


def kept(rows):
    """The definitions, by what they mean."""
    own = {
        "total": rows["total"] == rows["rent"] + rows["food"] + rows["fun"],
        "cost": rows["cost"] == rows["months"] * rows["fun"],
        "share": (rows["share"] - 100 * rows["rent"] / rows["total"]).abs() <= 0.0501,
        "squared": rows["squared"] == rows["months"] ** 2,
        "log": (rows["log"] - np.log(rows["months"] + 1)).abs() <= 1e-6,
    }
    return pd.DataFrame(own)


@pytest.mark.parametrize(("per", "places"), [(1e-3, 1), (1e-2, 0), (1.087, 0), (0.25, 1)])
@pytest.mark.parametrize("acted", ["income", "other"])
def test_a_definition_gives_one_value(per, places, acted):
    """Up to rounding 4.7 and 4.8 are both 4750 in thousands: both were told of one answer."""
    income = np.random.default_rng(3).gamma(4, 900, 2000).round(-1)
    frame = pd.DataFrame({"income": income, "other": (income * per).round(places)})
    model = lambda rows: 1 / (1 + np.exp(-(rows["income"] - 4200) / 500))  # noqa: E731
    dear = DEAR(model, Schema.infer(frame), act_on=[acted]).fit(frame)
    result = dear.generate(frame[model(frame) < 0.35].head(40))
    forced = result.changes.query("kind != 'direct'")
    assert len(forced) == 40 and (forced["kind"] == "forced").all()
    assert (forced["alone"] == forced["new"]).all()
    texts = result.describe().str.partition(". ")[0]
    assert texts.str.count("by definition").eq(1).all()
    assert not texts.str.contains(r"; ,|\bby by\b|expect").any()


@pytest.mark.parametrize("acted", ["total", "fun", "months", "squared", "rent", ("fun", "months")])
def test_an_answer_keeps_every_definition(people, acted):
    def model(rows):
        score = rows["total"] / 300 + rows["cost"] / 4000 + rows["squared"] / 400 - 4
        return 1.0 / (1.0 + np.exp(-score.to_numpy(float)))

    schema = Schema.infer(people)
    assert kept(people).all(axis=None)
    refused = people[model(people) < 0.5].head(40)
    result = DEAR(model, schema, act_on=[acted]).fit(people).generate(refused)
    solved = result.counterfactuals[result.actions["success"]]
    assert len(solved) > 10
    assert kept(solved).all(axis=None)


@pytest.mark.parametrize("acted", ["city", "rent"])
def test_a_number_moves_with_its_category_only(people, acted):
    model = lambda rows: (rows["index"] + rows["rent"] / 1000).clip(0, 1)  # noqa: E731
    refused = people[model(people) < 0.5].head(40)
    result = DEAR(model, Schema.infer(people), act_on=[acted]).fit(people).generate(refused)
    index = people.groupby("city")["index"].first()
    after = result.counterfactuals[result.actions["success"]]
    assert len(after) > 20
    assert (after["index"] == after["city"].map(index)).all()


@pytest.mark.parametrize("ordered", [None, ["low", "mid", "high"]])
def test_labels_that_no_feature_has_are_left_out_of_a_table(ordered):
    band = ["low", "mid", "high"] * 100
    index = pd.Series(band).map({"low": 1.5, "mid": 2.5, "high": 7.0})
    frame = pd.DataFrame({"band": band, "index": index})
    schema = Schema.infer(frame, ordered=ordered and {"band": ordered})
    (lookup,) = schema.relations
    more = replace(lookup, table=(*lookup.table, ("gone", 9.0), ("low", "none")))
    found, own = (each.rule(schema.features, Encoder(schema).grid) for each in (more, lookup))
    assert np.array_equal(found.keys, own.keys) and np.array_equal(found.values, own.values)


class TestBoundsOfWhatIsForced:
    """A category determines a number whose factual value lies beyond its range."""

    @pytest.fixture
    def campaigns(self) -> pd.DataFrame:
        rng = np.random.default_rng(0)
        kind = rng.integers(0, 6, 80)
        frame = pd.DataFrame({"calls": rng.integers(0, 40, 80), "kind": kind.astype(str)})
        return frame.assign(success=np.array([0, 5, 3, 4, 2, 1])[kind])

    def test_a_number_that_may_only_increase_does_not_fall(self, campaigns):
        model = lambda rows: rows["kind"].astype(float) / 4 + rows["calls"] / 80 - 0.6  # noqa: E731
        ends = {"success": (-2.5, 3.85)}
        schema = Schema.infer(campaigns, increasing=["success"], ranges=ends)
        dear = DEAR(lambda rows: model(rows).clip(0, 1), schema, search=Search.cheapest())
        answers = dear.fit(campaigns).generate(campaigns)
        after, before = answers.counterfactuals["success"], campaigns["success"]
        assert (after > before).any() and (before > 4).any()
        assert (after >= before).all()

    @pytest.mark.parametrize("given", [{"increasing": ["success"]}, {"immutable": ["success"]}])
    def test_what_may_not_enter_its_range_is_set_to_no_value(self, campaigns, given):
        encoder = Encoder(Schema.infer(campaigns, ranges={"success": (0, 3)}, **given))
        x, ends = encoder.rows(campaigns), encoder.held(campaigns)
        low, high = admissible(None, x, encoder, ends).limits.settable
        beyond = x[:, 2] > 3
        assert beyond.any()
        assert low[beyond, 2].isposinf().all() and high[beyond, 2].isneginf().all()


@pytest.mark.parametrize("acted", ["km", "tyres"])
def test_what_is_rounded_to_tens_is_so_in_answers(acted):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(5, 300, (600, 3)).round(1), columns=["km", "age", "tyres"])
    frame["age"] /= 20
    frame["yearly"] = (100 * frame["km"] / frame["age"]).round() * 10
    schema = Schema.infer(
        frame, definitions={"yearly": ["km", "age"]}, orders=[], immutable=["age"]
    )
    dear = DEAR(lambda rows: np.full(len(rows), 0.9), schema).fit(frame)
    after = dear.apply(frame.head(80), {acted: 77.0}).counterfactuals
    assert (after["yearly"] == (100 * after["km"] / after["age"]).round() * 10).all()


def test_a_factor_may_become_zero_and_leave_zero():
    frame = pd.DataFrame({"a": [0.0, 3.0], "b": [5.0, 7.0], "y": [0.0, 21.0]}).sample(
        200, replace=True, random_state=0
    )
    product = Relation("y", ("a", "b"), 0.0, (1.0, 1.0), log=True, high=0.0, error=1e-6)
    schema = replace(Schema.infer(frame, numeric=["a", "b", "y"]), relations=(product,))
    relations = Rules.of(Encoder(schema))
    x = np.array([[0.0, 5.0, 0.0], [3.0, 7.0, 21.0]])
    reached = np.array([[2.0, 5.0, 0.0], [0.0, 7.0, 21.0]])[:, None]
    free, required = x != x, np.ones((2, 1, 1), dtype=bool)
    free[:, 2] = True
    repaired = relations.repair(x, reached, free, 0.0 * x, 0.0 * x + 99.0, required)
    assert repaired[:, 0, 2].tolist() == [10.0, 0.0]


def test_what_a_row_becomes_depends_on_that_row_alone():
    """A band and three orders; candidates of 200 rows break other ones of them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.gamma(4, 9000, (200, 3)).round(), columns=["total", "part", "rest"])
    band = Relation("total", ("rest",), 0.363, (0.997,), log=True, low=-0.386, high=0.318)
    pairs = [("part", "total"), ("part", "rest"), ("rest", "total")]
    orders = tuple(Relation(upper, (lower,)) for lower, upper in pairs)
    schema = replace(Schema.infer(frame), relations=(band, *orders))
    relations = Rules.of(Encoder(schema))
    x = frame.to_numpy()
    reached = x[:, None] * rng.uniform(0.1, 2.0, (200, 5, 3)).round(1)
    free = rng.random((200, 3)) < 0.7
    given = x, reached, free, 0.0 * x, 0.0 * x + 1e6, np.ones((200, 1, 4), dtype=bool)

    def repaired(idx):
        return relations.repair(*(each[idx] for each in given))

    together = repaired(np.arange(200))
    assert not np.array_equal(together, reached)
    assert np.array_equal(together, repaired(np.arange(199, -1, -1))[::-1])
    assert np.array_equal(together, np.concatenate([repaired([i]) for i in range(200)]))


@pytest.mark.parametrize("acted", ["rent", "income", "share", "best", "gap"])
def test_an_answer_keeps_every_formula(acted):
    """A noisy one is off by as much as it was; the larger and the distance are exact."""
    rng = np.random.default_rng(0)
    income, other = rng.gamma(4, 1200, (2, N)).round()
    rent = (rng.uniform(0.15, 0.45, N) * (income + other)).round()
    share = (100 * rent / (income + other) + rng.uniform(-0.9, 0.9, N)).round(2)
    frame = pd.DataFrame({"income": income, "other": other, "rent": rent, "share": share})
    frame["best"], frame["gap"] = np.maximum(income, other), np.abs(income - other)

    def model(rows):
        return 1.0 / (1.0 + np.exp((rows["share"] - 28) / 3 - (rows["best"] - 5500) / 900))

    formulas = {"share": "rent / (income + other)", "best": "max(income, other)"}
    schema = Schema.infer(frame, definitions=formulas | {"gap": "abs(income - other)"})
    dear = DEAR(model, schema, act_on=[acted]).fit(frame)
    result = dear.generate(frame[model(frame) < 0.4].head(40))
    rows = result.counterfactuals[result.actions["success"]]
    assert len(rows) > 5 or acted == "gap"
    assert (rows["best"] == np.maximum(rows["income"], rows["other"])).all()
    assert (rows["gap"] == (rows["income"] - rows["other"]).abs()).all()
    before, after = (
        each["share"] - 100 * each["rent"] / (each["income"] + each["other"])
        for each in (frame.loc[rows.index], rows)
    )
    # Where it is not beyond the shares of the training rows.
    inside = rows["share"] - after + before < share.max()
    kept = (before.abs() <= schema.relations[0].high) & inside
    assert (after.abs()[kept] <= schema.relations[0].high + 0.01).all()
    assert ((after - before).abs()[kept] <= 0.02).all() or acted == "share"
