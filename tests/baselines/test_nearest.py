"""NearestAccepted: the closest training row that the model accepts."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Constraints, Schema
from dear_plugin.baselines import NearestAccepted


@pytest.fixture
def method(square, linear):
    schema = Schema.infer(square, immutable=["group"])
    return NearestAccepted(linear(1.0, 1.0, 0.0, bias=-1.2), schema).fit(square)


@pytest.fixture
def refused(square):
    return square[square["a"] + square["b"] < 1.1].iloc[:40]


def by_hand(square, person, admitted):
    """The l1-nearest accepted row of the same group, by brute force."""
    fine = (square["a"] + square["b"] > 1.2001) & (square["group"] == person["group"]) & admitted
    gap = (square[fine][["a", "b"]] - person[["a", "b"]]).abs().sum(axis=1)
    return gap.min()


def test_it_is_the_brute_force_answer(method, square, refused):
    result = method.generate(refused)
    expected = [by_hand(square, person, True) for _, person in refused.iterrows()]
    assert result.actions["success"].all()
    assert np.allclose(result.actions["cost"], expected, atol=1e-6)


def test_every_answer_is_a_training_row(method, square, refused):
    after = method.generate(refused).counterfactuals
    assert len(after.merge(square.drop_duplicates())) == len(refused)


def test_it_looks_among_the_rows_that_the_call_admits(method, square, refused):
    result = method.generate(refused, within=Constraints(ranges={"b": (0.0, 0.6)}))
    for i, (_, person) in enumerate(refused.iterrows()):
        kept = (square["b"] - person["b"]).abs() < 1e-9
        expected = by_hand(square, person, square["b"].between(0.0, 0.6) | kept)
        assert result.actions["cost"].iloc[i] == pytest.approx(expected, abs=1e-6)


def test_where_no_row_is_left_the_person_stays_and_is_told(method, refused):
    result = method.generate(refused, within=Constraints(frozen=["a", "b"]))
    assert not result.actions["success"].any()
    assert result.actions["reason"].str.startswith("no training row").all()
    pd.testing.assert_frame_equal(result.counterfactuals, refused)


def test_a_black_box_will_do(square, refused):
    schema = Schema.infer(square, immutable=["group"])
    method = NearestAccepted(lambda f: (f["a"] + f["b"] > 1.2).astype(float), schema).fit(square)
    assert method.generate(refused).actions["success"].all()
