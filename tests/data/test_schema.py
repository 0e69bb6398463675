"""Schema: inference of features from a frame, their constraints, and validation."""

import datetime
import decimal
import json
import math

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Feature, Kind, Schema
from dear_plugin.errors import SchemaError

NUMBERS, LETTERS = [1, 2, 3], ["a", "b", "c"]


def inferred(values, dtype=None, **marks) -> Feature:
    """The one feature of a column called x."""
    frame = pd.DataFrame({"x": pd.Series(values, dtype=dtype)})
    return Schema.infer(frame, **marks).features[0]


GAP, LOW = [1.0, None, 2.0, 3.0], ["low", "high"]
# Values, their dtype, what is stated, and what is inferred.
INFERRED = {
    "numbers as categories": ([3, 1, 2], None, {"categorical": ["x"]}, {"categories": (1, 2, 3)}),
    "sorted values": ([np.int64(7), np.int64(3)], "int64", {}, {"categories": (3, 7)}),
    "levels in use": (LOW, pd.CategoricalDtype([*LOW, "middle"]), {}, {"categories": (*LOW,)}),
    "several types": ([1, "one", 2], "object", {}, {"categories": (1, 2, "one")}),
    "a gap": (GAP, None, {}, {"kind": Kind.NUMERIC, "missing": "nan", "bounds": (1.0, 3.0)}),
    "its level": (GAP, None, {}, {"special_levels": 1, "columns": 2}),
    "codes": (
        *([-9, -7, 3, 4, 8], None, {"special": {"x": [-9, -7]}}),
        {"special": (-9.0, -7.0), "bounds": (3.0, 8.0), "columns": 3},
    ),
    "a code of two": ([0, 1, -9, 1], None, {"special": {"x": [-9]}}, {"kind": Kind.NUMERIC}),
    "an open end": (NUMBERS, None, {"ranges": {"x": (None, 2)}}, {"limits": (-math.inf, 2.0)}),
    "a range that does not scale": (
        *([0, 5, 10], None, {"ranges": {"x": (2, 100)}}),
        {"limits": (2.0, 100.0), "bounds": (0.0, 10.0)},
    ),
    **{
        f"a missing {dtype} as {gap}": (
            *([*two, gap], dtype, {}),
            {"kind": Kind.CATEGORICAL, "missing": as_gap, "missing_value": 2},
        )
        for two, gap, dtype, as_gap in (
            *(("ab", np.nan, "object", "nan"), ("ab", None, "object", "none")),
            *(("ab", None, "category", "nan"), ("ab", None, "string", "nan")),
            ([True, False], None, "boolean", "nan"),
        )
    },
    **{
        f"always {v}": ([v, v], None, {}, {"immutable": True, "width": 1.0}) for v in (5, 0.5, "a")
    },
    "always true": ([True, True], None, {}, {"immutable": True, "width": 1.0}),
}


@pytest.mark.parametrize("name", INFERRED)
def test_what_is_inferred_of_a_column(name):
    values, dtype, marks, expected = INFERRED[name]
    feature = inferred(values, dtype, **marks)
    assert {key: getattr(feature, key) for key in expected} == expected
    assert all(type(each).__module__ == "builtins" for each in feature.categories)
    assert feature.missing == "" or not feature.categories or feature.categories[-1] is None


class TestKinds:
    def test_the_features_keep_the_order_of_the_frame_and_the_target_is_none(self):
        frame = pd.DataFrame({"b": [1, 2, 3], "y": [0, 1, 0], "a": [1, 2, 3]})
        schema = Schema.infer(frame, target="y")
        assert schema.names == ("b", "a")
        assert schema.target == "y"

    def test_the_target_may_have_missing_values(self):
        frame = pd.DataFrame({"x": [1, 2, 3], "y": [0, None, 1]})
        assert Schema.infer(frame, target="y").names == ("x",)


class TestMissing:
    def test_their_number_is_logged(self, caplog):
        inferred([1.0, None, 2.0, 3.0])
        assert "x 1 of 4 rows" in caplog.text


