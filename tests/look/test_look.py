"""`look` guesses arguments of `Schema.infer`, and `Schema.infer` adds nothing to them."""

import inspect
import logging

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Schema
from dear_plugin.data.infer import OF_SEVERAL
from dear_plugin.look import look

ROWS = 600
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """A column, or some, of every kind that is guessed."""
    paid, rest = RNG.gamma(3, 900, (2, ROWS)).round()
    job, town = RNG.integers(0, 3, ROWS), RNG.integers(0, 9, ROWS)
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(RNG.integers(0, 900, ROWS), "D")
    columns = {
        "key": RNG.permutation(ROWS) + 5000,
        "paid": paid,
        "rest": rest,
        "total": paid + rest,
        "low": (low := RNG.normal(80, 9, ROWS).round()),
        "high": low + RNG.gamma(1, 9, ROWS).round(),
        "limit": RNG.choice([500, 1000, 1500, 4000], ROWS),
        "years": RNG.choice(["<1", "1-4", "5-9", "10+"], ROWS),
        "size": RNG.choice(["small", "medium", "large"], ROWS),
        "town": [f"town {i}" if i else "unknown" for i in town],
        "county": [f"county {i % 4}" for i in town],
        "opened": days.strftime("%Y%m%d").astype(int),
        "street": [f"street {i}" for i in RNG.integers(0, 190, ROWS)],
        **{f"job_{i}": (job == i) * 1 for i in range(3)},
    }
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def found(frame):
    return look(frame)


def test_it_returns_arguments_that_infer_takes(found):
    assert {*found} <= {*inspect.signature(Schema.infer).parameters}
    assert found["definitions"] == {"county": ["town"], "total": ["rest", "paid"]}
    assert ("low", "high") in found["orders"]
    assert found["exactly_one"] == [("job_0", "job_1", "job_2")]
    assert found["identifiers"] == ["key"]
    assert found["immutable"] == ["opened"]
    assert found["only_named"] == ["street"]
    assert found["ordered"] == {"years": ["<1", "1-4", "5-9", "10+"]}
    assert found["special"] == {"town": ["unknown"]}
    assert found["observed"] == {"limit": [500, 1000, 1500, 4000]}


def test_infer_adds_nothing_to_them(frame, found):
    assert Schema.infer(frame, guess=False, **found) == Schema.infer(frame)


def test_without_guesses_there_is_what_is_stated(frame, caplog):
    with caplog.at_level(logging.INFO):
        schema = Schema.infer(frame, guess=False, orders=[("low", "high")])
    assert [each.text for each in schema.relations] == ["low <= high"]
    assert schema.exactly_one == ()
    assert not any(f.identifier or f.observed or f.ranked or f.special for f in schema)
    assert {*schema.mutable} == {*frame} and not caplog.text


def test_each_is_told_in_a_sentence(frame, found, caplog):
    with caplog.at_level(logging.INFO):
        Schema.infer(frame)
    for each in found.evidence:
        assert each.text in caplog.text
    argued = [each for each in found.evidence if each.argument]
    assert {each.argument for each in argued} == {*found}
    assert all(each.text for each in argued)


@pytest.mark.parametrize("what", OF_SEVERAL[:3])
def test_of_what_is_stated_nothing_is_guessed(frame, what):
    stated = {} if what == "definitions" else []
    assert what not in look(frame, **{what: stated})


def test_what_a_feature_is_is_not_guessed_where_it_is_stated(frame):
    found = look(frame, numeric=["key", "opened"], categorical=["years"], special={"town": []})
    assert not {*found} & {"identifiers", "immutable", "ordered", "special"}


def test_the_file_has_the_same_arguments(frame, tmp_path):
    schema, path = Schema.infer(frame), tmp_path / "schema.toml"
    schema.to_toml(path)
    assert Schema.from_toml(path, frame) == schema
    for line in ("observed = [500.0", 'county = ["town"]', 'special = ["unknown"]'):
        assert line in path.read_text(encoding="utf8")


def test_a_level_that_only_the_dtype_has_is_no_special_value():
    dtype = pd.CategoricalDtype(["low", "mid", "high", ""], ordered=True)
    frame = pd.DataFrame({"a": pd.Series(["low", "mid", "high", "mid"] * 5, dtype=dtype)})
    assert "special" not in look(frame)
    assert Schema.infer(frame).features[0].choices == ("low", "mid", "high", "")
