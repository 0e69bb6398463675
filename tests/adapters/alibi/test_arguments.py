import math

import numpy as np
import pandas as pd
import pytest

import dear_plugin
from dear_alibi.arguments import constraints_of, ranges_of, targets_of
from dear_alibi.table import Table

TABLE = Table.of(["age", "hours", "job"], {2: ["clerk", "nurse", "pilot"]})
FRAME = TABLE.frame(np.array([[20, 10, 0], [60, 30, 1], [40, 50, 2]]))
SCHEMA = TABLE.schema(FRAME, {})


def constraints(ranges=None, C=None):
    always = ranges_of(TABLE.declared, ranges)
    return constraints_of(TABLE.declared, SCHEMA, FRAME, ranges=always, C=C, index=FRAME.index)


def intervals(**given):
    ends = constraints(**given).ranges
    return {name: (low.tolist(), high.tolist()) for name, (low, high) in ends.items()}


def test_a_range_is_a_fraction_of_the_training_width():
    assert intervals(ranges={"age": [-0.25, 0.5]}) == {"age": ([10, 50, 30], [40, 80, 60])}


def test_a_condition_is_a_change_in_own_units():
    found = intervals(C=[{"hours": [-5, 2.5]}])
    assert found == {"hours": ([5, 25, 45], [12.5, 32.5, 52.5])}


def test_ranges_and_conditions_hold_together():
    found = intervals(ranges={"age": [-0.25, 0.5]}, C=[{"age": [-20, 5]}])
    assert found == {"age": ([10, 50, 30], [25, 65, 45])}


def test_one_condition_per_row_travels_with_its_rows():
    C = [{"age": [0, 1]}, {"hours": [0, 2], "job": ["pilot"]}, {}]
    assert intervals(C=C)["age"] == ([20, -math.inf, -math.inf], [21, math.inf, math.inf])
    assert intervals(C=C)["hours"] == ([-math.inf, 30, -math.inf], [math.inf, 32, math.inf])
    assert constraints(C=C).categories == [None, {"job": ["pilot"]}, None]


def test_no_category_is_allowed_besides_the_present_one():
    within = constraints(C=[{"job": []}])
    assert (within.frozen, within.categories) == (["job"], None)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ranges": {"Age": [0, 1]}}, "unknown features: 'Age'"),
        ({"C": [{"years": [0, 1]}]}, "unknown features: 'years'"),
        ({"C": {"age": [0, 1]}}, "a list of dicts"),
        ({"C": [["age"]]}, "a dict of features"),
        ({"C": [{}, {}]}, "a list of 3, one per row; got"),
        ({"ranges": ["age"]}, "a dict of features"),
        ({"ranges": {"job": [0, 1]}}, "has categories"),
        ({"ranges": {"age": [-2, 1]}}, r"\[-1, 0\] and \[0, 1\]"),
        ({"ranges": {"age": [0.1, 1]}}, "ranges: 'age'"),
        ({"ranges": {"age": [0]}}, "ranges: 'age'"),
        ({"ranges": {"age": None}}, "ranges: 'age'"),
        ({"C": [{"age": [1, 5]}]}, "C: 'age' needs a change"),
        ({"C": [{"age": [-5, -0.5]}]}, "C: 'age' needs a change"),
        ({"C": [{"age": [0, math.inf]}]}, "C: 'age'"),
        ({"C": [{"age": [0, math.nan]}]}, "C: 'age'"),
        ({"C": [{"age": ["a", "b"]}]}, "C: 'age'"),
    ],
)
def test_invalid_arguments_are_refused(given, words):
    with pytest.raises(dear_plugin.errors.DearError, match=words) as caught:
        constraints(**given)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "given", [1, [1], [1, 1, 1], np.array([1.0]), np.array([[1]]), np.ones((3, 1), dtype=np.int32)]
)
def test_one_class_or_one_per_row_in_any_shape(given):
    wanted = targets_of(given, np.zeros((3, 1)), 2, pd.RangeIndex(3))
    assert wanted.shape == (3, 1)
    assert wanted.dtype == np.int64
    assert (wanted == 1).all()


@pytest.mark.parametrize("given", [[1, 0], np.ones((1, 3)), np.ones((3, 2)), np.ones((3, 1, 1))])
def test_another_shape_is_refused(given):
    with pytest.raises(dear_plugin.errors.TargetError, match=r"Y_t: expected .* for all rows"):
        targets_of(given, np.zeros((3, 1)), 2, pd.RangeIndex(3))


@pytest.mark.parametrize("given", [-1, 0.5, "yes", True, [0, -1, 0], [None], np.nan])
def test_a_value_that_is_no_class_is_refused(given):
    with pytest.raises(dear_plugin.errors.TargetError):
        targets_of(given, np.zeros((3, 1)), 2, pd.RangeIndex(3))


def test_an_age_that_may_fall_is_named(fit, caplog):
    fit(immutable_features=["gender"], ranges={"age": [-0.5, 1]})
    (record,) = [r for r in caplog.records if r.name == "dear_plugin.look.names"]
    assert "columns ['age'] have names of attributes" in record.getMessage()
