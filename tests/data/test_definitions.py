"""What is true by definition between columns, on simulated tables: sums, products, lookups."""

import logging

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Schema
from dear_plugin.data.relations import Lookup, from_dict
from dear_plugin.errors import SchemaError

N = 2000


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def texts(frame, **given):
    """The inferred relations that are no orders, as text."""
    return {r.text for r in Schema.infer(frame, **given).relations if not r.is_order}


@pytest.fixture
def claims(rng) -> pd.DataFrame:
    """A total of three parts."""
    vehicle = rng.gamma(6, 6000, N).round(-1)
    injury, prop = (vehicle * rng.uniform(0, 0.45, (2, N))).round(-1)
    total = injury + prop + vehicle
    hour = rng.integers(0, 24, N)
    return pd.DataFrame(
        {"injury": injury, "total": total, "prop": prop, "vehicle": vehicle, "hour": hour}
    )


@pytest.fixture
def towns(rng) -> pd.DataFrame:
    """A town has one index and lies in one county."""
    town = rng.integers(0, 40, N)
    index = rng.uniform(0.4, 0.9, 40).round(3)[town]
    names = {"town": [f"town {i}" for i in town], "county": [f"county {i % 7}" for i in town]}
    return pd.DataFrame({**names, "index": index, "age": rng.integers(18, 80, N)})


class TestSums:
    def test_a_total_of_three_parts(self, claims):
        (total,) = (r for r in Schema.infer(claims).relations if not r.is_order)
        assert total.is_definition
        assert (total.name, {*total.others}) == ("total", {"injury", "prop", "vehicle"})

    def test_each_part_is_at_most_the_total(self, claims):
        orders = {("injury", "total"), ("prop", "total"), ("vehicle", "total")}
        assert {*Schema.infer(claims).orders} == orders

    def test_few_rows_with_errors_do_not_hide_it(self, claims, rng):
        wrong = rng.random(N) < 0.02
        claims["total"] = claims["total"].where(~wrong, claims["total"] * 10)
        assert texts(claims) == {"total = vehicle + prop + injury"}

    def test_columns_that_follow_from_others_add_no_relation(self, claims):
        claims["damage"] = claims["vehicle"] + claims["prop"]
        assert len(texts(claims)) == 2

    def test_a_mean_a_difference_and_a_constant(self, rng):
        frame = pd.DataFrame(rng.integers(0, 100, (N, 3)), columns=["a", "b", "c"])
        frame["mean"] = ((frame["a"] + frame["b"] + frame["c"]) / 3).round(2)
        (text,) = texts(frame)
        assert text.startswith("mean = 0.333333 ")
        born = pd.DataFrame({"age": frame["a"], "born": 2020 - frame["a"]})
        assert texts(born) == {"born = 2020 - age"}


class TestProducts:
    def test_a_product_a_ratio_a_square_and_a_switched_number(self, rng):
        months, price = rng.integers(1, 60, N), rng.uniform(20, 90, N).round(2)
        flag, height = rng.integers(0, 2, N), rng.normal(1.7, 0.1, N).round(2)
        weight = rng.normal(75, 12, N).round(1)
        frame = pd.DataFrame({"months": months, "price": price, "flag": flag})
        frame["cost"], frame["late"] = (months * price).round(2), months * flag
        frame["height"], frame["weight"] = height, weight
        frame["bmi"], frame["squared"] = (weight / height**2).round(2), months**2
        expected = {"cost = months * price", "late = months * flag"}
        assert expected <= texts(frame)
        assert {"bmi = weight / height^2", "squared = months^2"} <= texts(frame)

    @pytest.mark.parametrize("shift", [0, 1])
    def test_a_logarithm(self, rng, shift):
        amount = rng.gamma(2, 900, N).round() + 1 - shift
        frame = pd.DataFrame({"log_amount": np.log(amount + shift), "amount": amount})
        assert texts(frame) == {f"log_amount = log(amount{' + 1' * shift})"}

    @pytest.mark.parametrize("places", [4, 6, 12])
    def test_a_logarithm_of_a_number_and_1_is_itself(self, rng, places):
        """It was told as 0.0003 + log(income), which is off in the fourth digit."""
        income = rng.gamma(4, 900, N).round(-1) + 10
        frame = pd.DataFrame({"income": income, "log1p": np.log1p(income).round(places)})
        assert texts(frame) == {"log1p = log(income + 1)"}
        assert texts(frame, definitions={"log1p": ["income"]}) == {"log1p = log(income + 1)"}

    def test_a_product_is_zero_where_a_factor_is(self, rng):
        a, b = rng.integers(0, 4, N), rng.gamma(3, 10, N).round(1)
        frame = pd.DataFrame({"a": a, "b": b, "product": a * b})
        assert texts(frame) == {"product = a * b"} or texts(frame) == {"product = b * a"}


