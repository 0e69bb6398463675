"""Bootstrap intervals of means and medians over rows, and cost differences of two methods."""

import math

import numpy as np
import pytest

from dear_plugin.rivals.intervals import LEAST, difference, estimate, is_plausible


def test_it_has_the_width_of_the_normal_interval():
    values = np.random.default_rng(0).normal(3.0, 2.0, 2000)
    found = estimate(values)
    half = 1.96 * values.std() / math.sqrt(2000)
    assert found.value == pytest.approx(values.mean())
    assert found.high - found.low == pytest.approx(2.0 * half, rel=0.1)


def test_nan_is_left_out():
    found = estimate([1.0, np.nan, 3.0], median=True)
    assert found.value == 2.0
    assert str(estimate([np.nan])) == ""


def test_an_answer_needs_the_default_plausibility_or_that_of_its_factual():
    found, own = np.array([LEAST, 0.04, 0.01, np.nan]), np.array([1.0, 1.0, 0.01, 1.0])
    assert is_plausible(found, own).tolist() == [True, False, True, False]


def test_only_the_rows_of_both_count():
    cost, other = np.array([1.0, 2.0, np.nan, 9.0]), np.array([2.0, 1.5, 1.0, 0.0])
    found = difference(cost, other, np.array([True, True, False, False]))
    assert (found.rows, found.cost, found.other, found.cheaper) == (2, 1.5, 1.75, 0.5)
    assert found.difference.value == pytest.approx(-0.25)


def test_nothing_is_known_without_common_rows():
    found = difference(np.ones(3), np.ones(3), np.zeros(3, dtype=bool))
    assert found.rows == 0
    assert np.isnan([found.cost, found.other, *found.difference, found.cheaper]).all()
