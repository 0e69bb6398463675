"""A query: the threshold of its wanted classes."""

import pytest

from dear_dice.query import least_probability


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
    found = least_probability(classes, threshold, columns)
    assert found == (None if least is None else pytest.approx(least))


@pytest.mark.parametrize(("wanted", "threshold"), [(1, 1.0), (0, 0.0)])
def test_certainty_is_near_enough(wanted, threshold):
    assert 0.999 < least_probability([wanted], threshold, 1) < 1.0
