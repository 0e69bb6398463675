"""NearestAccepted: the closest training row that the model accepts."""

import pytest

from dear_plugin import Constraints
from dear_plugin.rivals import NearestAccepted


@pytest.fixture
def method(square, schema, linear):
    return NearestAccepted(linear(1.0, 1.0, 0.0, bias=-1.2), schema).fit(square)


@pytest.mark.parametrize("most", [1.0, 0.6], ids=["all rows", "rows in a range"])
def test_it_equals_brute_force(method, square, refused, most):
    """The l1-nearest accepted row of the same group whose b is inside, or stays."""
    result = method.generate(refused, within=Constraints(ranges={"b": (0.0, most)}))
    accepted = square[square["a"] + square["b"] > 1.2001]
    for i, (_, row) in enumerate(refused.iterrows()):
        inside = (accepted["b"] <= most) | (accepted["b"] == row["b"])
        near = accepted[inside & (accepted["group"] == row["group"])]
        expected = (near[["a", "b"]] - row[["a", "b"]]).abs().sum(axis=1).min()
        assert result.actions["cost"].iloc[i] == pytest.approx(expected, abs=1e-6)
