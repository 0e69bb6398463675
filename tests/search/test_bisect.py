"""Brackets: halved towards the smallest change, with few evaluations."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.search import Search
from dear_plugin.search.bisect import Bracket, _cuts
from dear_plugin.search.problem import SearchProblem
from tests.search.test_line import Rule, asked, crooked, numbers, refused, searched


class TestCuts:
    @pytest.mark.parametrize("halvings", range(9))
    def test_they_halve_so_often(self, halvings):
        parts = 1
        for cut in _cuts(halvings):
            parts *= cut
        assert parts == 2**halvings


@pytest.fixture(scope="module")
def case():
    """Who must go past a crooked boundary, on numbers fine and coarse."""
    frame = numbers().round({"a": 2, "b": 0})
    schema = Schema.infer(frame)
    model = Rule(lambda x: (x[:, 0] - 0.6) + 0.02 * torch.sin(300 * x[:, 0]) + 0.3 * x[:, 1])
    people = refused(model, Encoder(schema), frame, 100)
    return asked(model, schema, frame, people, act_on=["a", "b"])


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
    model = crooked(frame, encoder, 1)
    return asked(model, schema, frame, refused(model, encoder, frame, 1000))


def test_no_success_is_the_factual_itself(ties):
    """Rounding may tell a factual from its own value on the grid, and the decoder then moves."""
    problem, grids = ties
    incumbents = searched(problem, grids)
    rows, sets = incumbents.solved_pairs.nonzero(as_tuple=True)
    feature = problem.sets.positions[sets, 0]
    moved = (incumbents.values[rows, sets, 0] - problem.x[rows, feature]).abs()
    assert (moved > problem.feasible.steps[feature] / 2).all()


def test_brackets_that_cannot_hold_the_cheapest_are_left_alone(case, monkeypatch):
    problem, grids = case
    rows = []
    evaluate = SearchProblem.evaluate

    def counting(self, who, *rest):
        rows.append(len(who))
        return evaluate(self, who, *rest)

    monkeypatch.setattr(SearchProblem, "evaluate", counting)
    counts = []
    for can_improve in (Bracket.can_improve, lambda bracket, known: torch.arange(len(bracket))):
        monkeypatch.setattr(Bracket, "can_improve", can_improve)
        rows.clear()
        counts.append((searched(problem, grids).cost.amin(1), sum(rows)))
    (pruned, few), (whole, many) = counts
    torch.testing.assert_close(pruned, whole)
    assert few < many


@pytest.mark.parametrize("refine", [0, 1, 2, 5, 9])
def test_a_bracket_costs_a_value_for_each_halving_and_one_for_looking_round(
    case, refine, monkeypatch
):
    problem, grids = case
    asked_about = torch.zeros(len(problem), len(problem.sets), dtype=torch.long)
    evaluate = SearchProblem.evaluate

    def counting(self, rows, sets, values, slack):
        counts = torch.full_like(rows, values.shape[1])
        asked_about.index_put_((rows, sets), counts, accumulate=True)
        return evaluate(self, rows, sets, values, slack)

    start = searched(problem, grids, Search(refine=0))
    monkeypatch.setattr(SearchProblem, "evaluate", counting)
    searched(problem, grids, Search(refine=0))
    before = asked_about.clone()
    asked_about.zero_()
    searched(problem, grids, Search(refine=refine))
    extra = asked_about - before
    assert start.solved_pairs.any()
    assert (extra >= 0).all()
    assert int(extra.max()) <= refine + (refine > 1)
    assert not refine or int(extra.max()) == refine + (refine > 1)
