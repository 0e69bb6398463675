"""A decision whose accepted rows have extreme values: actions may reach the values of these."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema

ROWS = 2000
RNG = np.random.default_rng(0)


def above(name: str, least: float, width: float):
    """A model that accepts what is above a number."""
    return lambda rows: 1 / (1 + np.exp(-(rows[name].to_numpy(float) - least) / width))


PAID = np.where(RNG.random(ROWS) < 0.008, RNG.gamma(3, 50, ROWS), 0).round()
GAIN = np.where(RNG.random(ROWS) < 0.03, RNG.gamma(2, 3, ROWS), 0).round(2)
INCOME, DEBT = RNG.gamma(4, 9, ROWS).round(1), RNG.gamma(2, 6, ROWS).round(1)
CASES = {
    "few have any": (PAID, above("x", 30, 1)),
    "of few who have any, the most": (GAIN, above("x", 9, 0.5)),
    "the largest 0.5 %": (INCOME, above("x", np.quantile(INCOME, 0.995), 1)),
    "the least 0.5 %": (INCOME, above("x", np.quantile(INCOME, 0.005), -1)),
}


@pytest.mark.parametrize("name", CASES)
def test_every_row_has_an_answer_and_a_weak_one_says_why(name):
    values, model = CASES[name]
    frame = pd.DataFrame({"x": values, "debt": DEBT})
    rows = frame[model(frame) < 0.5].head(8)
    dear = DEAR(model, Schema.infer(frame)).fit(frame)
    found = dear.generate(rows)
    assert found.actions["success"].all()
    assert (found.actions["credible"].astype(bool) | (found.actions["reason"] != "")).all()
    one = dear.generate(rows.head(1)).counterfactuals
    pd.testing.assert_frame_equal(one, found.counterfactuals.head(1))


def test_where_others_are_accepted_too_extremes_are_not_advised():
    frame = pd.DataFrame({"x": INCOME, "debt": DEBT})
    model = above("x", np.quantile(INCOME, 0.9), 1)
    rows = frame[model(frame) < 0.5].head(8)
    found = DEAR(model, Schema.infer(frame)).fit(frame).generate(rows)
    assert (found.counterfactuals["x"] <= np.quantile(INCOME, 0.99)).all()
