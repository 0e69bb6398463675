"""Orders and relations between numbers, on simulated tables that have them."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Schema


@pytest.fixture
def shapes() -> pd.DataFrame:
    """Areas of rough circles, totals of a price a month, a sum of two parts, and a stranger."""
    rng, n = np.random.default_rng(0), 1500
    radius, months, price = rng.gamma(9, 2, n), rng.integers(1, 73, n), rng.uniform(20, 120, n)
    frame = pd.DataFrame({"radius": radius, "area": 3.1 * radius**2 * rng.normal(1, 0.02, n)})
    frame["months"], frame["price"] = months, price.round(2)
    frame["total"] = (months * price * rng.normal(1, 0.03, n)).round(2)
    frame["part"], frame["rest"] = rng.integers(0, 500, n), rng.integers(-200, 400, n)
    frame["whole"] = frame["part"] + frame["rest"]
    return frame.assign(other=rng.normal(size=n))


def functions(relations):
    """The relations that are no orders."""
    return [each for each in relations if not each.is_order]


def test_products_powers_and_sums_are_found(shapes):
    relations = functions(Schema.infer(shapes).relations)
    assert {frozenset(each.members) for each in relations} == {
        frozenset({"radius", "area"}),
        frozenset({"total", "months", "price"}),
        frozenset({"whole", "part", "rest"}),
    }


def residual(relation, frame):
    values = frame[list(relation.members)].to_numpy(float)
    values = np.log(values) if relation.log else values
    return values[:, 0] - relation.constant - values[:, 1:] @ np.array(relation.weights)


def test_the_bounds_hold_in_rows_not_fitted_on(shapes):
    relations = functions(Schema.infer(shapes.head(500)).relations)
    assert len(relations) == 3
    for each in relations:
        rest = residual(each, shapes.tail(1000))
        assert ((rest >= each.low) & (rest <= each.high)).mean() >= 0.995


def test_special_values_and_zeros_do_not_count(shapes):
    shapes.loc[:200, "area"], shapes.loc[100:300, "radius"] = -9.0, 0.0
    schema = Schema.infer(shapes[["radius", "area"]], special={"area": [-9]})
    (relation,) = functions(schema.relations)
    assert relation.log
    assert relation.high - relation.low < 0.4


def test_a_strong_dependence_is_no_relation():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    frame = pd.DataFrame({"x": x, "y": x + rng.normal(0, 0.2, 2000)})
    assert Schema.infer(frame).relations == ()


@pytest.mark.parametrize("unit", [1e-300, 1e-120, 1e50, 1e300])
def test_huge_and_tiny_numbers_raise_no_warning(shapes, unit):
    frame = shapes.assign(radius=shapes["radius"] * unit, other=shapes["other"] * unit)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        assert len(functions(Schema.infer(frame).relations)) >= 2


@pytest.mark.parametrize(
    ("computed", "text"),
    [
        (lambda rent, income: (100 * rent / income).round(1), "y = 100 * rent / income"),
        (lambda rent, income: (1.19 * income).round(2), "y = 1.19 income"),
        (lambda rent, income: (1.8 * rent + 32).round(), "y = 32 + 1.8 rent"),
    ],
)
def test_what_is_rounded_has_the_constants_of_its_definition(computed, text):
    rng = np.random.default_rng(0)
    income = pd.Series(2_500 * rng.lognormal(0, 0.4, 3000)).round(2)
    rent = (rng.uniform(0.2, 0.6, 3000) * income).round(2)
    frame = pd.DataFrame({"income": income, "rent": rent, "y": computed(rent, income)})
    assert text in [each.text for each in functions(Schema.infer(frame).relations)]
