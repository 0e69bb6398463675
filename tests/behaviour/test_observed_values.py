"""A number of few values with gaps, such as a code of a status, takes observed values only."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Constraints, Schema, Search

ROWS = 1_000
RNG = np.random.default_rng(0)
STATUS = RNG.choice([111, 112, 120], ROWS, p=[0.4, 0.3, 0.3])
FRAME = pd.DataFrame(
    {"status": STATUS, "income": (30 + 15 * (STATUS == 120) + RNG.normal(0, 8, ROWS)).round()}
)


def _score(frame: pd.DataFrame) -> pd.Series:
    """Accepted from a status of 116.5 on, or with a high income."""
    status, income = frame["status"].astype(float), frame["income"].astype(float)
    return 1.0 / (1.0 + np.exp(-0.4 * (status - 116.5) - 0.2 * (income - 40.0)))


@pytest.fixture(scope="module")
def dear() -> DEAR:
    return DEAR(_score, Schema.infer(FRAME)).fit(FRAME)


@pytest.fixture(scope="module")
def refused() -> pd.DataFrame:
    return FRAME[_score(FRAME) < 0.5].drop_duplicates().head(40)


@pytest.mark.parametrize("search", [Search(), Search.cheapest()])
def test_answers_take_observed_values_only(
    dear: DEAR, refused: pd.DataFrame, search: Search
) -> None:
    result = dear.with_search(search).generate(refused)
    assert result.actions["success"].all()
    assert result.counterfactuals["status"].isin([111, 112, 120]).all()
    assert (result.changed[:, 0].numpy() & (result.counterfactuals["status"] == 120)).any()
    assert result.alternatives()["status"].isin([111, 112, 120]).all()


def test_a_value_that_no_row_has_stays_until_another_one_is_reached(dear: DEAR) -> None:
    row = FRAME.head(1).assign(status=114, income=20.0)
    assert dear.apply(row, {"income": 21.0}).counterfactuals["status"].tolist() == [114]
    assert set(dear.generate(row).counterfactuals["status"]) <= {111, 112, 114, 120}


def test_a_range_ends_at_observed_values(dear: DEAR, refused: pd.DataFrame) -> None:
    row = refused[refused["status"] == 111].head(1)
    within = Constraints(act_on=["status"], ranges={"status": (112, 119)})
    assert set(dear.generate(row, within=within).counterfactuals["status"]) <= {111, 112}
    within = Constraints(act_on=["status"], ranges={"status": (113, 119)})
    (reason,) = dear.generate(row, within=within).actions["reason"]
    assert reason == "nothing may be acted on: no observed value is in the range of status"


def test_an_action_to_another_value_is_refused(dear: DEAR, refused: pd.DataFrame) -> None:
    (reason,) = dear.apply(refused.head(1), {"status": 117}).actions["reason"]
    assert reason == "status may not become 117, only 111, 112 or 120"


COUNT, HOUR, AGE = RNG.poisson(2, ROWS), RNG.integers(0, 24, ROWS), RNG.integers(18, 78, ROWS)
RESTRICTED = {
    "status": RNG.choice([111, 112, 120], ROWS),
    "shares": RNG.choice([0.1, 0.2, 0.9], ROWS),
    "amounts": RNG.choice([100, 200, 500, 1000], ROWS),
    "steps of 12": RNG.choice([12, 24, 36, 48, 60], ROWS),
    "of large units": RNG.poisson(2, ROWS).clip(0, 6) * 3.3e12,
    "of very large units": RNG.integers(0, 4, ROWS) ** 2 * 1e15,
    "of very small units": RNG.integers(0, 4, ROWS) * 1.7e-12,
    "halves": RNG.choice([1.0, 1.5, 2.0, 2.5], ROWS),
    "of few rows, fewer at a gap": STATUS[:40],
    # Computed numbers take the values of rows, whatever their decimals.
    "z-scored": (COUNT - COUNT.mean()) / COUNT.std(),
    "scaled to 0 and 1": COUNT / COUNT.max(),
    "logarithm": np.log1p(COUNT),
    "logarithm in single precision": np.log1p(COUNT).astype(np.float32),
    "logarithm of three decimals": np.log1p(COUNT).round(3),
    "root": np.sqrt(COUNT),
    "sine of the hour": np.sin(2 * np.pi * HOUR / 24),
    "scaled age": (AGE - 48.0) / 32.0,
    "z-scored age": (AGE - AGE.mean()) / AGE.std(),
    "z-scored, often missing": pd.Series(HOUR / 7).mask(AGE < 40),
}
FREE = {
    "a count, whose tail has gaps": RNG.poisson(2, ROWS),
    "often zero, then a count": np.where(RNG.random(ROWS) < 0.9, 0, RNG.geometric(0.2, ROWS)),
    "whole": RNG.normal(40, 12, ROWS).round(),
    "double": RNG.normal(size=ROWS),
    "single": RNG.normal(size=ROWS).astype(np.float32),
    "three decimals": RNG.normal(size=ROWS).round(3),
    "two decimals": RNG.uniform(0, 1, ROWS).round(2),
    "an amount, often none": np.where(RNG.random(ROWS) < 0.8, 0, RNG.gamma(2, size=ROWS)),
    "whole, of large units": RNG.normal(40, 12, ROWS).round() * 1e12,
    "too few rows at the gaps": np.r_[[7, 19, 30], np.full(ROWS - 3, 5)],
    "of few rows, too few at a gap": np.repeat([111, 112, 120], [14, 12, 4]),
    "a count of few rows": RNG.poisson(2, 40),
    "whole numbers of few rows": RNG.integers(10, 40, 40),
}


@pytest.mark.parametrize("name", [*RESTRICTED, *FREE])
def test_a_number_of_few_values_with_gaps_is_restricted_to_them(name, caplog):
    column = pd.Series({**RESTRICTED, **FREE}[name])
    with caplog.at_level("INFO"):
        (feature,) = Schema.infer(pd.DataFrame({"x": column}))
    # The sines of 45 and 135 degrees are one value, though they differ in the last bits.
    unit = float(column.abs().max())
    known = np.unique((column.dropna() / unit).round(9)) if name in RESTRICTED else []
    assert np.array_equal((np.array(feature.observed, dtype=column.dtype) / unit).round(9), known)
    assert ("no value in between is proposed" in caplog.text) == (name in RESTRICTED)


def test_a_definition_sets_one_that_rows_have() -> None:
    frame = pd.DataFrame({"count": COUNT, "log": np.log1p(COUNT), "income": AGE * 1.0})
    schema = Schema.infer(frame)
    assert "log = log(count + 1)" in repr(schema)

    def score(rows):
        return 1 / (1 + np.exp(-(rows["count"] + 4 * rows["log"] - 8).to_numpy(float)))

    rows = frame[score(frame) < 0.4].head(20)
    found = DEAR(score, schema, act_on=["count"]).fit(frame).generate(rows)
    after = found.counterfactuals
    assert np.allclose(np.log1p(after["count"]), after["log"])
    assert after["log"].isin(frame["log"]).all()
    assert (found.actions["reliance"].dropna() == 0).all()
