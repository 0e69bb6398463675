"""Moves: fitted sets turn refused people into plans, and say what was kept from moving."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Constraints, Encoder, Schema, Search, Target
from dear_plugin.decoders import Autoencoder, Design, Training, Transport
from dear_plugin.errors import NotFittedError
from dear_plugin.methods.base import Case
from dear_plugin.methods.optimizer import Moves
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.constraints import limits
from tests.rule import Rule

SETS = ["a", "b", "c", ("a", "b")]
A, B, C, PAIR = range(4)


def crowd(n=4000, seed=0):
    """c follows a; b goes its own way; d falls where a rises."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.normal(size=n)
    return pd.DataFrame(
        {
            "a": a,
            "b": b,
            "c": 0.8 * a + 0.6 * rng.normal(size=n),
            "d": -0.5 * a + 0.8 * rng.normal(size=n),
        }
    )


@pytest.fixture(scope="module")
def frame():
    return crowd()


def learned(frame, margin, decoder=None, **marks):
    schema = Schema.infer(frame, **marks)
    encoder = Encoder(schema)
    sets, classifier = ActionSets.of(schema, SETS), Classifier(Rule(margin), encoder)
    return Moves.learned(encoder.rows(frame), sets, decoder or Transport(), classifier, 16)


def case_of(moves, people, within=None):
    x = moves.encoder.rows(people)
    box = limits(within, x, moves.encoder, moves.encoder.units.grains(people))
    goal = Target.of_class(1).resolve(len(x), None)
    return Case(x, goal, box, 1e-4, torch.arange(len(x)))


@pytest.fixture(scope="module")
def moves(frame):
    """Whoever has enough of a is accepted."""
    return learned(frame, lambda x: x[:, 0] - 0.7)


@pytest.fixture(scope="module")
def people(frame):
    return frame[frame["a"] < 0.5].iloc[:100]


class TestPlan:
    def test_the_cheapest_success_of_all_sets_is_taken(self, moves, people):
        case = case_of(moves, people)
        plan, found = (
            moves.plan(case, Search.cheapest()),
            moves.find(moves.question(case), Search.cheapest()),
        )
        cost = moves.encoder.distance(plan.rows, case.x).sum(1)
        torch.testing.assert_close(cost, found.cost.amin(1), atol=1e-5, rtol=1e-4)
        assert plan.reasons == [""] * 100

    def test_what_is_acted_on_is_marked(self, moves, people):
        plan = moves.plan(case_of(moves, people), Search.cheapest())
        masks = moves.sets.masks
        assert all((masks == direct).all(1).any() for direct in plan.direct)
        assert plan.direct[:, 0].all()

    @pytest.mark.parametrize("order", [["p", "q"], ["q", "p"]])
    def test_between_equally_cheap_sets_the_first_wins(self, order):
        """Either of two coins may be turned."""
        coins = pd.DataFrame(
            np.random.default_rng(0).integers(0, 2, (2000, 2)), columns=["p", "q"]
        )
        schema = Schema.infer(coins)
        encoder, sets = Encoder(schema), ActionSets.of(schema, order)
        classifier = Classifier(Rule(lambda x: x.sum(1) - 0.5), encoder)
        moves = Moves.learned(encoder.rows(coins), sets, Transport(), classifier, 16)
        tails = coins[(coins == 0).all(axis=1)]
        plan = moves.plan(case_of(moves, tails), Search.cheapest())
        assert plan.direct[:, list(coins).index(order[0])].all()
        assert plan.rows.sum(1).unique().tolist() == [1.0]

    def test_nobody_s_plan_depends_on_the_others(self, moves, people):
        case = case_of(moves, people)
        whole = moves.plan(case, Search.cheapest())
        for i in (0, 7, 42):
            one = moves.plan(case.select(torch.tensor([i])), Search.cheapest())
            torch.testing.assert_close(one.rows[0], whole.rows[i], atol=1e-6, rtol=0.0)
            assert torch.equal(one.direct[0], whole.direct[i])


class TestFailures:
    def test_the_nearest_miss_is_kept_and_named(self, frame, people):
        """a gets nobody past 1.4, but it comes closest of all."""
        moves = learned(frame, lambda x: x[:, 0] + 0.1 * x[:, 1] - 1.4)
        plan = moves.plan(case_of(moves, people), Search.cheapest(groups=False))
        x = moves.encoder.rows(people)
        for reason, row, mine in zip(plan.reasons, plan.rows, x, strict=True):
            tried = "no change of a single one of the 3 actionable features or of the given group"
            assert reason.startswith(f"{tried} was found that reaches the target; acting on a")
            assert reason.endswith("comes closest")
            assert row[0] > mine[0]

    def test_where_nothing_may_be_done_nothing_is(self, moves, people):
        case = case_of(moves, people, Constraints(frozen=["a", "b", "c"]))
        plan = moves.plan(case, Search.cheapest())
        assert set(plan.reasons) == {"nothing admissible to act on"}
        assert torch.equal(plan.rows, case.x)
        assert not plan.direct.any()
        assert not plan.suppressed.any()

    def test_one_persons_failure_is_not_anothers(self, moves, people):
        frozen = [["a", "b", "c"] if i % 2 else [] for i in range(100)]
        plan = moves.plan(case_of(moves, people, Constraints(frozen=frozen)), Search.cheapest())
        assert [bool(reason) for reason in plan.reasons] == [bool(i % 2) for i in range(100)]


