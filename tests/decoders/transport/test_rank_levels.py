"""Standings: finer towards both ends."""

import pytest
import torch

from dear_plugin.decoders.transport.rank_levels import edges, middles


@pytest.mark.parametrize("count", [1, 2, 7, 16, 256, 1024])
def test_there_are_so_many_in_order_between_nobody_and_everybody(count):
    ends, between = edges(count), middles(count)
    assert len(ends) == count - 1
    assert len(between) == count
    assert (ends.diff() > 0).all()
    whole = torch.cat([torch.zeros(1), ends, torch.ones(1)])
    assert ((between > whole[:-1]) & (between < whole[1:])).all()


def test_both_ends_are_alike():
    ends = edges(256)
    torch.testing.assert_close(ends, 1.0 - ends.flip(0))


def test_one_in_a_thousand_and_one_in_two_thousand_are_told_apart():
    at = torch.bucketize(torch.tensor([0.9985, 0.999, 0.9995], dtype=torch.float64), edges(256))
    assert len(at.unique()) == 3
