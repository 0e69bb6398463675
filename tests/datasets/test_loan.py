from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dear_plugin.datasets import load_loan, loan

NUMBERS = ["age", "education", "loan_amount", "duration", "income", "savings"]
COLUMNS = ["gender", *NUMBERS, "approved"]


def test_rows_and_their_noise_are_inverse():
    frame = load_loan(3_000, seed=3).features
    pd.testing.assert_frame_equal(loan.solve(loan.noise_of(frame))[list(frame)], frame)


def test_the_noise_of_rows_is_the_drawn_one_up_to_rounding():
    drawn = loan.noises(500, np.random.default_rng(1))
    found = loan.noise_of(loan.solve(drawn))
    for name in ("gender", "income", "savings"):
        assert np.abs(found[name] - drawn[name]).max() < 0.15, name


@pytest.fixture(scope="module")
def million() -> pd.DataFrame:
    return load_loan(1_000_000, seed=7).frame


@pytest.fixture(scope="module")
def published(million) -> dict[str, np.ndarray]:
    """The published variables computed from the columns, up to rounding."""
    column = {name: million[name].to_numpy(float) for name in COLUMNS[1:]}
    return {
        "G": (million["gender"] == "male").to_numpy(dtype=float),
        "A": (column["age"] - 18) / 0.7 - 35,
        "E": (column["education"] - 12) / 16,
        "L": (column["loan_amount"] - 30) / 0.5,
        "D": column["duration"] - 60,
        "I": (column["income"] - 36) / 3,
        "S": column["savings"] - 30,
        "Y": column["approved"],
    }


def slopes(y, *columns):
    """Least squares of y on a constant and the columns: the coefficients, then the noise's sd."""
    x = np.column_stack([np.ones_like(y), *columns])
    solution = np.linalg.lstsq(x, y, rcond=None)[0]
    return solution.tolist(), float(np.std(y - x @ solution))


def test_frame_has_readable_columns_and_plausible_values():
    data = load_loan()
    frame = data.frame
    assert list(frame) == COLUMNS
    assert len(frame) == 10_000
    assert not frame.isna().any().any()
    assert set(frame["gender"]) == {"female", "male"}
    assert set(frame["approved"]) == {0, 1}
    assert frame["age"].between(18, 110).all()
    assert frame["education"].between(4, 20).all()
    assert (frame[["loan_amount", "duration", "income", "savings"]] > 0).all().all()
    assert set(data.units) == set(NUMBERS)
    assert set(data.labels) == {"gender", *NUMBERS}


def test_same_seed_same_rows_and_the_global_generator_is_not_used():
    np.random.seed(0)
    state = np.random.get_state()[1].copy()
    pd.testing.assert_frame_equal(load_loan(50, seed=5).frame, load_loan(50, seed=5).frame)
    assert not load_loan(50, seed=5).frame.equals(load_loan(50, seed=6).frame)
    assert (np.random.get_state()[1] == state).all()


def test_roots_have_the_published_distributions(published):
    assert published["G"].mean() == pytest.approx(0.5, abs=0.003)
    assert published["A"].mean() == pytest.approx(0, abs=0.05)  # -35 + 10 * 3.5
    assert published["A"].std() == pytest.approx(3.5 * np.sqrt(10), rel=0.005)


def test_education_follows_its_equation(published):
    inner = 1 / (1 + np.exp(-0.1 * published["A"]))
    e = np.clip(published["E"] + 0.5, 0.02, 0.98)
    (constant, g, sigmoid), noise = slopes(np.log(e / (1 - e)), published["G"], inner)
    assert constant == pytest.approx(-1, abs=0.03)
    assert g == pytest.approx(0.5, abs=0.03)
    assert sigmoid == pytest.approx(1, abs=0.04)
    assert noise == pytest.approx(0.5, rel=0.04)


# Of a variable: the terms of its equation, their coefficients after the constant, its noise.
EQUATIONS = {
    "L": (lambda p: (p["G"], (p["A"] - 5) * (5 - p["A"])), (1, 1, 0.01), 2),
    "D": (lambda p: (p["A"], p["G"], p["L"]), (-1, 0.1, 2, 1), 3),
    "I": (lambda p: (p["A"] + 35, p["G"], p["G"] * p["E"]), (-4, 0.1, 2, 1), 2),
    "S": (lambda p: (np.maximum(p["I"], 0), np.minimum(p["I"], 0)), (-4, 1.5, 0), 5),
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_numbers_follow_their_equations(published, name):
    """Savings grow with positive income only; education is known as rounded to a year."""
    terms, expected, deviation = EQUATIONS[name]
    coefficients, noise = slopes(published[name], *terms(published))
    room = [
        0.08 if name == "I" and i == 3 else max(0.02 * abs(e), 0.02 * (e == 0))
        for i, e in enumerate(expected)
    ]
    assert all(abs(c - e) <= r for c, e, r in zip(coefficients, expected, room, strict=True))
    assert noise == pytest.approx(deviation, rel=0.01)


def test_approval_follows_its_equation(published):
    p = published
    score = 0.3 * (-p["L"] - p["D"] + p["I"] + p["S"] + p["I"] * p["S"])
    bins = np.digitize(score, np.linspace(-4, 4, 17))
    for b in np.unique(bins):
        rows = bins == b
        expected = (0.5 + 0.5 * np.tanh(score[rows] / 2)).mean()
        assert p["Y"][rows].mean() == pytest.approx(expected, abs=0.012)
