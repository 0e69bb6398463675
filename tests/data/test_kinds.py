"""Kinds of columns: numbers, labels, and labels with an order, which rows hold as numbers."""

import copy
import dataclasses

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Encoder, Feature, Kind, Schema
from dear_plugin.data.cells import cells_of, read_column
from dear_plugin.data.numbers import decimals
from dear_plugin.errors import ArgumentError, InputError

SIZES = ["S", "M", "L"]


def levels(values, order=SIZES):
    return pd.Series(pd.Categorical(values, order, ordered=True))


# What rows hold of a column.
AMOUNTS, LABELS, PLACES = "amounts", "labels", "places"
COLUMNS = {
    "amounts": (AMOUNTS, Kind.NUMERIC, pd.Series([1.5, 2.25, 30.0])),
    "single floats": (AMOUNTS, Kind.NUMERIC, pd.Series([1.5, 2.25, 30.0], dtype="float32")),
    "integers": (AMOUNTS, Kind.NUMERIC, pd.Series([1, 2, 30])),
    "nullable integers": (AMOUNTS, Kind.NUMERIC, pd.Series([1, None, -9, 30], dtype="Int64")),
    "nullable amounts": (AMOUNTS, Kind.NUMERIC, pd.Series([1, None, -9, 30], dtype="Float64")),
    "a code": (AMOUNTS, Kind.NUMERIC, pd.Series([1.0, -9.0, 30.0])),
    "flags": (LABELS, Kind.BINARY, pd.Series([True, False, True])),
    "nullable flags": (LABELS, Kind.BINARY, pd.Series([True, False], dtype="boolean")),
    "two integers": (LABELS, Kind.BINARY, pd.Series([3, 7, 3])),
    "two amounts": (LABELS, Kind.BINARY, pd.Series([3.5, 7.0, 3.5])),
    "two labels": (LABELS, Kind.BINARY, pd.Series(["a", "b", "a"])),
    "labels": (LABELS, Kind.CATEGORICAL, pd.Series(["a", "b", "c"])),
    "a missing label": (LABELS, Kind.CATEGORICAL, pd.Series(["a", None, "c"])),
    "a category column": (LABELS, Kind.BINARY, pd.Series(["b", "a"], dtype="category")),
    "numbers as levels": (LABELS, Kind.CATEGORICAL, pd.Series([1, 2, 3], dtype="category")),
    "a text column": (LABELS, Kind.CATEGORICAL, pd.Series(["a", "b", None], dtype="string")),
    "levels with an order": (PLACES, Kind.NUMERIC, levels(SIZES)),
    "an unknown level": (LABELS, Kind.CATEGORICAL, levels(["?", "M", "L"], ["?", "M", "L"])),
    "a missing level": (PLACES, Kind.NUMERIC, levels([*SIZES, np.nan])),
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
    assert feature.kind == kind
    assert Feature.from_dict(feature.to_dict()) == feature
    assert type(feature) is Feature
    assert feature.has_order == (own != LABELS)


@EVERY
def test_a_column_says_what_limits_it(name):
    own, _, column = COLUMNS[name]
    (feature,) = Schema.infer(pd.DataFrame({"x": column})).features
    assert ("ranges" in feature.limited_by) == feature.has_order == (not feature.categories)
    assert bool(feature.ranked) == (own == PLACES)
    assert (feature.choices == ()) == (own == AMOUNTS)


@EVERY
def test_a_cell_has_the_row_value_of_its_column_and_is_an_amount_of_numbers_alone(name):
    own, _, column = COLUMNS[name]
    (feature,) = schema = Schema.infer(pd.DataFrame({"x": column}), special=SPECIAL.get(name))
    known = column[column.notna() & ~column.isin(feature.special)]
    values = read_column(feature, known).values
    assert [feature.place(cell) for cell in known] == values.tolist()
    assert [feature.is_amount(cell) for cell in known] == [own == AMOUNTS] * len(known)
    assert not any(feature.is_amount(cell) for cell in column.drop(known.index))
    assert [*schema.numbers] == ["x"] * (own == AMOUNTS)


def test_a_feature_of_other_attributes_is_of_their_kind():
    number = Feature("x", Kind.NUMERIC, (0.0, 2.0))
    levels = dataclasses.replace(number, levels=("a", "b", "c"))
    labels = dataclasses.replace(number, kind=Kind.BINARY, categories=("a", "b"))
    assert [each.choices for each in (number, levels, labels)] == [(), tuple("abc"), tuple("ab")]
    assert [each.has_order for each in (number, levels, labels)] == [True, True, False]
    assert dataclasses.replace(levels, levels=()) == number
    assert copy.deepcopy(labels) == labels


@pytest.mark.parametrize("made", [dataclasses.replace, copy.deepcopy])
def test_nothing_of_a_feature_changes_once_it_is_made(made):
    """Numbers of numpy were made Python's by writing to a frozen feature."""
    feature = made(Feature("x", Kind.NUMERIC, (np.float64(0), np.float64(2)), cost=np.float32(3)))
    assert [type(each) for each in (*feature.bounds, feature.cost)] == [float] * 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        feature.cost = 2.0
    with pytest.raises(ArgumentError, match="did you mean 'bounds'"):
        Feature("x", Kind.NUMERIC, bound=(0.0, 2.0))


@EVERY
def test_values_of_any_shape_have_cells(name):
    *_, column = COLUMNS[name]
    frame = pd.DataFrame({"x": column})
    schema = Schema.infer(frame)
    rows = Encoder(schema).rows(frame).numpy()
    written = cells_of(schema.features[0], np.stack([rows, rows]))
    assert written.shape == (2, len(frame), 1)
    assert pd.Series(written[1, :, 0]).isna().tolist() == column.isna().tolist()


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
        {"x": [3.0, 1.0, np.nan, 2.0], "size": levels([*SIZES, "S"]), "town": ["a", "b", "c", "a"]}
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


def test_an_identifier_that_no_training_row_has_is_told_without_their_values():
    """It was "expected one of those of the training rows"."""
    frame = pd.DataFrame({"key": [f"K{i}" for i in range(60)], "x": range(60)})
    encoder = Encoder(Schema.infer(frame, identifiers=["key"]))
    with pytest.raises(InputError, match=r"; expected values of the training rows$"):
        encoder.rows(frame.head(1).assign(key="new"))
