"""Costs compared with the optimum on trees: few rows, and an exhaustive scan through `apply`."""

import numpy as np
import pytest

from dear_plugin import DEAR, Schema, Search
from dear_plugin.benchmark.splits import forest
from dear_plugin.benchmark.trees import compared
from dear_plugin.datasets import load_loan

FEATURES = ["duration", "education"]
pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def credit():
    """A DEAR of two features on boosted trees, and six rejected rows."""
    data = load_loan(1500)
    frame = data.frame.drop(columns=data.target)
    model = forest("HistGradientBoosting", frame, data.frame[data.target], 0)
    schema = Schema.infer(frame, immutable=data.immutable)
    dear = DEAR(model, schema, act_on=FEATURES).fit(frame)
    return dear, frame[model.predict(frame) == 0].iloc[:6]


def least(dear, rows, column):
    """(n,) the least cost with a column set, over all values of `apply`."""
    best = np.full(len(rows), np.inf)
    for feature in (f for f in dear.schema if f.name in FEATURES):
        for value in range(int(feature.bounds[0]), int(feature.bounds[1]) + 1):
            actions = dear.apply(rows, {feature.name: value}).actions
            valid = actions[column] & (actions["direct_cost"] > 0)
            best = np.minimum(best, actions["cost"].where(valid, np.inf))
    return best


def test_of_costs_alone_is_that_of_an_exhaustive_scan(credit):
    dear, rows = credit
    dear = dear.with_search(Search.cheapest(max_features=1))
    found = compared(dear, rows)
    np.testing.assert_allclose(found["optimum"], least(dear, rows, "success"), rtol=1e-4)
    assert np.isfinite(found["optimum"]).all()


def test_with_criteria_is_that_of_an_exhaustive_scan(credit):
    dear, rows = credit
    # The confidence that a search asks for is over other resamples than the one that is reported.
    search = Search(max_features=1, margin=0.0, prefer_alone=0.0, min_confidence=0.0)
    dear = dear.with_search(search)
    found = compared(dear, rows)
    np.testing.assert_allclose(found["optimum"], least(dear, rows, "credible"), rtol=1e-4)
