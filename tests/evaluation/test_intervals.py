"""Bootstrap intervals of means and medians over rows."""

import math

import numpy as np
import pytest

from dear_plugin.evaluation.intervals import estimate, paired


def test_it_has_the_width_of_the_normal_interval():
    values = np.random.default_rng(0).normal(3.0, 2.0, 2000)
    found = estimate(values, np.zeros(2000))
    half = 1.96 * values.std() / math.sqrt(2000)
    assert found.value == pytest.approx(values.mean())
    assert found.high - found.low == pytest.approx(2.0 * half, rel=0.1)


def test_splits_that_differ_do_not_widen_it():
    splits = np.repeat([0, 1], 50)
    found = estimate(splits, splits)
    assert found.low == found.high == 0.5


def test_nan_is_left_out():
    found = estimate([1.0, np.nan, 3.0], [0, 0, 0], median=True)
    assert found.value == 2.0
    assert str(estimate([np.nan], [0])) == ""


def test_equal_differences_have_an_interval_of_length_zero():
    values = np.random.default_rng(0).normal(0.0, 5.0, 100)
    found = paired(values + 1.0, values, np.zeros(100))
    assert found == pytest.approx((1.0, 1.0, 1.0))
