"""Margins: the distance of answers past the boundary, a share of the scores' spread."""

import numpy as np
import pytest
import torch

from dear_plugin import DEAR, ClassGoal, RangeGoal, Search, Target

# The interquartile range of a normal distribution, in standard deviations.
QUARTILES = 1.349
SLACK = 1e-4


def spread(values):
    low, high = torch.as_tensor(values).quantile(torch.tensor([0.25, 0.75]))
    return (high - low) / QUARTILES


@pytest.fixture
def logits():
    """(4000, 1) log-odds of training rows, with a standard deviation of 2."""
    return 2.0 * torch.randn(4000, 1, generator=torch.Generator().manual_seed(0)) - 1.0


def wanted(label, n=1, **options):
    return ClassGoal(torch.full((n,), label), **options)


def unit(margins):
    """The spread of margins, at most 5/3 of the median of the accepted rows."""
    return min(float(spread(margins)), float(margins[margins > 0].median()) / 0.6)


def least(goal, scores, slack=SLACK):
    """The least of ascending scores, (m, c), that a search accepts."""
    rows = torch.zeros(len(scores), dtype=torch.int64)
    valid = goal.evaluate(scores, rows, slack)[1]
    return scores[valid.nonzero()[0, 0]]


class TestTwoClasses:
    SCORES = torch.linspace(-3.0, 3.0, 60_001)[:, None]

    @pytest.mark.parametrize("share", [0.1, 0.3, 1.0])
    def test_log_odds_must_exceed_the_boundary_by_a_share_of_their_unit(self, logits, share):
        goal = wanted(1).with_margin(share, logits)
        expected = share * unit(logits[:, 0]) + SLACK
        assert least(goal, self.SCORES).item() == pytest.approx(float(expected), abs=2e-4)

    def test_the_other_class_has_the_same_lead(self, logits):
        goal = wanted(0).with_margin(0.3, logits)
        expected = 0.3 * unit(-logits[:, 0]) + SLACK
        assert -least(goal, self.SCORES.flip(0)).item() == pytest.approx(float(expected), abs=2e-4)

    def test_it_is_beyond_a_threshold(self, logits):
        goal = wanted(1, threshold=0.8).with_margin(0.3, logits)
        expected = np.log(4.0) + 0.3 * unit(logits[:, 0] - np.log(4.0)) + SLACK
        assert least(goal, self.SCORES).item() == pytest.approx(expected, abs=2e-4)

    def test_two_columns_are_read_as_one(self, logits):
        pair = torch.cat([-logits, logits], 1) / 2.0
        tried = torch.cat([-self.SCORES, self.SCORES], 1) / 2.0
        goal, single = wanted(1).with_margin(0.3, pair), wanted(1).with_margin(0.3, logits)
        odds = least(goal, tried)
        assert float(odds[1] - odds[0]) == pytest.approx(
            least(single, self.SCORES).item(), abs=2e-4
        )

    def test_a_lead_does_not_change_success(self, logits):
        """Success is the model's decision; only a search uses the margin."""
        plain, led = wanted(1, 4000), wanted(1, 4000).with_margin(0.5, logits)
        assert torch.equal(plain.accepts(logits), led.accepts(logits))
        assert torch.equal(
            plain.succeeds(logits, lambda: None), led.succeeds(logits, lambda: None)
        )
        assert torch.equal(plain.margin(logits), led.margin(logits))
        assert torch.equal(plain.score(logits), led.score(logits))

    def test_a_constant_model_has_no_lead(self):
        goal = wanted(1).with_margin(0.3, torch.full((50, 1), 7.0))
        assert least(goal, self.SCORES).item() == pytest.approx(SLACK, abs=2e-4)

    def test_each_row_may_want_its_own_class(self, logits):
        goal = ClassGoal(torch.tensor([0, 1])).with_margin(0.3, logits)
        no, yes = (0.3 * unit(sign * logits[:, 0]) for sign in (-1.0, 1.0))
        scores = torch.tensor([[-no - 0.01], [yes + 0.01], [-no + 0.01], [yes - 0.01]])
        valid = goal.evaluate(scores, torch.tensor([0, 1, 0, 1]), SLACK)[1]
        assert valid.tolist() == [True, True, False, False]

    def test_scores_that_end_early_have_a_lead_within_reach(self):
        """Of a network whose accepted rows lie close to the boundary, whatever the others do."""
        scores = torch.cat([torch.linspace(-6.0, 0.0, 900), torch.linspace(0.0, 0.3, 100)])[
            :, None
        ]
        goal = wanted(1).with_margin(0.3, scores)
        assert float(goal.required[1]) == pytest.approx(0.075, rel=0.05)


