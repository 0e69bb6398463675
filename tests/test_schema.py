"""Schema: the features of a frame, what they are and what may change."""

import json

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Feature, Kind, Schema
from dear_plugin.errors import SchemaError
from dear_plugin.schema import decimals


def inferred(values, dtype=None, **marks) -> Feature:
    """The one feature of a column called x."""
    frame = pd.DataFrame({"x": pd.Series(values, dtype=dtype)})
    return Schema.infer(frame, **marks).features[0]


class TestKinds:
    @pytest.mark.parametrize(
        ("values", "dtype", "kind"),
        [
            ([1, 2, 3], "int64", Kind.NUMERIC),
            ([1, 2, 3], "uint8", Kind.NUMERIC),
            ([1, 2, 3], "Int64", Kind.NUMERIC),
            ([1.5, 2.0, 3.0], "float32", Kind.NUMERIC),
            ([1.5, 2.0, 3.0], "Float64", Kind.NUMERIC),
            ([0, 1, 0], "int64", Kind.BINARY),
            ([3.5, 7.0, 3.5], "float64", Kind.BINARY),
            ([True, False, True], "bool", Kind.BINARY),
            ([True, False, True], "boolean", Kind.BINARY),
            (["a", "b", "a"], "object", Kind.BINARY),
            (["a", "b", "c"], "object", Kind.CATEGORICAL),
            (["a", "b", "c"], "string", Kind.CATEGORICAL),
            (["a", "b", "c"], "category", Kind.CATEGORICAL),
            ([1, 2, 3], "category", Kind.CATEGORICAL),
        ],
    )
    def test_the_kind_follows_from_values_and_dtype(self, values, dtype, kind):
        assert inferred(values, dtype).kind is kind

    def test_numbers_can_be_declared_categories(self):
        feature = inferred([3, 1, 2], categorical=["x"])
        assert feature.kind is Kind.CATEGORICAL
        assert feature.categories == (1, 2, 3)

    def test_only_more_than_two_categories_take_a_column_each(self):
        assert [inferred(list(v)).columns for v in ("ab", "abc")] == [1, 3]

    def test_the_features_keep_the_order_of_the_frame_and_the_target_is_none(self):
        frame = pd.DataFrame({"b": [1, 2, 3], "y": [0, 1, 0], "a": [1, 2, 3]})
        schema = Schema.infer(frame, target="y")
        assert schema.names == ("b", "a")
        assert schema.target == "y"

    def test_the_target_may_have_missing_values(self):
        frame = pd.DataFrame({"x": [1, 2, 3], "y": [0, None, 1]})
        assert Schema.infer(frame, target="y").names == ("x",)


class TestWhatIsReadOff:
    def test_bounds_are_the_least_and_greatest_value(self):
        assert inferred([3, -1, 2]).bounds == (-1.0, 3.0)

    def test_categories_are_sorted_plain_values(self):
        feature = inferred([np.int64(7), np.int64(3)], "int64")
        assert feature.categories == (3, 7)
        assert [type(c) for c in feature.categories] == [int, int]

    def test_categories_of_a_categorical_keep_their_order_without_the_unused(self):
        column = pd.Categorical(["low", "high"], categories=["low", "middle", "high"])
        assert inferred(column).categories == ("low", "high")

    def test_categories_of_mixed_types_are_allowed(self):
        assert set(inferred([1, "one", 2], "object").categories) == {1, "one", 2}

    def test_the_dtype_is_remembered(self):
        assert inferred([1, 2, 3], "Int64").dtype == "Int64"

    @pytest.mark.parametrize("values", [[5, 5, 5], [0.5, 0.5], ["a", "a"], [True, True]])
    def test_a_constant_column_is_immutable(self, values):
        feature = inferred(values)
        assert feature.immutable
        assert feature.width == 1.0


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
    def test_they_hold_every_value(self, values, places):
        assert decimals(np.array(values)) == places

    def test_single_precision_is_judged_by_its_own_resolution(self):
        assert decimals(np.array([0.1, 1234.56], dtype=np.float32)) == 2
        assert inferred([0.1, 0.2, 0.3], "float32").precision == 1

    def test_a_number_keeps_its_precision(self):
        assert inferred([1, 2, 3]).precision == 0
        assert inferred([0.25, 0.5, 1.0]).precision == 2