class TestComputed:
    """A definition is solved for what is computed, which is not acted on by default."""

    @pytest.fixture
    def debts(self, rng) -> pd.DataFrame:
        columns = {"income": (4, 9000), "debt": (2, 8000), "rent": (3, 900)}
        return pd.DataFrame({n: rng.gamma(k, unit, N).round() for n, (k, unit) in columns.items()})

    @pytest.mark.parametrize(
        ("name", "formula", "of"),
        [
            ("ratio", "debt / income", lambda f: f["debt"] / f["income"]),
            ("ratio", "debt / income", lambda f: (f["debt"] / f["income"]).round(3)),
            ("left", "income - rent", lambda f: f["income"] - f["rent"]),
            ("owed", "debt + rent", lambda f: f["debt"] + f["rent"]),
            ("in_thousands", "0.001 income", lambda f: f["income"] / 1000),
        ],
    )
    def test_what_is_computed_is_the_finer_or_the_later_column(self, debts, name, formula, of):
        schema = Schema.infer(debts.assign(**{name: of(debts)}))
        assert f"{name} = {formula}" in {r.text for r in schema.relations}
        assert schema.actionable == ("income", "debt", "rent")

    def test_a_finer_column_is_computed_though_it_comes_first(self, debts):
        debts.insert(0, "ratio", (debts["debt"] / debts["income"]).round(3))
        assert texts(debts) == {"ratio = debt / income"}

    def test_what_is_stated_is_computed(self, debts):
        debts["owed"] = debts["debt"] + debts["rent"]
        schema = Schema.infer(debts, definitions={"rent": ["owed", "debt"]})
        assert [r.text for r in schema.relations if not r.is_order] == ["rent = owed - debt"]
        assert schema.actionable == ("income", "debt", "owed")
        assert ("debt", "owed") in schema.orders

    def test_the_log_says_which_are_not_acted_on(self, debts, caplog):
        debts["owed"] = debts["debt"] + debts["rent"]
        debts["ratio"] = debts["owed"] / debts["income"]
        with caplog.at_level(logging.INFO):
            assert Schema.infer(debts).actionable == ("income", "debt", "rent")
        assert "others determine them: ['owed', 'ratio']" in caplog.text

    def test_what_cannot_be_acted_on_otherwise_may_be(self, debts):
        debts["owed"] = debts["debt"] + debts["rent"]
        fixed = ["income", "debt", "rent"]
        assert Schema.infer(debts, immutable=fixed).actionable == ("owed",)
        assert Schema.infer(debts, immutable=fixed[:2]).actionable == ("rent",)


class TestLookups:
    def test_columns_that_a_category_determines(self, towns):
        found = [r for r in Schema.infer(towns).relations if isinstance(r, Lookup)]
        assert {(r.name, r.other) for r in found} == {("index", "town"), ("county", "town")}
        assert dict(found[0].table)["town 3"] == "county 3"

    def test_a_number_of_any_dtype_determines_others(self, rng):
        """A long double raised an error of pandas."""
        classes = rng.integers(1, 4, N)
        frame = pd.DataFrame({"level": classes.astype(np.longdouble), "fare": classes**2 * 100})
        frame["other"] = rng.normal(size=N).astype(np.longdouble)
        assert Schema.infer(frame).relations

    def test_they_are_not_acted_on_unless_named(self, towns):
        assert Schema.infer(towns).actionable == ("town", "age")

    def test_of_two_that_determine_each_other_the_number_is_acted_on(self, rng):
        years = rng.integers(5, 13, N)
        frame = pd.DataFrame({"school": [f"level {y}" for y in years], "years": years})
        frame["other"] = rng.normal(size=N)
        schema = Schema.infer(frame)
        assert [(r.name, r.other) for r in schema.relations] == [("school", "years")]

    def test_a_strong_association_is_none(self, towns, rng):
        towns["index"] += np.where(rng.random(N) < 0.1, 0.01, 0.0)
        assert texts(towns) == {"county is a function of town"}


