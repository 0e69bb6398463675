"""Costs: what a unit of a feature costs a person, stated in the schema or in a call."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dear_plugin import DEAR, Constraints, Schema, Search, compare
from dear_plugin.datasets import load_loan
from dear_plugin.errors import ConstraintError, SchemaError
from dear_plugin.rivals import NearestAccepted
from dear_plugin.search import SearchProblem
from dear_plugin.search.problem import direct_cost, evaluate, tensors

ACT_ON = ["loan_amount", "duration", "savings", "income"]
# The share by which a search leaves a dearer answer as it is.
GAIN = 0.002

DATA = load_loan(2_000)
TRAIN, TEST = DATA.split()


def schema(**options) -> Schema:
    return Schema.infer(
        TRAIN, "approved", immutable=["gender"], increasing=["age", "education"], **options
    )


NAMES = list(schema().names)
COLUMNS = make_column_transformer((OneHotEncoder(), ["gender"]), remainder=StandardScaler())
MODEL = make_pipeline(COLUMNS, LogisticRegression()).fit(TRAIN[NAMES], TRAIN["approved"])
REFUSED = TEST[MODEL.predict(TEST[NAMES]) == 0].head(80)


def fitted(search: Search, **options) -> DEAR:
    return DEAR(MODEL, schema(**options), act_on=ACT_ON, search=search).fit(TRAIN)


@pytest.fixture(scope="module")
def cheapest() -> DEAR:
    return fitted(Search.cheapest())


@pytest.fixture(scope="module")
def default() -> DEAR:
    return fitted(Search())


@pytest.fixture(params=["cheapest", "default"])
def dear(request) -> DEAR:
    return request.getfixturevalue(request.param)


def same(left, right) -> None:
    pd.testing.assert_frame_equal(left.counterfactuals, right.counterfactuals)
    pd.testing.assert_frame_equal(left.actions, right.actions)


def paid(recourses, costs) -> np.ndarray:
    """(n,) what answers cost where a unit of features costs `costs`, discounted as compared."""
    encoder, search = recourses.encoder, recourses.question.search
    units = torch.tensor([costs.get(name, 1.0) for name in encoder.schema.names])
    moved = encoder.distance(recourses.proposal.rows, recourses.x)
    cost = (moved * torch.where(recourses.proposal.direct, units, 1.0)).sum(1).numpy()
    alone = recourses.actions["reliance"].to_numpy() == 0.0
    return cost / np.where(alone, 1.0 + search.prefer_alone, 1.0)


class TestWhatIsStated:
    def test_costs_of_one_are_none(self, dear):
        ones = Constraints(costs=dict.fromkeys(NAMES, 1))
        same(dear.generate(REFUSED, within=ones), dear.generate(REFUSED))

    def test_a_schema_and_a_call_say_the_same(self, dear):
        costs = {"savings": 3, "duration": 0.5}
        by_call = dear.generate(REFUSED, within=Constraints(costs=costs))
        same(fitted(dear.search, costs=costs).generate(REFUSED), by_call)

    def test_a_call_replaces_the_cost_of_the_features_that_it_names(self, dear):
        stated = fitted(dear.search, costs={"savings": 3, "duration": 2})
        within = Constraints(costs={"savings": 1})
        expected = dear.generate(REFUSED, within=Constraints(costs={"duration": 2}))
        same(stated.generate(REFUSED, within=within), expected)

    @pytest.mark.parametrize("form", ["mappings", "array", "Series"])
    def test_costs_of_each_row_are_a_call_for_each(self, dear, form):
        rows, costs = REFUSED.head(6), [1.0, 4.0, 0.5, 2.0, 1.0, 3.0]
        within = {
            "mappings": [{"savings": cost} for cost in costs],
            "array": {"savings": np.array(costs)},
            "Series": {"savings": pd.Series(costs, rows.index)[::-1]},
        }[form]
        found = dear.generate(rows, within=Constraints(costs=within))
        for i, cost in enumerate(costs):
            one = dear.generate(rows.iloc[[i]], within=Constraints(costs={"savings": cost}))
            pd.testing.assert_frame_equal(one.counterfactuals, found.counterfactuals.iloc[[i]])
            assert one.actions["cost"].iloc[0] == found.actions["cost"].iloc[i]

    def test_a_save_keeps_them(self, dear, tmp_path):
        stated = fitted(dear.search, costs={"savings": 3})
        assert Schema.from_dict(stated.schema.to_dict()) == stated.schema
        stated.save(tmp_path)
        same(DEAR.load(tmp_path, MODEL).generate(REFUSED), stated.generate(REFUSED))

    def test_the_schema_shows_those_that_are_not_one(self):
        stated = schema(costs={"savings": 3, "duration": 0.5})
        assert "costs: duration 0.5, savings 3" in repr(stated)
        assert "costs" not in repr(schema())

    def test_one_column_of_a_group_stands_for_all(self):
        frame = pd.DataFrame({"amount": range(30)})
        frame = frame.join(pd.get_dummies(frame["amount"] % 3, prefix="job", dtype=int))
        by_column, plain = Schema.infer(frame, costs={"job_1": 4}), Schema.infer(frame)
        assert [f.cost for f in by_column] == [1.0, 4.0]
        nearest = NearestAccepted(lambda f: f["job_2"] * 1.0, plain).fit(frame)
        rows = frame[frame["job_2"] == 0].head(4)
        for name in ("job", "job_0"):
            found = nearest.generate(rows, within=Constraints(costs={name: 4}))
            moved = nearest.generate(rows).actions["direct_cost"]
            number = (found.counterfactuals["amount"] - rows["amount"]).abs() / 29
            assert (found.actions["direct_cost"] - moved).to_numpy() == pytest.approx(3.0)
            assert moved.to_numpy() == pytest.approx(1.0 + number.to_numpy())


class TestWhatItDoes:
    """A law: with a feature's cost doubled, an answer is as cheap as the old one would be."""

    @pytest.mark.parametrize("name", ACT_ON)
    def test_no_answer_of_the_cheapest_search_costs_more_than_the_old_one(self, cheapest, name):
        costs = {name: 2.0}
        old, new = (cheapest.generate(REFUSED, within=Constraints(costs=c)) for c in ({}, costs))
        assert new.success.tolist() == old.success.tolist()
        assert (paid(new, costs) <= paid(old, costs) * (1.0 + 1e-6)).all()

    @pytest.mark.parametrize("name", ACT_ON)
    def test_hardly_an_answer_of_the_default_search_does(self, default, name):
        costs = {name: 2.0}
        old, new = (default.generate(REFUSED, within=Constraints(costs=c)) for c in ({}, costs))
        both = (old.actions["credible"] & new.actions["credible"]).to_numpy()
        assert both.mean() > 0.8
        ratio = (paid(new, costs) / paid(old, costs))[both]
        assert (ratio <= 1.0 + GAIN).mean() >= 0.95
        assert np.mean(ratio) <= 1.0

    def test_a_costly_feature_is_acted_on_less_often(self, dear):
        counts = [
            dear.generate(REFUSED, within=Constraints(costs={"savings": cost}))
            .actions["acted_on"]
            .str.contains("savings")
            .sum()
            for cost in (0.5, 1.0, 2.0, 8.0)
        ]
        assert counts == sorted(counts, reverse=True)
        assert counts[0] > 2 * counts[-1]

    def test_no_cost_is_below_the_direct_one(self, dear):
        costs = [{"savings": 3.0, "income": 0.2}, {"loan_amount": 7.0}] * 5
        within = Constraints(costs=costs)
        question = dear.generate(REFUSED.head(10), within=within).question
        problem = SearchProblem.of(question.case, dear.sets, dear.trained)
        rows = np.arange(10).repeat(len(ACT_ON))
        sets = np.tile(np.arange(len(ACT_ON)), 10)
        values = problem.own(rows, sets) * np.linspace(0.8, 1.2, 40)[:, None]
        values = problem.snapped(rows, sets, values[:, None])
        bound = direct_cost(problem, rows, sets, values[:, 0])
        cost = evaluate(problem, *tensors(rows, sets, values[:, 0]))[0].numpy()
        assert isinstance(question.case.feasible.limits.costs, torch.Tensor)
        assert (bound > 0.0).sum() > 20
        assert (bound <= cost * (1.0 + 1e-6)).all()

    def test_alternatives_are_in_the_order_of_cost(self, cheapest):
        found = cheapest.generate(REFUSED, within=Constraints(costs={"savings": 5}), k=3)
        first, second = (found.actions[found.rank == rank] for rank in (0, 1))
        both = second.index.intersection(first.index[first["success"]])
        assert len(both) > 20
        assert (first["cost"][both] <= second["cost"][both] + 1e-6).all()


