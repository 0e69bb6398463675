"""A query: the levels of its dtypes, and the desired outcome as a target."""

import numpy as np
import pandas as pd
import pytest

from dear_dice.query import DesiredOutcome
from dear_dice.query_format import QueryFormat


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


LEVELS = {"word": ["a", "b", "c"], "code": ["1", "2", "10"], "truth": ["False", "True"]}
DTYPES = {name: pd.CategoricalDtype(levels) for name, levels in LEVELS.items()}
QUERIES = {
    "whole numbers": {"code": "int16", "truth": bool},
    "categories": {"word": "category", "code": pd.CategoricalDtype([1, 2])},
    "ordered": {"word": pd.CategoricalDtype(["b", "a"], ordered=True)},
    "objects": {"rate": object, "count": object},
}


def query(**dtypes):
    columns = {"word": ["a", "b"], "code": [2, 1], "truth": [True, True]}
    return pd.DataFrame({**columns, "rate": [0.5, 0.25], "count": [3, 4]}).astype(dtypes)


@pytest.mark.parametrize("name", QUERIES)
def test_levels_that_the_query_does_not_show_are_written_as_those_that_it_does(name):
    rows = query(**QUERIES[name])
    own = QueryFormat.of(rows, DTYPES)
    pd.testing.assert_frame_equal(own.write(own.read(rows)), rows)
    every = pd.DataFrame({**LEVELS, "truth": ["False", "True", "True"], "rate": 0.1, "count": 1})
    written = own.write(every)
    assert written.astype(str).equals(every.astype(str))
    plain = [n for n, dtype in rows.dtypes.items() if not isinstance(dtype, pd.CategoricalDtype)]
    assert written[plain].dtypes.equals(rows[plain].dtypes)


def test_text_where_a_number_belongs():
    rows = query(count=object).assign(count=["3", "many"])
    with pytest.raises(ValueError, match="many"):
        QueryFormat.of(rows, DTYPES).read(rows)


def test_a_level_that_is_no_value_of_the_querys_kind_stays_text():
    rows = query().assign(word=[1, 2])
    assert QueryFormat.of(rows, DTYPES).levels["word"]["a"] == "a"
