"""A schema as a file: it says what `Schema.infer` takes, and leads to the same schema again."""

import re

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Schema
from dear_plugin.errors import SchemaError


@pytest.fixture
def frame():
    """Columns of every kind, an order, a sum, a function of a category, dummies and codes."""
    rng = np.random.default_rng(0)
    n, third = 300, rng.integers(0, 3, 300)
    frame = pd.DataFrame(
        {
            "id": np.arange(n) + 100_000,
            "amount": rng.normal(50, 10, n).round(1),
            "limit": rng.integers(0, 9, n) * 500,
            "city": rng.choice(["x", "y", "z", "?"], n),
            "years": rng.choice(["<1", "1-4", "5-9", "10+"], n),
            "flag": rng.integers(0, 2, n),
            "works": rng.random(n) < 0.5,
            "always": 1,
            "gap": np.where(rng.random(n) < 0.2, np.nan, rng.normal(0, 1, n).round(2)),
            "code": rng.integers(0, 5, n),
            "answer": rng.integers(0, 2, n),
        }
    )
    for level in range(3):
        frame[f"third_{level}"] = (third == level).astype(int)
    index = frame["city"].map({"x": 1.5, "y": 2.5, "z": 3.5, "?": 0.0})
    return frame.assign(total=frame["amount"] + frame["limit"], index=index)


STATED = {
    "immutable": ["flag"],
    "increasing": ["amount"],
    "categorical": ["code"],
    "labels": {"flag": {"": "the flag", 0: "off", 1: "on"}, "works": {True: "has work"}},
    "units": {"amount": "euros"},
    "costs": {"limit": 3.0},
    "steps": {"amount": 5.0, "gap": None},
    "ranges": {"amount": (None, 70.0)},
    "special": {"limit": [0]},
    "excluded": {"city": ["z"]},
    "tiers": [["flag"], ["city", "works"]],
}


def round_trip(schema, frame, path):
    schema.to_toml(path)
    return Schema.from_toml(path, frame)


@pytest.mark.parametrize("stated", [{}, STATED, {"causes": {"amount": ["city"]}}])
def test_the_file_of_a_schema_leads_to_an_equal_one(frame, tmp_path, stated):
    schema = Schema.infer(frame, "answer", **stated)
    assert round_trip(schema, frame, tmp_path / "schema.toml") == schema


def test_what_a_person_edits_is_stated(frame, tmp_path):
    path = tmp_path / "schema.toml"
    Schema.infer(frame, "answer").to_toml(path)
    text = path.read_text(encoding="utf8")
    text = text.replace("tiers = []", 'tiers = [["flag"], ["amount"]]')
    text = text.replace(
        "[features.amount]", '[features.amount]\nunit = "euros"\nimmutable = true\nprecision = -1'
    )
    path.write_text(text, encoding="utf8")
    schema = Schema.from_toml(path, frame)
    (amount,) = (feature for feature in schema if feature.name == "amount")
    assert (amount.unit, amount.immutable, amount.precision) == ("euros", True, -1)
    assert schema.tiers == (("flag",), ("amount",))


def test_a_deleted_order_or_definition_is_not_inferred_again(frame, tmp_path):
    path = tmp_path / "schema.toml"
    Schema.infer(frame, "answer", orders=[], definitions={}).to_toml(path)
    assert Schema.from_toml(path, frame).relations == ()


def test_a_comment_says_what_was_found_of_each_feature(frame, tmp_path):
    path = tmp_path / "schema.toml"
    Schema.infer(frame, "answer", steps={"amount": 5.0}).to_toml(path)
    lines = path.read_text(encoding="utf8").splitlines()
    after = lines[lines.index("[features.amount]") + 1]
    assert after.startswith("# numeric: ")
    assert after.endswith("steps of 5")
    assert lines[lines.index("[features.years]") + 1] == "# levels in order: <1, 1-4, 5-9, 10+"


