"""Shrinkage: bins are believed as far as the evidence goes, and no farther."""

import pytest
import torch

from dear_plugin.decoders.transport.shrinkage import credible, walked

BINS, TRIALS = 24, 400


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class TestWalked:
    """Bins in order: each column is a trial of its own."""

    def test_what_is_noise_alone_is_nothing(self):
        made = walked(noise(BINS, TRIALS) * 0.1, torch.full((BINS, TRIALS), 100.0).double())
        assert (made == 0.0).all(0).float().mean() >= 0.995

    def test_a_trend_is_followed_more_closely_than_the_bins_tell(self):
        boolean = torch.linspace(-0.5, 0.5, BINS).double()[:, None]
        seen = boolean + 0.2 * noise(BINS, TRIALS)
        made = walked(seen, torch.full((BINS, TRIALS), 25.0).double())
        assert (made - boolean).square().mean() < (seen - boolean).square().mean() / 3.0

    def test_a_leap_beyond_doubt_is_believed(self):
        boolean = (torch.arange(BINS) >= 12).double()[:, None] * 8.0
        made = walked(boolean, torch.full((BINS, 1), 1000.0).double())
        torch.testing.assert_close(made, boolean, atol=0.1, rtol=0.0)

    def test_a_bin_of_nobody_lies_between_its_neighbours(self):
        boolean, weight = torch.linspace(-4, 4, BINS).double(), torch.full((BINS,), 1e4).double()
        weight[7], seen = 0.0, boolean.clone()
        seen[7] = 99.0
        made = walked(seen[:, None], weight[:, None])[:, 0]
        assert made[7].item() == pytest.approx((made[6] + made[8]).item() / 2, abs=1e-3)


class TestCredible:
    """Bins without an order vary around the mean of all."""

    def test_what_is_noise_alone_is_the_mean(self):
        mean, one = torch.zeros(TRIALS).double(), torch.ones(TRIALS).double()
        made = credible(noise(BINS, TRIALS) * 0.1, torch.full((BINS, 1), 100.0), mean, one)
        assert (made == 0.0).all(0).float().mean() >= 0.98

    def test_few_rows_are_believed_less_than_many(self):
        seen = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]]).double()
        came = torch.tensor([[1000.0], [1000.0], [2.0], [2.0]]).double()
        one = torch.ones(1).double()
        made = credible(seen, came, torch.zeros(1).double(), one)[:, 0].abs()
        assert (made[:2] > 0.99).all()
        assert (made[2:] < 0.8).all()

    def test_a_bin_of_nobody_has_the_mean(self):
        seen = torch.tensor([[1.0], [-1.0], [9.0]]).double()
        came = torch.tensor([[500.0], [500.0], [0.0]]).double()
        made = credible(seen, came, torch.tensor([0.25]).double(), torch.ones(1).double())
        assert made[2].item() == 0.25
