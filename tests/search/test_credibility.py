"""Credibility: confidence, reliance, plausibility and support of actions."""

import pytest
import torch

from dear_plugin import Constraints, Search
from dear_plugin.search.criteria import AT_ONCE, by_share, confidence, criteria, scoring, unseen
from dear_plugin.search.problem import answered
from tests.search.handmade import TOWN, A, B, D, factual, followed, make_world, training_frame

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def asked(function, problem, *arguments):
    """What a function that asks the model returns."""
    return answered(problem.scores, function(problem, *arguments))


def confident(problem, actions, least=0.0, draws=None):
    """Confidence under the resamples of a search, or others."""
    draws = torch.arange(1, problem.decoders.decoder.draws + 1) if draws is None else draws
    rows = problem.resample(actions.rows, actions.sets, actions.values, draws)
    return confidence(problem, actions.rows, rows, least)


def both(x):
    """Accepts where a + b exceeds a threshold."""
    return x[:, A] + x[:, B] - 0.8


class TestConfidence:
    """Sixteen resamples with different gains of b."""

    # Shuffled: the first ones are evaluated first.
    GAINS = torch.linspace(0.0, 1.5, 16)[(torch.arange(16) * 7 + 5) % 16]

    def test_it_is_the_share_of_resamples_under_which_the_action_succeeds(self):
        """Thirty actions on a, and one on d, which never succeeds."""
        values = [*torch.linspace(0.1, 0.7, 30).tolist(), 0.9]
        world = make_world(both, factual(times=31), gains=self.GAINS)
        x, new = world.problem.x, torch.tensor(values).double()
        expected = torch.stack([both(followed(x, new, gain)) > 0.0 for gain in self.GAINS])
        expected[:, 30] = False
        share, _ = asked(confident, world.problem, world.actions([0] * 30 + [1], values))
        torch.testing.assert_close(share.double(), expected.double().mean(0))
        assert len(share.unique()) > 8

    def test_the_missing_margin_is_that_of_the_deciding_resample(self):
        """Fifteen of sixteen must succeed: the second worst decides."""
        world = make_world(both, factual(), gains=torch.tensor([1.0] * 14 + [0.2, 0.1]))
        actions = world.actions([0], [0.45])
        _, short = asked(confident, world.problem, actions, 0.9)
        # Margins 0.45 + 0.1 + 0.35 * gain - 0.8: at gain 0.2 it is -0.18.
        assert short.item() == pytest.approx(0.18, abs=1e-6)
        _, short = asked(confident, world.problem, actions, 0.8)
        assert short.item() == pytest.approx(0.0, abs=1e-6)

    def test_what_is_reported_comes_from_resamples_that_no_search_has_seen(self):
        """All of the first sixteen are accepted, and four of the next sixteen."""
        world = make_world(
            both, factual(), gains=torch.tensor([1.0] * 16 + [0.0] * 12 + [1.0] * 4)
        )
        world.problem.decoders.decoder.draws = 16
        actions = world.actions([0], [0.5])
        assert asked(confident, world.problem, actions)[0].item() == 1.0
        draws = unseen(world.problem.decoders.decoder)
        assert asked(confident, world.problem, actions, 0.9, draws)[0].item() == 0.25

    def test_resamples_are_projected_onto_the_feasible_set(self):
        """With b frozen, no resample changes it."""
        world = make_world(both, factual(), gains=self.GAINS, within=Constraints(frozen=["b"]))
        low, high = world.actions([0], [0.65]), world.actions([0], [0.75])
        assert asked(confident, world.problem, low)[0].item() == 0.0
        assert asked(confident, world.problem, high)[0].item() == 1.0


class TestCalls:
    """A call of the model costs as much as many rows."""

    @pytest.mark.parametrize(("count", "calls"), [(AT_ONCE, 1), (AT_ONCE + 1, 2)])
    def test_of_few_actions_gain_and_confidence_are_asked_for_at_once(self, count, calls):
        world = make_world(both, factual(times=count), gains=torch.ones(16))
        wanted, _ = criteria(world.problem, Search(min_plausibility=0.0), world.evidence)
        actions, called = world.actions([0] * count, [0.65] * count), []

        def scores(rows):
            called.append(len(rows))
            return world.problem.scores(rows)

        assert list(wanted) == ["gain", "confidence"]
        assert answered(scores, scoring(actions, wanted))[0].isinf().all()
        assert len(called) == calls

    def test_what_is_asked_for_at_once_has_the_results_of_one_after_another(self):
        """Some actions do not help, and are not judged by their confidence."""
        values = torch.linspace(0.15, 0.95, 40).tolist()
        world = make_world(both, factual(times=40), gains=TestConfidence.GAINS)
        wanted, _ = criteria(world.problem, Search(min_plausibility=0.0), world.evidence)
        actions = world.actions([0] * 20 + [1] * 20, values)
        once = asked(lambda _, *rest: scoring(*rest), world.problem, actions, wanted)
        each = asked(lambda _, *rest: scoring(*rest), world.problem, repeated(actions, 2), wanted)
        for one, other in zip(once[:2], each[:2], strict=True):
            torch.testing.assert_close(one, other[:40])


def repeated(actions, times):
    """Actions, several times: more than are asked for at once."""
    return actions.part(torch.arange(len(actions)).repeat(times))


def needed(margin, world, actions):
    """(m,) the least share from which on the action is accepted, by brute force."""
    x, reached = world.problem.x, actions.reached
    out = []
    for i in range(len(actions)):
        holds = []
        for share in SHARES:
            row = x[i] + share * (reached[i] - x[i])
            row[TOWN] = reached[i, TOWN] if share >= 0.5 else x[i, TOWN]
            own = A if actions.sets[i] == 0 else D
            row[own] = reached[i, own]
            holds.append(bool(margin(row[None])[0] > 0.0))
        valid = [s for at, s in enumerate(SHARES) if all(holds[at:])]
        out.append(min(valid, default=1.0))
    return torch.tensor(out)