def test_what_may_be_acted_on_has_a_line_that_says_what_a_change_costs(frame, tmp_path):
    path = tmp_path / "schema.toml"
    schema = Schema.infer(frame, "answer", units={"amount": "euros"}, immutable=["flag"])
    schema.to_toml(path)
    text = path.read_text(encoding="utf8")
    tables = {t.partition("]")[0]: t for t in text.split("[features.")[1:]}
    told = [name for name, table in tables.items() if "\n# cost = 1 # of a change " in table]
    assert set(told) == {*schema.actionable}
    assert "# cost = 1 # of a change to another level" in tables["city"]
    path.write_text(text.replace("# cost = 1 #", "cost = 1 #"), encoding="utf8")
    assert Schema.from_toml(path, frame) == schema
    path.write_text(text.replace("# cost = 1 #", "cost = 0.2 #"), encoding="utf8")
    cheaper = Schema.from_toml(path, frame)
    assert {f.name: f.cost for f in cheaper if f.cost != 1} == dict.fromkeys(told, 0.2)


class TestACategoryInSeveralColumns:
    TABLE = """
        label = "the third"
        levels = { "0" = "the first of three" }
        cost = 2.5
        excluded = ["1"]
    """

    def test_its_table_says_what_holds_for_all_of_them(self, frame, tmp_path):
        """Tiers took its name, and tables refused it."""
        path = tmp_path / "schema.toml"
        Schema.infer(frame, "answer").to_toml(path)
        text = path.read_text(encoding="utf8")
        path.write_text(text.replace("[features.third]", f"[features.third]{self.TABLE}"))
        schema = Schema.from_toml(path, frame)
        (third,) = (feature for feature in schema if feature.name == "third")
        assert (third.label, third.cost, third.excluded) == ("the third", 2.5, ("1",))
        assert third.level_labels == ("the first of three", "", "")
        assert {column.cost for column in third.dummies} == {2.5}
        assert round_trip(schema, frame, path) == schema
        assert schema.as_written(frame) == schema

    def test_in_python_too(self, frame):
        stated = {"labels": {"third": "the third"}, "costs": {"third": 3}, "immutable": ["third"]}
        schema = Schema.infer(frame, "answer", **stated)
        (third,) = (feature for feature in schema if feature.name == "third")
        assert (third.label, third.cost, third.immutable) == ("the third", 3, True)


def test_unknown_features_are_told_once(frame, tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text('[features.limt]\nlabel = "x"\nunit = "y"\ncost = 2\nimmutable = true\n')
    with pytest.raises(SchemaError, match=r"schema\.toml: .*did you mean 'limit'") as error:
        Schema.from_toml(path, frame)
    assert str(error.value).count("known are") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("targets = 'answer'", r"unknown keys: 'targets' \(did you mean 'target'"),
        ("[features.amount]\nuint = 'euros'", r"\.toml: features.amount: unknown keys: 'uint'"),
        ("[features.amount]\ndirection = 'up'", "direction must be in"),
        ("[features]\namount = 3", "features.amount must be a table of its attributes, got 3"),
        ("features = 3", r"schema\.toml: features must be a table, \[features\], got 3"),
        ("letters = ['a']", r"schema\.toml: letters must be a table"),
        (
            "[features.amuont]\nunit = 'euros'\n[features.third]\nimmutable = true",
            r"schema\.toml: \[features\]: .*'amuont' \(did you mean 'amount'",
        ),
        ("target = ", "expected a TOML file"),
    ],
)
def test_what_does_not_fit_is_an_error(frame, tmp_path, text, message):
    path = tmp_path / "schema.toml"
    path.write_text(text, encoding="utf8")
    with pytest.raises(SchemaError, match=message):
        Schema.from_toml(path, frame)


def test_what_costs_1_is_written_without_an_exponent(tmp_path):
    Schema.infer(pd.DataFrame({"sum": np.linspace(0, 263_612, 500)})).to_toml(tmp_path / "a.toml")
    assert "# cost = 1 # of a change by 258,900" in (tmp_path / "a.toml").read_text()


def test_codes_that_are_stated_to_be_categories_need_no_other_edit(tmp_path):
    """The file had the values of the number, and was refused once the log's advice was taken."""
    frame = pd.DataFrame({"district": [101, 102, 104, 107] * 50, "pay": range(200)})
    Schema.infer(frame).to_toml(tmp_path / "schema.toml")
    text = (tmp_path / "schema.toml").read_text()
    assert "observed" in text
    table = '[features.district]\nkind = "category"'
    text = re.sub(r'\[features\.district\]((?:.|\n)*?)kind = "number"', table, text)
    (tmp_path / "edited.toml").write_text(text)
    schema = Schema.from_toml(tmp_path / "edited.toml", frame)
    assert schema.features[0].choices == (101, 102, 104, 107)