class TestMarks:
    def test_immutable_features_are_not_mutable(self, mixed):
        assert "gender" not in mixed.schema.mutable
        assert set(mixed.schema.mutable) | {"gender"} == set(mixed.schema.names)

    def test_directions(self, mixed):
        directions = {f.name: f.direction for f in mixed.schema if f.direction}
        assert directions == {"age": 1, "owner": 1, "debt": -1}

    def test_a_range_restricts_and_does_not_scale(self):
        feature = inferred([0, 5, 10], ranges={"x": (2, 100)})
        assert feature.limits == (2.0, 100.0)
        assert feature.bounds == (0.0, 10.0)

    @pytest.mark.parametrize("mark", ["immutable", "increasing", "decreasing", "categorical"])
    def test_unknown_names_are_refused_with_the_nearest(self, mark):
        with pytest.raises(SchemaError, match=rf"{mark}.*'agee' \(did you mean 'age'"):
            Schema.infer(pd.DataFrame({"age": [1, 2, 3]}), **{mark: ["agee"]})

    def test_all_unknown_names_are_told_at_once(self):
        with pytest.raises(SchemaError, match=r"immutable.*'a'.*ranges.*'b'"):
            inferred([1, 2, 3], immutable=["a"], ranges={"b": (0, 1)})

    def test_increasing_and_decreasing_contradict(self):
        with pytest.raises(SchemaError, match=r"both increasing and decreasing.*'x'"):
            inferred([1, 2, 3], increasing=["x"], decreasing=["x"])

    def test_categories_without_an_order_have_no_direction(self):
        with pytest.raises(SchemaError, match=r"'x' has 3 categories without an order"):
            inferred(list("abc"), increasing=["x"])

    def test_a_range_needs_numbers_and_an_order(self):
        with pytest.raises(SchemaError, match=r"ranges\['x'\].*categories"):
            inferred(list("abc"), ranges={"x": (0, 1)})
        with pytest.raises(SchemaError, match=r"ranges\['x'\] = \(2, 1\).*exceed"):
            inferred([1, 2, 3], ranges={"x": (2, 1)})
        with pytest.raises(SchemaError, match="exceed"):
            inferred([1, 2, 3], ranges={"x": (float("nan"), 1)})


