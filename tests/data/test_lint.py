"""Lint: values that are no amounts are suggested as `special=`, ordinary ones are not; marks."""

import logging

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


@pytest.fixture(autouse=True)
def without_names(monkeypatch):
    """What names say is tested elsewhere."""
    monkeypatch.setattr(logging.getLogger("dear_plugin.look.names"), "disabled", True)


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


# Amounts and codes, and the codes.
RARE = {
    "in most rows": (lambda rng: np.r_[rng.integers(1, 800, ROWS), np.full(4 * ROWS, -1)], [-1]),
    "in common rows of few amounts": (
        lambda rng: np.repeat(
            np.arange(-2, 9), [2759, 5686, 14737, 3688, 2667, 322, 76, 26, 11, 9, 19]
        ),
        [-2, -1],
    ),
    "among amounts that rarely repeat": (
        lambda rng: np.r_[rng.lognormal(9, 1, ROWS).round(), np.full(40, 9999)],
        [9999],
    ),
    # In a single row, far beyond all amounts.
    "of counts": (lambda rng: np.r_[AMOUNTS["a skewed count"](rng), 999999.4], [999999.4]),
    "of flags": (lambda rng: np.r_[rng.integers(0, 2, ROWS), 666], [666]),
    "of ages": (lambda rng: np.r_[AMOUNTS["ages"](rng), -9999], [-9999]),
}


@pytest.mark.parametrize("name", RARE)
def test_codes_of_most_and_of_few_rows(name, caplog):
    draw, codes = RARE[name]
    assert f"special={{'x': {codes}}}" in hint(caplog, draw(np.random.default_rng(0)))


@pytest.mark.parametrize(("low", "high"), [(44, 199), (24, 122), (7, 99)])
def test_a_zero_is_an_amount(low, high, caplog):
    """Of 11 such zeros in public tables 10 were."""
    amounts = np.random.default_rng(0).integers(low, high + 1, ROWS)
    assert "codes" not in hint(caplog, np.append(amounts, np.zeros(30)))


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


class TestGrossValues:
    """Typing errors lie beyond all others by far; the log has their rows."""

    def test_their_rows_are_told_and_not_those_of_long_tails(self, caplog):
        rng = np.random.default_rng(0)
        pressure = rng.normal(120, 15, ROWS).round()
        pressure[[7, 400]] = 14_020, -115
        money = rng.lognormal(8, 1.5, ROWS).round()
        index = [f"row {i}" for i in range(ROWS)]
        Schema.infer(pd.DataFrame({"pressure": pressure, "money": money}, index=index))
        (text,) = [r.getMessage() for r in caplog.records if "far beyond" in r.getMessage()]
        assert "'pressure'" in text and "in 2 rows, 'row 7', 'row 400'" in text

    def test_five_of_many_rows_are_named(self, caplog):
        values = np.random.default_rng(0).normal(80, 8, ROWS).round()
        values[:15] += 700
        assert "in 15 rows, 0, 1, 2, 3, 4, ..." in hint(caplog, values)


def test_an_empty_column_is_told_and_immutable(caplog):
    frame = pd.DataFrame({"x": range(50), "no": np.nan, "none": [None] * 50}).astype(
        {"none": object}
    )
    schema = Schema.infer(frame, numeric=["x"])
    assert "columns ['no', 'none'] are empty, and immutable" in caplog.text
    assert schema.mutable == ("x",)


ORDERED = {
    "experience": ["<1", "1", "2", "5", "10", ">20"],
    "change": ["(-1.23, -0.5]", "(-0.5, 0.7]", "(0.7, inf]"],
    "age": ["under-18", "18-64", "over-65"],
    "employment": ["< 1 year", "1 year", "2 years", "3 years", "10+ years"],
    "size": ["<10", "10-49", "50-99", "100-500", "500+"],
    "since": ["never", "1 to 3 months", "4 to 11 months", "over 1000 months"],
    "income": ["under $15K", "15K-40K", "$40K - 80K", "80K+"],
}


