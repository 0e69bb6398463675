"""Worth: what an answer is worth, by what no search optimises."""

import pytest
import torch

from dear_plugin import Constraints
from dear_plugin.search import confidence, reliance
from dear_plugin.search.credibility import FIRST_REDRAWS, plausibility, support
from tests.search.handmade import ACT_ON, TOWN, A, B, D, crowd, decoded, person, world

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def both(x):
    """Accepts where a and b together pass a bar."""
    return x[:, A] + x[:, B] - 0.8


class TestConfidence:
    """Sixteen redraws, under which b follows a by more or less."""

    # In no order: the first ones are asked first.
    GAINS = torch.linspace(0.0, 1.5, 16)[(torch.arange(16) * 7 + 5) % 16]

    @pytest.fixture
    def asked(self):
        """(31,) actions on a from 0.1 to 0.7, and on d, which helps nobody."""
        values = [*torch.linspace(0.1, 0.7, 30).tolist(), 0.9]
        told = world(both, person(times=31), gains=self.GAINS)
        return told, told.actions([0] * 30 + [1], values)

    def by_hand(self, told, actions):
        each = [
            decoded(told.problem.x, actions.values[:, 0], actions.sets, gain)
            for gain in self.GAINS
        ]
        return torch.stack([both(rows) > 0.0 for rows in each], 1)

    def test_it_is_the_share_of_redraws_under_which_the_action_succeeds(self, asked):
        told, actions = asked
        share, _ = confidence(told.problem, actions)
        expected = self.by_hand(told, actions).double().mean(1)
        torch.testing.assert_close(share.double(), expected)
        assert len(share.unique()) > 8

    def test_with_a_share_to_reach_the_verdict_is_the_same_and_failures_are_told_sooner(
        self, asked
    ):
        told, actions = asked
        whole, _ = confidence(told.problem, actions)
        for least in (0.25, 0.5, 1.0, 0.9):
            told.problem.redraws.asked.clear()
            share, _ = confidence(told.problem, actions, least)
            assert torch.equal(share >= least, whole >= least)
            torch.testing.assert_close(share[whole >= least], whole[whole >= least])
            assert (share <= whole).all()
        first, rest = told.problem.redraws.asked[-2:]
        assert first == (31, list(range(FIRST_REDRAWS)))
        assert rest[0] < 31
        assert rest[1] == list(range(FIRST_REDRAWS, 16))

    def test_of_sixteen_one_may_fail_where_nine_tenths_are_asked_for(self):
        for failing, enough in ((1, True), (2, False)):
            gains = torch.ones(16)
            gains[-failing:] = 0.0
            told = world(both, person(), gains=gains)
            share, _ = confidence(told.problem, told.actions([0], [0.5]), 0.9)
            assert (share.item() >= 0.9) == enough

    def test_how_far_it_falls_short_is_the_margin_of_the_redraw_that_decides(self):
        """Nine of ten must hold: the second worst decides."""
        told = world(both, person(), gains=torch.tensor([1.0] * 8 + [0.2, 0.1]))
        actions = told.actions([0], [0.45])
        _, short = confidence(told.problem, actions, 0.9)
        # Margins 0.45 + 0.1 + 0.35 * gain - 0.8: of gain .2 it is -0.18.
        assert short.item() == pytest.approx(0.18, abs=1e-6)
        _, short = confidence(told.problem, actions, 0.8)
        assert short.item() == pytest.approx(0.0, abs=1e-6)

    def test_who_has_no_redraws_is_sure(self):
        told = world(both, person(times=2))
        share, short = confidence(told.problem, told.actions([0, 1], [0.2, 0.9]))
        assert share.tolist() == [1.0, 1.0]
        assert short.tolist() == [0.0, 0.0]

    def test_redraws_keep_the_limits_that_hold_for_answers(self):
        """Where b may not change, no redraw changes it."""
        told = world(both, person(), gains=self.GAINS, within=Constraints(frozen=["b"]))
        low, high = told.actions([0], [0.65]), told.actions([0], [0.75])
        assert confidence(told.problem, low)[0].item() == 0.0
        assert confidence(told.problem, high)[0].item() == 1.0

    def test_of_no_actions(self):
        told = world(both, person(), gains=self.GAINS)
        share, short = confidence(told.problem, told.actions([0], [0.5]).part(torch.arange(0)))
        assert share.shape == short.shape == (0,)