class TestOrders:
    def test_numbers_of_unlike_units_have_no_order(self, rng):
        income = rng.lognormal(11, 0.5, N).round(-2)
        cards = rng.poisson(4, N) * (rng.random(N) < 0.97)
        owed = (rng.gamma(0.6, 1, N) * cards * income * 0.06 + cards).round()
        percent = (100 * owed / income + rng.gamma(2, 2, N) * (owed > 5)).round(1)
        frame = pd.DataFrame({"income": income, "owed": owed, "cards": cards, "percent": percent})
        assert Schema.infer(frame).orders == ()

    def test_typing_errors_do_not_hide_an_order_and_are_told(self, rng, caplog):
        low = rng.normal(82, 8, N).round()
        high = (low + 15 + rng.gamma(4, 7, N)).round()
        low = np.where(rng.random(N) < 0.017, rng.integers(500, 1200, N), low)
        frame = pd.DataFrame({"systolic": high, "diastolic": low})
        with caplog.at_level(logging.INFO):
            assert Schema.infer(frame).orders == (("diastolic", "systolic"),)
        assert "column 'diastolic' has" in caplog.text
        assert "far beyond all others" in caplog.text


class TestStated:
    def test_all_that_is_inferred_is_told_and_shown(self, claims, caplog):
        with caplog.at_level(logging.INFO):
            schema = Schema.infer(claims)
        told = "by definition: total = vehicle + prop + injury"
        assert caplog.text.count(told) == 1
        assert told in repr(schema)
        assert "in every row: vehicle <= total" in repr(schema)

    def test_arguments_switch_it_off(self, claims):
        assert Schema.infer(claims, definitions={}, orders=[]).relations == ()

    @pytest.mark.parametrize(
        "others", [["injury", "prop", "vehicle"], ["vehicle", "injury", "prop"]]
    )
    def test_a_definition_is_stated_by_its_members(self, claims, others):
        schema = Schema.infer(claims, definitions={"total": others}, orders=[("prop", "total")])
        assert [r.text for r in schema.relations] == [
            "total = vehicle + prop + injury",
            "prop <= total",
        ]

    def test_a_lookup_a_logarithm_and_a_product_are_stated(self, towns):
        towns["log"], towns["double"] = np.log(towns["age"]), towns["age"] * towns["index"]
        given = {"index": ["town"], "log": ["age"], "double": ["age", "index"]}
        assert texts(towns, definitions=given) == {
            "index is a function of town",
            "log = log(age)",
            "double = age * index",
        }

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"definitions": {"hour": ["total"]}}, "'hour' is no function of"),
            ({"definitions": {"total": ["unknown"]}}, "definitions: unknown features"),
            ({"definitions": {"total": "prop"}}, "total = prop is off by more than"),
            ({"definitions": ["total"]}, "definitions must be"),
            ({"orders": ["ab"]}, "orders must be pairs"),
            ({"orders": [("prop",)]}, "orders must be pairs"),
            ({"orders": [("prop", "unknown")]}, "unknown"),
            ({"orders": [("total", "prop")]}, "total <= prop does not hold in .* of 2000"),
            ({"orders": 3}, "orders must be a list, got 3"),
            ({"orders": [3]}, "orders must be pairs"),
            ({"definitions": {"total": 3}}, "definitions must be"),
            ({"definitions": {"total": []}}, "definitions must be"),
        ],
    )
    def test_what_does_not_fit_is_an_error(self, claims, given, words):
        with pytest.raises(SchemaError, match=words):
            Schema.infer(claims, **given)


def test_relations_survive_json(claims, towns):
    for frame in (claims, towns):
        for relation in Schema.infer(frame).relations:
            assert from_dict(relation.to_dict()) == relation


@pytest.fixture
def loans(rng) -> pd.DataFrame:
    """The housing expense as a share of two incomes, in percent, and off by more in some rows."""
    income, other = rng.gamma(4, 1200, (2, N)).round()
    rent = (rng.uniform(0.15, 0.45, N) * (income + other)).round()
    share = (100 * rent / (income + other)).round(2)
    return pd.DataFrame({"income": income, "co income": other, "rent": rent, "share": share})