class TestTextWithAnOrder:
    @staticmethod
    def column(levels):
        """300 rows of levels in another order than theirs."""
        return np.random.default_rng(0).permutation(np.tile(levels, 300 // len(levels) + 1)[:300])

    @pytest.mark.parametrize("name", ORDERED)
    @pytest.mark.parametrize("dtype", ["object", "category"])
    def test_ranges_are_an_order(self, name, dtype, caplog):
        frame = pd.DataFrame({name: pd.Series(self.column(ORDERED[name]), dtype=dtype)})
        with caplog.at_level("INFO"):
            (feature,) = Schema.infer(frame)
        assert (feature.kind, list(feature.levels)) == (Kind.NUMERIC, ORDERED[name])
        assert f"categorical=['{name}'] drops this order" in caplog.text
        assert Schema.infer(frame, categorical=[name]).features[0].kind is Kind.CATEGORICAL

    @pytest.mark.parametrize(
        "levels",
        [
            ["1", "2", "3"],
            ["-2", "0", "2"],
            ["1. White", "2. Black", "3. Asian"],
            ["a1", "b2", "c3"],
        ],
    )
    def test_codes_and_names_are_none(self, levels):
        (feature,) = Schema.infer(pd.DataFrame({"x": self.column(levels)}))
        assert feature.kind is Kind.CATEGORICAL

    @pytest.mark.parametrize(
        "levels",
        [["low", "medium", "high"], ["Poor", "Fair", "Good"], ["B-", "B", "B+", "A"][::-1]],
    )
    def test_words_of_a_scale_are_suggested(self, levels, caplog):
        frame = pd.DataFrame({"x": self.column(levels)})
        assert Schema.infer(frame).features[0].kind is Kind.CATEGORICAL
        stated = f"ordered={{'x': {sorted(levels, key=levels.index)}}}"
        assert stated in caplog.text
        caplog.clear()
        Schema.infer(frame, categorical=["x"])
        Schema.infer(frame, ordered={"x": levels})
        assert "seem to have an order" not in caplog.text


class TestSteps:
    def test_few_values_keep_their_common_step(self, caplog):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"term": rng.choice([12, 36, 60, 72], ROWS, p=[0.4, 0.4, 0.1, 0.1])})
        frame["index"] = 10 * rng.binomial(9, 0.5, ROWS)
        frame["rate"] = 0.5 * rng.binomial(8, 0.5, ROWS) + 2.5
        with caplog.at_level("INFO"):
            observed = {f.name: f.observed for f in Schema.infer(frame)}
        assert observed["index"] == tuple(range(0, 91, 10))
        assert observed["rate"] == tuple(
            np.arange(frame["rate"].min(), frame["rate"].max() + 0.5, 0.5)
        )
        assert observed["term"] == (12, 36, 60, 72)
        assert "column 'rate' takes steps of 0.5" in caplog.text

    def test_one_row_in_a_hundred_may_be_off_it(self):
        values = np.r_[np.tile([30, 40, 50, 60], 250), 37, 52]
        assert Schema.infer(pd.DataFrame({"x": values})).features[0].observed == (30, 40, 50, 60)


