"""Excess: expected differences of two samples of one distribution, with first in common."""

import numpy as np
import pytest
import torch

from dear_plugin.check import fidelity as excess

N = 400


def two(seed, copies):
    """Values of N first, a quarter of them, and a sample of them with repetitions."""
    rng = torch.Generator().manual_seed(seed)
    values = torch.randn(N, 1, generator=rng)
    first = torch.randperm(N, generator=rng)[: N // 4]
    second = torch.randint(N, (copies * N // 4,), generator=rng)
    return values, first, second


class TestOverlapScale:
    @pytest.mark.parametrize("copies", [1, 4])
    def test_it_predicts_the_deviation_of_differences_of_means(self, copies):
        differences, predicted = [], []
        for seed in range(400):
            values, first, second = two(seed, copies)
            differences.append(float(values[first].mean() - values[second].mean()))
            disjoint = np.sqrt(1.0 / len(first) + 1.0 / len(second))
            predicted.append(excess.overlap_scale(first, second) * disjoint)
        assert np.std(differences) == pytest.approx(np.mean(predicted), rel=0.12)


class TestSlope:
    def test_it_is_one_half_for_halved_values(self):
        x = torch.randn(50, 1, generator=torch.Generator().manual_seed(0))
        assert excess.slope(0.5 * x, x).tolist() == pytest.approx([0.5])
