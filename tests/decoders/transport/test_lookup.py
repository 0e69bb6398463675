"""Lookup: entries of a table, and positions in sorted segments of it, for many queries at once."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dear_plugin.decoders.transport.lookup import SortedSegments, count_below, pick

TABLE = torch.tensor([[1.0, 2.0, 2.0, 5.0], [0.0, 0.0, 3.0, 9.0]])
VALUES = (-1.0, 0.0, 1.0, 2.0, 2.5, 9.0, 10.0)


def test_indices_are_those_of_the_flat_table():
    at = torch.tensor([[[0, 7]], [[4, 3]]]).int()
    assert pick(TABLE, at).tolist() == [[[1.0, 9.0]], [[0.0, 5.0]]]


class TestCountBelow:
    """One search serves many sorted stretches of one table."""

    @pytest.mark.parametrize("row", [0, 1])
    @pytest.mark.parametrize(("below", "side"), [(torch.lt, "left"), (torch.le, "right")])
    def test_it_is_searchsorted(self, row, below, side):
        base, value = torch.full((7,), 4 * row).int(), torch.tensor(VALUES)
        expected = torch.searchsorted(TABLE[row], value, side=side, out_int32=True)
        assert torch.equal(count_below(TABLE, base, 1, 4, value, below), expected)

    def test_entries_may_run_down_a_column(self):
        base, value = torch.tensor([0, 1, 0]).int(), torch.tensor([0.5, 2.5, -1.0])
        assert count_below(TABLE.flip(0), base, 4, 2, value).tolist() == [1, 2, 0]


numbers = st.one_of(
    st.floats(-1.0, 2.0, width=32),
    st.integers(-20, 20).map(lambda power: 2.0**power),
    st.sampled_from([0.0, 1.0, 0.5, 1e-30, -1e15, 1e15]),
)
segments = st.lists(
    st.lists(numbers, min_size=1, max_size=70).map(sorted), min_size=1, max_size=4
).map(lambda values: [torch.tensor(each) for each in values])


@given(segments, st.booleans())
def test_a_value_is_located_in_its_own_segment(parts, inclusive):
    """Differences of numbers are larger than the rounding of shifted doubles."""
    parts = [each.clamp(-(2.0**20), 2.0**20).mul(1024).round().div(1024) for each in parts]
    value = torch.cat(parts)
    sorted_segments = SortedSegments.of(value, torch.tensor([len(each) for each in parts]))
    for j, each in enumerate(parts):
        expected = torch.searchsorted(each, value, right=inclusive).sub(1).clamp_min(0)
        found = sorted_segments.locate(value, torch.full(value.shape, j), inclusive)
        assert (found - sorted_segments.first[j]).tolist() == expected.tolist()
