"""Tiers: an order of causes; checked when it is stated, and what it holds for an action."""

import dataclasses

import pandas as pd
import pytest

from dear_plugin import Schema
from dear_plugin.errors import SchemaError

FRAME = pd.DataFrame(
    {
        "sex": ["f", "m"] * 10,
        "age": range(20),
        "school": [i % 7 for i in range(20)],
        "wage": [i * 3 % 20 for i in range(20)],
        "debt": [i * 7 % 20 for i in range(20)],
        "paid": [0, 1] * 10,
    }
)
TIERS = [["sex", "age"], ["school"]]


def schema(tiers=TIERS, **marks) -> Schema:
    return Schema.infer(FRAME, target="paid", tiers=tiers, immutable=["sex"], **marks)


def held(of: Schema, *names: str) -> list[str]:
    return [of.names[j] for j in of.causal_order.held(of.index(names))]


HELD = {
    "features of earlier tiers": (TIERS, ["school"], ["sex", "age"]),
    "immutable features in the first tier": (TIERS, ["age"], ["sex"]),
    "what is not named is the last tier": (TIERS, ["wage"], ["sex", "age", "school"]),
    "what is not named is in one tier": (TIERS, ["debt"], ["sex", "age", "school"]),
    "what is named is before it": ([["debt"]], ["age"], ["sex", "debt"]),
    "nothing after it": ([["debt"]], ["debt"], ["sex"]),
    "what is before the earliest of a set": (TIERS, ["debt", "school"], ["sex", "age"]),
    "nothing of a set itself": (TIERS, ["wage", "age"], ["sex"]),
    "immutable features of later tiers": ([["age"], ["sex"]], ["age"], ["sex"]),
    "immutable features without tiers": ([], ["wage", "age"], ["sex"]),
}


class TestHeld:
    @pytest.mark.parametrize("what", HELD)
    def test_it_is_held(self, what):
        tiers, acted, expected = HELD[what]
        assert held(schema(tiers), *acted) == expected

    def test_the_positions_ascend_in_any_order_of_the_set(self):
        of = schema()
        assert of.causal_order.held((4, 2)) == of.causal_order.held(iter([2, 4])) == (0, 1)


class TestChecks:
    @pytest.mark.parametrize(
        ("tiers", "message"),
        [
            ("age", "tiers must be a list of lists of features"),
            (3, "tiers must be a list of lists of features"),
            (["age", "school"], r"tiers\[0\] must be a list.*'age'"),
            ([["age"], []], r"tiers\[1\] is empty"),
            ([["agee"]], "tiers: unknown features: 'agee' \\(did you mean 'age'"),
            ([["age"], ["school", "age"]], r"tiers: \['age'\] are named more than once"),
            ([["age"], ["paid"]], "'paid' is the target"),
        ],
    )
    def test_what_is_no_order_of_features_is_an_error(self, tiers, message):
        with pytest.raises(SchemaError, match=message):
            schema(tiers)
        with pytest.raises(SchemaError, match=message):
            dataclasses.replace(schema([]), tiers=tiers)

    def test_lists_become_tuples(self):
        assert Schema(schema([]).features, tiers=TIERS).tiers == (("sex", "age"), ("school",))


class TestShown:
    def test_the_line_has_them_in_order(self):
        assert repr(schema()).endswith("; tiers: sex, age -> school -> the others)")
        assert "the others" not in repr(schema([*TIERS, ["wage"], ["debt"]]))
        assert "tiers" not in repr(schema([]))

    def test_the_table_has_a_column_of_their_numbers(self):
        html = schema()._repr_html_()
        assert "tier</th>" in html
        last = [row.split("<td")[-1] for row in html.split("</tr>") if "<td" in row]
        assert [sum(f">{i}</td>" in cell for cell in last) for i in (1, 2, 3)] == [2, 1, 2]
        assert "tier" not in schema([])._repr_html_()
