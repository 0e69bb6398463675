"""Schemas show themselves: in a line, and as a table whose text is escaped."""

import pandas as pd

from dear_plugin import Schema


def schema():
    frame = pd.DataFrame(
        {
            "age": [20, 30, 40, 50],
            "a < b": [0.5, 1.5, 2.5, 3.5],
            "job": ["<b>cook</b>", "nurse", "judge", "porter"],
        }
    )
    return Schema.infer(frame, immutable=["age"], increasing=["a < b"])


def test_the_line_names_kinds_and_restrictions():
    assert repr(schema()) == (
        "Schema(3 features (2 numeric, 1 categorical); immutable: age; increasing: a < b)"
    )


def test_the_table_has_a_line_for_each_feature():
    html = schema()._repr_html_()
    assert html.count("<tr>") == 4
    assert "no, immutable" in html
    assert "up only" in html
    assert "0.5 to 3.5" in html


def test_all_text_is_escaped():
    html = schema()._repr_html_()
    assert "<b>" not in html
    assert "a &lt; b" in html
