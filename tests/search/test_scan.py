"""CandidateScan: which values are evaluated, and which cannot improve."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from dear_plugin import DEAR, Encoder, Schema
from dear_plugin.search import Search
from dear_plugin.search import scan as scans
from dear_plugin.search.scan import CandidateScan, _before
from tests.search.test_line import (
    Rule,
    discrete_frame,
    number_frame,
    problem_of,
    random_network,
    refused,
    searched,
)

NUMBERS = ["years", "visits", "rooms"]


def scan(values, x):
    """A scan with one pair per row."""
    values, x = torch.tensor(values), torch.tensor(x)[:, None]
    rows = torch.arange(len(values))
    return CandidateScan(rows, torch.zeros_like(rows), x, values, _before(values, x), 0.0)


ascending = st.lists(st.integers(0, 30), min_size=1, max_size=12).map(sorted)


class TestHalves:
    @given(ascending, st.integers(-5, 35))
    @settings(max_examples=200)
    def test_the_nearer_half_comes_first(self, grid, x):
        values = [float(v) for v in grid]
        near, far = scan([values], [float(x)]).halves()
        assert sorted(near.values[0].tolist() + far.values[0].tolist()) == values
        assert len(near.values[0]) == -(-len(values) // 2)
        if len(values) > 1:
            assert (near.values - x).abs().max() <= (far.values - x).abs().min()


class TestCanImprove:
    @given(ascending, st.integers(-5, 35), st.sampled_from([0.0, 2.0, 7.5, torch.inf]))
    @settings(max_examples=200)
    def test_values_that_the_one_before_does_not_exclude(self, grid, x, bound):
        """Between a value and the one before it, a success may be as cheap as the latter."""
        values = [float(v) for v in grid]
        wanted = scan([values], [float(x)]).can_improve(bound)[0].tolist()
        expected = set()
        for value in set(values):
            distance = abs(value - x)
            inner = [
                abs(v - x) for v in values if abs(v - x) < distance and (v - x) * (value - x) >= 0
            ]
            if distance > 0 and max(inner, default=0.0) < bound:
                expected.add(value)
        kept = [v for v, w in zip(values, wanted, strict=True) if w]
        assert set(kept) == expected
        assert len(kept) == len(expected)

    @pytest.mark.parametrize("width", [1, 2, 4, 5])
    def test_packs_contain_the_masked_values_only(self, width):
        rng = np.random.default_rng(width)
        whole = scan(np.sort(rng.random((50, 9))).tolist(), rng.random(50).tolist())
        wanted = torch.tensor(rng.random((50, 9)) < rng.random((50, 1)))
        rows, _, packs = whole.packed(wanted, width)
        assert packs.shape[1] == width
        for row in range(50):
            kept = packs[rows == row]
            assert set(kept.flatten().tolist()) == set(whole.values[row, wanted[row]].tolist())
            assert len(kept) == -(-int(wanted[row].sum()) // width)

    def test_an_empty_mask_has_no_packs(self):
        whole = scan([[0.1, 0.2]], [0.0])
        _, _, packs = whole.packed(torch.zeros(1, 2, dtype=torch.bool), 4)
        assert packs.shape == (0, 4)


class Recorder(nn.Module):
    """A model that records the rows it evaluates."""

    def __init__(self, model):
        super().__init__()
        self.model, self.rows = model, []

    def forward(self, x):
        self.rows.append(x.clone())
        return self.model(x)


@pytest.fixture(scope="module", params=range(3))
def world(request):
    frame = discrete_frame()
    frame["years"] += discrete_frame(seed=1)["years"]
    frame["visits"] *= 3
    schema = Schema.infer(frame, increasing=["rooms"])
    encoder = Encoder(schema)
    model = random_network(frame, encoder, request.param)
    return frame, schema, model, refused(model, encoder, frame)


class TestNearestMiss:
    """Of a model that rejects all rows."""

    @staticmethod
    def nearest_miss(frame, margin, n=200):
        schema = Schema.infer(frame)
        problem, grids = problem_of(Rule(margin), schema, frame, frame.iloc[:n], act_on=["a"])
        result = searched(problem, grids)
        assert not result.solved.any()
        return problem, grids, result

    @pytest.mark.parametrize("slope", [13, 15, 17])
    def test_it_does_not_depend_on_the_other_rows_where_the_margin_saturates(
        self, slope, monkeypatch
    ):
        monkeypatch.setattr(scans, "DENSE_SHARE", 1.0)  # values come in packs
        problem, grids, whole = self.nearest_miss(
            number_frame(), lambda x: -0.5 - torch.exp(-slope * x[:, 0])
        )
        for row in range(len(problem)):
            alone = searched(problem.select(torch.tensor([row])), grids)
            torch.testing.assert_close(alone.tried_values[0], whole.tried_values[row])

    def test_it_is_never_the_factual(self):
        """Even where the factual has the largest margin."""
        frame = number_frame().assign(a=np.arange(2000) % 20)
        problem, _, result = self.nearest_miss(frame, lambda x: -0.5 - (x[:, 0] - 0.5).abs())
        assert (result.tried_set == 0).all()
        assert (result.tried_values[:, 0] != problem.x[:, 0]).all()


def test_few_rows_take_fewer_calls_of_the_model(world):
    frame, schema, model, factuals = world
    recorder = Recorder(model)
    dear = DEAR(recorder, schema, act_on=NUMBERS, search=Search.cheapest(groups=False)).fit(frame)
    recorder.rows.clear()
    dear.generate(factuals.iloc[:1])
    alone = len(recorder.rows)
    recorder.rows.clear()
    dear.generate(factuals)
    assert alone < len(recorder.rows)


def test_categories_are_evaluated_only_where_nothing_is_cheaper(world):
    """A change of category costs one."""
    frame, schema, model, factuals = world
    problem, grids = problem_of(model, schema, frame, factuals)
    every, pruned = (searched(problem, grids, prune=prune).cost for prune in (False, True))
    by_number = every[:, grids.numeric].amin(1)
    cheap, none = by_number < 0.5, by_number > 1.5
    assert every[cheap][:, ~grids.numeric].isfinite().any()
    assert not pruned[cheap][:, ~grids.numeric].isfinite().any()
    torch.testing.assert_close(every[none][:, ~grids.numeric], pruned[none][:, ~grids.numeric])
    torch.testing.assert_close(every.amin(1), pruned.amin(1))
