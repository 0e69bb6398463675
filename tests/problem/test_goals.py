"""Goals: one aim, (n,), is the margin that rows must have; `wanted` says the same in scores."""

import math

import pytest
import torch

from dear_plugin import ClassGoal, RangeGoal
from dear_plugin.errors import TargetError

SCORES = torch.linspace(-4.0, 6.0, 201)[:, None]
CUTOFFS = torch.tensor([[0.9, -0.9], [0.95, -0.85]])


def class_goal(label, n=201, **rest):
    return ClassGoal(torch.full((n,), label), **rest)


GOALS = {
    "class 1": class_goal(1),
    "class 0": class_goal(0),
    "a threshold": class_goal(1, threshold=0.8),
    "a low threshold": class_goal(1, threshold=0.2),
    "the model's own cut-offs": class_goal(1, cutoffs=CUTOFFS),
    "those of class 0": class_goal(0, cutoffs=CUTOFFS),
    "a threshold above the cut-offs": class_goal(1, threshold=0.9, cutoffs=CUTOFFS),
    "each row its own class": ClassGoal(torch.arange(201) % 2, cutoffs=CUTOFFS),
    "an open range": RangeGoal(0.5, math.inf, torch.ones(201)),
    "a range": RangeGoal(-2.0, 3.0, torch.ones(201)),
    "each row its own range": RangeGoal(
        torch.linspace(-2.0, 0.0, 201).double(), math.inf, torch.ones(201)
    ),
}


@pytest.mark.parametrize("name", GOALS)
class TestEveryGoal:
    @pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
    def test_scores_inside_of_wanted_have_the_margin(self, name, share):
        goal = GOALS[name]
        aim = share * goal.unit(SCORES)
        least, most = goal.wanted(aim).T
        score, reached = goal.score(SCORES).double(), goal.margin(SCORES) >= aim
        assert ((score >= least) & (score <= most) != reached).sum() <= 1

    def test_what_is_past_the_boundary_is_accepted(self, name):
        goal = GOALS[name]
        reached = [goal.margin(SCORES) >= goal.aim(past) for past in (1e-4, 0.1)]
        assert goal.accepts(SCORES)[reached[0]].all()
        assert reached[0].sum() > reached[1].sum() > 0

    def test_a_selection_has_its_own(self, name):
        goal, some = GOALS[name], torch.tensor([7, 190])
        part = goal.select(some)
        for one, whole in (
            (part.aim(0.1), goal.aim(0.1)),
            (part.unit(SCORES), goal.unit(SCORES)),
            (part.wanted(torch.ones(2)), goal.wanted(torch.ones(201))),
            (part.margin(SCORES[some]), goal.margin(SCORES)),
        ):
            assert torch.equal(one, whole[some])


@pytest.mark.parametrize("label", [0, 1])
def test_surely_is_past_the_second_cut_off(label):
    goal, strict = (class_goal(label, cutoffs=each) for each in (CUTOFFS, CUTOFFS.flip(0)))
    assert torch.allclose(
        goal.margin(SCORES) - goal.aim(0.1, surely=True), strict.margin(SCORES) - 0.1, atol=1e-6
    )


def test_a_threshold_above_both_cut_offs_stays():
    goal = class_goal(1, threshold=0.9, cutoffs=CUTOFFS)
    assert torch.equal(goal.aim(0.1, surely=True), goal.aim(0.1))


def test_of_more_classes_no_score_alone_decides():
    scores = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    goal = class_goal(0, n=50).bind(scores)
    assert goal.wanted(goal.unit(scores)).isnan().all()


def test_a_far_aim_is_short_of_certainty():
    assert class_goal(1).wanted(torch.full((201,), 50.0))[0, 0] < 1.0


@pytest.mark.parametrize("asked", [lambda goal: goal.aim(0.1), lambda goal: goal.unit(SCORES)])
def test_a_range_is_bound_to_rows(asked):
    with pytest.raises(TargetError, match=r"call bind\(scores\) first"):
        asked(RangeGoal(0.5, math.inf))
