"""Kinds: each is one file that infers, reads and writes its columns; the rest asks attributes."""

import ast
import copy
import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import dear_plugin
from dear_plugin import Encoder, Feature, Kind, Schema
from dear_plugin.data.labels import Labels, Levels
from dear_plugin.data.numbers import Number, Ordinal, decimals
from dear_plugin.errors import InputError

SIZES = ["S", "M", "L"]


def levels(values, order=SIZES):
    return pd.Series(pd.Categorical(values, order, ordered=True))


COLUMNS = {
    "amounts": (Number, Kind.NUMERIC, pd.Series([1.5, 2.25, 30.0])),
    "single floats": (Number, Kind.NUMERIC, pd.Series([1.5, 2.25, 30.0], dtype="float32")),
    "integers": (Number, Kind.NUMERIC, pd.Series([1, 2, 30])),
    "nullable integers": (Number, Kind.NUMERIC, pd.Series([1, None, -9, 30], dtype="Int64")),
    "nullable amounts": (Number, Kind.NUMERIC, pd.Series([1, None, -9, 30], dtype="Float64")),
    "a code": (Number, Kind.NUMERIC, pd.Series([1.0, -9.0, 30.0])),
    "flags": (Labels, Kind.BINARY, pd.Series([True, False, True])),
    "nullable flags": (Labels, Kind.BINARY, pd.Series([True, False], dtype="boolean")),
    "two integers": (Labels, Kind.BINARY, pd.Series([3, 7, 3])),
    "two amounts": (Labels, Kind.BINARY, pd.Series([3.5, 7.0, 3.5])),
    "two labels": (Labels, Kind.BINARY, pd.Series(["a", "b", "a"])),
    "labels": (Labels, Kind.CATEGORICAL, pd.Series(["a", "b", "c"])),
    "a missing label": (Labels, Kind.CATEGORICAL, pd.Series(["a", None, "c"])),
    "a category column": (Labels, Kind.BINARY, pd.Series(["b", "a"], dtype="category")),
    "numbers as levels": (Labels, Kind.CATEGORICAL, pd.Series([1, 2, 3], dtype="category")),
    "a text column": (Labels, Kind.CATEGORICAL, pd.Series(["a", "b", None], dtype="string")),
    "levels with an order": (Levels, Kind.NUMERIC, levels(SIZES)),
    "an unknown level": (Labels, Kind.CATEGORICAL, levels(["?", "M", "L"], ["?", "M", "L"])),
    "a missing level": (Levels, Kind.NUMERIC, levels([*SIZES, np.nan])),
}
EVERY = pytest.mark.parametrize("name", COLUMNS)
SPECIAL = {key: {"x": [-9]} for key in ("nullable integers", "nullable amounts", "a code")}


@EVERY
def test_what_is_read_is_written(name):
    *_, column = COLUMNS[name]
    frame = pd.DataFrame({"x": column})
    encoder = Encoder(Schema.infer(frame, special={"x": [-9]} if (column == -9).any() else None))
    pd.testing.assert_frame_equal(encoder.frame(encoder.rows(frame)), frame)


@EVERY
def test_a_column_has_one_kind(name):
    own, kind, column = COLUMNS[name]
    (feature,) = Schema.infer(pd.DataFrame({"x": column})).features
    assert (type(feature), feature.kind) == (own, kind)
    assert type(Feature.from_dict(feature.to_dict())) is own


@EVERY
def test_a_column_says_what_is_made_of_its_amounts_and_what_limits_it(name):
    own, _, column = COLUMNS[name]
    (feature,) = Schema.infer(pd.DataFrame({"x": column})).features
    has_order, values = issubclass(own, Ordinal), torch.arange(3.0)
    assert torch.equal(feature.coarser(values, torch.zeros_like), values * (not has_order))
    assert feature.either(len, str, (1,)) == (1 if has_order else "(1,)")
    assert ("ranges" in feature.limited_by) == has_order == (not feature.categories)
    assert bool(feature.ranked) == (own is Levels)
    assert (feature.choices == ()) == (own is Number)


@EVERY
def test_a_cell_has_the_row_value_of_its_column_and_is_an_amount_of_numbers_alone(name):
    own, _, column = COLUMNS[name]
    (feature,) = schema = Schema.infer(pd.DataFrame({"x": column}), special=SPECIAL.get(name))
    known = column[column.notna() & ~column.isin(feature.special)]
    values = feature.read(known).values
    assert [feature.place(cell) for cell in known] == values.tolist()
    assert [feature.is_amount(cell) for cell in known] == [own is Number] * len(known)
    assert not any(feature.is_amount(cell) for cell in column.drop(known.index))
    assert [*schema.numbers] == ["x"] * (own is Number)


def test_a_feature_of_other_attributes_is_of_their_kind():
    number = Feature("x", Kind.NUMERIC, (0.0, 2.0))
    levels = dataclasses.replace(number, levels=("a", "b", "c"))
    labels = dataclasses.replace(number, kind=Kind.BINARY, categories=("a", "b"))
    assert [type(each) for each in (number, levels, labels)] == [Number, Levels, Labels]
    assert dataclasses.replace(levels, levels=()) == number
    assert copy.deepcopy(labels) == labels


@EVERY
def test_values_of_any_shape_have_cells(name):
    *_, column = COLUMNS[name]
    frame = pd.DataFrame({"x": column})
    schema = Schema.infer(frame)
    rows = Encoder(schema).rows(frame).numpy()
    written = schema.features[0].cells(np.stack([rows, rows]))
    assert written.shape == (2, len(frame), 1)
    assert pd.Series(written[1, :, 0]).isna().tolist() == column.isna().tolist()


