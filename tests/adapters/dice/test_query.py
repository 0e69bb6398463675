"""A query: its dtypes, the text of DiCE's interface, and the desired outcome as a target."""

import numpy as np
import pandas as pd
import pytest

from dear_dice.query import DesiredOutcome
from dear_dice.query_format import QueryFormat

ROWS = np.array([0, 0, 1, 1])


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
    desired = DesiredOutcome.of_range([2, 3])
    values = np.array([2.0, 1.99, 3.0, 3.01])
    assert desired.met(values[:, None], values, ROWS).tolist() == [True, False, True, False]
    low, high = desired.target.low, desired.target.high
    assert 2 < low < 2.001 and 2.999 < high < 3


def test_a_range_with_one_end():
    target = DesiredOutcome.of_range([2, np.inf]).target
    assert (target.low, target.high) == (2, np.inf)


TRAINING = pd.DataFrame(
    {
        "word": ["a", "b", "c"] * 10,
        "code": ["1", "2", "10"] * 10,
        "truth": ["False", "True"] * 15,
        "rate": np.linspace(0, 1, 30).round(2),
        "count": np.arange(30),
    }
).astype({"word": object, "code": object, "truth": object})
DTYPES = TRAINING.select_dtypes(object).astype("category").dtypes.to_dict()

QUERIES = {
    "text": {},
    "whole numbers": {"code": "int64", "truth": bool},
    "small numbers": {"code": "int16", "count": "int8", "rate": "float32"},
    "categories": {"word": "category", "code": pd.CategoricalDtype([1, 2])},
    "ordered": {"word": pd.CategoricalDtype(["b", "a"], ordered=True)},
    "objects": {"rate": object, "count": object},
}


def query(name):
    frame = pd.DataFrame(
        {
            "word": ["a", "b"],
            "code": ["2", "1"],
            "truth": ["True", "False"],
            "rate": [0.5, 0.25],
            "count": [3, 4],
        }
    )
    dtypes = QUERIES[name]
    if name != "text":
        frame["code"] = frame["code"].astype(int)
        frame["truth"] = frame["truth"] == "True"
    return frame.astype(dtypes)


@pytest.mark.parametrize("name", QUERIES)
def test_read_and_write_are_inverse(name):
    rows = query(name)
    query_format = QueryFormat.of(rows, DTYPES)
    read = query_format.read(rows)
    assert read["code"].tolist() == ["2", "1"] and read["truth"].tolist() == ["True", "False"]
    assert all(pd.api.types.is_numeric_dtype(read[name]) for name in ("rate", "count"))
    pd.testing.assert_frame_equal(query_format.write(read), rows)


@pytest.mark.parametrize("name", QUERIES)
def test_levels_that_the_query_did_not_show(name):
    rows = query(name)
    query_format = QueryFormat.of(rows, DTYPES)
    written = query_format.write(TRAINING)
    assert not written.isna().any(axis=None)
    assert written["code"].astype(str).tolist() == TRAINING["code"].tolist()
    assert written["truth"].astype(str).tolist() == TRAINING["truth"].tolist()
    kinds = [isinstance(t, pd.CategoricalDtype) for t in rows.dtypes]
    assert [isinstance(t, pd.CategoricalDtype) for t in written.dtypes] == kinds
    plain = [a for a, kind in zip(written.dtypes, kinds, strict=True) if not kind]
    assert plain == [a for a, kind in zip(rows.dtypes, kinds, strict=True) if not kind]


def test_text_where_a_number_belongs():
    rows = query("text").assign(count=["3", "many"])
    with pytest.raises(ValueError, match="many"):
        QueryFormat.of(rows, DTYPES).read(rows)


def test_a_level_that_is_no_value_of_the_querys_kind_stays_text():
    rows = query("text").assign(word=[1, 2])
    assert QueryFormat.of(rows, DTYPES).levels["word"]["a"] == "a"
