"""Bisection: brackets are halved to the smallest change, with few evaluations."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.search import Search
from dear_plugin.search.bisect import Bracket, _cuts
from dear_plugin.search.problem import SearchProblem
from tests.search.test_line import (
    Rule,
    number_frame,
    problem_of,
    random_network,
    refused,
    searched,
)


class TestCuts:
    @pytest.mark.parametrize("halvings", range(9))
    def test_their_parts_multiply_to_a_power_of_two(self, halvings):
        parts = 1
        for cut in _cuts(halvings):
            parts *= cut
        assert parts == 2**halvings


@pytest.fixture(scope="module")
def case():
    """A nonlinear boundary, on numbers of fine and of coarse precision."""
    frame = number_frame().round({"a": 2, "b": 0})
    schema = Schema.infer(frame)
    model = Rule(lambda x: (x[:, 0] - 0.6) + 0.02 * torch.sin(300 * x[:, 0]) + 0.3 * x[:, 1])
    factuals = refused(model, Encoder(schema), frame, 100)
    return problem_of(model, schema, frame, factuals, act_on=["a", "b"])


@pytest.fixture(scope="module")
def ties():
    """Whole numbers: one step more of one and one step less of another cost the same."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=3000)
    frame = pd.DataFrame(
        {name: (100 + 20 * z + rng.normal(0, 10, 3000)).round().astype(int) for name in "abc"}
    )
    schema = Schema.infer(frame)
    encoder = Encoder(schema)
    model = random_network(frame, encoder, 1)
    return problem_of(model, schema, frame, refused(model, encoder, frame, 1000))


def test_no_success_is_the_factual(ties):
    """Rounding may separate a factual from its value on the grid; that is no change."""
    problem, grids = ties
    incumbents = searched(problem, grids)
    rows, sets = incumbents.solved_pairs.nonzero(as_tuple=True)
    feature = problem.sets.positions[sets, 0]
    moved = (incumbents.values[rows, sets, 0] - problem.x[rows, feature]).abs()
    assert (moved > problem.feasible.steps[feature] / 2).all()


def test_brackets_that_cannot_contain_the_cheapest_are_skipped(case, monkeypatch):
    problem, grids = case
    rows = []
    evaluate = SearchProblem.evaluate

    def counting(self, owners, *rest):
        rows.append(len(owners))
        return evaluate(self, owners, *rest)

    monkeypatch.setattr(SearchProblem, "evaluate", counting)
    counts = []
    for can_improve in (Bracket.can_improve, lambda bracket, bound: torch.arange(len(bracket))):
        monkeypatch.setattr(Bracket, "can_improve", can_improve)
        rows.clear()
        counts.append((searched(problem, grids).cost.amin(1), sum(rows)))
    (pruned, few), (whole, many) = counts
    torch.testing.assert_close(pruned, whole)
    assert few < many


@pytest.mark.parametrize("refine", [0, 1, 2, 5, 9])
def test_a_bracket_takes_one_evaluation_per_halving_and_one_more(case, refine, monkeypatch):
    problem, grids = case
    evaluations = torch.zeros(len(problem), len(problem.sets), dtype=torch.long)
    evaluate = SearchProblem.evaluate

    def counting(self, rows, sets, values, slack):
        counts = torch.full_like(rows, values.shape[1])
        evaluations.index_put_((rows, sets), counts, accumulate=True)
        return evaluate(self, rows, sets, values, slack)

    start = searched(problem, grids, Search(refine=0))
    monkeypatch.setattr(SearchProblem, "evaluate", counting)
    searched(problem, grids, Search(refine=0))
    before = evaluations.clone()
    evaluations.zero_()
    searched(problem, grids, Search(refine=refine))
    extra = evaluations - before
    assert start.solved_pairs.any()
    assert (extra >= 0).all()
    assert int(extra.max()) <= refine + (refine > 1)
    assert not refine or int(extra.max()) == refine + (refine > 1)