class TestFormulas:
    @pytest.mark.parametrize(
        "text",
        [
            *("9 ** 9 ** 9 ** 9 * rent", "1e400 ** 9 ** 9 - rent", "rent / 0 * 1 / 0"),
            *("rent.real", "rent[0]", "rent * True", "'a' * rent", "(lambda: rent)()"),
            "abs(rent, key=1)",
        ],
    )
    def test_what_is_no_arithmetic_is_refused(self, loans, text):
        """A file may state it: no name but the columns' and the functions' is reached."""
        with pytest.raises(SchemaError, match=r"formula|definitions"):
            Schema.infer(loans, definitions={"share": text}, orders=[])

    def test_a_ratio_over_a_sum_is_stated(self, loans):
        (own,) = Schema.infer(
            loans, definitions={"share": "100 * rent / (income + co income)"}, orders=[]
        ).relations
        assert own.text == "share = 100 * rent / (income + co income)"
        assert own.is_definition and own.high == 0.0
        assert own.members == ("share", "rent", "income", "co income")
        assert from_dict(own.to_dict()) == own

    def test_it_may_be_one_of_percent(self, loans):
        stated = {"share": "rent / (income + co income)"}
        assert texts(loans, definitions=stated) == {"share = 100 * (rent / (income + co income))"}

    @pytest.mark.parametrize(("within", "told"), [({"share": 1}, 1.0), (None, 2.0)])
    def test_how_far_it_is_off_is_stated_or_of_nine_rows_in_ten(self, loans, rng, within, told):
        off = np.where(rng.random(N) < 0.3, rng.uniform(-3, 3, N), rng.uniform(-0.5, 0.5, N))
        noisy = loans.assign(share=(loans["share"] + off).round(2))
        stated = {"share": "rent / (income + co income)"}
        schema = Schema.infer(noisy, definitions=stated, within=within, orders=[])
        (own,) = schema.relations
        assert own.high == pytest.approx(told, abs=0.15)
        assert own.is_definition and f"within {own.high:.4g}" in own.text
        assert "share" not in {f.name for f in schema if f.actionable}

    def test_the_error_says_which_rows_do_not_fit(self, loans):
        with pytest.raises(SchemaError, match=r"off by more than .* training rows, most in \d+ "):
            Schema.infer(loans, definitions={"share": "rent / income"})

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("rent / (incme + 1)", "unknown numeric features: 'incme' .did you mean 'income'"),
            ("rent / ", "expected columns, numbers, brackets"),
            ("rent.x", "expected columns"),
            ("rent[0]", "expected columns"),
            ("(lambda: rent)()", "unknown numeric features: 'lambda'"),
            ("exec(rent)", "unknown numeric features: 'exec'"),
            ("12", "expected columns"),
        ],
    )
    def test_what_is_no_formula_is_an_error(self, loans, text, told):
        with pytest.raises(SchemaError, match=told):
            Schema.infer(loans, definitions={"share": text})

    def test_how_far_is_said_of_formulas(self, loans):
        with pytest.raises(SchemaError, match="within: unknown formulas: 'rent'"):
            Schema.infer(loans, definitions={"share": ["rent"]}, within={"rent": 1.0})

    @pytest.mark.parametrize("within", [None, {"share": 0.7}])
    def test_the_file_of_a_schema_has_the_same_form(self, loans, rng, tmp_path, within):
        noisy = loans.assign(share=(loans["share"] + rng.uniform(-0.9, 0.9, N)).round(2))
        stated = {"share": "rent / (income + co income)"}
        schema = Schema.infer(noisy, definitions=stated, within=within)
        schema.to_toml(tmp_path / "schema.toml")
        assert Schema.from_toml(tmp_path / "schema.toml", noisy) == schema
        assert "[within]" in (tmp_path / "schema.toml").read_text(encoding="utf8")

    @pytest.mark.parametrize(
        ("text", "of"),
        [
            ("max(a, b one)", np.maximum),
            ("min(a, b one)", np.minimum),
            ("abs(a - b one)", lambda a, b: np.abs(a - b)),
        ],
    )
    def test_the_larger_the_smaller_and_the_distance_are_found(self, rng, text, of):
        a, b = rng.gamma(4, 30, (2, N)).round()
        frame = pd.DataFrame({"a": a, "b one": b, "y": of(a, b), "x": rng.normal(0, 1, N)})
        assert texts(frame) == {f"y = {text}"}
        assert texts(frame.assign(y=frame["y"].where(rng.random(N) > 0.02, 3.0))) == {
            f"y = {text}"
        }
        # The larger of which always the same one is, is that one.
        assert not any("(" in each for each in texts(frame.assign(y=a, x=a - 5.0)))

    def test_a_number_is_defined_once(self, rng, tmp_path):
        a, b = rng.gamma(4, 30, (2, N)).round()
        frame = pd.DataFrame({"a": a, "b": b, "best": np.maximum(a, b)})
        frame = frame.assign(worst=np.minimum(a, b), gap=np.abs(a - b))
        schema = Schema.infer(frame)
        names = [each.name for each in schema.relations if each.is_definition]
        assert sorted(names) == ["best", "gap", "worst"]
        schema.to_toml(tmp_path / "schema.toml")
        assert Schema.from_toml(tmp_path / "schema.toml", frame) == schema

    def test_others_are_stated(self, rng):
        a, b, c = rng.gamma(4, 30, (3, N)).round()
        frame = pd.DataFrame({"a": a, "b": b, "c": c, "y": np.maximum(np.maximum(a, b), 2 * c)})
        assert texts(frame, definitions={"y": "max(a, b, 2 * c)"}) == {"y = max(a, b, 2 * c)"}
