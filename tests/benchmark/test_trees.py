"""Costs compared with the optimum on trees: few rows, and an exhaustive scan through `apply`."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema, Search
from dear_plugin.benchmark import forests
from dear_plugin.benchmark.__main__ import main
from dear_plugin.benchmark.dense import Compared, compared
from dear_plugin.benchmark.trees import Trees
from dear_plugin.datasets import load_loan

BOOSTED = "HistGradientBoosting"
FEATURES = ["duration", "education"]


@pytest.fixture(scope="module")
def credit():
    """A DEAR of two features on boosted trees, and six rejected rows."""
    data = load_loan(1500)
    frame = data.frame.drop(columns=data.target)
    model = forests.forest(BOOSTED, frame, data.frame[data.target], 0)
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


@pytest.mark.ci
class TestOptimum:
    def test_of_costs_alone_is_that_of_an_exhaustive_scan(self, credit):
        dear, rows = credit
        dear = dear.with_search(Search.cheapest(max_features=1))
        found = compared(dear, rows)
        np.testing.assert_allclose(found.optimum, least(dear, rows, "success"), rtol=1e-4)
        assert found.possible.all()

    def test_with_criteria_is_that_of_an_exhaustive_scan(self, credit):
        dear, rows = credit
        dear = dear.with_search(Search(max_features=1, margin=0.0, prefer_alone=0.0))
        found = compared(dear, rows)
        np.testing.assert_allclose(found.optimum, least(dear, rows, "credible"), rtol=1e-4)

    def test_no_answer_is_cheaper(self, credit):
        dear, rows = credit
        found = compared(dear.with_search(Search(max_features=1)), rows)
        assert (found.ratios >= 1.0).all()

    def test_the_margin_is_one_of_the_criteria(self, credit):
        dear, rows = credit
        search = Search(max_features=1, margin=50.0)
        assert not compared(dear.with_search(search), rows).possible.any()

    def test_unsolvable_rows_are_not_missed(self):
        costs, optimum = np.array([2.0, np.inf, np.inf]), np.array([1.0, 1.0, np.inf])
        found = Compared(costs, optimum)
        assert found.possible.tolist() == [True, True, False]
        assert found.missed.tolist() == [False, True, False]
        assert found.ratios.tolist() == [2.0]


@pytest.mark.ci
class TestCommand:
    def test_it_writes_the_table(self, tmp_path):
        arguments = ["--datasets", "loan", "--models", BOOSTED, "--rows", "4"]
        assert main(["trees", *arguments, "--out", str(tmp_path)]) == 0
        table = pd.read_csv(tmp_path / "trees.csv")
        assert table["search"].tolist() == ["cheapest", "default"]
        assert (table["mean"] >= 1.0).all() and (table["rows"] == 4).all()

    def test_a_missing_package_is_reported(self, monkeypatch):
        def missing(*_):
            raise ModuleNotFoundError("no", name="xgboost")

        monkeypatch.setitem(forests.FORESTS, "XGBoost", missing)
        (line,) = Trees("loan", "XGBoost", 4).lines()
        assert line["search"] == "xgboost is not installed"
