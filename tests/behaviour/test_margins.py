"""Margins: the distance of answers past the boundary, a share of the scores' spread."""

import numpy as np
import pytest
import torch

from dear_plugin import DEAR, ClassGoal, RangeGoal, Search

# The interquartile range of a normal distribution, in standard deviations.
QUARTILES = 1.349


def spread(values):
    low, high = torch.as_tensor(values).quantile(torch.tensor([0.25, 0.75]))
    return (high - low) / QUARTILES


@pytest.fixture
def logits():
    """(4000, 1) log-odds of training rows, with a standard deviation of 2."""
    return 2.0 * torch.randn(4000, 1, generator=torch.Generator().manual_seed(0)) - 1.0


def unit(margins):
    """The spread of margins, at most 5/3 of the median of the accepted rows."""
    return min(float(spread(margins)), float(margins[margins > 0].median()) / 0.6)


# Goals, and the margins of log-odds by each; an open range is within reach.
GOALS = {
    "log-odds": (ClassGoal(torch.tensor([1])), lambda z: z),
    "a threshold": (ClassGoal(torch.tensor([1]), threshold=0.8), lambda z: z - np.log(4.0)),
    "an open range": (RangeGoal(1.0, float("inf"), torch.ones(1)), lambda z: z - 1.0),
}


@pytest.mark.parametrize("name", GOALS)
def test_the_unit_is_the_spread_of_margins_or_less_where_few_are_accepted(name, logits):
    goal, margins = GOALS[name]
    assert float(goal.unit(logits)[0]) == pytest.approx(unit(margins(logits[:, 0])), rel=1e-4)


def test_the_unit_of_a_narrow_range_is_half_the_width(logits):
    assert float(RangeGoal(10.0, 10.5, torch.ones(1)).unit(logits)) == 0.25


def test_each_class_has_the_spread_of_its_own_margins():
    rng = torch.Generator().manual_seed(0)
    scores = torch.randn(4000, 3, generator=rng) * torch.tensor([0.2, 1.0, 5.0])
    units = ClassGoal(torch.tensor([0, 1, 2])).unit(scores)
    for label in range(3):
        rest = [i for i in range(3) if i != label]
        margins = scores[:, label] - scores[:, rest].amax(1)
        assert float(units[label]) == pytest.approx(unit(margins), rel=1e-4)


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
