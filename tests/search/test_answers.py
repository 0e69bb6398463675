"""Answers: the cheapest action that meets the criteria, and nothing is evaluated twice."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Schema, Search
from dear_plugin.search import SearchRun
from dear_plugin.search.criteria import Criterion
from dear_plugin.search.problem import arrays, direct_cost, evaluate, tensors
from dear_plugin.search.table import best
from dear_plugin.search.values import FeatureValues, admitted, singles
from tests.search.handmade import A, D, factual, make_world

AIM = 1e-4


def raised(rows, least=0.6):
    """The margin of a model that wants d to be large, or a and b together."""
    return torch.maximum(rows[:, D], (rows[:, A] + rows[:, 1]) / 2.0) - least


@pytest.fixture
def world():
    factuals = pd.concat([factual(a, 0.1, d) for a, d in ((0.1, 0.1), (0.3, 0.5), (0.55, 0.2))])
    return make_world(raised, factuals.reset_index(drop=True))


def run_of(problem, wanted=None):
    """A search on single features."""
    accepted = np.full(len(problem), AIM, np.float32)
    search = Search.cheapest(max_features=1)
    run = SearchRun(problem, search, None, accepted, accepted)
    run.table.wanted = wanted or {}
    return run


def searched(problem, *, wanted=None, k=1):
    """The table of a search for k answers on single features."""
    run = run_of(problem, wanted)
    run.ranked(k)
    return run.table


def cheapest(table):
    """(n,) the least price of the answers; infinite without one."""
    return table.bound(1, table.passed)


def at_least(number, share):
    """A criterion: a value of a feature of the counterfactual."""
    return Criterion(lambda found: (found.reached[:, number], 0.0, {}), torch.full((3,), share))


class TestCheapest:
    def test_it_is_that_of_an_exhaustive_scan(self, world):
        problem = world.problem
        rows, sets = problem.may_act.nonzero()
        dense = np.tile(np.linspace(0.0, 1.0, 2001), (len(rows), 1))[..., None]
        row, sets, values = tensors(*admitted(problem, rows, sets, dense)[0])
        cost, margin = evaluate(problem, row, sets, values)
        expected = torch.full((3,), torch.inf).scatter_reduce(
            0, row, torch.where(margin >= AIM, cost, torch.inf), "amin"
        )
        assert cheapest(searched(problem)) == pytest.approx(expected.numpy(), abs=2e-3)

    def test_values_that_must_be_dearer_are_not_tried(self, world):
        known = FeatureValues.of(world.problem.decoders.sample)
        row, *_ = singles(world.problem, known)[0]
        table = searched(world.problem)
        single = table.problem.single[table.set]
        assert 0 < int(single.sum()) < len(row)

    def test_values_of_one_feature_have_a_cost_where_sets_have_several(self, world):
        table = searched(world.problem)
        table.sets_of([(0, 1)], 2)
        pairs = table.row, table.set, table.wide(table.values)
        cost = direct_cost(table.problem, *pairs)
        table.sets_of([(0, 1, 2)], 3)
        assert table.problem.sets.positions.shape[1] == 3 > pairs[2].shape[1]
        assert np.array_equal(direct_cost(table.problem, *pairs), cost)

    def test_no_action_is_tried_twice(self, world):
        table = searched(world.problem)
        keys = np.column_stack([table.row, table.set, table.values])
        assert len(np.unique(keys, axis=0)) >= 0.9 * len(keys)

    def test_what_follows_counts_as_much_as_is_asked(self, world):
        """At 0 the costs are those of the action."""
        problem = world.problem
        rows, sets = torch.zeros(2, dtype=torch.int64), torch.tensor([A, 1])
        values = torch.tensor([[0.6], [0.6]]).double()
        direct = torch.from_numpy(direct_cost(problem, *arrays(rows, sets, values)))
        whole = evaluate(problem, rows, sets, values)[0]
        for weight in (0.0, 0.5, 1.0):
            cost = evaluate(replace(problem, indirect_weight=weight), rows, sets, values)[0]
            torch.testing.assert_close(cost, direct + weight * (whole - direct))
        assert (whole > direct + 0.1).any()


class TestCriteria:
    def test_a_rejected_action_makes_others_eligible(self, world):
        """Farther values are tried once the cheapest is rejected."""
        run = run_of(world.problem, {"plausibility": at_least(D, 0.9)})
        (at,), table = run.ranked(), run.table
        assert table.row[at].tolist() == [0, 1, 2] and (table.set[at] == 1).all()
        # Looked at more closely between the rejected action before it and the answer.
        assert table.values[at, 0].tolist() == pytest.approx([0.9] * 3, abs=0.02)

    def test_each_action_is_evaluated_once(self, world):
        calls = []

        def counted(actions):
            parts = (actions.rows, actions.sets, actions.values[:, 0])
            calls.extend(zip(*(part.tolist() for part in parts), strict=True))
            return actions.reached[:, D], 0.0, {}

        searched(world.problem, wanted={"plausibility": Criterion(counted, torch.full((3,), 0.9))})
        assert len(calls) == len(set(calls)) > 3

    def test_only_missing_confidence_asks_for_a_larger_margin(self, world):
        def short(actions):
            return actions.reached[:, D], 0.1, {}

        wanted = {"confidence": Criterion(short, torch.full((3,), 0.8))}
        table = searched(world.problem, wanted=wanted)
        assert (table.need.max(1) > AIM).all()
        assert table.has(table.passed).all()

    def test_where_none_passes_the_row_has_a_score(self, world):
        wanted = {"plausibility": at_least(D, 1.05), "support": at_least(D, 0.0)}
        table = searched(world.problem, wanted=wanted)
        assert not len(table.passed)
        assert (table.met.max() < 1.0) and (table.met >= 0.0).sum() > 3
        assert len(best(table, 1)) == 3


class TestContinued:
    """Further answers are sought in the table of the first."""

    def test_what_one_answer_needs_is_what_several_need_first(self, world):
        one, two = searched(world.problem), searched(world.problem, k=2)
        assert len(two) > len(one)
        assert np.array_equal(two.values[: len(one)], one.values)

    def test_one_answer_then_several_are_those_of_several_at_once(self, world):
        run = run_of(world.problem)
        run.ranked(1)
        later, at_once = run.ranked(2), run_of(world.problem).ranked(2)
        assert all(map(np.array_equal, later, at_once))


def test_pairs_are_fitted_only_where_they_are_tried():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((600, 3)).round(3), columns=["a", "b", "c"])

    def model(rows):
        return 1.0 / (1.0 + np.exp(-8.0 * (rows["a"] + rows["b"] - 1.9)))

    dear = DEAR(model, Schema.infer(frame), search=Search.cheapest()).fit(frame)
    singles = len(dear.decoders._fitted)
    dear.generate(frame[(frame["a"] > 0.95) & (frame["b"] < 0.9)].head(3))
    assert len(dear.decoders._fitted) == singles
    found = dear.generate(frame[(frame["a"] < 0.5) & (frame["b"] < 0.5)].head(3))
    assert (found.actions["acted_on"] == "a + b").all()
    assert len(dear.decoders._fitted) > singles


@pytest.mark.parametrize("name", ["table", "search", "sums"])
def test_what_a_search_knows_is_in_arrays(name):
    """Tensors are rows that are decoded and scored: what torch does for a sum takes longer."""
    assert "torch" not in vars(import_module(f"dear_plugin.search.{name}"))
