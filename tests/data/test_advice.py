"""Advice: values that are no amounts are suggested as `special=`, ordinary ones are not; marks."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Kind, Schema

ROWS = 1000
AMOUNTS = {
    "counts up to 13": lambda rng: rng.integers(0, 14, ROWS),
    "counts up to 800": lambda rng: rng.integers(0, 801, ROWS),
    "a skewed count": lambda rng: rng.poisson(3, ROWS),
    "ages": lambda rng: rng.normal(45, 14, ROWS).round().clip(18, 85),
    "incomes": lambda rng: rng.lognormal(8, 1, ROWS).round(),
    "a scale from 1 to 5": lambda rng: rng.integers(1, 6, ROWS),
}
ANYWHERE = [[-9], [-99], [999], [9999], [-9, -8, -7], [-9, 9999], [-1]]
SMALL = [[99], [96, 98], [97, 98, 99]]


def hint(caplog, values) -> str:
    Schema.infer(pd.DataFrame({"x": np.asarray(values, dtype=float)}))
    return caplog.text


@pytest.mark.parametrize(
    ("name", "codes"),
    [(name, codes) for name in AMOUNTS for codes in ANYWHERE]
    + [(name, codes) for name in AMOUNTS if name[-3:] not in ("800", "mes") for codes in SMALL],
)
def test_codes_beside_amounts(name, codes, caplog):
    values = np.append(AMOUNTS[name](np.random.default_rng(0)), np.repeat(codes, 30))
    assert f"special={{'x': {codes}}}" in hint(caplog, values)


@pytest.mark.parametrize(("low", "high"), [(44, 199), (24, 122), (7, 99)])
def test_a_zero_where_all_amounts_are_large_is_a_missing_value(low, high, caplog):
    amounts = np.random.default_rng(0).integers(low, high + 1, ROWS)
    assert "special={'x': [0]}" in hint(caplog, np.append(amounts, np.zeros(30)))


def test_most_rows_may_have_a_code(caplog):
    days = np.random.default_rng(0).integers(1, 800, ROWS)
    assert "special={'x': [-1]}" in hint(caplog, np.append(days, np.full(4 * ROWS, -1)))


def test_codes_in_common_rows_of_few_amounts(caplog):
    counts = [2759, 5686, 14737, 3688, 2667, 322, 76, 26, 11, 9, 19]
    assert "special={'x': [-2, -1]}" in hint(caplog, np.repeat(np.arange(-2, 9), counts))


def test_a_code_among_amounts_that_rarely_repeat(caplog):
    loans = np.random.default_rng(0).lognormal(9, 1, ROWS).round()
    assert "special={'x': [9999]}" in hint(caplog, np.append(loans, np.full(40, 9999)))


@pytest.mark.parametrize(
    ("amounts", "code"), [("a skewed count", 999999.4), ("flags", 666), ("ages", -9999)]
)
def test_a_single_row_has_a_code_far_beyond_all_amounts(amounts, code, caplog):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, ROWS) if amounts == "flags" else AMOUNTS[amounts](rng)
    assert f"special={{'x': [{code}]}}" in hint(caplog, np.append(values, code))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    "draw",
    [
        *AMOUNTS.values(),
        pytest.param(lambda rng: rng.normal(10, 4, 3000).round(), id="temperatures"),
        pytest.param(lambda rng: rng.integers(-3, 4, ROWS), id="differences"),
        pytest.param(lambda rng: rng.normal(40, 12, 3000).round().clip(1, 99), id="hours"),
        pytest.param(
            lambda rng: rng.gamma(3, 1000, ROWS).round() * (rng.random(ROWS) > 0.3), id="savings"
        ),
        pytest.param(
            lambda rng: rng.choice([0, 10, 15, 20, 25, 50, 100, 250, 500, 1000], ROWS), id="gifts"
        ),
        pytest.param(
            lambda rng: rng.choice([1.8, 2.0, 3.1, 3.2, 3.6, 3.9, 4.3, 5.3, 8.9, 10.6], ROWS),
            id="rates of regions",
        ),
        pytest.param(lambda rng: rng.laplace(size=ROWS).round(2) * 100, id="a long tail"),
        pytest.param(lambda rng: rng.lognormal(size=5000).round(1), id="a rounded tail"),
        pytest.param(lambda rng: rng.normal(size=5000).round(1), id="two rounded tails"),
    ],
)
def test_ordinary_values_are_no_codes(draw, seed, caplog):
    assert "codes" not in hint(caplog, draw(np.random.default_rng(seed)))


IDENTIFIERS = {
    "one for each row": ("x", False, lambda rng: np.arange(1000, 1500)),
    "a small share of a range": ("x", False, lambda rng: rng.choice(40_000, 2000, replace=False)),
    "a few twice": ("x", False, lambda rng: np.r_[np.arange(1990), np.arange(10)]),
    "spread": ("x", True, lambda rng: rng.choice(10**9, 500, replace=False)),
    "skewed": ("x", True, lambda rng: rng.lognormal(8.0, 1.0, 2000).astype(int)),
    "as many ties as chance": ("x", True, lambda rng: rng.integers(0, 100_000, 2000)),
    "spread, by name": ("customerId", False, lambda rng: rng.choice(10**9, 500, replace=False)),
    "half of them distinct, by name": (
        "id_student",
        False,
        lambda rng: np.r_[rng.choice(10**6, 470, replace=False), [7] * 30],
    ),
    **{
        f"{rows} rows, by name": ("customer_id", acted, lambda rng, n=rows: np.arange(n) + 1000)
        for rows, acted in ((19, True), (20, False), (55, False))
    },
}


class TestInspection:
    def test_numbers_kept_as_text(self, caplog):
        text = pd.DataFrame({"x": ["1", "2", "3.5"]})
        assert Schema.infer(text).features[0].kind is Kind.CATEGORICAL
        assert "pd.to_numeric(frame['x'])" in caplog.text
        assert "in DiCE continuous_features=[..., 'x']" in caplog.text

    def test_many_levels_are_not_acted_on_unless_named(self, caplog):
        names = [f"n{i}" for i in range(150)] * 10
        schema = Schema.infer(pd.DataFrame({"x": names, "y": range(1500)}), categorical=["x"])
        assert "150 levels" in caplog.text
        assert "x" not in schema.actionable
        assert "x" in schema.mutable

    @pytest.mark.parametrize("what", IDENTIFIERS)
    def test_whole_numbers_with_hardly_any_ties_are_identifiers(self, what, caplog):
        name, acted, draw = IDENTIFIERS[what]
        numbers = draw(np.random.default_rng(0))
        frame = pd.DataFrame({name: numbers, "z": np.linspace(0.0, 1.0, len(numbers))})
        assert (name in Schema.infer(frame).actionable) is acted
        assert (f"'{name}'" in caplog.text) is not acted
        assert ("looks like an identifier" in caplog.text) is not acted

    def test_named_numbers_are_amounts_whatever_they_look_like(self, caplog):
        frame = pd.DataFrame({"a": range(100), "b": [0, 1] * 50})
        schema = Schema.infer(frame, numeric=["a", "b"])
        assert schema.actionable == ("a", "b") and not caplog.text
        assert {feature.kind for feature in schema} == {Kind.NUMERIC}
