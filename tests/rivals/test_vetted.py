"""Vetted: the criteria of a search for any method."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import RecourseMethod, Schema, Search, Vetted
from dear_plugin.errors import SettingError
from dear_plugin.problem.goals import ClassGoal
from dear_plugin.results.proposal import Proposal
from dear_plugin.rivals import NearestAccepted
from tests.every_method import RIVALS

ROWS = 30
PLAUSIBLE = Search.cheapest(min_plausibility=0.05)
SUPPORTED = Search.cheapest(min_support=0.8)
FAR = Search.cheapest(margin=0.3)
SLIGHTLY = 1e-6


class Boundary(RecourseMethod):
    """A black box: the boundary point on the way to one accepted row; it knows no criteria."""

    def _learn(self, rows):
        scores = self.classifier.scores(rows)
        self.far = rows[scores[:, 0].argmax()]

    def _propose(self, case):
        low, high = torch.zeros(len(case)), torch.ones(len(case))
        for _ in range(12):
            middle = (low + high) / 2.0
            accepted = self._accepted(case, self._at(case, middle))
            low, high = torch.where(accepted, low, middle), torch.where(accepted, middle, high)
        rows = self._at(case, high)
        reasons = ["" if done else "too far" for done in self._accepted(case, rows).tolist()]
        return Proposal(rows, rows != case.x, torch.zeros(len(case)), reasons)

    def _at(self, case, share):
        moved = case.x + share[:, None] * (self.far - case.x)
        moved = torch.where(self.encoder.blocks, case.x, moved)
        every = torch.arange(len(case))
        return case.feasible.project(case.x, moved[:, None], every)[:, 0]

    def _accepted(self, case, rows):
        return case.goal.margin(self.classifier.scores(rows)) >= case.aim


LONG = ("Wachter", "REVISE", "C-CHVAE")
METHODS = {name: RIVALS[name] for name in ("nearest accepted", "FACE-K", "growing spheres", *LONG)}
METHODS["a black box"] = Boundary


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=[pytest.mark.slow] if name in LONG else []) for name in METHODS
    ],
)
def fitted(request, mixed):
    return METHODS[request.param](mixed.net, mixed.schema).fit(mixed.frame)


@pytest.fixture(scope="module")
def refused(mixed):
    return mixed.refused(ROWS)


@pytest.fixture(scope="module")
def alone(fitted, refused):
    return fitted.generate(refused)


@pytest.fixture(scope="module")
def nearest(mixed):
    return NearestAccepted(mixed.net, mixed.schema).fit(mixed.frame)


@pytest.fixture(scope="module")
def boundary(mixed):
    return Boundary(mixed.net, mixed.schema).fit(mixed.frame)


class TestAnyMethod:
    """What holds for every method."""

    @pytest.mark.parametrize("search", [PLAUSIBLE, SUPPORTED, FAR], ids=["p", "s", "m"])
    def test_success_stays(self, fitted, refused, alone, search):
        result = Vetted(fitted, search).generate(refused)
        assert (result.actions["success"] >= alone.actions["success"]).all()

    def test_no_credible_answer_is_less_plausible_than_required(self, fitted, refused):
        result = Vetted(fitted, PLAUSIBLE).generate(refused)
        found = result.actions[result.actions["credible"]]
        own = fitted.trained.plausibility(fitted.encoder.rows(refused)).numpy()
        least = np.minimum(own, 0.05)[result.actions["credible"]]
        assert len(found)
        assert (found["plausibility"] >= least - SLIGHTLY).all()

    def test_credible_answers_are_supported(self, fitted, refused):
        result = Vetted(fitted, SUPPORTED).generate(refused)
        found = result.actions["credible"]
        assert found.mean() >= 0.5
        assert (result.support[found] >= 0.8 - SLIGHTLY).all()

    def test_the_margin_is_reached(self, fitted, refused):
        result = Vetted(fitted, FAR).generate(refused)
        goal = ClassGoal(torch.ones(ROWS, dtype=torch.int64))
        margin = goal.margin(fitted.classifier.scores(result.proposal.rows))
        reached = (margin >= 0.3 * goal.unit(fitted.trained.scored[1])).numpy()
        assert (reached == (result.reasons == "")).all()
        assert reached.mean() > 0.7


class TestNearestAccepted:
    """Its right answers are known by brute force."""

    def test_the_nearest_row_that_meets_the_criteria_is_found(self, mixed, refused):
        search = Search.cheapest(min_support=0.8)
        free = NearestAccepted(mixed.net, Schema.infer(mixed.frame))
        vetted = Vetted(free, search).fit(mixed.frame)
        rows, x = (vetted.encoder.rows(frame) for frame in (mixed.frame, refused))
        goal = ClassGoal(torch.ones(len(rows), dtype=torch.int64))
        support = vetted.trained.support(rows, goal, torch.arange(len(rows)))
        supported = support >= 0.8 - SLIGHTLY
        known = rows[(vetted.classifier.scores(rows)[:, 0] > 1e-4) & supported]
        expected = vetted.encoder.distance(known, x[:, None]).sum(2).min(1).values
        found = vetted.generate(refused).actions
        assert found["credible"].all()
        assert np.allclose(found["cost"], expected, atol=1e-5)


class TestBlackBox:
    """A method that knows no criteria is asked again, farther past the boundary."""

    def test_farther_targets_lead_to_support(self, boundary, refused):
        alone = boundary.generate(refused)
        result = Vetted(boundary, SUPPORTED).generate(refused)
        lacking = alone.support < 0.8
        assert lacking.any()
        assert (result.support[lacking] >= 0.8).mean() > 0.3
        assert result.counterfactuals[~lacking].equals(alone.counterfactuals[~lacking])


class TestFit:
    """The method that is passed does not change."""

    def test_a_fitted_method_is_used_as_it_is(self, mixed, nearest):
        vetted = Vetted(nearest, SUPPORTED)
        assert vetted.method is nearest
        assert vetted.fit(mixed.frame).method is nearest

    def test_other_rows_fit_a_copy(self, mixed, nearest, refused):
        before = nearest.generate(refused).counterfactuals
        some = mixed.frame.iloc[:150]
        again = Vetted(nearest, SUPPORTED).fit(some).generate(refused)
        new = Vetted(NearestAccepted(mixed.net, mixed.schema), SUPPORTED).fit(some)
        pd.testing.assert_frame_equal(again.counterfactuals, new.generate(refused).counterfactuals)
        pd.testing.assert_frame_equal(nearest.generate(refused).counterfactuals, before)

    @pytest.mark.parametrize("arguments", [("nearest", None), (None, "cheapest")])
    def test_other_arguments_raise_an_error(self, nearest, arguments):
        method, search = arguments
        with pytest.raises(SettingError, match="must be a"):
            Vetted(method or nearest, search)
