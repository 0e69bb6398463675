"""Shrinkage: effects of bins are shrunk as far as their evidence requires."""

import pytest
import torch

from dear_plugin.decoders.transport.shrinkage import (
    shrunk_means,
    smoothed_walk,
    step_variance,
)

BINS, TRIALS = 24, 400


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def walked(effects, weight):
    return smoothed_walk(effects, weight, step_variance(effects, weight))


class TestOrderedBins:
    """Each column is a trial of its own."""

    def test_noise_is_shrunk_to_zero(self):
        made = walked(noise(BINS, TRIALS) * 0.1, torch.full((BINS, TRIALS), 100.0).double())
        assert (made == 0.0).all(0).float().mean() >= 0.995

    def test_a_trend_is_estimated_better_than_by_single_bins(self):
        truth = torch.linspace(-0.5, 0.5, BINS).double()[:, None]
        means = truth + 0.2 * noise(BINS, TRIALS)
        made = walked(means, torch.full((BINS, TRIALS), 25.0).double())
        assert (made - truth).square().mean() < (means - truth).square().mean() / 3.0

    def test_a_significant_jump_is_kept(self):
        truth = (torch.arange(BINS) >= 12).double()[:, None] * 8.0
        made = walked(truth, torch.full((BINS, 1), 1000.0).double())
        torch.testing.assert_close(made, truth, atol=0.1, rtol=0.0)

    def test_an_empty_bin_lies_between_its_neighbours(self):
        truth, weight = torch.linspace(-4, 4, BINS).double(), torch.full((BINS,), 1e4).double()
        weight[7], means = 0.0, truth.clone()
        means[7] = 99.0
        made = walked(means[:, None], weight[:, None])[:, 0]
        assert made[7].item() == pytest.approx((made[6] + made[8]).item() / 2, abs=1e-3)


class TestUnorderedBins:
    """Bins without an order are shrunk to the overall mean."""

    def test_noise_is_shrunk_to_the_mean(self):
        mean, one = torch.zeros(TRIALS).double(), torch.ones(TRIALS).double()
        made = shrunk_means(noise(BINS, TRIALS) * 0.1, torch.full((BINS, 1), 100.0), mean, one)
        assert (made == 0.0).all(0).float().mean() >= 0.98

    def test_few_rows_are_shrunk_more_than_many(self):
        means = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]]).double()
        counts = torch.tensor([[1000.0], [1000.0], [2.0], [2.0]]).double()
        one = torch.ones(1).double()
        made = shrunk_means(means, counts, torch.zeros(1).double(), one)[:, 0].abs()
        assert (made[:2] > 0.99).all()
        assert (made[2:] < 0.8).all()

    def test_an_empty_bin_has_the_mean(self):
        means = torch.tensor([[1.0], [-1.0], [9.0]]).double()
        counts = torch.tensor([[500.0], [500.0], [0.0]]).double()
        made = shrunk_means(means, counts, torch.tensor([0.25]).double(), torch.ones(1).double())
        assert made[2].item() == 0.25
