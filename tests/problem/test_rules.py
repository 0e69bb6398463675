"""Rules: orders and user-defined rules hold in answers where the factual satisfies them."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from dear_plugin import DEAR, Encoder, RecourseMethod, Rule, Schema
from dear_plugin.data.relations import Relation
from dear_plugin.errors import FileFormatError, SchemaError
from dear_plugin.problem.rules import Rules
from dear_plugin.results.proposal import Proposal
from dear_plugin.rivals import NearestAccepted


def doubled(frame):
    return frame["weeks"] == 4 * frame["months"]


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, np.ndarray]:
    """Paid is at most total, two columns are equal, and weeks are four times months."""
    rng, n = np.random.default_rng(0), 1000
    total = rng.gamma(3, 10, n).round(2)
    paid = (total * rng.beta(2, 2, n)).round(2)
    months, mood = rng.integers(1, 48, n), rng.normal(size=n)
    frame = pd.DataFrame({"total": total, "paid": paid, "months": months, "mood": mood})
    frame["twin"], frame["weeks"] = mood, 4 * months
    return frame, (paid - 0.3 * total + 5 * mood + rng.normal(0, 2, n) > 5).astype(int)


@pytest.fixture(scope="module")
def model(table):
    return LogisticRegression(max_iter=5000).fit(*table)


@pytest.fixture(scope="module")
def refused(table, model) -> pd.DataFrame:
    return table[0][model.predict(table[0]) == 0].head(120)


@pytest.fixture(scope="module")
def schema(table) -> Schema:
    return Schema.infer(table[0], rules=[doubled])


@pytest.mark.parametrize("kind", [DEAR, NearestAccepted])
def test_orders_and_rules_hold_in_every_answer(kind, table, model, refused, schema):
    result = kind(model, schema).fit(table[0]).generate(refused)
    counterfactuals = result.counterfactuals[result.actions["success"]]
    assert len(counterfactuals) > 80
    assert (counterfactuals["paid"] <= counterfactuals["total"]).all()
    assert (counterfactuals["mood"] == counterfactuals["twin"]).all()
    assert doubled(counterfactuals).all()


class Careless(RecourseMethod):
    """Proposes the greatest value of weeks alone, whatever the rules say."""

    def _learn(self, rows):
        pass

    def _propose(self, case):
        rows, (weeks,) = case.x.clone(), self.schema.index(["weeks"])
        rows[:, weeks] = self.encoder.high[weeks]
        return Proposal(rows, rows != case.x, rows.new_zeros(len(rows)), [""] * len(rows))


def test_a_proposal_that_violates_a_rule_is_no_success(table, schema):
    frame = table[0][table[0]["weeks"] < 100].head(5)

    def many_weeks(rows):
        return (rows["weeks"] > 150).to_numpy(float)

    actions = Careless(many_weeks, schema).fit(table[0]).generate(frame).actions
    assert (actions["score_after"] > 0.99).all()
    assert not actions["success"].any()
    assert actions["reason"].str.contains("doubled").all()


def test_a_rule_that_the_factual_violates_is_not_required(table, model, refused, schema):
    broken = refused.assign(paid=refused["total"] + 0.5).head(50)
    assert DEAR(model, schema).fit(table[0]).generate(broken).actions["success"].any()


def test_answers_satisfy_a_rule_that_few_values_satisfy(table, model, refused, schema):
    def paid_by_others(frame):
        return frame["paid"].isin(refused["paid"])

    strict = Schema.infer(table[0], rules=[paid_by_others])
    result = DEAR(model, strict, act_on=["paid"]).fit(table[0]).generate(refused.head(5))
    solved = result.counterfactuals.loc[result.actions["success"], "paid"]
    assert solved.isin(refused["paid"]).all()


def test_a_rule_returns_one_truth_value_a_row(table, model, refused):
    schema = Schema.infer(table[0], rules=[lambda frame: True])
    with pytest.raises(SchemaError, match="must return 5 truth values"):
        DEAR(model, schema).fit(table[0]).generate(refused.head(5))


def test_a_save_keeps_orders_and_loading_requires_the_rules(
    table, model, refused, schema, tmp_path
):
    dear = DEAR(model, schema).fit(table[0])
    dear.save(tmp_path / "saved")
    with pytest.raises(FileFormatError, match=r"1 rule.*rules="):
        DEAR.load(tmp_path / "saved", model)
    again = DEAR.load(tmp_path / "saved", model, rules=[doubled])
    pd.testing.assert_frame_equal(
        again.generate(refused.head(20)).counterfactuals,
        dear.generate(refused.head(20)).counterfactuals,
    )


@pytest.fixture(scope="module")
def circles() -> tuple[pd.DataFrame, LogisticRegression]:
    """An area that is nearly a function of the radius; both are zero in some rows."""
    rng, n = np.random.default_rng(1), 1200
    radius = rng.gamma(9, 2, n).round(2)
    frame = pd.DataFrame({"radius": radius, "area": 3.1 * radius**2 * rng.normal(1, 0.02, n)})
    frame["area"], frame["tone"] = frame["area"].round(1), rng.normal(size=n).round(2)
    frame.loc[:40, ["radius", "area"]] = 0.0
    score = -frame["area"] / 400 - frame["radius"] / 5 + 2 * frame["tone"] + 6
    label = (score + rng.normal(0, 1, n) > 0).astype(int).to_numpy()
    return frame, LogisticRegression(max_iter=5000).fit(frame, label)


@pytest.mark.parametrize("acted", ["radius", "area", ("radius", "tone")])
def test_a_number_stays_a_function_of_another(circles, acted):
    frame, model = circles
    schema = Schema.infer(frame)
    refused = frame[(model.predict(frame) == 0) & (frame["area"] > 0)].head(60)
    observed = (frame["area"] / frame["radius"] ** 2).dropna()

    def inside(schema):
        result = DEAR(model, schema, act_on=[acted]).fit(frame).generate(refused)
        solved = result.counterfactuals[result.actions["success"]]
        assert len(solved) > 40
        ratio = (solved["area"] / solved["radius"] ** 2).dropna()  # both may be zero
        return ratio.between(observed.min() * 0.95, observed.max() * 1.05)

    assert inside(schema).all()
    assert inside(dataclasses.replace(schema, relations=())).mean() < 0.9


def test_an_action_that_breaks_a_relation_says_so(circles):
    frame, model = circles
    dear = DEAR(model, Schema.infer(frame, immutable=["area"])).fit(frame)
    row = frame[frame["area"] > 500].head(1)
    for radius in (5.0, 0.0):
        result = dear.apply(row, {"radius": radius})
        assert not result.actions["success"].item()
        assert "the relation of" in result.actions["reason"].item()


def test_what_tiers_hold_is_not_moved_to_keep_an_order():
    rng, n = np.random.default_rng(0), 1500
    total = rng.gamma(3, 10, n).round(1)
    frame = pd.DataFrame({"total": total, "paid": (total * rng.random(n)).round(1)})
    model = lambda rows: (rows["paid"] / 60).clip(0, 1)  # noqa: E731
    schema = Schema.infer(frame, tiers=[["total"], ["paid"]])
    dear = DEAR(model, schema, act_on=["paid"]).fit(frame)
    row = frame[frame["paid"].between(1, 5)].head(5)
    result = dear.apply(row, {"paid": 90.0})
    assert (result.counterfactuals["total"] == row["total"]).all()
    assert not result.actions["success"].any()


def test_a_repair_that_breaks_an_order_is_followed_by_its_own():
    """Of a <= b <= c, b goes back below c, which is below the new a, and then up to a."""
    frame = pd.DataFrame({name: np.arange(40.0) for name in "abc"})
    orders = tuple(Relation(upper, (lower,)) for lower, upper in ("ab", "ac", "bc"))
    encoder = Encoder(dataclasses.replace(Schema.infer(frame), relations=orders))
    x, reached = np.array([[4.0, 5.0, 8.0], [7.0, 9.0, 8.0]])[:, None]
    free, required = np.array([[False, True, True]]), np.ones((1, 1, 3), dtype=bool)
    rules = Rules.of(encoder)
    repaired = rules.repair(x, reached[None], free, 0.0 * x, 0.0 * x + 39.0, required)
    assert repaired.flatten().tolist() == [7.0, 7.0, 8.0]


class Weeks(Rule):
    """Weeks are four times months."""

    members = ("weeks", "months")

    def holds(self, rows):
        return ~(rows["weeks"] != 4 * rows["months"])

    def repair(self, rows, before, member):
        return 4 * rows["months"] if member == "weeks" else rows["weeks"] / 4


@pytest.fixture(scope="module")
def by_weeks(table) -> DEAR:
    frame = table[0].drop(columns="twin")
    schema = Schema.infer(frame, rules=[Weeks()], definitions={}, orders=[])
    score = lambda rows: (rows["weeks"] / 200).clip(0, 1)  # noqa: E731
    return DEAR(score, schema, act_on=["months"]).fit(frame)


class TestARuleOfTheUser:
    """It sets what an action forces, as definitions do."""

    def test_every_answer_keeps_it(self, by_weeks, table):
        result = by_weeks.generate(table[0][table[0]["weeks"] < 80].head(30))
        assert result.actions["success"].all()
        assert doubled(result.counterfactuals).all()

    def test_what_it_sets_is_forced(self, by_weeks, table):
        row = table[0][table[0]["weeks"] == 80].head(1)
        changes = by_weeks.apply(row, {"months": 30}).changes
        assert dict(zip(changes["feature"], changes["kind"], strict=True)) == {
            "months": "direct",
            "weeks": "forced",
        }

    def test_one_that_the_factual_breaks_is_not_required(self, by_weeks, table):
        row = table[0].head(1).assign(weeks=7, months=3)
        assert by_weeks.apply(row, {"months": 30}).counterfactuals["months"].item() == 30

    def test_its_members_are_features(self, table):
        with pytest.raises(SchemaError, match="rules, Weeks: unknown features: 'weeks'"):
            Schema.infer(table[0][["months", "paid"]], rules=[Weeks()])