class TestSuppressed:
    """What the decoder expected and the constraints forbade."""

    @staticmethod
    def acted(moves, people, within=None):
        case = case_of(moves, people, within)
        question = moves.question(case)
        n = len(case)
        sets = torch.full((n,), A)
        values = torch.full((n, 2), 0.8)
        return case.x, moves.decoded(question, torch.arange(n), sets, values, [""] * n)

    def test_nothing_is_where_nothing_is_forbidden(self, moves, people):
        _, plan = self.acted(moves, people)
        torch.testing.assert_close(plan.suppressed, torch.zeros(100), atol=1e-5, rtol=0.0)

    def test_a_frozen_features_change_is_and_the_feature_stays(self, moves, people):
        x, free = self.acted(moves, people)
        _, frozen = self.acted(moves, people, Constraints(frozen=["c"]))
        assert torch.equal(frozen.rows[:, 2], x[:, 2])
        torch.testing.assert_close(frozen.rows[:, [0, 1, 3]], free.rows[:, [0, 1, 3]])
        lost = (free.rows - x)[:, 2].abs()
        assert lost.mean() > 0.1
        torch.testing.assert_close(frozen.suppressed, lost, atol=1e-5, rtol=1e-4)

    def test_so_is_what_leads_beyond_a_range(self, moves, people, frame):
        top = float(frame["c"].quantile(0.6))
        x, free = self.acted(moves, people)
        _, held = self.acted(moves, people, Constraints(ranges={"c": (-9.0, top)}))
        feature = moves.encoder.schema.features[2]
        end = (top - feature.bounds[0]) / feature.width
        beyond = (free.rows[:, 2] - torch.maximum(x[:, 2], torch.tensor(end))).clamp_min(0.0)
        assert (beyond > 0).float().mean() > 0.3
        torch.testing.assert_close(held.suppressed, beyond, atol=1e-5, rtol=1e-3)

    def test_and_what_goes_against_a_direction(self, frame, people):
        marked = learned(frame, lambda x: x[:, 0] - 0.7, increasing=["d"])
        x, plan = self.acted(marked, people)
        assert torch.equal(plan.rows[:, 3], x[:, 3])
        assert (plan.suppressed > 0.02).all()

    def test_what_is_acted_on_is_never_suppressed(self, moves, people):
        """Its action is clipped before it is tried."""
        within = Constraints(ranges={"a": (-9.0, 0.6)})
        _, plan = self.acted(moves, people, within)
        torch.testing.assert_close(plan.suppressed, torch.zeros(100), atol=1e-5, rtol=0.0)

    def test_who_does_nothing_loses_nothing(self, moves, people):
        case = case_of(moves, people, Constraints(frozen=["c"]))
        n = len(case)
        nothing, values = torch.full((n,), -1), torch.full((n, 2), 0.9)
        plan = moves.decoded(moves.question(case), torch.arange(n), nothing, values, ["no"] * n)
        assert torch.equal(plan.rows, case.x)
        assert not plan.suppressed.any()
        assert not plan.direct.any()
        assert plan.reasons == ["no"] * n


class TestSolvers:
    def test_algorithm_1_takes_the_same_way_in(self, frame, people):
        autoencoder = Autoencoder(Design(layers=(6, 3)), Training(epochs=8))
        moves = learned(frame, lambda x: 10.0 * (x[:, 0] - 0.7), autoencoder)
        case = case_of(moves, people)
        line, gradient = (
            moves.plan(case, Search.cheapest(solver=s)) for s in ("line", "gradient")
        )
        assert not any(line.reasons)
        assert not any(gradient.reasons)
        costs = [moves.encoder.distance(p.rows, case.x).sum(1) for p in (line, gradient)]
        assert float((costs[1] / costs[0]).median()) == pytest.approx(1.0, abs=0.05)


class TestLearned:
    def test_the_decoder_and_the_grids_know_the_sets(self, moves, frame):
        rows = moves.encoder.rows(frame)
        assert moves.decoder.encode(rows[:5]).shape[:2] == (5, 4)
        assert moves.grids.values.shape[1] == 4
        assert moves.encoder is moves.classifier.encoder

    def test_a_question_holds_everybody_and_who_may_act_on_what(self, moves, people):
        within = Constraints(frozen=[["b"] if i == 0 else [] for i in range(100)])
        question = moves.question(case_of(moves, people, within))
        assert len(question) == 100
        assert question.may[0].tolist() == [True, False, True, False]
        assert question.may[1:].all()

    def test_a_blank_decoder_cannot_be_asked(self, moves, people):
        with pytest.raises(NotFittedError):
            moves.decoder.blank().encode(moves.encoder.rows(people))
