"""Lookup: entries of a table at many places at once."""

import pytest
import torch

from dear_plugin.decoders.lookup import pick, places

TABLE = torch.tensor([[1.0, 2.0, 2.0, 5.0], [0.0, 0.0, 3.0, 9.0]])
VALUES = (-1.0, 0.0, 1.0, 2.0, 2.5, 9.0, 10.0)


def test_entries_are_named_by_their_place_in_the_flat_table():
    at = torch.tensor([[[0, 7]], [[4, 3]]]).int()
    assert pick(TABLE, at).tolist() == [[[1.0, 9.0]], [[0.0, 5.0]]]


class TestPlaces:
    """One search serves many sorted stretches of one table."""

    @pytest.mark.parametrize("row", [0, 1])
    @pytest.mark.parametrize(("below", "side"), [(torch.lt, "left"), (torch.le, "right")])
    def test_it_is_searchsorted(self, row, below, side):
        base, value = torch.full((7,), 4 * row).int(), torch.tensor(VALUES)
        expected = torch.searchsorted(TABLE[row], value, side=side)
        assert places(TABLE, base, 1, 4, value, below).tolist() == expected.tolist()

    def test_a_stretch_may_run_down_a_column(self):
        base, value = torch.tensor([0, 1, 0]).int(), torch.tensor([0.5, 2.5, -1.0])
        assert places(TABLE.flip(0), base, 4, 2, value).tolist() == [1, 2, 0]