class TestOfOtherMethods:
    def test_every_method_reports_them(self):
        nearest = NearestAccepted(MODEL, schema()).fit(TRAIN)
        plain, costs = nearest.generate(REFUSED), dict.fromkeys(NAMES, 2.0)
        double = nearest.generate(REFUSED, within=Constraints(costs=costs))
        twice = 2.0 * plain.actions[["direct_cost", "cost"]]
        pd.testing.assert_frame_equal(double.actions[["direct_cost", "cost"]], twice)

    def test_a_comparison_uses_those_of_the_call(self, cheapest):
        nearest = NearestAccepted(MODEL, schema()).fit(TRAIN)
        methods = {"DEAR": cheapest, "nearest": nearest}
        plain = compare(methods, REFUSED, progress=False).summary["effort"]
        within = Constraints(costs=dict.fromkeys(NAMES, 2.0))
        double = compare(methods, REFUSED, within=within, progress=False).summary["effort"]
        assert double["nearest"] == pytest.approx(2.0 * plain["nearest"])
        assert plain["DEAR"] < double["DEAR"] <= 2.0 * plain["DEAR"] * (1.0 + 1e-6)

    def test_methods_of_other_costs_are_not_compared(self):
        methods = {
            "one": NearestAccepted(MODEL, schema()).fit(TRAIN),
            "other": NearestAccepted(MODEL, schema(costs={"savings": 2})).fit(TRAIN),
        }
        with pytest.raises(
            SchemaError, match=r"the change that costs 1 .*'savings'.*same central= and costs="
        ):
            compare(methods, REFUSED, progress=False)


