"""Joint: the AUC of a classifier between two samples without common rows."""

import numpy as np
import pytest
import torch

from dear_plugin.check import fidelity as joint

N = 300


def drawn(s=3, copies=4, seed=0):
    sources = torch.randint(N, (s, copies * N), generator=torch.Generator().manual_seed(seed))
    allowed = torch.arange(N) % 3 > 0
    at, move = joint.disjoint_moves(sources, allowed, np.random.default_rng(seed), N)
    return sources[at, move], move % N, allowed


class TestDisjointMoves:
    def test_no_row_is_used_twice(self):
        source, destination, _ = drawn()
        rows = torch.cat([source, destination])
        assert len(rows.unique()) == len(rows)


class TestAuc:
    @pytest.mark.ci
    def test_samples_of_one_distribution_are_not_separated(self):
        x = torch.randn(10, 2, 400, 3, generator=torch.Generator().manual_seed(0))
        aucs = [joint.auc(a, b, seed) for seed, (a, b) in enumerate(x)]
        assert np.mean(aucs) == pytest.approx(0.5, abs=0.02)

    def test_samples_of_two_distributions_are_separated(self):
        x = torch.randn(2, 400, 3, generator=torch.Generator().manual_seed(0))
        assert joint.auc(x[0], x[1] + 2.0, 0) > 0.95

    @pytest.mark.ci
    def test_tabulated_values_are_not_recognised(self):
        """Rounded to 300 quantiles, a sample still has the same distribution."""
        x = torch.randn(4, 2, 3000, 3, generator=torch.Generator().manual_seed(0))
        grid = torch.special.ndtri((torch.arange(300) + 0.5) / 300)
        tabulated = grid[(x[:, 1, ..., None] - grid).abs().argmin(-1)]
        aucs = [
            joint.auc(a, b, seed)
            for seed, (a, b) in enumerate(zip(x[:, 0], tabulated, strict=True))
        ]
        assert np.mean(aucs) == pytest.approx(0.5, abs=0.02)
