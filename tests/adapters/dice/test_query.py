"""A query: the levels of its dtypes, and the desired outcome as a target."""

import numpy as np
import pytest

from dear_dice.query import DesiredOutcome


@pytest.mark.parametrize(
    ("classes", "threshold", "columns", "least"),
    [
        ([1, 1], 0.5, 1, None),
        ([1, 1], 0.7, 1, 0.7),
        ([1, 1], 0.3, 2, None),
        ([1, 1], 0.0, 1, None),
        ([0, 0], 0.5, 2, None),
        ([0, 0], 0.7, 1, 0.7),
        ([0, 0], 0.3, 1, 0.7),
        ([0, 1], 0.3, 1, 0.7),
        ([2, 1], 0.5, 3, None),
        ([2, 0], 0.2, 3, None),
        ([2, 0], 0.9, 3, 0.9),
    ],
)
def test_the_threshold(classes, threshold, columns, least):
    desired = DesiredOutcome.of_classes(classes, threshold, columns)
    assert desired.least == (None if least is None else pytest.approx(least))
    assert list(desired.target.label) == classes


@pytest.mark.parametrize(("wanted", "threshold"), [(1, 1.0), (0, 0.0)])
def test_certainty_is_near_enough(wanted, threshold):
    assert 0.999 < DesiredOutcome.of_classes([wanted], threshold, 1).target.threshold < 1.0


def test_met_by_a_value():
    desired, values = DesiredOutcome.of_range([2, 3]), np.array([2.0, 1.99, 3.0, 3.01])
    rows = np.array([0, 0, 1, 1])
    assert desired.met(values[:, None], values, rows).tolist() == [True, False, True, False]
    low, high = desired.target.low, desired.target.high
    assert 2 < low < 2.001 and 2.999 < high < 3


def test_a_range_with_one_end():
    target = DesiredOutcome.of_range([2, np.inf]).target
    assert (target.low, target.high) == (2, np.inf)
