"""Optimizer: cases in, proposals out, with the indirect changes that constraints suppress."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Constraints, Encoder, Schema, Search, Target
from dear_plugin.decoders import Transport
from dear_plugin.errors import NotFittedError
from dear_plugin.methods.base import Case
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.constraints import feasible_set
from tests.fitted import fitted_optimizer
from tests.rule import Rule

SETS = ["a", "b", "c", ("a", "b")]
A, B, C, PAIR = range(4)


def sample(n=4000, seed=0):
    """c rises with a, d falls with a, b is independent."""
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
    return sample()


def learned(frame, margin, decoder=None, **marks):
    schema = Schema.infer(frame, **marks)
    encoder = Encoder(schema)
    sets, classifier = ActionSets.of(schema, SETS), Classifier(Rule(margin), encoder)
    return fitted_optimizer(encoder.rows(frame), sets, decoder or Transport(), classifier, 16)


def case_of(optimizer, query, within=None):
    x = optimizer.encoder.rows(query)
    box = feasible_set(within, x, optimizer.encoder, optimizer.encoder.units.resolutions(query))
    goal = Target.of_class(1).resolve(len(x), None)
    return Case(x, goal, box, 1e-4, torch.arange(len(x)))


@pytest.fixture(scope="module")
def optimizer(frame):
    """Rows with a above a bar are accepted."""
    return learned(frame, lambda x: x[:, 0] - 0.7)


@pytest.fixture(scope="module")
def query(frame):
    return frame[frame["a"] < 0.5].iloc[:100]


class TestProposal:
    def test_the_cheapest_success_of_all_sets_is_taken(self, optimizer, query):
        case = case_of(optimizer, query)
        proposal, found = (
            optimizer.proposal(case, Search.cheapest()),
            optimizer.find(optimizer.problem(case), Search.cheapest()),
        )
        cost = optimizer.encoder.distance(proposal.rows, case.x).sum(1)
        torch.testing.assert_close(cost, found.cost.amin(1), atol=1e-5, rtol=1e-4)
        assert proposal.reasons == [""] * 100

    def test_what_is_acted_on_is_marked(self, optimizer, query):
        proposal = optimizer.proposal(case_of(optimizer, query), Search.cheapest())
        masks = optimizer.sets.masks
        assert all((masks == direct).all(1).any() for direct in proposal.direct)
        assert proposal.direct[:, 0].all()

    @pytest.mark.parametrize("order", [["p", "q"], ["q", "p"]])
    def test_between_equally_cheap_sets_the_first_wins(self, order):
        """Changing either of two binary features succeeds at the same cost."""
        coins = pd.DataFrame(
            np.random.default_rng(0).integers(0, 2, (2000, 2)), columns=["p", "q"]
        )
        schema = Schema.infer(coins)
        encoder, sets = Encoder(schema), ActionSets.of(schema, order)
        classifier = Classifier(Rule(lambda x: x.sum(1) - 0.5), encoder)
        optimizer = fitted_optimizer(encoder.rows(coins), sets, Transport(), classifier, 16)
        tails = coins[(coins == 0).all(axis=1)]
        proposal = optimizer.proposal(case_of(optimizer, tails), Search.cheapest())
        assert proposal.direct[:, list(coins).index(order[0])].all()
        assert proposal.rows.sum(1).unique().tolist() == [1.0]

    def test_a_proposal_does_not_depend_on_other_rows(self, optimizer, query):
        case = case_of(optimizer, query)
        whole = optimizer.proposal(case, Search.cheapest())
        for i in (0, 7, 42):
            one = optimizer.proposal(case.select(torch.tensor([i])), Search.cheapest())
            torch.testing.assert_close(one.rows[0], whole.rows[i], atol=1e-6, rtol=0.0)
            assert torch.equal(one.direct[0], whole.direct[i])


class TestFailures:
    def test_the_nearest_miss_is_kept_and_named(self, frame, query):
        """No value of a passes the bar, but it has the largest margin."""
        optimizer = learned(frame, lambda x: x[:, 0] + 0.1 * x[:, 1] - 1.4)
        proposal = optimizer.proposal(case_of(optimizer, query), Search.cheapest(groups=False))
        x = optimizer.encoder.rows(query)
        for reason, row, mine in zip(proposal.reasons, proposal.rows, x, strict=True):
            tried = "no change of a single one of the 3 actionable features or of the given group"
            assert reason.startswith(f"{tried} was found that reaches the target; acting on a")
            assert reason.endswith("comes closest")
            assert row[0] > mine[0]

    def test_a_row_without_actionable_features_stays(self, optimizer, query):
        case = case_of(optimizer, query, Constraints(frozen=["a", "b", "c"]))
        proposal = optimizer.proposal(case, Search.cheapest())
        assert set(proposal.reasons) == {"nothing admissible to act on"}
        assert torch.equal(proposal.rows, case.x)
        assert not proposal.direct.any()
        assert not proposal.suppressed.any()

    def test_rows_fail_independently(self, optimizer, query):
        frozen = [["a", "b", "c"] if i % 2 else [] for i in range(100)]
        proposal = optimizer.proposal(
            case_of(optimizer, query, Constraints(frozen=frozen)), Search.cheapest()
        )
        assert [bool(reason) for reason in proposal.reasons] == [bool(i % 2) for i in range(100)]


class TestSuppressed:
    """The indirect change that the constraints exclude."""

    @staticmethod
    def acted(optimizer, query, within=None):
        case = case_of(optimizer, query, within)
        problem = optimizer.problem(case)
        n = len(case)
        sets = torch.full((n,), A)
        values = torch.full((n, 2), 0.8)
        return case.x, optimizer.decoded(problem, torch.arange(n), sets, values, [""] * n)

    def test_nothing_without_constraints(self, optimizer, query):
        _, proposal = self.acted(optimizer, query)
        torch.testing.assert_close(proposal.suppressed, torch.zeros(100), atol=1e-5, rtol=0.0)

    def test_the_change_of_a_frozen_feature(self, optimizer, query):
        x, free = self.acted(optimizer, query)
        _, frozen = self.acted(optimizer, query, Constraints(frozen=["c"]))
        assert torch.equal(frozen.rows[:, 2], x[:, 2])
        torch.testing.assert_close(frozen.rows[:, [0, 1, 3]], free.rows[:, [0, 1, 3]])
        lost = (free.rows - x)[:, 2].abs()
        assert lost.mean() > 0.1
        torch.testing.assert_close(frozen.suppressed, lost, atol=1e-5, rtol=1e-4)

    def test_the_change_beyond_a_range(self, optimizer, query, frame):
        top = float(frame["c"].quantile(0.6))
        x, free = self.acted(optimizer, query)
        _, held = self.acted(optimizer, query, Constraints(ranges={"c": (-9.0, top)}))
        feature = optimizer.encoder.schema.features[2]
        end = (top - feature.bounds[0]) / feature.width
        beyond = (free.rows[:, 2] - torch.maximum(x[:, 2], torch.tensor(end))).clamp_min(0.0)
        assert (beyond > 0).float().mean() > 0.3
        torch.testing.assert_close(held.suppressed, beyond, atol=1e-5, rtol=1e-3)

    def test_the_change_against_a_direction(self, frame, query):
        directed = learned(frame, lambda x: x[:, 0] - 0.7, increasing=["d"])
        x, proposal = self.acted(directed, query)
        assert torch.equal(proposal.rows[:, 3], x[:, 3])
        assert (proposal.suppressed > 0.02).all()

    def test_a_direct_change_is_never_suppressed(self, optimizer, query):
        """The action is projected before it is evaluated."""
        within = Constraints(ranges={"a": (-9.0, 0.6)})
        _, proposal = self.acted(optimizer, query, within)
        torch.testing.assert_close(proposal.suppressed, torch.zeros(100), atol=1e-5, rtol=0.0)

    def test_a_row_without_an_action_has_none(self, optimizer, query):
        case = case_of(optimizer, query, Constraints(frozen=["c"]))
        n = len(case)
        no_sets, values = torch.full((n,), -1), torch.full((n, 2), 0.9)
        proposal = optimizer.decoded(
            optimizer.problem(case), torch.arange(n), no_sets, values, ["no"] * n
        )
        assert torch.equal(proposal.rows, case.x)
        assert not proposal.suppressed.any()
        assert not proposal.direct.any()
        assert proposal.reasons == ["no"] * n


class TestFit:
    def test_the_decoder_and_the_grids_know_the_sets(self, optimizer, frame):
        rows = optimizer.encoder.rows(frame)
        members = optimizer.sets.members
        assert [len(optimizer.decoders.of(each).encode(rows[:5])) for each in members] == [5] * 4
        assert optimizer.grids.values.shape[1] == 4
        assert optimizer.encoder is optimizer.classifier.encoder

    def test_a_problem_has_every_row_and_its_actionable_sets(self, optimizer, query):
        within = Constraints(frozen=[["b"] if i == 0 else [] for i in range(100)])
        problem = optimizer.problem(case_of(optimizer, query, within))
        assert len(problem) == 100
        assert problem.actionable[0].tolist() == [True, False, True, False]
        assert problem.actionable[1:].all()

    def test_an_unfitted_decoder_cannot_encode(self, optimizer, query):
        with pytest.raises(NotFittedError):
            optimizer.decoders.decoder.clone_unfitted().encode(optimizer.encoder.rows(query))
