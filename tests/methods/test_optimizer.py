"""Moves: fitted sets turn refused people into plans, and say what was kept from moving."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Constraints, Encoder, Schema, Search, Target
from dear_plugin.decoders import Autoencoder, Design, Training, Transport
from dear_plugin.errors import NotFittedError
from dear_plugin.methods.base import Case
from dear_plugin.methods.optimizer import Optimizer
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.constraints import feasible
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
    return Optimizer.fit(encoder.rows(frame), sets, decoder or Transport(), classifier, 16)


def case_of(optimizer, people, within=None):
    x = optimizer.encoder.rows(people)
    box = feasible(within, x, optimizer.encoder, optimizer.encoder.units.resolutions(people))
    goal = Target.of_class(1).resolve(len(x), None)
    return Case(x, goal, box, 1e-4, torch.arange(len(x)))


@pytest.fixture(scope="module")
def optimizer(frame):
    """Whoever has enough of a is accepted."""
    return learned(frame, lambda x: x[:, 0] - 0.7)


@pytest.fixture(scope="module")
def people(frame):
    return frame[frame["a"] < 0.5].iloc[:100]


class TestPlan:
    def test_the_cheapest_success_of_all_sets_is_taken(self, optimizer, people):
        case = case_of(optimizer, people)
        proposal, found = (
            optimizer.proposal(case, Search.cheapest()),
            optimizer.find(optimizer.problem(case), Search.cheapest()),
        )
        cost = optimizer.encoder.distance(proposal.rows, case.x).sum(1)
        torch.testing.assert_close(cost, found.cost.amin(1), atol=1e-5, rtol=1e-4)
        assert proposal.reasons == [""] * 100

    def test_what_is_acted_on_is_marked(self, optimizer, people):
        proposal = optimizer.proposal(case_of(optimizer, people), Search.cheapest())
        masks = optimizer.sets.masks
        assert all((masks == direct).all(1).any() for direct in proposal.direct)
        assert proposal.direct[:, 0].all()

    @pytest.mark.parametrize("order", [["p", "q"], ["q", "p"]])
    def test_between_equally_cheap_sets_the_first_wins(self, order):
        """Either of two coins may be turned."""
        coins = pd.DataFrame(
            np.random.default_rng(0).integers(0, 2, (2000, 2)), columns=["p", "q"]
        )
        schema = Schema.infer(coins)
        encoder, sets = Encoder(schema), ActionSets.of(schema, order)
        classifier = Classifier(Rule(lambda x: x.sum(1) - 0.5), encoder)
        optimizer = Optimizer.fit(encoder.rows(coins), sets, Transport(), classifier, 16)
        tails = coins[(coins == 0).all(axis=1)]
        proposal = optimizer.proposal(case_of(optimizer, tails), Search.cheapest())
        assert proposal.direct[:, list(coins).index(order[0])].all()
        assert proposal.rows.sum(1).unique().tolist() == [1.0]

    def test_nobody_s_plan_depends_on_the_others(self, optimizer, people):
        case = case_of(optimizer, people)
        whole = optimizer.proposal(case, Search.cheapest())
        for i in (0, 7, 42):
            one = optimizer.proposal(case.select(torch.tensor([i])), Search.cheapest())
            torch.testing.assert_close(one.rows[0], whole.rows[i], atol=1e-6, rtol=0.0)
            assert torch.equal(one.direct[0], whole.direct[i])


class TestFailures:
    def test_the_nearest_miss_is_kept_and_named(self, frame, people):
        """a gets nobody past 1.4, but it comes closest of all."""
        optimizer = learned(frame, lambda x: x[:, 0] + 0.1 * x[:, 1] - 1.4)
        proposal = optimizer.proposal(case_of(optimizer, people), Search.cheapest(groups=False))
        x = optimizer.encoder.rows(people)
        for reason, row, mine in zip(proposal.reasons, proposal.rows, x, strict=True):
            tried = "no change of a single one of the 3 actionable features or of the given group"
            assert reason.startswith(f"{tried} was found that reaches the target; acting on a")
            assert reason.endswith("comes closest")
            assert row[0] > mine[0]

    def test_where_nothing_may_be_done_nothing_is(self, optimizer, people):
        case = case_of(optimizer, people, Constraints(frozen=["a", "b", "c"]))
        proposal = optimizer.proposal(case, Search.cheapest())
        assert set(proposal.reasons) == {"nothing admissible to act on"}
        assert torch.equal(proposal.rows, case.x)
        assert not proposal.direct.any()
        assert not proposal.suppressed.any()

    def test_one_persons_failure_is_not_anothers(self, optimizer, people):
        frozen = [["a", "b", "c"] if i % 2 else [] for i in range(100)]
        proposal = optimizer.proposal(
            case_of(optimizer, people, Constraints(frozen=frozen)), Search.cheapest()
        )
        assert [bool(reason) for reason in proposal.reasons] == [bool(i % 2) for i in range(100)]


class TestSuppressed:
    """What the decoder expected and the constraints forbade."""

    @staticmethod
    def acted(optimizer, people, within=None):
        case = case_of(optimizer, people, within)
        problem = optimizer.problem(case)
        n = len(case)
        sets = torch.full((n,), A)
        values = torch.full((n, 2), 0.8)
        return case.x, optimizer.decoded(problem, torch.arange(n), sets, values, [""] * n)

    def test_nothing_is_where_nothing_is_forbidden(self, optimizer, people):
        _, proposal = self.acted(optimizer, people)
        torch.testing.assert_close(proposal.suppressed, torch.zeros(100), atol=1e-5, rtol=0.0)

    def test_a_frozen_features_change_is_and_the_feature_stays(self, optimizer, people):
        x, free = self.acted(optimizer, people)
        _, frozen = self.acted(optimizer, people, Constraints(frozen=["c"]))
        assert torch.equal(frozen.rows[:, 2], x[:, 2])
        torch.testing.assert_close(frozen.rows[:, [0, 1, 3]], free.rows[:, [0, 1, 3]])
        lost = (free.rows - x)[:, 2].abs()
        assert lost.mean() > 0.1
        torch.testing.assert_close(frozen.suppressed, lost, atol=1e-5, rtol=1e-4)

    def test_so_is_what_leads_beyond_a_range(self, optimizer, people, frame):
        top = float(frame["c"].quantile(0.6))
        x, free = self.acted(optimizer, people)
        _, held = self.acted(optimizer, people, Constraints(ranges={"c": (-9.0, top)}))
        feature = optimizer.encoder.schema.features[2]
        end = (top - feature.bounds[0]) / feature.width
        beyond = (free.rows[:, 2] - torch.maximum(x[:, 2], torch.tensor(end))).clamp_min(0.0)
        assert (beyond > 0).float().mean() > 0.3
        torch.testing.assert_close(held.suppressed, beyond, atol=1e-5, rtol=1e-3)

    def test_and_what_goes_against_a_direction(self, frame, people):
        marked = learned(frame, lambda x: x[:, 0] - 0.7, increasing=["d"])
        x, proposal = self.acted(marked, people)
        assert torch.equal(proposal.rows[:, 3], x[:, 3])
        assert (proposal.suppressed > 0.02).all()

    def test_what_is_acted_on_is_never_suppressed(self, optimizer, people):
        """Its action is clipped before it is tried."""
        within = Constraints(ranges={"a": (-9.0, 0.6)})
        _, proposal = self.acted(optimizer, people, within)
        torch.testing.assert_close(proposal.suppressed, torch.zeros(100), atol=1e-5, rtol=0.0)

    def test_who_does_nothing_loses_nothing(self, optimizer, people):
        case = case_of(optimizer, people, Constraints(frozen=["c"]))
        n = len(case)
        nothing, values = torch.full((n,), -1), torch.full((n, 2), 0.9)
        proposal = optimizer.decoded(
            optimizer.problem(case), torch.arange(n), nothing, values, ["no"] * n
        )
        assert torch.equal(proposal.rows, case.x)
        assert not proposal.suppressed.any()
        assert not proposal.direct.any()
        assert proposal.reasons == ["no"] * n


class TestSolvers:
    def test_algorithm_1_takes_the_same_way_in(self, frame, people):
        autoencoder = Autoencoder(Design(layers=(6, 3)), Training(epochs=8))
        optimizer = learned(frame, lambda x: 10.0 * (x[:, 0] - 0.7), autoencoder)
        case = case_of(optimizer, people)
        line, gradient = (
            optimizer.proposal(case, Search.cheapest(solver=s)) for s in ("line", "gradient")
        )
        assert not any(line.reasons)
        assert not any(gradient.reasons)
        costs = [optimizer.encoder.distance(p.rows, case.x).sum(1) for p in (line, gradient)]
        assert float((costs[1] / costs[0]).median()) == pytest.approx(1.0, abs=0.05)


class TestLearned:
    def test_the_decoder_and_the_grids_know_the_sets(self, optimizer, frame):
        rows = optimizer.encoder.rows(frame)
        assert optimizer.decoder.encode(rows[:5]).shape[:2] == (5, 4)
        assert optimizer.grids.values.shape[1] == 4
        assert optimizer.encoder is optimizer.classifier.encoder

    def test_a_question_holds_everybody_and_who_may_act_on_what(self, optimizer, people):
        within = Constraints(frozen=[["b"] if i == 0 else [] for i in range(100)])
        problem = optimizer.problem(case_of(optimizer, people, within))
        assert len(problem) == 100
        assert problem.actionable[0].tolist() == [True, False, True, False]
        assert problem.actionable[1:].all()

    def test_a_blank_decoder_cannot_be_asked(self, optimizer, people):
        with pytest.raises(NotFittedError):
            optimizer.decoder.clone_unfitted().encode(optimizer.encoder.rows(people))