def needed(margin, told, actions):
    """(m,) the least of the shares with which the decision holds, and at all above it."""
    x, reached = told.problem.x, actions.reached
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
    def test_it_is_the_least_share_with_which_the_decision_holds_and_all_above_it(self, margin):
        values = torch.linspace(0.15, 0.95, 33).tolist()
        told = world(margin, person(times=66))
        actions = told.actions([0] * 33 + [1] * 33, values * 2)
        valid = margin(actions.reached) > 0.0
        came = reliance(told.problem, actions)
        expected = needed(margin, told, actions)
        assert valid.sum() > 5
        torch.testing.assert_close(came[valid], expected[valid])

    def test_at_nought_the_action_alone_suffices_and_nothing_undoes_it(self):
        margin = lambda x: x[:, A] - 0.5 - 0.5 * (x[:, B] > 0.45).float()  # noqa: E731
        told = world(margin, person(times=2))
        # b follows from .1 to .52 and to .7: past .45 the model is lost, then won again.
        alone = told.actions([0, 0], [0.52, 0.7])
        assert (margin(alone.reached) > 0.0).tolist() == [False, False]
        fine = told.actions([0, 1], [0.44, 0.9])
        assert reliance(told.problem, fine).tolist() == [1.0, 1.0]

    def test_what_is_lost_on_the_way_there_is_not_counted_as_sufficient(self):
        """It holds with nothing and with all of what follows, but not with half of it."""
        margin = lambda x: (x[:, B] - 0.3).abs() - 0.1  # noqa: E731
        told = world(lambda x: torch.minimum(margin(x), x[:, A] - 0.4), person())
        actions = told.actions([0], [0.5])
        assert reliance(told.problem, actions).item() == pytest.approx(1.0)

    def test_a_category_counts_from_one_half_on(self):
        told = world(lambda x: x[:, TOWN] - 0.5, person())
        assert reliance(told.problem, told.actions([0], [0.5])).item() == 0.5

    def test_parts_of_the_way_keep_the_decimals_of_a_column(self):
        """b has one decimal: a quarter of the way from 0.1 to 0.5 is 0.2, half of it 0.3."""
        frame = crowd()
        frame["b"] = frame["b"].round(1)
        for bar, share in ((0.19, 0.25), (0.21, 0.5), (0.29, 0.5), (0.31, 0.75), (0.49, 1.0)):
            told = world(lambda x, bar=bar: x[:, B] - bar, person(), frame=frame)
            assert reliance(told.problem, told.actions([0], [0.5])).item() == share

    def test_who_acts_on_what_nothing_follows_from_relies_on_nothing(self):
        told = world(lambda x: x[:, D] - 0.5, person(times=3))
        assert reliance(told.problem, told.actions([1] * 3, [0.6, 0.8, 1.0])).tolist() == [0.0] * 3

    def test_nobody_s_depends_on_the_others(self):
        told = world(both, person(times=40))
        actions = told.actions([0] * 40, torch.linspace(0.1, 0.9, 40).tolist())
        whole = reliance(told.problem, actions)
        for i in range(0, 40, 7):
            one = reliance(told.problem, actions.part(torch.tensor([i])))
            assert one.item() == whole[i].item()


def test_the_others_are_those_of_where_the_action_leads():
    told = world(both, person(times=2))
    actions = told.actions([0, 1], [0.5, 0.9])
    odd, near = told.evidence.plausibility, told.evidence.support
    assert torch.equal(plausibility(told.problem, actions, told.evidence), odd.of(actions.reached))
    share = near.of(actions.reached, told.problem.goal)
    assert torch.equal(support(told.problem, actions, told.evidence), share)
    assert ACT_ON == ["a", "d"]