class TestOrders:
    @pytest.fixture
    def bills(self) -> pd.DataFrame:
        rng = np.random.default_rng(0)
        total = rng.gamma(3, 10, 500).round(2)
        return pd.DataFrame({"total": total, "paid": (total * rng.random(500)).round(2)})

    def test_a_number_that_never_exceeds_another(self, bills):
        schema = Schema.infer(bills)
        assert schema.orders == (("paid", "total"),)
        assert [relation.text for relation in schema.relations] == ["paid <= total"]

    @pytest.mark.parametrize(("exceptions", "kept"), [(1, True), (3, False)])
    def test_an_order_is_broken_by_few_of_the_rows_near_it(self, bills, exceptions, kept):
        bills.loc[: exceptions - 1, "paid"] = bills.loc[: exceptions - 1, "total"] + 0.01
        assert bool(Schema.infer(bills).orders) is kept

    @pytest.mark.parametrize("gap", [(40, 80), (1000, 1000)], ids=["far", "disjoint"])
    def test_values_that_never_come_near_each_other_have_no_order(self, gap):
        rng = np.random.default_rng(0)
        low = rng.uniform(0, 100, 2000)
        frame = pd.DataFrame({"low": low, "high": low + rng.uniform(*gap, 2000)})
        assert Schema.infer(frame).orders == ()

    def test_equal_columns_are_ordered_both_ways(self, bills):
        orders = Schema.infer(bills.assign(twin=bills["total"])).orders
        assert {("total", "twin"), ("twin", "total")} <= set(orders)

    def test_missing_and_special_values_do_not_count(self, bills):
        bills.loc[3, "total"], bills.loc[4, "total"] = np.nan, -9
        assert Schema.infer(bills, special={"total": [-9]}).orders == (("paid", "total"),)


class TestConstraints:
    def test_directions(self, mixed):
        directions = {f.name: f.direction for f in mixed.schema if f.direction}
        assert directions == {"age": 1, "owner": 1, "debt": -1}

    @pytest.mark.parametrize("mark", ["immutable", "increasing", "decreasing", "categorical"])
    def test_unknown_names_are_rejected_with_the_closest_known_one(self, mark):
        with pytest.raises(SchemaError, match=rf"{mark}.*'agee' \(did you mean 'age'"):
            Schema.infer(pd.DataFrame({"age": [1, 2, 3]}), **{mark: ["agee"]})

    @pytest.mark.parametrize(
        ("values", "marks", "match"),
        [
            (
                NUMBERS,
                {"immutable": ["a"], "ranges": {"b": (0, 1)}},
                "immutable, ranges: unknown features: 'a', 'b'",
            ),
            (NUMBERS, {"increasing": ["x"], "decreasing": ["x"]}, "both increasing and"),
            (LETTERS, {"increasing": ["x"]}, "'x' has 3 categories without an order"),
            (LETTERS, {"ranges": {"x": (0, 1)}}, r"ranges\['x'\].*categories"),
            (NUMBERS, {"ranges": {"x": (2, 1)}}, r"ranges\['x'\] = \(2, 1\).*exceed"),
            (NUMBERS, {"ranges": {"x": (np.nan, 1)}}, "exceed"),
            (LETTERS, {"special": {"x": [1]}}, r"special\['x'\]: unknown values"),
            (LETTERS, {"numeric": ["x"]}, r"numeric= names 'x': expected numbers"),
            (NUMBERS, {"special": {"z": [1]}}, "special: unknown features: 'z'"),
            (NUMBERS, {"target": "z"}, "unknown target: 'z'"),
            (NUMBERS, {"rules": ["x <= 3"]}, "rules must be callables"),
        ],
    )
    def test_marks_that_do_not_fit_the_column(self, values, marks, match):
        with pytest.raises(SchemaError, match=match):
            inferred(values, **marks)


NO_TEXT = "'x' holds values that are neither text nor numbers"
SPARSE, DECIMALS = pd.SparseDtype("float64", 0.0), [decimal.Decimal(n) for n in ("1.5", "2", "3")]
INVALID_COLUMNS = {
    "infinite": ([1.0, np.inf, 2.0], None, "'x' holds infinite"),
    # JSON cannot hold it.
    "an infinite category": ([0.0, np.inf, 0.0], None, r"'x': categories must be .*got .*inf\)"),
    "dates": (pd.date_range("2024", periods=3), None, r"holds dates.*pd\.Timestamp.*\.dt\.days"),
    "dates as objects": ([datetime.date(2024, 1, 1)] * 2, "object", "'x' holds dates"),
    "durations": (pd.to_timedelta([1, 2, 3], unit="D"), None, "'x' holds durations"),
    "tuples": ([(1,), (2,)], "object", "'x' holds values that are neither"),
    "lists": ([[1], [2]], "object", NO_TEXT),
    "arrays": ([np.zeros(2), np.ones(2)], "object", NO_TEXT),
    "sparse": ([0.0, 1.0, 2.0], SPARSE, r"'x' holds sparse.*\.sparse\.to_dense\(\)"),
    "sparse and binary": ([0.0, 1.0, 0.0], SPARSE, r"'x' holds sparse.*\.sparse\.to_dense\(\)"),
    "complex": ([1j, 2j, 3j], None, "'x'.*complex numbers, which have no order"),
    "decimals": (DECIMALS, "object", "'x'.*float"),
}
BAD_ATTRIBUTES = {
    "name": [3],
    "kind": ["zz"],
    "bounds": [(0.0, "a"), (1.0, 0.0), (0.0, np.inf), 3],
    "categories": ["ab", ((1,), "b"), ("a", "a")],
    "precision": ["zz", 1.5, 10**9],
    "dtype": ["zz", None, "Sparse[float64, 0.0]"],
    "immutable": [None],
    "direction": ["zz", 2],
    "limits": [(), (2, 1), (np.nan, 1)],
}