class TestWhatIsRefused:
    def test_missing_values(self):
        with pytest.raises(SchemaError, match=r"'x' has 1 missing"):
            inferred([1.0, None, 2.0])

    def test_infinite_values(self):
        with pytest.raises(SchemaError, match=r"'x' holds infinite"):
            inferred([1.0, np.inf, 2.0])

    def test_dates(self):
        with pytest.raises(SchemaError, match=r"'x' holds dates"):
            inferred(pd.date_range("2024", periods=3))

    def test_durations(self):
        with pytest.raises(SchemaError, match=r"'x' holds dates"):
            inferred(pd.to_timedelta([1, 2, 3], unit="D"))

    def test_values_that_are_neither_text_nor_numbers(self):
        with pytest.raises(SchemaError, match=r"'x' holds values that are neither"):
            inferred([(1,), (2,)], "object")

    @pytest.mark.parametrize(
        "values", [[[1], [2]], [np.zeros(2), np.ones(2)]], ids=["list", "array"]
    )
    def test_values_without_a_hash(self, values):
        with pytest.raises(SchemaError, match=r"'x' holds unhashable.*neither text nor numbers"):
            inferred(values, "object")

    @pytest.mark.parametrize("values", [[0.0, 1.0, 2.0], [0.0, 1.0, 0.0]])
    def test_sparse_columns(self, values):
        with pytest.raises(SchemaError, match=r"'x' is sparse.*\.sparse\.to_dense\(\)"):
            inferred(values, pd.SparseDtype("float64", 0.0))

    def test_an_infinite_category(self):
        """It could not be saved."""
        with pytest.raises(SchemaError, match=r"'x': categories must be .*finite.*inf\) came"):
            inferred([0.0, np.inf, 0.0])

    @pytest.mark.parametrize(
        ("name", "bad"),
        [
            ("name", 3),
            ("kind", "zz"),
            ("bounds", (0.0, "a")),
            ("bounds", (1.0, 0.0)),
            ("bounds", (0.0, np.inf)),
            ("bounds", 3),
            ("categories", "ab"),
            ("categories", ((1,), "b")),
            ("categories", ("a", "a")),
            ("precision", "zz"),
            ("precision", 1.5),
            ("precision", 10**9),
            ("dtype", "zz"),
            ("dtype", None),
            ("dtype", "Sparse[float64, 0.0]"),
            ("immutable", None),
            ("direction", "zz"),
            ("direction", 2),
            ("limits", ()),
            ("limits", (2, 1)),
            ("limits", (np.nan, 1)),
        ],
    )
    def test_attributes_that_a_feature_cannot_have(self, name, bad):
        own = {"name": "x", "kind": Kind.NUMERIC}
        with pytest.raises(SchemaError, match=rf"feature .*: {name} must be .* came"):
            Feature(**{**own, name: bad})

    def test_an_array_instead_of_a_frame(self):
        with pytest.raises(SchemaError, match="DataFrame is needed, ndarray came"):
            Schema.infer(np.zeros((2, 2)))

    @pytest.mark.parametrize("frame", [pd.DataFrame(), pd.DataFrame({"x": []})])
    def test_an_empty_frame(self, frame):
        with pytest.raises(SchemaError, match=r"shape \(0, \d\) came"):
            Schema.infer(frame)

    def test_an_unknown_target(self):
        with pytest.raises(SchemaError, match="unknown target: 'z'"):
            inferred([1, 2, 3], target="z")

    def test_features_named_twice(self):
        with pytest.raises(SchemaError, match=r"named twice: \['x'\]"):
            Schema((Feature("x", Kind.NUMERIC), Feature("x", Kind.NUMERIC)))


class TestAsAValue:
    def test_replace_gives_a_copy(self, mixed):
        changed = mixed.schema.replace("age", immutable=True)
        assert "age" in mixed.schema.mutable
        assert "age" not in changed.mutable

    def test_replace_refuses_unknown_names(self, mixed):
        with pytest.raises(SchemaError, match="'agee'"):
            mixed.schema.replace("agee", immutable=True)

    def test_positions_of_names(self, mixed):
        assert mixed.schema.index(["income", "age"]) == (1, 0)
        with pytest.raises(SchemaError, match="unknown features: 'wealth'"):
            mixed.schema.index(["wealth"])

    def test_numbers_of_numpy_become_plain_ones_which_json_can_hold(self, mixed):
        bounds, places = (np.int64(0), np.float32(9.0)), np.int64(1)
        changed = mixed.schema.replace("debt", bounds=bounds, precision=places)
        assert Schema.from_dict(json.loads(json.dumps(changed.to_dict()))) == changed

    def test_it_survives_json(self, mixed):
        text = json.dumps(mixed.schema.to_dict())
        assert Schema.from_dict(json.loads(text)) == mixed.schema

    def test_it_is_a_sequence_of_features(self, mixed):
        assert len(mixed.schema) == 8
        assert [f.name for f in mixed.schema] == list(mixed.schema.names)

    def test_two_readings_of_a_frame_are_equal(self, mixed):
        assert Schema.infer(mixed.frame) == Schema.infer(mixed.frame)