class TestReliance:
    @pytest.mark.parametrize(
        "margin",
        [
            both,
            lambda x: torch.minimum(both(x), x[:, TOWN] - 0.5),
            lambda x: both(x) + 0.2 * x[:, TOWN],
            lambda x: both(x) - 0.2 * x[:, TOWN],
            lambda x: 0.15 - (both(x) - 0.3).abs(),
            lambda x: torch.maximum(x[:, A] - 0.6, x[:, D] - 0.3),
        ],
        ids=["a number", "a category", "either", "town harms", "a window", "alone"],
    )
    def test_reliance_is_the_least_share_from_which_on_the_action_is_accepted(self, margin):
        values = torch.linspace(0.151, 0.951, 33).tolist()
        world = make_world(margin, factual(times=66))
        actions = world.actions([0] * 33 + [1] * 33, values * 2)
        valid = margin(actions.reached) > 0.0
        shares = asked(by_share, world.problem, actions)["reliance"].float()
        expected = needed(margin, world, actions)
        assert valid.sum() > 5
        torch.testing.assert_close(shares[valid], expected[valid])

    def test_an_action_undone_by_its_indirect_change_is_fully_reliant(self):
        margin = lambda x: x[:, A] - 0.5 - 0.5 * (x[:, B] > 0.45).float()  # noqa: E731
        world = make_world(margin, factual(times=2))
        # b follows from 0.1 to 0.52 and to 0.7; above 0.45 the model rejects.
        alone = world.actions([0, 0], [0.52, 0.7])
        assert (margin(alone.reached) > 0.0).tolist() == [False, False]
        valid_actions = world.actions([0, 1], [0.44, 0.9])
        assert asked(by_share, world.problem, valid_actions)["reliance"].tolist() == [1.0, 1.0]

    def test_partial_changes_keep_the_decimals_of_a_column(self):
        """b has one decimal: a quarter of the change from 0.1 to 0.5 gives 0.2, half gives 0.3."""
        frame = training_frame()
        frame["b"] = frame["b"].round(1)
        for bar, share in ((0.19, 0.25), (0.21, 0.5), (0.29, 0.5), (0.31, 0.75), (0.49, 1.0)):
            world = make_world(lambda x, bar=bar: x[:, B] - bar, factual(), frame=frame)
            least = asked(by_share, world.problem, world.actions([0], [0.5]))
            assert least["reliance"].item() == share

    def test_an_action_may_be_accepted_alone_and_refused_with_a_part_of_what_follows(self):
        margin = lambda x: x[:, A] - 0.4 - 0.5 * ((x[:, B] - 0.3).abs() < 0.05)  # noqa: E731
        world = make_world(margin, factual())
        # b follows from 0.1 to 0.5 and passes 0.3.
        found = asked(by_share, world.problem, world.actions([0], [0.5]))
        assert found["alone"].item()
        assert found["reliance"].item() == 0.75

    def test_the_row_with_the_least_share_is_the_one_that_the_model_accepted(self):
        values = torch.linspace(0.3, 0.7, 20).tolist()
        world = make_world(both, factual(times=20))
        actions = world.actions([0] * 20, values)
        found, x = asked(by_share, world.problem, actions), world.problem.x
        part = x[:, B] + found["reliance"] * (actions.reached[:, B] - x[:, B])
        torch.testing.assert_close(found["least"][:, B], part)
        valid = both(actions.reached) > 0.0
        assert (both(found["least"]) > 0.0)[valid].all()


class TestOwnGain:
    """Raising a to 0.6 raises b from 0.1 to 0.6."""

    @pytest.mark.parametrize(
        ("margin", "gain"),
        [
            (lambda x: x[:, A] + x[:, B] - 1.0, 1.0),  # both are needed
            (lambda x: x[:, B] - 0.5, 0.0),  # a does nothing
            (lambda x: x[:, B] - 0.2 * x[:, A] - 0.3, 0.0),  # a counts against
            (lambda x: x[:, B] + 0.1 * x[:, A] - 0.3, 0.0),  # b alone is accepted
            (lambda x: torch.minimum(x[:, A], x[:, B]) - 0.5, 1.0),  # alone flat, and needed
            (lambda x: x[:, A] - 0.5, 1.0),  # enough alone
        ],
        ids=["both", "nothing", "against", "b suffices", "flat", "alone"],
    )
    def test_it_is_1_where_the_model_needs_the_action_itself(self, margin, gain):
        world = make_world(margin, factual())
        actions = world.actions([0], [0.6])
        assert (margin(actions.reached) > 0.0).all()
        assert asked(by_share, world.problem, actions)["gain"].tolist() == [gain]


def test_plausibility_and_support_are_those_of_the_counterfactual():
    world = make_world(both, factual(times=2))
    actions, problem = world.actions([0, 1], [0.5, 0.9]), world.problem
    unusual, near = world.evidence.plausibility, world.evidence.support
    wanted, _ = criteria(problem, Search(min_support=0.5), world.evidence)
    assert list(wanted) == ["plausibility", "gain", "support", "confidence"]
    assert torch.equal(wanted["plausibility"].measure(actions)[0], unusual(actions.reached))
    share = near(actions.reached, problem.goal, actions.rows)
    assert torch.equal(wanted["support"].measure(actions)[0], share)
    own = unusual(problem.x)
    assert torch.equal(wanted["plausibility"].least, own.clamp_max(0.05))
