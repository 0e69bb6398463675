"""Lookup: entries of a table at many places at once."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dear_plugin.decoders import lookup
from dear_plugin.decoders.transport.lookup import Ruler, pick, places

TABLE = torch.tensor([[1.0, 2.0, 2.0, 5.0], [0.0, 0.0, 3.0, 9.0]])
VALUES = (-1.0, 0.0, 1.0, 2.0, 2.5, 9.0, 10.0)
# Few are counted, many are searched for.
FEW_AND_MANY = (1, lookup.COUNTED)


def test_entries_are_named_by_their_place_in_the_flat_table():
    at = torch.tensor([[[0, 7]], [[4, 3]]]).int()
    assert pick(TABLE, at).tolist() == [[[1.0, 9.0]], [[0.0, 5.0]]]


class TestPlaces:
    """One search serves many sorted stretches of one table."""

    @pytest.mark.parametrize("row", [0, 1])
    @pytest.mark.parametrize("times", FEW_AND_MANY)
    @pytest.mark.parametrize(("below", "side"), [(torch.lt, "left"), (torch.le, "right")])
    def test_it_is_searchsorted(self, row, times, below, side):
        base, value = torch.full((7 * times,), 4 * row).int(), torch.tensor(VALUES * times)
        expected = torch.searchsorted(TABLE[row], value, side=side, out_int32=True)
        assert torch.equal(places(TABLE, base, 1, 4, value, below), expected)

    @pytest.mark.parametrize("times", FEW_AND_MANY)
    def test_a_stretch_may_run_down_a_column(self, times):
        base, value = torch.tensor([0, 1, 0] * times).int(), torch.tensor([0.5, 2.5, -1.0] * times)
        assert places(TABLE.flip(0), base, 4, 2, value).tolist() == [1, 2, 0] * times


numbers = st.one_of(
    st.floats(-1.0, 2.0, width=32),
    st.integers(-20, 20).map(lambda power: 2.0**power),
    st.sampled_from([0.0, 1.0, 0.5, 1e-30, -1e15, 1e15]),
)
ladders = st.lists(
    st.lists(numbers, min_size=1, max_size=70).map(sorted), min_size=1, max_size=4
).map(lambda rungs: [torch.tensor(each) for each in rungs])


class TestRuler:
    """Each value finds the last rung below it, on its own ladder."""

    @given(ladders, st.lists(numbers, min_size=1, max_size=20), st.booleans())
    def test_by_buckets_it_is_the_search(self, rungs, others, reached):
        value = torch.cat([*rungs, torch.tensor(others)])
        ruler = Ruler.of(torch.cat(rungs), torch.tensor([len(each) for each in rungs]))
        for j in range(len(rungs)):
            ladder = torch.full(value.shape, j)
            found = ruler._buckets.below(value + ruler.shift[ladder], ladder, reached)
            assert len(value) < lookup.MANY
            assert torch.equal(found, ruler.below(value, ladder, reached))

    @given(ladders, st.booleans())
    def test_it_is_the_last_rung_below(self, rungs, reached):
        """Numbers apart by more than what doubles lose where ladders lie end to end."""
        rungs = [each.clamp(-(2.0**20), 2.0**20).mul(1024).round().div(1024) for each in rungs]
        value = torch.cat(rungs)
        ruler = Ruler.of(value, torch.tensor([len(each) for each in rungs]))
        for j, each in enumerate(rungs):
            expected = torch.searchsorted(each, value, right=reached).sub(1).clamp_min(0)
            found = ruler.below(value, torch.full(value.shape, j), reached)
            assert (found - ruler.first[j]).tolist() == expected.tolist()

    @pytest.mark.parametrize("reached", [True, False])
    @pytest.mark.parametrize(
        ("rungs", "steps"),
        [
            (torch.arange(60) / 59.0, 1),
            (torch.logspace(-5, 0, 60), 1),
            (torch.cat([torch.zeros(1), 1.0 - torch.logspace(-3, -6, 60)]), 60),
            (torch.tensor([3.0]), 0),
        ],
        ids=["even", "close at the low end", "close at the high end", "one rung"],
    )
    def test_many_values_and_few_are_told_the_same(self, rungs, steps, reached):
        ruler = Ruler.of(rungs, torch.tensor([len(rungs)]))
        assert ruler._buckets.steps <= steps
        value = torch.cat([rungs, torch.linspace(-0.5, 1.5, 2 * lookup.MANY)])
        here = torch.zeros(len(value), dtype=torch.int64)
        together = ruler.below(value, here, reached)
        apart = [ruler.below(v, here[: len(v)], reached) for v in value.split(100)]
        assert torch.equal(together, torch.cat(apart))
