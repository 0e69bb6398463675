"""Brackets: cut by cut towards the smallest change, by few questions or by few calls."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dear_plugin import Encoder, Schema
from dear_plugin.search import Search
from dear_plugin.search import bracket as brackets
from dear_plugin.search.bisect import Bracket, _calls, _come_by, _cuts, _order
from dear_plugin.search.problem import Question
from tests.search.test_line import Rule, asked, crooked, numbers, refused, searched


class TestCuts:
    @pytest.mark.parametrize("halvings", range(9))
    def test_they_halve_so_often(self, halvings):
        parts = 1
        for cut in _cuts(halvings):
            parts *= cut
        assert parts == 2**halvings

    @pytest.mark.parametrize("most", [1, 8, 100])
    def test_calls_make_all_of_them_in_order(self, most):
        calls = list(_calls(_cuts(5), most))
        assert [cut for call in calls for cut in call] == _cuts(5)
        assert [len(call) for call in calls] == {1: [1, 1, 1, 1], 8: [2, 2], 100: [4]}[most]

    def test_without_any_nothing_is_called(self):
        assert list(_calls(_cuts(0), 8)) == []

    def test_the_points_stand_in_the_order_in_which_one_cut_after_another_asks(self):
        assert _order([4]) == [1, 2, 3]
        assert _order([4, 2]) == [2, 4, 6, 1, 3, 5, 7]
        assert _order([2, 2, 2]) == [4, 2, 6, 1, 3, 5, 7]


def by_hand(good, cuts):
    """What one would ask about who knows nothing in advance."""
    asked_about, start, steps = set(), 0, len(good) + 1
    for parts in cuts:
        steps //= parts
        points = [start + steps * k for k in range(1, parts)]
        asked_about |= set(points)
        fine = [point for point in points if good[point - 1]]
        start = fine[0] - steps if fine else start + steps * (parts - 1)
    return asked_about


@given(st.integers(1, 5), st.data())
@settings(max_examples=300)
def test_of_what_is_known_in_advance_only_what_would_be_asked_about_counts(halvings, data):
    cuts, points = _cuts(halvings), 2**halvings - 1
    rows = data.draw(
        st.lists(st.lists(st.booleans(), min_size=points, max_size=points), min_size=1)
    )
    order = _order(cuts)
    seen = _come_by(torch.tensor(rows), cuts, torch.tensor(order).argsort())
    for mask, told in zip(seen, rows, strict=True):
        good = [fine for _, fine in sorted(zip(order, told, strict=True))]
        assert {order[i] for i in mask.nonzero()[:, 0].tolist()} == by_hand(good, cuts)


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


@pytest.mark.parametrize("refine", [0, 1, 2, 5, 9, 70])
@pytest.mark.parametrize("most", [1, 2, 8, 1 << 12])
def test_however_many_parts_a_call_tells_apart_the_answer_is_the_same(
    case, refine, most, monkeypatch
):
    same(*case, refine, most, monkeypatch)


@pytest.mark.parametrize("most", [8, 1 << 12])
def test_of_equal_costs_too_the_same_one_wins(ties, most, monkeypatch):
    same(*ties, 5, most, monkeypatch)


def same(question, grids, refine, most, monkeypatch):
    results = []
    for parts in (1, most):
        monkeypatch.setattr(brackets, "_at_once", lambda *_, parts=parts: parts)
        results.append(searched(question, grids, Search(refine=refine)))
    one, many = results
    torch.testing.assert_close(one.cost, many.cost)
    torch.testing.assert_close(one.values, many.values)


@pytest.mark.parametrize("most", [1, 8, 1 << 12])
def test_nobody_succeeds_by_staying_as_they_are(ties, most, monkeypatch):
    """Rounding may tell a factual from its own value on the grid, and the decoder then moves."""
    question, grids = ties
    monkeypatch.setattr(brackets, "_at_once", lambda *_: most)
    found = searched(question, grids)
    rows, sets = found.solved_pairs.nonzero(as_tuple=True)
    feature = question.sets.positions[sets, 0]
    moved = (found.values[rows, sets, 0] - question.x[rows, feature]).abs()
    assert (moved > question.limits.steps[feature] / 2).all()


def test_brackets_that_cannot_hold_the_cheapest_are_left_alone(case, monkeypatch):
    question, grids = case
    rows = []
    ask = Question.ask

    def counting(self, who, *rest):
        rows.append(len(who))
        return ask(self, who, *rest)

    monkeypatch.setattr(Question, "ask", counting)
    counts = []
    for hopeful in (Bracket.hopeful, lambda bracket, known: torch.arange(len(bracket))):
        monkeypatch.setattr(Bracket, "hopeful", hopeful)
        rows.clear()
        counts.append((searched(question, grids).cost.amin(1), sum(rows)))
    (pruned, few), (whole, many) = counts
    torch.testing.assert_close(pruned, whole)
    assert few < many


@pytest.mark.parametrize("refine", [0, 1, 2, 5, 9])
def test_a_bracket_costs_a_value_for_each_halving_and_one_for_looking_round(
    case, refine, monkeypatch
):
    question, grids = case
    asked_about = torch.zeros(len(question), len(question.sets), dtype=torch.long)
    ask = Question.ask

    def counting(self, rows, sets, values, slack):
        counts = torch.full_like(rows, values.shape[1])
        asked_about.index_put_((rows, sets), counts, accumulate=True)
        return ask(self, rows, sets, values, slack)

    monkeypatch.setattr(brackets, "_at_once", lambda *_: 1)
    start = searched(question, grids, Search(refine=0))
    monkeypatch.setattr(Question, "ask", counting)
    searched(question, grids, Search(refine=0))
    before = asked_about.clone()
    asked_about.zero_()
    searched(question, grids, Search(refine=refine))
    extra = asked_about - before
    assert start.solved_pairs.any()
    assert (extra >= 0).all()
    assert int(extra.max()) <= refine + (refine > 1)
    assert not refine or int(extra.max()) == refine + (refine > 1)
