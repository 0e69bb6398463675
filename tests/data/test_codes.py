"""Codes: values far beyond all others are typing errors, however long the tail of a column is."""

import numpy as np
import pytest

from dear_plugin.data.numbers import gross


@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_far_values_are_gross_where_small_ones_make_the_tail_long(zeros):
    """Of debts from 1 to 30,000, 9,999,999 was taken for the tail."""
    rng = np.random.default_rng(0)
    debts = np.where(rng.random(4_500) < zeros, 0.0, rng.gamma(0.7, 5_000.0, 4_500).round())
    assert not gross(debts).any()
    assert gross(np.append(debts, [9_999_999.0, 9_999_999.0])).nonzero()[0].tolist() == [
        4500,
        4501,
    ]


@pytest.mark.parametrize("spread", [1.0, 1.5, 2.0, 2.5])
def test_the_tail_of_amounts_is_none(spread):
    assert not gross(np.random.default_rng(0).lognormal(7.0, spread, 4_500)).any()