IDENTIFIERS = {
    "one for each row": ("x", False, lambda rng: np.arange(1000, 1500)),
    "a small share of a range": ("x", False, lambda rng: rng.choice(40_000, 2000, replace=False)),
    "a few twice": ("x", False, lambda rng: np.r_[np.arange(1990), np.arange(10)]),
    "spread": ("x", True, lambda rng: rng.choice(10**9, 500, replace=False)),
    "of nine digits": ("x", False, lambda rng: rng.choice(10**8, 500, replace=False) + 7 * 10**8),
    "rounded, of six digits": ("x", True, lambda rng: 10**5 + 10 * rng.permutation(50_000)[:500]),
    "of groups, by name": ("job_ad_id", False, lambda rng: rng.integers(1, 60, 2000)),
    "few groups, by name": ("job_ad_id", True, lambda rng: rng.integers(1, 9, 2000)),
    "a count called number": ("number", True, lambda rng: rng.poisson(40, 2000)),
    "skewed": ("x", True, lambda rng: rng.lognormal(8.0, 1.0, 2000).astype(int)),
    "as many ties as chance": ("x", True, lambda rng: rng.integers(0, 100_000, 2000)),
    "text, a different one in most rows": ("x", False, lambda rng: [f"n{i}" for i in range(99)]),
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
        assert "In DiCE, name it: continuous_features=[..., 'x']" in caplog.text

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

    @pytest.mark.parametrize(
        "stated", [{"increasing": ["a"]}, {"ranges": {"a": (0, None)}}, {"units": {"a": "euros"}}]
    )
    def test_what_is_said_of_an_amount_makes_it_one(self, stated):
        assert Schema.infer(pd.DataFrame({"a": range(100)}), **stated).actionable == ("a",)

    def test_by_its_name_alone_it_is_asked(self, caplog):
        frame = pd.DataFrame({"job_ad_id": np.arange(2000) % 60, "x": np.arange(2000) % 7})
        Schema.infer(frame)
        assert "identifiers=['job_ad_id'] if it is one, numeric= if not" in caplog.text
        caplog.clear()
        assert Schema.infer(frame, identifiers=["job_ad_id"]).mutable == ("x",)
        assert "job_ad_id" not in caplog.text

    @pytest.mark.parametrize("name, rows", [("token", 50), ("user_id", 300)])
    def test_text_of_who_a_row_is_is_no_range(self, name, rows):
        column = [f"t{k % 50:04d}" for k in range(rows)]  # "t" is a unit in ranges
        (feature, _) = Schema.infer(pd.DataFrame({name: column, "x": range(rows)}), numeric=["x"])
        assert feature.identifier and feature.categories

    def test_the_schema_prints_what_it_concludes(self):
        frame = pd.DataFrame({"key": range(100), "n": ["<1", "1", ">1", ">2"] * 25})
        assert "identifiers: key; levels in order: n" in repr(Schema.infer(frame))


SWAPPED = str.maketrans(",.", ".,")
# How an amount of up to 90, a thousand times as much, or one below 0, is written.
WRITTEN = {
    "points": lambda v: f"{v:.2f}",
    "decimal commas": lambda v: f"{v:.2f}".replace(".", ","),
    "blanks around": lambda v: f" {v:.2f} ",
    "a per cent sign": lambda v: f"{v:.2f}%",
    "a unit": lambda v: f"{v:.2f} kmpl",
    "powers of ten": lambda v: f"{v:.6e}",
    "nothing for some": lambda v: "n.a." if v > 80 else f"{v:.2f}",
}
THOUSANDS = {
    "commas": lambda v: f"{v:,.2f}",
    "dollars": lambda v: f"${v:,.2f}",
    "euros": lambda v: f"{v:,.2f} €".translate(SWAPPED),
    "a currency before": lambda v: f"USD {v:,.2f}",
    "points": lambda v: f"{v:,.0f}".replace(",", "."),
    "points and decimal commas": lambda v: f"{v:,.2f}".translate(SWAPPED),
    "blanks": lambda v: f"{v:,.0f}".replace(",", " "),
    "narrow blanks": lambda v: f"{v:,.0f}".replace(",", "\u202f"),
    "apostrophes": lambda v: f"{v:,.2f}".replace(",", "'"),
}
NEGATIVE = {
    "brackets": lambda v: f"({-v:.2f})" if v < 0 else f"{v:.2f}",
    "dollars in brackets": lambda v: f"(${-v:.2f})" if v < 0 else f"${v:.2f}",
    "a sign before dollars": lambda v: f"-${-v:.2f}" if v < 0 else f"${v:.2f}",
    "signs": lambda v: f"{v:+.2f}",
    "a sign at the end": lambda v: f"{-v:.2f}-" if v < 0 else f"{v:.2f}",
    "a minus sign": lambda v: f"{v:.2f}".replace("-", "−"),
}
CASES = [
    *((1, 0, how) for how in WRITTEN.values()),
    *((1000, 0, how) for how in THOUSANDS.values()),
    *((1, 40, how) for how in NEGATIVE.values()),
]
OTHERS = {
    "some above": lambda v: ">80" if v > 80 else f"{v:.1f}",
    "two units": lambda v: f"{v:.1f} kg" if v > 40 else f"{2.2 * v:.1f} lb",
    "hours and minutes": lambda v: f"{int(v)}h {int(60 * v) % 60}m",
    "feet and inches": lambda v: f"{int(v) % 7}'{int(10 * v) % 12}\"",
    "hexadecimal": lambda v: hex(int(1e6 * v)),
    "a code": lambda v: f"t{int(100 * v):04d}",
}
DATES = [
    *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y-%m-%d"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%y/%m/%d", "%d %b %Y", "%b %d, %Y", "%d-%b-%y"),
    *("%Y%m%d", "%d%m%Y", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%d/%m/%Y %H:%M"),
    *("%Y-%m-%dT%H:%M:%S.%fZ", "%m/%d/%Y %I:%M:%S %p", "%d/%m/%Y %I:%M %p"),
]
MONTHS = ["%B %Y", "%b %Y", "%b-%y", "%Y-%m", "%m/%Y"]


class TestAmountsAsText:
    """Text of as many values as rows was taken for an identifier, which the log alone said."""

    @pytest.mark.parametrize(("times", "less", "how"), CASES)
    def test_numbers_are_told_with_a_line_that_reads_them(self, times, less, how, caplog):
        numbers = np.random.default_rng(0).uniform(0.2, 90, ROWS) * times - less
        frame = pd.DataFrame({"x": [how(v) for v in numbers]})
        known = ~frame["x"].eq("n.a.")
        Schema.infer(frame)
        assert "column 'x' holds numbers as text" in caplog.text
        exec(caplog.messages[0].partition("For a number: ")[2], {"pd": pd, "frame": frame})
        assert np.allclose(frame["x"][known], numbers[known], atol=0.01 if times == 1 else 0.6)
        assert frame["x"].isna().equals(~known)

    @pytest.mark.parametrize("how", OTHERS.values(), ids=OTHERS)
    def test_of_other_text_no_line_is_told(self, how, caplog):
        Schema.infer(pd.DataFrame({"x": [how(v) for v in np.linspace(1, 90, ROWS)]}))
        assert "For a number" not in caplog.text

    def test_rows_of_other_text_are_counted_and_named(self, caplog):
        numbers = np.random.default_rng(0).uniform(1, 90, ROWS).round(2)
        frame = pd.DataFrame({"x": numbers.astype(str).astype(object)})
        frame.loc[7, "x"] = "-"
        Schema.infer(frame)
        assert "text that is no number in 1 rows, first [7], gets lost" in caplog.text

    @pytest.mark.parametrize("form", [*DATES, *MONTHS])
    def test_dates_are_told_with_a_line_that_reads_them(self, form, caplog):
        days = pd.Series(pd.date_range("2020-03-05", periods=ROWS))
        frame = pd.DataFrame({"x": days.dt.strftime(form)})
        Schema.infer(frame)
        assert "column 'x' holds dates as text" in caplog.text
        told = next(text for text in caplog.messages if "dates as text" in text)
        exec(told.partition("For a number: ")[2], {"pd": pd, "frame": frame})
        days = days.dt.to_period("M").dt.to_timestamp() if form in MONTHS else days
        assert frame["x"].equals((days - pd.Timestamp("2000-01-01")).dt.days)

    @pytest.mark.parametrize("level", ["2020-01-{:02d}", "{:.1f}"])
    def test_a_stated_category_is_no_news(self, level, caplog):
        frame = pd.DataFrame({"x": [level.format(i) for i in range(1, 5)] * 20})
        Schema.infer(frame, categorical=["x"])
        assert not caplog.text

    def test_whole_numbers_may_be_those_of_an_identifier(self, caplog):
        Schema.infer(pd.DataFrame({"x": [f"{at:05d}" for at in range(ROWS)]}))
        assert "column 'x' looks like an identifier by its values" in caplog.text


def test_levels_that_differ_only_in_case_or_spaces_are_told(caplog):
    levels = ["Wheat", "wheat ", "Maize", "RAPE SEED", "rapeseed", "Rye", "none", np.nan] * 15
    Schema.infer(pd.DataFrame({"crop": levels, "town": ["Ulm", "Bonn"] * 60}))
    (told,) = [line for line in caplog.messages if "differ only in case" in line]
    assert "column 'crop'" in told
    assert "[['RAPE SEED', 'rapeseed'], ['Wheat', 'wheat ']]" in told
    assert "excluded={'crop': [...]}" in told


def test_levels_that_are_left_out_differ_from_none(caplog):
    frame = pd.DataFrame({"crop": ["Wheat", "wheat", "Rye"] * 20})
    Schema.infer(frame, excluded={"crop": np.array(["wheat"])})
    assert not caplog.text


@pytest.mark.parametrize("unknown", ["?", "Unknown", "k.A.", "keine Angabe", "not stated"])
def test_levels_that_say_nothing_is_known_are_neither_entered_nor_left(unknown):
    schema = Schema.infer(pd.DataFrame({"town": ["Ulm", "Bonn", unknown, "Linz"] * 20}))
    assert schema.features[0].special == (unknown,)
