"""Sums: what is tried on several features is predicted by addition."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Schema
from dear_plugin.search.problem import answered
from dear_plugin.search.sums import offered, sums
from dear_plugin.search.table import Table
from dear_plugin.search.values import admitted
from tests.search.handmade import A, B, D, factual, make_world

WEIGHT = torch.tensor([1.0, 0.5, 0.7, 0.0])
EVERY = np.arange(2)


def linear(rows):
    return rows @ WEIGHT.to(rows) - 1.5


@pytest.fixture
def table():
    """Actions on every single set at evenly spaced values."""
    factuals = pd.concat([factual(0.1, 0.1, 0.1), factual(0.3, 0.2, 0.4)]).reset_index(drop=True)
    problem = make_world(linear, factuals).problem
    limit = np.full(2, 1e-4, np.float32)
    table = Table(problem, lambda _: ({}, {}), aim=limit, enough=limit, discount=0.0)
    table.before = linear(problem.x).float().numpy()
    rows, sets = problem.may_act.nonzero()
    values = np.tile(np.arange(11) / 10.0, (len(rows), 1))[..., None]
    answered(problem.scores, table.trying(admitted(problem, rows, sets, values)[0]))
    return table


class TestPairs:
    def test_none_of_a_part_costs_more_and_gains_less_than_another(self, table):
        first, second = sums(table, EVERY, EVERY, 2)
        for at in (np.unique(first), np.unique(second)):
            for row in range(2):
                own = table.sorted(at[table.row[at] == row], table.cost[at[table.row[at] == row]])
                assert (np.diff(table.margin[own]) > 0).all()

    def test_predicted_margins_of_a_linear_model_are_exact(self, table):
        """The effects of a and d do not overlap in this world."""
        ask = offered(table, np.ones(2, dtype=bool), EVERY, 2)
        found = answered(table.problem.scores, ask)
        members, which = found.members(table)
        assert members == [(A, D)] and set(which.tolist()) == {0}
        values, row = found.values(table), table.row[found.first]
        single = table.problem.cells[row]
        single[:, A], single[:, D] = values[:, A], values[:, D]
        single[:, B] += single[:, A] - table.problem.cells[row, A]
        margin = linear(torch.from_numpy(single).clamp(0.0, 1.0)).numpy()
        gained = table.margin[found.first] + table.margin[found.second] - table.before[row]
        inside = (single <= 1.0).all(1)
        # Margins have 11 bits.
        assert gained[inside] == pytest.approx(margin[inside], abs=2e-3)
        # The most promising of each row is an answer.
        assert (margin[found.place == 0] >= -1e-3).all()

    def test_a_pair_that_is_dearer_than_an_answer_is_none(self, table):
        answer = table.cost.argmin(keepdims=True)
        table.met[answer], table.margin[answer] = np.inf, 1.0
        table.hits = np.concatenate([table.hits, answer])
        first, _ = sums(table, table.row[answer], EVERY, 2)
        assert not len(first)


def test_one_feature_is_added_to_what_was_tried(table):
    """The base is d, as if it were a pair; a is added."""
    table.size[1] = 2
    first, second = sums(table, EVERY, np.array([0]), 3)
    assert set(table.set[first].tolist()) == {1} and set(table.set[second].tolist()) == {0}
    assert set(table.row[first].tolist()) == {0, 1}
    assert np.array_equal(table.row[first], table.row[second])


def test_where_no_combination_promises_anything_few_sets_are_fitted():
    values = np.random.default_rng(0).normal(size=(400, 8))
    frame = pd.DataFrame(values, columns=list("abcdefgh"))
    dear = DEAR(lambda rows: np.full(len(rows), 0.1), Schema.infer(frame)).fit(frame)
    dear.generate(frame.head(1))
    assert Counter(len(acted) for acted, _ in dear.decoders._fitted) == {1: 8, 2: 2}


def test_a_set_is_fitted_if_an_action_on_it_is_expected_to_be_nearly_accepted():
    """Neither g nor h alone moves this model, so that no sum promises anything."""
    values = np.random.default_rng(0).normal(size=(400, 8)).round(2)
    frame = pd.DataFrame(values, columns=list("abcdefgh"))

    def model(rows):
        return 1.0 / (1.0 + np.exp(2.4 - 2.0 * rows[["g", "h"]].min(axis=1)))

    dear = DEAR(model, Schema.infer(frame)).fit(frame)
    result = dear.generate(frame[model(frame) < 0.5].iloc[[1]])
    assert result.actions["acted_on"].tolist() == ["g + h"]
