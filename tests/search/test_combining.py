"""Combining: what is tried on several features is predicted by addition."""

import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets
from dear_plugin.search.actions import Actions
from dear_plugin.search.combining import PARTS, Parts, one_more, pairs_of
from tests.search.handmade import A, B, D, factual, make_world

WEIGHT = torch.tensor([1.0, 0.5, 0.7, 0.0])


def linear(rows):
    return rows @ WEIGHT - 1.5


@pytest.fixture
def problem():
    factuals = pd.concat([factual(0.1, 0.1, 0.1), factual(0.3, 0.2, 0.4)]).reset_index(drop=True)
    return make_world(linear, factuals).problem


@pytest.fixture
def before(problem):
    return linear(problem.x)


def tried_of(problem, values=11):
    """Actions on every single set at evenly spaced values."""
    rows, sets = problem.actionable.nonzero(as_tuple=True)
    every = torch.linspace(0.0, 1.0, values)
    rows, sets = (each.repeat_interleave(values) for each in (rows, sets))
    wide = every.repeat(len(rows) // values)[:, None]
    cost, margin = problem.evaluate(rows, sets, wide)
    return Actions.of(rows, sets, wide, torch.stack([cost, margin, cost]))


class TestParts:
    def test_none_costs_more_and_gains_less_than_another(self, problem, before):
        parts = Parts.of(problem, tried_of(problem), before, PARTS)
        assert parts.cost.shape == (2, len(problem.sets), PARTS)
        for cost, gain in zip(parts.cost.flatten(0, 1), parts.gain.flatten(0, 1), strict=True):
            there = cost.isfinite()
            assert (cost[there].diff() >= 0).all() and (gain[there].diff() > 0).all()

    def test_the_largest_gain_is_among_them(self, problem, before):
        tried = tried_of(problem)
        parts = Parts.of(problem, tried, before, PARTS)
        for row in range(2):
            for which in range(len(problem.sets)):
                own = (tried.rows == row) & (tried.sets == which)
                margin = float(tried.margin[own].max())
                rounded = float(before[row]) + float(parts.gain[row, which].max())
                assert rounded == pytest.approx(margin, rel=1 / (1 << 11), abs=1e-6)

    def test_without_actions_there_are_none(self, problem, before):
        parts = Parts.of(problem, Actions.none(1), before, PARTS)
        assert parts.cost.isinf().all()


class TestPairs:
    def pairs(self, problem):
        return ActionSets.pairs(problem.classifier.encoder.schema, ["a", "d"])

    def test_predicted_margins_of_a_linear_model_are_exact(self, problem, before):
        """The effects of a and d do not overlap in this world."""
        parts = Parts.of(problem, tried_of(problem), before, PARTS)
        found = pairs_of(problem, parts, self.pairs(problem), -before + 1e-4)
        single = problem.x[found.rows].clone()
        single[:, A], single[:, D] = found.values.T
        single[:, B] += single[:, A] - problem.x[found.rows, A]
        assert (linear(single.clamp(0.0, 1.0)) >= -1e-3).float().mean() > 0.9
        assert found.sets.members == ((A, D),)

    def test_few_are_tried_of_each_pair(self, problem, before):
        parts = Parts.of(problem, tried_of(problem), before, PARTS)
        found = pairs_of(problem, parts, self.pairs(problem), -before)
        assert found.rows.bincount().max() <= 8

    def test_the_cheapest_that_are_expected_to_suffice_come_first(self, problem, before):
        parts = Parts.of(problem, tried_of(problem), before, PARTS)
        enough = pairs_of(problem, parts, self.pairs(problem), torch.zeros(2))
        much = pairs_of(problem, parts, self.pairs(problem), torch.full((2,), 1.2))
        first, second = (
            (each.values - problem.x[each.rows][:, [A, D]]).abs().sum(1).mean()
            for each in (enough, much)
        )
        assert first < second


def test_one_feature_is_added_to_what_was_tried(problem, before):
    tried = tried_of(problem)
    parts = Parts.of(problem, tried, before, PARTS)
    base = tried.part((tried.sets == 0) & (tried.values[:, 0] > 0.5))
    found = one_more(problem, parts, (problem.sets, base), before, -before)
    assert found.sets.members == ((A, D),)
    assert (found.values[:, 0] > 0.5).all()
    assert set(found.rows.tolist()) == {0, 1}