WRONG = {"zero": 0, "negative": -1.0, "NaN": np.nan, "infinite": np.inf, "text": "3", "bool": True}


@pytest.mark.parametrize("cost", WRONG.values(), ids=WRONG)
def test_a_cost_is_a_finite_number_above_0(dear, cost):
    with pytest.raises(SchemaError, match=r"'savings': cost must be a finite number above 0"):
        schema(costs={"savings": cost})
    with pytest.raises(ConstraintError, match=r"costs\['savings'\] must be a finite number"):
        dear.generate(REFUSED, within=Constraints(costs={"savings": cost}))


def test_names_are_those_of_features_and_values_those_of_rows(dear):
    for name in ("saving", "approved"):
        with pytest.raises(SchemaError, match=f"costs: unknown features: '{name}'"):
            schema(costs={name: 2})
        with pytest.raises(ConstraintError, match=f"costs: unknown features: '{name}'"):
            dear.generate(REFUSED, within=Constraints(costs={name: 2}))
    with pytest.raises(SchemaError, match=r"costs must be \{feature: ...\}"):
        schema(costs=[2])
    with pytest.raises(ConstraintError, match="a number for all rows, or a list of 80"):
        dear.generate(REFUSED, within=Constraints(costs={"savings": [1, 2]}))
    groups = pd.DataFrame(np.eye(3, dtype=int).repeat(10, 0), columns=["j_a", "j_b", "j_c"])
    with pytest.raises(SchemaError, match=r"have one cost together, got \[2.0, 3.0\]"):
        Schema.infer(groups, costs={"j_a": 2, "j_b": 3})


@pytest.mark.parametrize("c", [1e-8, 3e-5, 7.7, 1e4, 1e8])
@pytest.mark.parametrize("stated", ["of features", "of a call"])
def test_the_unit_of_costs_decides_nothing(dear, c, stated):
    """Costs and margins shared one axis: from 1e7 on, half of the answers were others."""
    costs = dict(zip(ACT_ON, (0.3, 2.0, 7.0, 1.1), strict=True))
    scaled = {name: c * cost for name, cost in costs.items()}
    if stated == "of features":
        one, other = (fitted(dear.search, costs=each) for each in (costs, scaled))
        before, after = one.generate(REFUSED[:20]), other.generate(REFUSED[:20])
    else:
        before, after = (
            dear.generate(REFUSED[:20], within=Constraints(costs=each)) for each in (costs, scaled)
        )
    pd.testing.assert_frame_equal(before.counterfactuals, after.counterfactuals)
    cost = before.actions["direct_cost"].to_numpy() * c
    np.testing.assert_allclose(after.actions["direct_cost"].to_numpy(), cost, rtol=1e-6)
