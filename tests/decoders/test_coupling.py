"""Coupling: categories follow their probabilities, and as few rows as possible change theirs."""

import numpy as np
import pytest

from dear_plugin.decoders.protocol import MIDDLE, maximal_coupling


def choose(own, old, new):
    """The category of one row under old and new probabilities, at the middle tie."""
    (only,) = maximal_coupling(
        np.array([old, new]), np.array([0]), np.array([1]), np.array([own]), np.array([MIDDLE])
    )
    return only


class TestMiddleTie:
    def test_a_category_is_kept_unless_its_probability_more_than_halves(self):
        old = [0.6, 0.3, 0.1]
        assert choose(0, old, [0.31, 0.5, 0.19]) == 0
        assert choose(0, old, [0.30, 0.6, 0.10]) == 0
        assert choose(0, old, [0.29, 0.5, 0.21]) == 1

    def test_it_becomes_the_one_that_gained_most_not_the_likeliest(self):
        assert choose(0, [0.4, 0.5, 0.1], [0.1, 0.55, 0.35]) == 2


def test_a_random_tie_reaches_the_new_distribution_and_keeps_as_many_as_possible():
    old, new, n = [0.5, 0.3, 0.2], [0.2, 0.35, 0.45], 40_000
    rng, first = np.random.default_rng(0), np.zeros(n, dtype=int)
    own = rng.choice(3, n, p=old)
    reached = maximal_coupling(np.array([old, new]), first, first + 1, own, rng.random(n))
    share = np.bincount(reached, minlength=3) / n
    assert share == pytest.approx(new, abs=0.01)
    assert (reached == own).mean() == pytest.approx(np.minimum(old, new).sum(), abs=0.01)