# What is no list where several values are expected, and what the error says.
NOT_SEVERAL = [
    ({"ranges": {"age": 5}}, r"ranges\['age'\] must be \(low, high\), got 5"),
    ({"ranges": {"age": "ab"}}, r"ranges\['age'\] must be \(low, high\), got 'ab'"),
    ({"ranges": {"age": (1, 2, 3)}}, r"ranges\['age'\] must be \(low, high\)"),
    ({"ranges": {"age": ("a", "b")}}, r"expected numbers, or None for an open end; got \('a'"),
    ({"ranges": {"size": ("S", "XL")}}, r"expected levels among \('S', 'M', 'L'\)"),
    ({"special": {"age": -1}}, r"special\['age'\] must be a list of values, got -1"),
    ({"special": {"size": "S"}}, r"special\['size'\] must be a list of values, got 'S'"),
    ({"excluded": {"size": "M"}}, r"excluded\['size'\] must be a list of levels, got 'M'"),
    ({"excluded": {"age": [20]}}, "unknown values: 20; known are: none"),
    ({"ordered": {"size": 3}}, r"ordered\['size'\] must be a list of levels.*, got 3"),
    ({"exactly_one": 3}, "exactly_one must be a list, got 3"),
    ({"rules": len}, "rules must be a list, got <built-in function len>"),
]


class TestInvalid:
    @pytest.mark.parametrize(("given", "words"), NOT_SEVERAL)
    def test_one_value_where_several_are_expected(self, given, words):
        """Each was a TypeError of Python, or letters were taken for levels."""
        frame = pd.DataFrame({"age": [20, 30, 40], "size": ["S", "M", "L"]})
        ordered = {"ordered": {"size": ["S", "M", "L"]}} if "ranges" in given else {}
        with pytest.raises(SchemaError, match=words):
            Schema.infer(frame, **ordered, **given)

    @pytest.mark.parametrize("name", INVALID_COLUMNS)
    def test_a_column_without_numbers_or_text(self, name):
        values, dtype, match = INVALID_COLUMNS[name]
        with pytest.raises(SchemaError, match=match):
            inferred(values, dtype)

    def test_all_bad_columns_are_in_one_error(self):
        frame = pd.DataFrame({"a": pd.date_range("2024", periods=3), "b": [1.0, 2.0, np.inf]})
        with pytest.raises(SchemaError, match=r"'a' holds dates.*'b' holds infinite"):
            Schema.infer(frame)

    @pytest.mark.parametrize(
        ("name", "bad"), [(name, bad) for name, each in BAD_ATTRIBUTES.items() for bad in each]
    )
    def test_attributes_outside_their_domain(self, name, bad):
        valid = {"name": "x", "kind": Kind.NUMERIC}
        with pytest.raises(SchemaError, match=rf"feature .*: {name} must be .*, got "):
            Feature(**{**valid, name: bad})

    def test_an_array_instead_of_a_frame(self):
        with pytest.raises(SchemaError, match="a pandas DataFrame, got numpy"):
            Schema.infer(np.zeros((2, 2)))

    @pytest.mark.parametrize("frame", [pd.DataFrame(), pd.DataFrame({"x": []})])
    def test_an_empty_frame(self, frame):
        with pytest.raises(SchemaError, match=r"got shape \(0, \d\)"):
            Schema.infer(frame)

    def test_duplicate_feature_names(self):
        with pytest.raises(SchemaError, match=r"duplicate feature names: \['x'\]"):
            Schema((Feature("x", Kind.NUMERIC), Feature("x", Kind.NUMERIC)))


