"""Rank levels: finer towards both ends."""

import pytest
import torch

from dear_plugin.decoders.transport.rank_levels import edges, midpoints


@pytest.mark.parametrize("count", [1, 2, 7, 16, 256, 1024])
def test_edges_and_midpoints_are_in_order_between_zero_and_one(count):
    ends, middle = edges(count), midpoints(count)
    assert len(ends) == count - 1
    assert len(middle) == count
    assert (ends.diff() > 0).all()
    whole = torch.cat([torch.zeros(1), ends, torch.ones(1)])
    assert ((middle > whole[:-1]) & (middle < whole[1:])).all()


def test_edges_are_symmetric():
    ends = edges(256)
    torch.testing.assert_close(ends, 1.0 - ends.flip(0))


def test_extreme_ranks_have_levels_of_their_own():
    at = torch.bucketize(torch.tensor([0.9985, 0.999, 0.9995], dtype=torch.float64), edges(256))
    assert len(at.unique()) == 3
