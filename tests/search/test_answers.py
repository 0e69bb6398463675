"""Answers: the cheapest action that meets the criteria, and nothing is evaluated twice."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Schema, Search
from dear_plugin.search import FeatureValues, SearchRun
from dear_plugin.search.criteria import Criterion
from dear_plugin.search.ranks import best
from dear_plugin.search.values import candidates
from tests.search.handmade import A, D, factual, make_world, training_frame

AIM = 1e-4


def raised(rows, least=0.6):
    """The margin of a model that wants d to be large, or a and b together."""
    return torch.maximum(rows[:, D], (rows[:, A] + rows[:, 1]) / 2.0) - least


@pytest.fixture
def world():
    factuals = pd.concat([factual(a, 0.1, d) for a, d in ((0.1, 0.1), (0.3, 0.5), (0.55, 0.2))])
    return make_world(raised, factuals.reset_index(drop=True))


def searched(problem, *, wanted=None, k=1):
    """The table of a search for k answers on single features."""
    encoder = problem.classifier.encoder
    known = FeatureValues.of(encoder.rows(training_frame()), encoder)
    accepted = torch.full((len(problem),), AIM)
    search = Search.cheapest(max_features=1)
    answers = SearchRun(problem, search, None, known, accepted, accepted)
    answers.table.wanted = wanted or {}
    answers.ranked(k)
    return answers.table


def cheapest(table):
    """(n,) the least price of the answers; infinite without one."""
    return table.bound(1, table.passed)


def at_least(number, share):
    """A criterion: a value of a feature of the counterfactual."""
    return Criterion(lambda actions: (actions.reached[:, number], 0.0), torch.full((3,), share))


class TestCheapest:
    def test_it_is_that_of_an_exhaustive_scan(self, world):
        problem = world.problem
        rows, sets = problem.actionable.nonzero(as_tuple=True)
        dense = torch.linspace(0.0, 1.0, 2001).expand(len(rows), -1)[..., None]
        new = candidates(problem, rows, sets, dense)
        cost, margin = problem.evaluate(new.rows, new.sets, new.values)
        expected = torch.full((3,), torch.inf).scatter_reduce(
            0, new.rows, torch.where(margin >= AIM, cost, torch.inf), "amin"
        )
        torch.testing.assert_close(cheapest(searched(problem)), expected, atol=2e-3, rtol=0.0)

    def test_dear_candidates_are_not_evaluated(self, world):
        table = searched(world.problem)
        some = table.tried.part(table.tried.cost > 1.5 * cheapest(table)[table.tried.rows])
        assert len(some) < len(table.tried) / 2

    def test_no_action_is_tried_twice(self, world):
        tried = searched(world.problem).tried
        keys = torch.cat([tried.rows[:, None], tried.sets[:, None], tried.values], 1)
        assert len(keys.unique(dim=0)) >= 0.9 * len(keys)

    def test_what_follows_counts_as_much_as_is_asked(self, world):
        """At 0 the costs are those of the action."""
        problem = world.problem
        rows, sets = torch.zeros(2, dtype=torch.int64), torch.tensor([A, 1])
        values = torch.tensor([[0.6], [0.6]])
        direct = problem.direct_cost(rows, sets, values[:, None])[:, 0]
        whole = problem.evaluate(rows, sets, values)[0]
        for weight in (0.0, 0.5, 1.0):
            cost = replace(problem, indirect_weight=weight).evaluate(rows, sets, values)[0]
            torch.testing.assert_close(cost, direct + weight * (whole - direct))
        assert (whole > direct + 0.1).any()


class TestCriteria:
    def test_a_rejected_action_makes_others_eligible(self, world):
        """Farther values are tried once the cheapest is rejected."""
        table = searched(world.problem, wanted={"plausibility": at_least(D, 0.9)})
        best = table.tried.part(table.cheapest(table.passed))
        assert best.rows.tolist() == [0, 1, 2] and (best.sets == 1).all()
        # Looked at more closely between the rejected action before it and the answer.
        assert best.values[:, 0].tolist() == pytest.approx([0.9] * 3, abs=0.02)

    def test_each_action_is_evaluated_once(self, world):
        calls = []

        def counted(actions):
            parts = (actions.rows, actions.sets, actions.values[:, 0])
            calls.extend(zip(*(part.tolist() for part in parts), strict=True))
            return actions.reached[:, D], 0.0

        searched(world.problem, wanted={"plausibility": Criterion(counted, torch.full((3,), 0.9))})
        assert len(calls) == len(set(calls)) > 3

    def test_only_missing_confidence_asks_for_a_larger_margin(self, world):
        def short(actions):
            return actions.reached[:, D], 0.1

        wanted = {"confidence": Criterion(short, torch.full((3,), 0.8))}
        table = searched(world.problem, wanted=wanted)
        assert (table.need.amax(1) > AIM).all()
        assert table.has(table.passed).all()

    def test_where_none_passes_the_row_has_a_score(self, world):
        wanted = {"plausibility": at_least(D, 1.05), "support": at_least(D, 0.0)}
        table = searched(world.problem, wanted=wanted)
        assert not len(table.passed)
        assert (table.tried.met.max() < 1.0) and (table.tried.met >= 0.0).sum() > 3
        assert len(best(table)) >= 3

    def test_more_answers_continue_the_table(self, world):
        """What one answer needs is what several need first."""
        one, two = searched(world.problem), searched(world.problem, k=2)
        first = len(one.tried)
        assert len(two.tried) > first
        torch.testing.assert_close(two.tried.values[:first], one.tried.values)


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
