"""Amounts that a letter tells: some digits of the change, away from the old value."""

import pytest

from dear_plugin import Feature, Kind
from dear_plugin.results.said import _farther, rounded
from dear_plugin.results.wording import Move


def move(old, new, **more):
    feature = Feature("pay", Kind.NUMERIC, **{"bounds": (0.0, 100_000.0), "precision": 2, **more})
    return Move(feature, old, new, direct=True)


@pytest.mark.parametrize(
    ("old", "new", "digits", "away", "told"),
    [
        (32.81, 27.84, 2, 1, 27.8),
        (32.81, 27.84, 2, -1, 27.9),
        (32.81, 27.84, 3, 1, 27.84),
        (32.81, 27.84, None, 1, 27.84),
        (21.54, 25.35, 2, 1, 25.4),
        (21.54, 25.35, 2, 0, 25.4),
        (23_610.0, 34_440.0, 2, 1, 35_000.0),
        (7.0, 7.03, 2, 1, 7.03),
        (5.0, 5.0, 2, 1, 5.0),
    ],
)
def test_known_amounts(old, new, digits, away, told):
    assert rounded(move(old, new), new, digits, away) == told


def test_a_number_of_few_values_is_told_as_it_is():
    own = move(0.0, 37.0, observed=(0.0, 37.0, 90.0), precision=0)
    assert rounded(own, 37.0, 1, 1) == 37.0


def test_no_amount_is_beyond_all_rows():
    """It is rounded towards the old value instead, and the model is asked as always."""
    assert _farther(move(32.81, 27.84), 2).new == 27.8
    assert _farther(move(32.81, 27.84, bounds=(27.84, 90.0)), 2).new == 27.9
    assert _farther(move(21.54, 25.35, bounds=(0.0, 25.35)), 2).new == 25.3
