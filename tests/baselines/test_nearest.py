"""NearestAccepted: the closest training row that the model accepts."""

import numpy as np
import pytest

from dear_plugin import Constraints
from dear_plugin.baselines import NearestAccepted


@pytest.fixture
def method(square, schema, linear):
    return NearestAccepted(linear(1.0, 1.0, 0.0, bias=-1.2), schema).fit(square)


def brute_force(square, row, admitted):
    """The l1-nearest accepted row of the same group, by brute force."""
    valid = (square["a"] + square["b"] > 1.2001) & (square["group"] == row["group"]) & admitted
    return (square[valid][["a", "b"]] - row[["a", "b"]]).abs().sum(axis=1).min()


def test_it_equals_brute_force(method, square, refused):
    result = method.generate(refused)
    expected = [brute_force(square, row, True) for _, row in refused.iterrows()]
    assert result.actions["success"].all()
    assert np.allclose(result.actions["cost"], expected, atol=1e-6)


def test_only_feasible_rows_are_considered(method, square, refused):
    result = method.generate(refused, within=Constraints(ranges={"b": (0.0, 0.6)}))
    for i, (_, row) in enumerate(refused.iterrows()):
        kept = (square["b"] - row["b"]).abs() < 1e-9
        expected = brute_force(square, row, square["b"].between(0.0, 0.6) | kept)
        assert result.actions["cost"].iloc[i] == pytest.approx(expected, abs=1e-6)
