"""Group search: several features together, for rows that no single one solves."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, ActionSets, Constraints, Encoder, Schema, Search, Target
from dear_plugin.decoders import Transport
from dear_plugin.methods.base import Case
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.constraints import feasible_set
from dear_plugin.search import Incumbents, group_search, line_search
from tests.fitted import fitted_optimizer
from tests.rule import Rule

BAR = 0.8


def both(x):
    """Accepts where a and b both exceed the bar."""
    return torch.minimum(x[:, 0], x[:, 1]) - BAR


def training_frame(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.random(n) * 100.0,
            "b": np.round(rng.random(n) * 10.0, 1),
            "c": rng.integers(0, 12, n),
            "town": rng.choice(list("ABCD"), n).astype(object),
            "owner": rng.integers(0, 2, n),
        }
    )


def problem_of(margin, schema, frame, factuals, act_on, within=None):
    encoder = Encoder(schema)
    classifier = Classifier(Rule(margin), encoder)
    sets = ActionSets.of(schema, act_on)
    optimizer = fitted_optimizer(
        encoder.rows(frame), sets, Transport(), classifier, Search().coarse
    )
    x = encoder.rows(factuals)
    feasible = feasible_set(within, x, encoder, encoder.units.resolutions(factuals))
    goal = Target.of_class(1).resolve(len(x), None)
    return optimizer.problem(Case(x, goal, feasible, 1e-4, torch.arange(len(x)))), optimizer.grids


def searched(problem, grids):
    incumbents = Incumbents.none(problem)
    group_search(problem, grids, Search(), incumbents)
    return incumbents


@pytest.fixture(scope="module")
def frame():
    return training_frame()


@pytest.fixture(scope="module")
def schema(frame):
    return Schema.infer(frame)


@pytest.fixture(scope="module")
def neither(frame):
    """Rows below the bar in both features."""
    return frame[(frame["a"] < 70) & (frame["b"] < 7)].iloc[:200]


@pytest.fixture(scope="module")
def pair(frame, schema, neither):
    """The problem of these rows, with the pair and each of its features as sets."""
    problem, grids = problem_of(both, schema, frame, neither, ["a", "b", ("a", "b")])
    return problem, grids, searched(problem, grids)


class TestConjunction:
    def test_no_single_feature_succeeds(self, pair):
        problem, grids, _ = pair
        incumbents = Incumbents.none(problem)
        line_search(problem, grids, Search(), incumbents)
        assert not incumbents.solved.any()

    def test_the_pair_solves_all_rows(self, pair):
        _, _, incumbents = pair
        assert incumbents.solved_pairs[:, 2].all()
        assert not incumbents.solved_pairs[:, :2].any()

    def test_neither_feature_changes_more_than_necessary(self, pair):
        _, _, incumbents = pair
        values = incumbents.values[:, 2, :2]
        assert (values >= BAR - 1e-6).all()
        # After four halvings a sixteenth of the change may be unnecessary.
        assert values.amax() <= BAR + 1 / 16
        assert values.median() <= BAR + 0.03

    def test_the_cost_is_that_of_a_fine_lattice(self, pair):
        problem, _, incumbents = pair
        few = torch.arange(40)
        axis = torch.linspace(0.0, 1.0, 101)
        lattice = torch.cartesian_prod(axis, axis).expand(len(few), -1, -1)
        evaluation = problem.evaluate(few, torch.full((len(few),), 2), lattice, 1e-4)
        best = torch.where(evaluation.valid, evaluation.cost, torch.inf).amin(1)
        assert float((incumbents.cost[few, 2] / best).median()) <= 1.05

    def test_incumbents_are_reproduced_by_an_evaluation(self, pair):
        problem, _, incumbents = pair
        rows, sets = incumbents.solved_pairs.nonzero(as_tuple=True)
        again = problem.evaluate(rows, sets, incumbents.values[rows, sets][:, None], 0.0)
        assert again.valid.all()
        torch.testing.assert_close(again.cost[:, 0], incumbents.cost[rows, sets])


def test_a_feature_that_is_not_needed_is_reset_unless_that_costs_more(frame, schema, neither):
    problem, grids = problem_of(lambda x: x[:, 0] - BAR, schema, frame, neither, [("a", "b")])
    incumbents = searched(problem, grids)
    assert incumbents.solved.all()
    kept = incumbents.values[:, 0, 1] == problem.x[:, 1]
    assert kept.float().mean() >= 0.6
    rows = (~kept).nonzero()[:, 0]
    back = torch.stack([incumbents.values[rows, 0, 0], problem.x[rows, 1]], 1)[:, None]
    evaluation = problem.evaluate(rows, torch.zeros_like(rows), back, 1e-4)
    assert (evaluation.cost[:, 0] >= incumbents.cost[rows, 0]).all()


def test_sets_of_two_and_of_three_features(frame, schema, neither):
    """A shorter set repeats its first feature, without effect."""

    def three(x):
        return torch.minimum(both(x), x[:, 2] - 0.5)

    low = neither[neither["c"] < 5]
    groups = [("a", "b"), ("c", "a", "b")]
    problem, grids = problem_of(three, schema, frame, low, groups)
    incumbents = searched(problem, grids)
    assert not incumbents.solved_pairs[:, 0].any()
    assert incumbents.solved_pairs[:, 1].float().mean() >= 0.95
    problem, grids = problem_of(both, schema, frame, neither, groups)
    incumbents = searched(problem, grids)
    assert incumbents.solved_pairs[:, 0].all()
    assert (incumbents.values[:, 0, 2] == incumbents.values[:, 0, 0]).all()


def test_a_category_and_a_number_together(frame, schema):
    encoder = Encoder(schema)
    town = encoder.starts[3]

    def moved_to_c(x):
        return torch.minimum(x[:, 0] - BAR, x[:, town + 2] - 0.5)

    factuals = frame[(frame["a"] < 70) & (frame["town"] != "C")].iloc[:200]
    problem, grids = problem_of(moved_to_c, schema, frame, factuals, [("town", "a")])
    incumbents = searched(problem, grids)
    assert incumbents.solved.all()
    # The values of a set are in the order of the schema.
    assert incumbents.values[:, 0, 1].unique().tolist() == [2.0]
    assert incumbents.values[:, 0, 0].median() <= BAR + 0.05


class TestConstraints:
    def test_directions_ranges_and_levels_hold_where_violating_them_is_nearer(self, frame):
        schema = Schema.infer(frame, increasing=["a"], decreasing=["b"])
        encoder = Encoder(schema)
        town = encoder.starts[3]

        def far(x):
            """Accepts in the four corners of (a, b), and not in town D."""
            corner = torch.minimum((x[:, 0] - 0.5).abs(), (x[:, 1] - 0.5).abs()) - 0.3
            return torch.minimum(corner, 0.5 - x[:, town + 3])

        middle = frame[frame["a"].between(30, 70) & frame["b"].between(3, 7)].iloc[:200]
        within = Constraints(ranges={"a": (0.0, 90.0)}, categories={"town": ["A", "D"]})
        groups = [("a", "b"), ("a", "b", "town")]
        problem, grids = problem_of(far, schema, frame, middle, groups, within)
        incumbents = searched(problem, grids)
        is_in_d = (middle["town"] == "D").to_numpy()
        assert incumbents.solved_pairs[:, 0].tolist() == (~is_in_d).tolist()
        assert incumbents.solved.float().mean() >= 0.95
        rows, sets = incumbents.solved_pairs.nonzero(as_tuple=True)
        a, b = incumbents.values[rows, sets, 0], incumbents.values[rows, sets, 1]
        assert (a >= problem.x[rows, 0]).all()
        assert (b <= problem.x[rows, 1]).all()
        assert (a <= float(encoder.rows(middle.assign(a=90.0))[0, 0]) + 1e-6).all()
        moved = incumbents.values[incumbents.solved_pairs[:, 1] & torch.tensor(is_in_d), 1, 2]
        assert moved.unique().tolist() == [0.0]

    def test_decimals_are_kept(self, pair):
        _, _, incumbents = pair
        user = incumbents.values[:, 2, 1] * 10.0
        torch.testing.assert_close(user, (user * 10).round() / 10, atol=1e-4, rtol=0.0)

    def test_a_group_with_a_frozen_feature_is_not_evaluated(self, frame, schema, neither):
        within = Constraints(frozen=["b"])
        incumbents = searched(*problem_of(both, schema, frame, neither, [("a", "b")], within))
        assert not incumbents.solved.any()
        assert (incumbents.tried_set == -1).all()


class TestUnsolvedRows:
    @pytest.fixture
    def dear(self, frame, schema, request):
        search = Search.cheapest(groups=request.param)
        return DEAR(Rule(both), schema, act_on=["a", "b", "c"], search=search).fit(frame)

    @pytest.mark.parametrize("dear", [True], indirect=True)
    def test_pairs_are_tried(self, dear, neither):
        recourses = dear.generate(neither)
        assert recourses.actions["success"].all()
        assert set(recourses.actions["acted_on"]) == {"a + b"}
        after = recourses.counterfactuals
        assert (after["a"] > 79).all()
        assert (after["b"] >= 8).all()

    @pytest.mark.parametrize("dear", [False], indirect=True)
    def test_without_pairs_the_reason_names_the_closest_feature(self, dear, neither):
        actions = dear.generate(neither).actions
        assert not actions["success"].any()
        tried = "no change of a single one of the 3 actionable features was found"
        assert actions["reason"].str.startswith(tried).all()
        assert actions["reason"].str.contains("acting on [abc] comes closest").all()

    @pytest.mark.parametrize("dear", [True], indirect=True)
    def test_pairs_are_only_for_rows_that_no_single_feature_solves(self, dear, frame):
        half = frame[(frame["a"] > 85) & (frame["b"] < 7)].iloc[:50]
        assert set(dear.generate(half).actions["acted_on"]) == {"b"}

    @pytest.mark.parametrize("dear", [True], indirect=True)
    def test_pairs_leave_frozen_features(self, dear, neither):
        actions = dear.generate(neither, within=Constraints(frozen=["b"])).actions
        assert not actions["success"].any()
        assert not actions["acted_on"].str.contains("b").any()

    @pytest.mark.parametrize("dear", [True], indirect=True)
    def test_rows_that_pairs_do_not_solve_fail(self, frame, schema, dear):
        def never(x):
            return x[:, 0] * 0.0 - 1.0

        actions = dear.with_model(Rule(never)).generate(frame.iloc[:20]).actions
        assert not actions["success"].any()
        assert actions["reason"].str.len().gt(0).all()