class TestMoreClasses:
    def test_each_class_has_the_spread_of_its_own_margins(self):
        rng = torch.Generator().manual_seed(0)
        scores = torch.randn(4000, 3, generator=rng) * torch.tensor([0.2, 1.0, 5.0])
        goal = ClassGoal(torch.tensor([0, 1, 2])).with_margin(0.3, scores)
        for label in range(3):
            rest = [i for i in range(3) if i != label]
            margins = scores[:, label] - scores[:, rest].amax(1)
            assert float(goal.required[label]) == pytest.approx(0.3 * unit(margins), rel=1e-4)

    def test_the_lead_is_over_the_next_class(self):
        rng = torch.Generator().manual_seed(0)
        goal = wanted(2).with_margin(0.3, torch.randn(4000, 3, generator=rng))
        ahead = torch.linspace(-1.0, 2.0, 30_001)
        tried = torch.stack([torch.zeros_like(ahead), ahead * 0.0 - 1.0, ahead], 1)
        expected = float(goal.required[2]) + SLACK
        assert float(least(goal, tried)[2]) == pytest.approx(expected, abs=2e-4)


class TestRanges:
    VALUES = torch.linspace(-20.0, 40.0, 60_001)[:, None]

    def test_a_value_keeps_the_lead_from_either_end(self, logits):
        goal = RangeGoal(10.0, 30.0).with_margin(0.3, logits)
        inside = self.VALUES[goal.evaluate(self.VALUES, None, SLACK)[1]]
        required = 0.3 * float(spread(logits[:, 0])) + SLACK * 20.0
        assert inside.min().item() == pytest.approx(10.0 + required, abs=2e-3)
        assert inside.max().item() == pytest.approx(30.0 - required, abs=2e-3)

    def test_the_lead_of_a_narrow_range_is_a_share_of_its_half_width(self, logits):
        goal = RangeGoal(10.0, 10.5).with_margin(0.3, logits)
        inside = self.VALUES[goal.evaluate(self.VALUES, None, SLACK)[1]]
        assert inside.min().item() == pytest.approx(10.0 + 0.3 * 0.25, abs=2e-3)
        assert inside.max().item() == pytest.approx(10.5 - 0.3 * 0.25, abs=2e-3)

    def test_an_open_one_has_one_end(self, logits):
        goal = RangeGoal(10.0, float("inf")).with_margin(0.3, logits)
        inside = self.VALUES[goal.evaluate(self.VALUES, None, 1e-9)[1]]
        margins = logits[:, 0] - 10.0
        within = float(margins[margins > 0].median()) / 0.6 if (margins > 0).any() else np.inf
        required = 0.3 * min(float(spread(logits[:, 0])), within)
        assert inside.min().item() == pytest.approx(10.0 + required, abs=2e-3)
        assert inside.max().item() == 40.0

    def test_without_slack_the_range_is_as_it_was(self, logits):
        plain, led = RangeGoal(10.0, 30.0), RangeGoal(10.0, 30.0).with_margin(0.3, logits)
        assert torch.equal(plain.accepts(self.VALUES), led.accepts(self.VALUES))


class TestAnswers:
    """Answers of `generate` with a margin."""

    @pytest.fixture(scope="class")
    @classmethod
    def led(cls, loan):
        """The cheapest answers, without a margin and with one."""
        dear = DEAR(loan.net, loan.schema, search=Search.cheapest(max_features=1)).fit(loan.frame)
        factuals = loan.refused(60)
        return {
            margin: dear.with_search(Search.cheapest(max_features=1, margin=margin)).generate(
                factuals
            )
            for margin in (0.0, 0.3, 1.0)
        }

    @staticmethod
    def odds(loan, frame):
        with torch.no_grad():
            return loan.net(loan.encoder.encode(frame))[:, 0]

    @pytest.mark.parametrize("margin", [0.3, 1.0])
    def test_they_reach_the_lead_or_have_a_reason(self, loan, led, margin):
        """The spread is that of all 1,500 training rows."""
        required = margin * float(spread(self.odds(loan, loan.frame)))
        result = led[margin]
        done = result.actions["success"].to_numpy()
        near = result.actions["reason"] == "accepted, but by less than the required margin"
        ahead = self.odds(loan, result.counterfactuals).numpy()
        assert (ahead[done & ~near] >= required - 1e-3).all()
        assert (ahead[done & near] > 0.0).all()
        assert (done & ~near).sum() > 30

    def test_no_success_is_lost_and_none_gets_cheaper(self, led):
        free = led[0.0].actions
        for margin in (0.3, 1.0):
            led_margin = led[margin].actions
            assert (led_margin["success"] >= free["success"]).all()
            both = free["success"] & led_margin["success"]
            assert (led_margin["cost"][both] >= free["cost"][both] - 1e-6).mean() >= 0.97
            assert led_margin["cost"][both].mean() > free["cost"][both].mean()

    def test_a_range_has_a_lead_as_well(self, loan):
        dear = DEAR(loan.net, loan.schema, output="values", search=Search.cheapest(margin=0.3))
        dear = dear.fit(loan.frame)
        result = dear.generate(loan.refused(30), Target.of_range(0.5))
        valid = result.actions["success"] & (result.actions["reason"] == "")
        required = 0.3 * float(spread(self.odds(loan, loan.frame)))
        assert valid.sum() > 10
        assert (result.actions["score_after"][valid] >= 0.5 + required - 1e-3).all()
