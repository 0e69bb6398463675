"""Stage: it finds the cheapest action that meets the criteria, and evaluates nothing twice."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Schema, Search
from dear_plugin.search import FeatureValues
from dear_plugin.search.candidates import Block, candidate_blocks
from dear_plugin.search.criteria import Criterion
from dear_plugin.search.rounds import search_rounds, settle
from dear_plugin.search.stage import Stage
from tests.search.handmade import A, D, factual, make_world, training_frame

SLACK = 1e-4


def raised(rows, least=0.6):
    """The margin of a model that wants d to be large, or a and b together."""
    return torch.maximum(rows[:, D], (rows[:, A] + rows[:, 1]) / 2.0) - least


@pytest.fixture
def world():
    factuals = pd.concat([factual(a, 0.1, d) for a, d in ((0.1, 0.1), (0.3, 0.5), (0.55, 0.2))])
    return make_world(raised, factuals.reset_index(drop=True))


def known_of(problem):
    encoder = problem.classifier.encoder
    return FeatureValues.of(encoder.rows(training_frame()), encoder)


def stage_of(problem, *, wanted=None, blocks=None, margin=0.0, k=1, discount=0.0):
    blocks = list(candidate_blocks(problem, known_of(problem))) if blocks is None else blocks
    accepted, required = torch.full((len(problem),), SLACK), torch.full((len(problem),), margin)
    return Stage(problem, blocks, wanted or {}, accepted, required, discount, k)


def searched(problem, **options):
    stage = stage_of(problem, **options)
    search_rounds(stage)
    return stage


def cheapest(stage):
    """(n,) the least price of the answers; infinite without one."""
    passed = stage.tried.part(stage.passed)
    out = torch.full((len(stage.problem),), torch.inf)
    return out.scatter_reduce(0, passed.rows, passed.price, "amin")


def at_least(number, share):
    """A criterion: a value of a feature of the counterfactual."""
    return Criterion(lambda actions: (actions.reached[:, number], 0.0), torch.full((3,), share))


class TestCheapest:
    def test_it_is_that_of_an_exhaustive_scan(self, world):
        problem = world.problem
        rows, sets = problem.actionable.nonzero(as_tuple=True)
        dense = torch.linspace(0.0, 1.0, 2001).expand(len(rows), -1)[..., None]
        block = Block.of(problem, rows, sets, dense)
        cost, margin = problem.evaluate(*block.take_all())
        order = (rows[:, None].expand(-1, 2001))[block.direct > -1.0].view(len(rows), -1)
        expected = torch.full((3,), torch.inf)
        moves = (dense[..., 0] - problem.own(rows, sets)).abs() > 1e-6
        expected = expected.scatter_reduce(
            0, order[moves], torch.where(margin >= SLACK, cost, torch.inf), "amin"
        )
        torch.testing.assert_close(cheapest(searched(problem)), expected, atol=2e-3, rtol=0.0)

    def test_pruning_excludes_no_cheaper_action(self, world):
        """All values of all sets, against those below the bound."""
        blocks = list(candidate_blocks(world.problem, known_of(world.problem)))
        for block in blocks:
            block.direct.zero_()
        every = searched(world.problem, blocks=blocks)
        some = searched(world.problem)
        torch.testing.assert_close(cheapest(some), cheapest(every), atol=1e-3, rtol=0.0)
        assert len(some.tried) < len(every.tried)

    def test_no_action_is_tried_twice_in_a_block(self, world):
        tried = searched(world.problem).tried
        keys = torch.cat([tried.rows[:, None], tried.sets[:, None], tried.values], 1)
        assert len(keys.unique(dim=0)) >= 0.9 * len(keys)

    def test_rows_do_not_depend_on_each_other(self, world):
        whole = cheapest(searched(world.problem))
        for i in range(3):
            one = cheapest(searched(world.problem.select(torch.tensor([i]))))
            torch.testing.assert_close(one, whole[[i]])

    def test_an_action_that_suffices_alone_may_cost_a_quarter_more(self, world):
        plain, alone = searched(world.problem), searched(world.problem, discount=0.25)
        assert (cheapest(alone) <= cheapest(plain) + 1e-6).all()
        best = alone.tried.part(alone.passed)
        cheaper = best.price < best.cost - 1e-6
        assert cheaper.any()
        values = (best.rows[cheaper], best.sets[cheaper], best.values[cheaper])
        assert (world.problem.margin_alone(*values) >= SLACK).all()

    def test_the_lead_is_kept(self, world):
        led = searched(world.problem, margin=0.1)
        assert (led.tried.margin[led.passed] >= 0.1 + SLACK).all()
        assert (cheapest(led) > cheapest(searched(world.problem))).all()


class TestCriteria:
    def test_a_rejected_action_makes_others_eligible(self, world):
        """Farther values are tried once the cheapest is rejected."""
        wanted = {"plausibility": at_least(D, 0.9)}
        stage = searched(world.problem, wanted=wanted)
        best = stage.tried.part(stage.answers)
        assert not stage.open_rows.any()
        assert (best.sets == 1).all()
        # Bisected towards the rejected action before it.
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
        stage = searched(world.problem, wanted=wanted)
        rejected = (stage.tried.score >= 0.0).index_fill(0, stage.passed, False)
        assert (stage.need.view(3, -1).amax(1) > SLACK).all()
        assert rejected.any() and not stage.open_rows.any()

    def test_where_none_passes_the_row_stays_open_and_has_a_score(self, world):
        stage = searched(world.problem, wanted={"plausibility": at_least(D, 1.05)})
        settle(stage)
        assert stage.open_rows.all()
        assert (stage.tried.score.max() < 1.0) and (stage.tried.score >= 0.0).sum() > 3
        assert len(stage.best(torch.ones(3, dtype=torch.bool))) >= 3

    def test_several_answers_act_on_different_sets(self, world):
        stage = searched(world.problem, k=2)
        pairs = stage.pairs[stage.answers]
        assert not stage.open_rows.any()
        assert len(pairs.unique()) == len(pairs) == 6


class TestSeveralFeatures:
    """On a group the action is moved back, all features together and one at a time."""

    def frame(self):
        rng = np.random.default_rng(0)
        return pd.DataFrame(rng.random((600, 3)).round(3), columns=["a", "b", "c"])

    def test_a_superfluous_change_is_dropped(self):
        frame = self.frame()

        def model(rows):
            return np.where(rows["a"] > 0.7, 0.9, 0.1)

        dear = DEAR(model, Schema.infer(frame), act_on=[("a", "b", "c")], search=Search.cheapest())
        refused = frame[frame["a"] < 0.5].head(20)
        found = dear.fit(frame).generate(refused)
        assert found.actions["success"].all()
        assert (found.actions["acted_on"] == "a").mean() >= 0.9

    def test_pairs_are_fitted_only_where_they_are_tried(self):
        frame = self.frame()

        def model(rows):
            return 1.0 / (1.0 + np.exp(-8.0 * (rows["a"] + rows["b"] - 1.9)))

        dear = DEAR(model, Schema.infer(frame), search=Search.cheapest()).fit(frame)
        singles = len(dear.decoders._fitted)
        easy = frame[(frame["a"] > 0.95) & (frame["b"] < 0.9)].head(3)
        dear.generate(easy)
        assert len(dear.decoders._fitted) == singles
        hard = frame[(frame["a"] < 0.5) & (frame["b"] < 0.5)].head(3)
        found = dear.generate(hard)
        assert (found.actions["acted_on"] == "a + b").all()
        assert len(dear.decoders._fitted) > singles
