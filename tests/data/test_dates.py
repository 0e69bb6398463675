"""Dates as whole numbers: nothing moves them, as most numbers between two of them are no dates."""

import logging

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema

ROWS = 1500
RNG = np.random.default_rng(0)
BALANCE = RNG.gamma(3, 500, ROWS).round()
TIMES = (
    pd.Timestamp("2015-01-01")
    + pd.to_timedelta((RNG.random(ROWS) * 700 + BALANCE * 0.9).astype(int), "D")
    + pd.to_timedelta(RNG.integers(0, 86400, ROWS), "s")
)
FORMS = [
    *(
        "%Y%m%d",
        "%y%m%d",
        "%Y%W",
        "%Y%j",
        "%Y%m",
        "%m%Y",
        "%m%d",
        "%d%m",
        "%d%m%Y",
        "%m%d%Y",
        "%m%d%y",
        "%H%M%S",
        "%H%M",
    ),
    *("%Y%m%d%H", "%Y%m%d%H%M", "%Y%m%d%H%M%S"),
]
AMOUNTS = {
    "ages": RNG.integers(18, 90, ROWS),
    "counts": RNG.poisson(3, ROWS),
    "years": RNG.integers(1950, 2021, ROWS),
    "minutes": RNG.integers(0, 60, ROWS),
    "hours in hundreds": RNG.integers(0, 24, ROWS) * 100,
    "hours in ten thousands": RNG.integers(0, 24, ROWS) * 10_000,
    "prices": RNG.integers(190_000, 210_000, ROWS),
    "prices in thousands": RNG.integers(190, 211, ROWS) * 1000,
    "calories": RNG.integers(100, 2400, ROWS),
    "seconds": RNG.integers(0, 86400, ROWS),
}


def schema(opened, **stated) -> Schema:
    return Schema.infer(pd.DataFrame({"balance": BALANCE, "opened": opened}), **stated)


@pytest.mark.parametrize("form", FORMS)
def test_they_are_told_and_immutable(form, caplog):
    feature = schema(TIMES.strftime(form).astype("int64")).features[1]
    assert feature.immutable and not feature.identifier
    assert f"'opened' looks like dates or times, {form} as whole numbers" in caplog.text


def test_some_may_be_missing_or_zero():
    dates = pd.Series(TIMES.strftime("%Y%m%d").astype(float)).mask(RNG.random(ROWS) < 0.1)
    assert schema(dates).features[1].immutable
    assert schema(dates.fillna(0).astype(int)).features[1].immutable


def test_quarters(caplog):
    assert schema(TIMES.year * 10 + TIMES.quarter).features[1].immutable
    assert "%Y%Q" in caplog.text


@pytest.mark.parametrize("name", AMOUNTS)
def test_amounts_are_none(name):
    assert not schema(AMOUNTS[name]).features[1].immutable


@pytest.mark.parametrize(
    "stated", [{"numeric": ["opened"]}, {"increasing": ["opened"]}, {"ranges": {"opened": (0, 1)}}]
)
def test_what_is_stated_counts(stated, caplog):
    with caplog.at_level(logging.WARNING):
        assert not schema(TIMES.strftime("%Y%m%d").astype(int), **stated).features[1].immutable
    assert "looks like dates" not in caplog.text


def test_they_do_not_follow_an_action():
    frame = pd.DataFrame({"balance": BALANCE, "opened": TIMES.strftime("%Y%m%d").astype(int)})

    def score(rows):
        return 1 / (1 + np.exp(-(rows["balance"].to_numpy(float) - 1900) / 200))

    rows = frame[score(frame) < 0.35].head(20)
    found = DEAR(score, Schema.infer(frame)).fit(frame).generate(rows)
    assert found.actions["success"].all()
    pd.testing.assert_series_equal(found.counterfactuals["opened"], rows["opened"])


def test_a_file_of_the_schema_keeps_them(tmp_path):
    frame = pd.DataFrame({"balance": BALANCE, "opened": TIMES.strftime("%Y%m%d").astype(int)})
    known = Schema.infer(frame)
    known.to_toml(tmp_path / "schema.toml")
    assert Schema.from_toml(tmp_path / "schema.toml", frame) == known
