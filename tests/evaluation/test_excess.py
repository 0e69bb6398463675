"""Excess: what two samples differ by where some people are in both, and chance alone rules."""

import numpy as np
import pytest
import torch

from dear_plugin.evaluation import excess

N = 400


def two(seed, copies):
    """A tenth of people, and some of all people, up to several times each, of one value each."""
    rng = torch.Generator().manual_seed(seed)
    values = torch.randn(N, 1, generator=rng)
    rows = torch.randperm(N, generator=rng)[: N // 4]
    people = torch.randint(N, (copies * N // 4,), generator=rng)
    return values, rows, people


class TestSharing:
    def test_two_samples_with_nobody_in_common_are_as_they_are(self):
        assert excess.sharing(torch.arange(5), torch.arange(5, 25)) == pytest.approx(1.0)

    def test_the_same_people_do_not_differ(self):
        assert excess.sharing(torch.arange(5), torch.arange(5)) == 0.0

    def test_somebody_who_is_there_four_times_counts_once(self):
        once = excess.sharing(torch.arange(100), torch.arange(100, 200).repeat(4))
        assert once == pytest.approx(np.sqrt((0.01 + 0.01) / (0.01 + 0.0025)))

    @pytest.mark.parametrize("copies", [1, 4])
    def test_it_is_how_means_differ(self, copies):
        gaps, told = [], []
        for seed in range(400):
            values, rows, people = two(seed, copies)
            gaps.append(float(values[rows].mean() - values[people].mean()))
            apart = np.sqrt(1.0 / len(rows) + 1.0 / len(people))
            told.append(excess.sharing(rows, people) * apart)
        assert np.std(gaps) == pytest.approx(np.mean(told), rel=0.12)

    def test_distances_exceed_chance_by_nothing(self):
        found = []
        for seed in range(60):
            values, rows, people = two(seed, 4)
            scale = excess.sharing(rows, people)
            rng = np.random.default_rng(seed)
            found.append(float(excess.ks(values[people], values[rows], rng, scale)[0]))
        assert abs(np.mean(found)) < 3.0 * np.std(found) / np.sqrt(len(found))


class TestSlope:
    def test_nobody_moved(self):
        x = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
        assert excess.slope(x + 3.0, x).tolist() == pytest.approx([1.0, 1.0])

    def test_half_of_what_sets_people_apart_is_left(self):
        x = torch.randn(50, 1, generator=torch.Generator().manual_seed(0))
        assert excess.slope(0.5 * x, x).tolist() == pytest.approx([0.5])
