"""Grow: what is tried on several features is predicted by addition."""

import pandas as pd
import pytest
import torch

from dear_plugin.search.grow import OTHERS, PARTS, PLACES, Parts, grow
from dear_plugin.search.table import SearchTable
from dear_plugin.search.values import candidates
from tests.rounding import near
from tests.search.handmade import A, B, D, factual, make_world

WEIGHT = torch.tensor([1.0, 0.5, 0.7, 0.0])
EVERY = torch.arange(2)


def linear(rows):
    return rows @ WEIGHT.to(rows) - 1.5


def table_of(problem, least=1e-4):
    limit = torch.full((len(problem),), least)
    return SearchTable(problem, lambda _: ({}, {}), limit, limit, 0.0)


@pytest.fixture
def table():
    """Actions on every single set at evenly spaced values."""
    factuals = pd.concat([factual(0.1, 0.1, 0.1), factual(0.3, 0.2, 0.4)]).reset_index(drop=True)
    problem = make_world(linear, factuals).problem
    table = table_of(problem)
    rows, sets = problem.actionable.nonzero(as_tuple=True)
    values = (torch.arange(11).double() / 10.0).expand(len(rows), -1)[..., None]
    table.add(candidates(problem, rows, sets, values))
    return table


def grown(table, *, below=torch.inf, places=PLACES):
    features = torch.arange(len(table.problem.sets))
    return grow(table, EVERY, 2, features, torch.full((2,), below), places)[0]


class TestParts:
    def parts(self, table):
        before = linear(table.problem.x)
        return before, Parts.of(table, EVERY, torch.arange(len(table.problem.sets)), before)

    def test_none_costs_more_and_gains_less_than_another(self, table):
        _, parts = self.parts(table)
        assert parts.cost.shape == (2, 2, PARTS)
        for cost, gain in zip(parts.cost.flatten(0, 1), parts.gain.flatten(0, 1), strict=True):
            there = cost.isfinite()
            assert (cost[there].diff() >= 0).all() and (gain[there].diff() > 0).all()

    def test_the_largest_gain_is_among_them(self, table):
        before, parts = self.parts(table)
        for row in range(2):
            for which in range(2):
                own = (table.tried.rows == row) & (table.tried.sets == which)
                margin = float(table.tried.margin[own].max())
                found = float(before[row] + parts.gain[row, which].max())
                assert found == near(margin)


class TestPairs:
    def test_predicted_margins_of_a_linear_model_are_exact(self, table):
        """The effects of a and d do not overlap in this world."""
        found = grown(table)
        problem = table.problem
        assert problem.sets.members[-1] == (A, D) and set(found.sets.tolist()) == {2}
        single = problem.x[found.rows].clone()
        single[:, A], single[:, D] = found.values.T
        single[:, B] += single[:, A] - problem.x[found.rows, A]
        cheapest = torch.tensor([(found.rows == row).nonzero()[0, 0] for row in range(2)])
        assert (linear(single[cheapest].clamp(0.0, 1.0)) >= -1e-3).all()

    def test_few_are_tried_of_each_pair_and_the_others_later(self, table):
        first, later = grown(table), grown(table, places=OTHERS)
        assert first.rows.bincount().max() <= len(PLACES)
        assert len(later) > len(first)
        both = torch.cat([torch.cat([e.rows[:, None], e.values], 1) for e in (first, later)])
        assert len(both.unique(dim=0)) == len(both)

    def test_a_pair_that_is_dearer_than_an_answer_is_none(self, table):
        assert not len(grown(table, below=0.01))


def test_one_feature_is_added_to_what_was_tried(table):
    """The base is d, as if it were a pair; a is added."""
    table.size[1] = 2
    before = table.tried.part(table.tried.sets == 1).values.unique()
    found = grow(table, EVERY, 3, torch.tensor([0]), torch.full((2,), torch.inf), PLACES)[0]
    assert {table.problem.sets.members[i] for i in found.sets.tolist()} == {(A, D)}
    assert torch.isin(found.values[:, 1], before).all()
    assert set(found.rows.tolist()) == {0, 1}
