"""Scan: what is asked about, and what is passed over because nothing cheaper can be there."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from dear_plugin import DEAR, Encoder, Schema
from dear_plugin.search import Incumbents, Search, line_search
from dear_plugin.search import scan as scans
from dear_plugin.search.scan import CandidateScan, _before
from tests.search.test_line import Rule, asked, crooked, crowd, numbers, refused, searched

NUMBERS = ["years", "visits", "rooms"]


def scan(values, x):
    """A scan of one pair a row."""
    values, x = torch.tensor(values), torch.tensor(x)[:, None]
    rows = torch.arange(len(values))
    return CandidateScan(rows, torch.zeros_like(rows), x, values, _before(values, x), 0.0)


ladders = st.lists(st.integers(0, 30), min_size=1, max_size=12).map(sorted)


class TestHalves:
    @given(ladders, st.integers(-5, 35))
    @settings(max_examples=200)
    def test_the_nearer_half_and_all_the_others(self, ladder, x):
        values = [float(v) for v in ladder]
        near, far = scan([values], [float(x)]).halves()
        assert sorted(near.values[0].tolist() + far.values[0].tolist()) == values
        assert len(near.values[0]) == -(-len(values) // 2)
        if len(values) > 1:
            assert (near.values - x).abs().max() <= (far.values - x).abs().min()


class TestWhatMayBeCheaper:
    @given(ladders, st.integers(-5, 35), st.sampled_from([0.0, 2.0, 7.5, torch.inf]))
    @settings(max_examples=200)
    def test_each_other_value_that_the_one_before_does_not_rule_out(self, ladder, x, known):
        """Between a value and the one before it there may be something as cheap as that one."""
        values = [float(v) for v in ladder]
        wanted = scan([values], [float(x)]).cheaper(known)[0].tolist()
        expected = set()
        for value in set(values):
            gap = abs(value - x)
            inner = [abs(v - x) for v in values if abs(v - x) < gap and (v - x) * (value - x) >= 0]
            if gap > 0 and max(inner, default=0.0) < known:
                expected.add(value)
        kept = [v for v, w in zip(values, wanted, strict=True) if w]
        assert set(kept) == expected
        assert len(kept) == len(expected)

    @pytest.mark.parametrize("width", [1, 2, 4, 5])
    def test_packs_hold_what_is_wanted_and_nothing_else(self, width):
        rng = np.random.default_rng(width)
        whole = scan(np.sort(rng.random((50, 9))).tolist(), rng.random(50).tolist())
        wanted = torch.tensor(rng.random((50, 9)) < rng.random((50, 1)))
        rows, _, packs = whole.packed(wanted, width)
        assert packs.shape[1] == width
        for row in range(50):
            held = packs[rows == row]
            assert set(held.flatten().tolist()) == set(whole.values[row, wanted[row]].tolist())
            assert len(held) == -(-int(wanted[row].sum()) // width)

    def test_of_nothing_wanted_there_are_no_packs(self):
        whole = scan([[0.1, 0.2]], [0.0])
        _, _, packs = whole.packed(torch.zeros(1, 2, dtype=torch.bool), 4)
        assert packs.shape == (0, 4)


class Observations(nn.Module):
    """A model that keeps every row it was asked about."""

    def __init__(self, model):
        super().__init__()
        self.model, self.rows = model, []

    def forward(self, x):
        self.rows.append(x.clone())
        return self.model(x)


@pytest.fixture(scope="module", params=range(3))
def world(request):
    frame = crowd()
    frame["years"] += crowd(seed=1)["years"]
    frame["visits"] *= 3
    schema = Schema.infer(frame, increasing=["rooms"])
    encoder = Encoder(schema)
    model = crooked(frame, encoder, request.param)
    return frame, schema, model, refused(model, encoder, frame)


@pytest.mark.parametrize(
    "search",
    [Search(), Search(coarse=5, deepen=3), Search(coarse=1), Search(refine=3), Search(refine=15)],
    ids=["as it is", "coarse", "one value", "three halvings", "many halvings"],
)
def test_few_are_told_in_advance_what_many_are_told_later(world, search, monkeypatch):
    frame, schema, model, people = world
    problem, grids = asked(model, schema, frame, people, search=search)
    results = []
    for few in (0, 1 << 30):
        monkeypatch.setattr(scans, "FEW", few)
        result = Incumbents.none(problem)
        line_search(problem, grids, search, result)
        results.append(result)
    later, before = results
    assert torch.equal(later.solved, before.solved)
    torch.testing.assert_close(later.cost, before.cost)
    torch.testing.assert_close(later.values, before.values)
    lost = ~later.solved
    assert torch.equal(later.tried_set[lost], before.tried_set[lost])
    torch.testing.assert_close(later.tried_values[lost], before.tried_values[lost])


class TestTheNearestMiss:
    """Of a model that accepts nobody."""

    @staticmethod
    def missed(frame, margin, n=200):
        schema = Schema.infer(frame)
        problem, grids = asked(Rule(margin), schema, frame, frame.iloc[:n], act_on=["a"])
        result = searched(problem, grids)
        assert not result.solved.any()
        return problem, grids, result

    @pytest.mark.parametrize("steep", [13, 15, 17])
    def test_is_the_same_in_every_company_where_the_margin_flattens_out(self, steep, monkeypatch):
        monkeypatch.setattr(scans, "MOST", 1.0)  # in company, values come in packs
        problem, grids, together = self.missed(
            numbers(), lambda x: -0.5 - torch.exp(-steep * x[:, 0])
        )
        for row in range(len(problem)):
            alone = searched(problem.select(torch.tensor([row])), grids)
            torch.testing.assert_close(alone.tried_values[0], together.tried_values[row])

    def test_is_never_to_stay_as_one_is(self):
        """However well the factual stands, nothing was done with it."""
        frame = numbers().assign(a=np.arange(2000) % 20)
        problem, _, result = self.missed(frame, lambda x: -0.5 - (x[:, 0] - 0.5).abs())
        assert (result.tried_set == 0).all()
        assert (result.tried_values[:, 0] != problem.x[:, 0]).all()


def test_of_few_values_the_model_hears_in_fewer_calls(world):
    frame, schema, model, people = world
    heard = Observations(model)
    dear = DEAR(heard, schema, act_on=NUMBERS, search=Search.cheapest(groups=False)).fit(frame)
    heard.rows.clear()
    dear.generate(people.iloc[:1])
    alone = len(heard.rows)
    heard.rows.clear()
    dear.generate(people)
    assert alone < len(heard.rows)


def test_categories_are_asked_about_only_where_nothing_is_cheaper(world):
    """Another category costs one."""
    frame, schema, model, people = world
    problem, grids = asked(model, schema, frame, people)
    every, pruned = (searched(problem, grids, prune=prune).cost for prune in (False, True))
    by_number = every[:, grids.numeric].amin(1)
    cheap, none = by_number < 0.5, by_number > 1.5
    assert every[cheap][:, ~grids.numeric].isfinite().any()
    assert not pruned[cheap][:, ~grids.numeric].isfinite().any()
    torch.testing.assert_close(every[none][:, ~grids.numeric], pruned[none][:, ~grids.numeric])
    torch.testing.assert_close(every.amin(1), pruned.amin(1))