@pytest.mark.parametrize("as_type", [np.array, pd.Index, pd.Series, set, iter])
@pytest.mark.parametrize("argument", ["immutable", "categorical", "identifiers"])
def test_features_are_named_in_any_iterable(mixed, argument, as_type):
    given = Schema.infer(mixed.frame, **{argument: as_type(["age", "income"])})
    assert given == Schema.infer(mixed.frame, **{argument: ["age", "income"]})


class TestValueSemantics:
    def test_replace_gives_a_copy(self, mixed):
        changed = mixed.schema.replace("age", immutable=True)
        assert "age" in mixed.schema.mutable
        assert "age" not in changed.mutable

    def test_replace_rejects_unknown_names(self, mixed):
        with pytest.raises(SchemaError, match="'agee'"):
            mixed.schema.replace("agee", immutable=True)

    def test_positions_of_names(self, mixed):
        assert mixed.schema.index(["income", "age"]) == (1, 0)
        with pytest.raises(SchemaError, match="unknown features: 'wealth'"):
            mixed.schema.index(["wealth"])

    def test_it_is_a_sequence_of_features(self, mixed):
        assert len(mixed.schema) == 8
        assert [f.name for f in mixed.schema] == list(mixed.schema.names)


AREAS = pd.DataFrame({"radius": np.linspace(1, 9, 800), "area": np.linspace(1, 9, 800) ** 2})
GAPS = pd.DataFrame({"x": [1.0, None, 2.0, 3.0], "y": ["a", None, "b", "c"]})
SAVED = {
    "every kind": lambda plain: plain,
    "numbers of numpy": lambda plain: plain.replace(
        "debt", bounds=(np.int64(0), np.float32(9.0)), precision=np.int64(1)
    ),
    "missing and special levels": lambda _: Schema.infer(GAPS, special={"x": [3], "y": ["a"]}),
    "a relation and steps": lambda _: Schema.infer(AREAS, steps={"radius": 2.5}),
    "tiers": lambda _: Schema.infer(AREAS, tiers=[["radius"], ["area"]]),
    "causes": lambda _: Schema.infer(AREAS, causes={"area": ["radius"]}),
    "a label and a unit": lambda plain: plain.replace("debt", label="the debt", unit="euros"),
}


@pytest.mark.parametrize("name", SAVED)
def test_it_survives_json(name, mixed):
    schema = SAVED[name](mixed.schema)
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def schema():
    jobs = ["<b>cook</b>", "nurse", "judge", "porter"]
    frame = pd.DataFrame({"age": range(20, 24), "a < b": [0.5, 1.5, 2.5, 3.5], "job": jobs})
    return Schema.infer(frame, immutable=["age"], increasing=["a < b"])


def test_the_line_names_kinds_and_restrictions():
    assert repr(schema()) == (
        "Schema(3 features (2 numeric, 1 categorical); immutable: age; increasing: a < b)"
    )


def test_the_line_names_the_levels_of_a_range():
    """All levels were named, whatever the range."""
    frame = pd.DataFrame({"size": list("SMLX") * 6, "hour": range(24)})
    order, ranges = {"size": list("SMLX")}, {"size": (None, "M")}
    line = repr(Schema.infer(frame, ordered=order, ranges=ranges))
    assert "ranges: size S, M;" in f"{line[:-1]};"


def test_the_table_has_a_line_for_each_feature_in_which_all_text_is_escaped():
    html = schema()._repr_html_()
    assert html.count("<tr>") == 4
    assert "no, immutable" in html
    assert "up only" in html
    assert "0.5 to 3.5" in html
    assert "<b>" not in html
    assert "a &lt; b" in html


def test_in_text_leaves_numbers_text_and_missing_values():
    columns = {"n": [1.5, 2.5, 3.5, 4.5], "flag": [36, 60, 36, 60], "b": [True, False] * 2}
    frame = pd.DataFrame({**columns, "t": ["x", None, "y", "x"], "other": [1, 2, 3, 4]})
    text = Schema.infer(frame.drop(columns="other")).in_text(frame)
    assert text["flag"].tolist() == ["36", "60", "36", "60"]
    assert text["b"].tolist() == ["True", "False"] * 2
    assert text[["n", "t", "other"]].equals(frame[["n", "t", "other"]])


def test_a_save_of_0_5_is_read_unless_it_has_a_cyclic_feature():
    saved = schema().to_dict()
    old = {**saved, "features": [{**each, "cyclic": False} for each in saved["features"]]}
    assert Schema.from_dict(old) == schema()
    old["features"][0]["cyclic"] = True
    with pytest.raises(SchemaError, match="was saved as cyclic"):
        Schema.from_dict(old)
