"""Goal.beyond: a goal farther past the boundary, without a required margin."""

import math

import pytest
import torch

from dear_plugin import ClassGoal, RangeGoal

SCORES = torch.linspace(-4.0, 6.0, 201)[:, None]
SLACK = 1e-4
CUTOFFS = torch.tensor([[0.9, -0.9], [0.95, -0.85]])


def class_goal(label, **rest):
    return ClassGoal(torch.full((201,), label), **rest)


GOALS = {
    "class 1": class_goal(1),
    "class 0": class_goal(0),
    "a threshold": class_goal(1, threshold=0.8),
    "a low threshold": class_goal(1, threshold=0.2),
    "the model's own cut-offs": class_goal(1, cutoffs=CUTOFFS),
    "those of class 0": class_goal(0, cutoffs=CUTOFFS),
    "a threshold above the cut-offs": class_goal(1, threshold=0.9, cutoffs=CUTOFFS),
    "an open range": RangeGoal(0.5, math.inf, torch.ones(201)),
    "a range": RangeGoal(-2.0, 3.0),
}


@pytest.mark.parametrize("name", GOALS)
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_it_accepts_what_the_goal_with_a_lead_accepts(name, share):
    goal = GOALS[name]
    farther, leading = goal.beyond(share, SCORES), goal.with_margin(share, SCORES)
    one, other = (each.accepts(SCORES, slack=SLACK) for each in (farther, leading))
    assert (one != other).sum() <= 1
    assert one.sum() < goal.accepts(SCORES, slack=SLACK).sum()
    assert farther.required_margin() == 0.0


def test_of_more_classes_it_has_a_lead():
    scores = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    goal = ClassGoal(torch.zeros(50, dtype=torch.int64))
    assert torch.equal(
        goal.beyond(0.5, scores).accepts(scores, slack=SLACK),
        goal.with_margin(0.5, scores).accepts(scores, slack=SLACK),
    )


def test_a_far_margin_is_short_of_certainty():
    assert class_goal(1).beyond(50.0, SCORES).threshold < 1.0
