import numpy as np
import pytest

import dear_plugin
from dear_alibi.table import Table
from dear_plugin import Kind

NAMES, MAPS = ["age", "job", "sex"], {1: ["clerk", "nurse", "pilot"], 2: ["f", "m"]}
X = np.array([[30, 0, 1], [41, 1, 0], [52, 1, 0]])


def with_cell(value):
    """The rows with another age in the second."""
    rows = X.astype(object)
    rows[1, 0] = value
    return rows


@pytest.fixture
def table():
    return Table.of(NAMES, MAPS)


def schema(table, rows, immutable=()):
    return table.schema(table.frame(rows), {}, immutable=immutable)


def test_new_codes_of_passed_columns_come_back_as_they_are(table):
    rows = X.astype(float)
    rows[1, 1], rows[2, 1] = 7, -3
    frame = table.frame(rows, ["job"])
    assert frame["job"].tolist() == ["clerk", "code 7", "code -3"]
    assert np.array_equal(table.array(frame, rows.dtype), rows)
    for odd in (0.5, np.nan, np.inf):
        rows[1, 1] = odd
        with pytest.raises(ValueError, match="'job' must hold codes"):
            table.frame(rows, ["job"])


def test_dummies_and_codes_outside_of_the_map_are_a_group_and_the_only_values():
    job = np.arange(42) % 3
    rows = np.column_stack([*(job[:, None] == range(3)).T, np.array([111, 112, 120])[job]])
    table = Table.of(["job_a", "job_b", "job_c", "status"], {})
    for dtype in (np.int64, np.float32, object):
        found = schema(table, rows.astype(dtype))
        assert found.exactly_one == (("job_a", "job_b", "job_c"),)
        assert found.features[-1].observed == (111.0, 112.0, 120.0)


@pytest.mark.parametrize(("values", "places"), [((0, 1902), 0), ((0.5, 1.25), 2)])
def test_a_number_with_two_values_stays_a_number(table, values, places):
    rows = X.astype(float)
    rows[:, 0] = [values[0], values[1], values[0]]
    age = schema(table, rows).features[0]
    assert (age.kind, age.bounds, age.precision) == (Kind.NUMERIC, values, places)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (X[0], r"shape \(n, 3\)"),
        (X[:0], r"at least one row.*got \(0, 3\)"),
        (X[:, :2], r"got \(3, 2\)"),
        (X.astype(str), "codes for categories"),
        (X + np.array([0, 2, 0]), r"'job' must.*got \[3, 3\] in rows \[1, 2\]"),
        (X - np.array([0, 1, 0]), "'job'"),
        (X + np.array([0, 0.5, 0]), "'job'"),
        (np.where(X == 1, np.nan, X), "'job'"),
        (np.where(X == 1, "clerk", X.astype(object)), "'job'"),
        (with_cell(np.nan), r"'age' must hold finite numbers; got \[nan\] in rows \[1\]"),
        (with_cell(np.inf), r"'age'.*\[inf\] in rows \[1\]"),
        (with_cell(None), r"'age'.*\[None\] in rows \[1\]"),
        (with_cell("old"), r"'age'.*\['old'\] in rows \[1\]"),
    ],
)
def test_an_array_that_is_not_label_encoded_is_refused(table, rows, words):
    with pytest.raises(dear_plugin.errors.InputError, match=words):
        table.frame(rows)


@pytest.mark.parametrize(
    ("names", "maps", "words"),
    [
        (NAMES, {3: ["a"]}, "no columns"),
        (NAMES, {"1": ["a"]}, "no columns"),
        (NAMES, {1: []}, "distinct categories"),
        (NAMES, {1: ["a", "a"]}, "distinct categories"),
        (["age", "age", "sex"], {}, "duplicate feature names"),
    ],
)
def test_a_description_that_contradicts_itself_is_refused(names, maps, words):
    with pytest.raises(ValueError, match=words):
        Table.of(names, maps)