@pytest.fixture
def days():
    """A kind for durations: rows hold days."""

    class Days(Ordinal):
        @classmethod
        def takes(cls, kind, given):
            return kind == Kind.NUMERIC and given.get("dtype") == "timedelta64[ns]"

        def read_cells(self, column, accepted):
            return self.reading(column, column.to_numpy() / np.timedelta64(1, "D"))

        def column(self, values):
            return pd.Series(pd.to_timedelta(values, unit="D")).astype(self.dtype)

    yield Days
    Feature.kinds.remove(Days)


def test_a_kind_of_column_is_one_class(days):
    frame = pd.DataFrame({"wait": pd.to_timedelta([1.5, 3.0, 30.0], unit="D")})
    wait = Feature("wait", Kind.NUMERIC, (0.0, 30.0), dtype="timedelta64[ns]")
    encoder = Encoder(Schema((wait,)))
    rows = encoder.rows(frame.astype(wait.dtype))
    assert type(wait) is days and rows[:, 0].tolist() == [1.5, 3.0, 30.0]
    pd.testing.assert_frame_equal(encoder.frame(rows), frame.astype(wait.dtype))
    assert encoder.distance(rows, rows[[2]])[:, 0].tolist() == [0.95, 0.9, 0.0]


def precision(values, dtype=None) -> int | None:
    frame = pd.DataFrame({"x": pd.Series(values, dtype=dtype)})
    return Schema.infer(frame).features[0].precision


class TestDecimals:
    @pytest.mark.parametrize(
        ("values", "places"),
        [
            ([1.0, 2.0], 0),
            ([0.5, 0.25], 2),
            ([1234.56, 0.07], 2),
            ([1e9 + 0.25, 0.5], 2),
            ([0.000001], 6),
            ([1 / 3], None),
            ([1e-7], None),
            ([-1.5], 1),
        ],
    )
    def test_they_represent_every_value(self, values, places):
        assert decimals(np.array(values)) == places

    def test_float32_columns_use_the_resolution_of_float32(self):
        assert decimals(np.array([0.1, 1234.56], dtype=np.float32)) == 2
        assert precision([0.1, 0.2, 0.3], "float32") == 1

    def test_a_number_keeps_its_precision(self):
        assert precision([1, 2, 3]) == 0
        assert precision([0.25, 0.5, 1.0]) == 2


def test_a_list_is_no_level_of_an_order():
    encoder = Encoder(Schema.infer(pd.DataFrame({"x": levels(SIZES)})))
    _, reasons = encoder.readable_rows(pd.DataFrame({"x": ["S", ["M"], "L"]}))
    assert reasons == {1: "column 'x' has ['M'], expected one of ['S', 'M', 'L']"}


class TestWhatTheSearchAsks:
    """The values that actions may set, and the kinds of change that are compared."""

    frame = pd.DataFrame(
        {
            "x": [3.0, 1.0, np.nan, 2.0],
            "size": levels([*SIZES, "S"]),
            "town": ["a", "b", "c", "a"],
        }
    )

    @pytest.fixture
    def encoder(self):
        return Encoder(Schema.infer(self.frame, immutable=["town"]))

    def test_a_number_takes_its_amounts_an_order_its_places_a_category_its_levels(self, encoder):
        rows = encoder.rows(self.frame)
        found = [feature.values(rows[:, j]).tolist() for j, feature in enumerate(encoder.schema)]
        assert found == [[1.0, 2.0, 3.0], [0.0, 1.0, 2.0], [0.0, 1.0, 2.0]]

    def test_amounts_are_neither_labels_nor_missing(self, encoder):
        rows = encoder.rows(self.frame)
        assert encoder.amounts(rows)[1:3].tolist() == [[True, True, False], [False, True, False]]
        assert encoder.amounts(rows, rows[[2]]).any(0).tolist() == [False, True, False]

    def test_a_change_is_up_or_down_or_between_levels(self, encoder):
        rows = encoder.rows(self.frame)
        x, _, town = encoder.schema
        assert x.changes(rows[:3, 0], rows[[1, 0, 0], 0]).tolist() == [[-1, -2], [-2, -1], [0, -1]]
        assert town.changes(rows[:1, 2], rows[1:2, 2]).tolist() == [[0, 1]]

    def test_special_levels_are_set_or_left_only_where_an_action_may(self, encoder):
        feature = encoder.schema.features[0]
        assert not len(feature.label_values)
        schema = encoder.schema.replace("x", enter_special=True)
        assert len(schema.features[0].label_values) == 1


def test_a_number_is_asked_for_as_such():
    root = Path(dear_plugin.__file__).parents[1]
    for path in [*root.glob("dear_plugin/**/*.py"), *root.glob("adapters/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare) and path.parent.name != "data":
                assert f"Kind.{Kind.NUMERIC.name}" not in ast.unparse(node), path


def test_an_identifier_that_no_training_row_has_is_told_without_their_values():
    """It was "expected one of those of the training rows"."""
    frame = pd.DataFrame({"key": [f"K{i}" for i in range(60)], "x": range(60)})
    encoder = Encoder(Schema.infer(frame, identifiers=["key"]))
    with pytest.raises(InputError, match=r"; expected values of the training rows$"):
        encoder.rows(frame.head(1).assign(key="new"))
