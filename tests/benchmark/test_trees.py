"""Costs beside the optimum, on trees: few rows, and a scan that is slower still."""

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
    """A DEAR of two features on boosted trees, and six refused people."""
    data = load_loan(1500)
    frame = data.frame.drop(columns=data.target)
    model = forests.forest(BOOSTED, frame, data.frame[data.target], 0)
    schema = Schema.infer(frame, immutable=data.immutable)
    dear = DEAR(model, schema, act_on=FEATURES).fit(frame)
    return dear, frame[model.predict(frame) == 0].iloc[:6]


def least(dear, people, asked):
    """The least cost of what is asked, all values tried one by one, as a user would."""
    best = np.full(len(people), np.inf)
    for feature in (f for f in dear.schema if f.name in FEATURES):
        for value in range(int(feature.bounds[0]), int(feature.bounds[1]) + 1):
            actions = dear.apply(people, {feature.name: value}).actions
            fine = actions[asked] & (actions["direct_cost"] > 0)
            best = np.minimum(best, actions["cost"].where(fine, np.inf))
    return best


class TestOptimum:
    def test_of_costs_alone_is_what_a_user_would_find(self, credit):
        dear, people = credit
        dear = dear.with_search(Search.cheapest(groups=False))
        found = compared(dear, people)
        np.testing.assert_allclose(found.optimum, least(dear, people, "success"), rtol=1e-4)
        assert found.possible.all()

    def test_of_what_passes_is_what_a_user_would_find(self, credit):
        dear, people = credit
        dear = dear.with_search(Search(groups=False, margin=0.0, prefer_alone=0.0))
        found = compared(dear, people)
        np.testing.assert_allclose(found.optimum, least(dear, people, "credible"), rtol=1e-4)

    def test_nobody_is_cheaper_than_it(self, credit):
        dear, people = credit
        found = compared(dear.with_search(Search(groups=False)), people)
        assert (found.ratios >= 1.0).all()

    def test_where_the_margin_is_out_of_reach_it_is_the_least_without(self, credit):
        dear, people = credit
        far, none = (
            compared(dear.with_search(Search(groups=False, margin=margin)), people)
            for margin in (50.0, 0.0)
        )
        assert not far.with_margin.any() and none.with_margin.all()
        np.testing.assert_allclose(far.optimum, none.best)

    def test_who_has_none_is_told_apart_from_who_is_missed(self):
        ours, best = np.array([2.0, np.inf, np.inf]), np.array([1.0, 1.0, np.inf])
        found = Compared(ours, best, np.isfinite(best))
        assert found.possible.tolist() == [True, True, False]
        assert found.missed.tolist() == [False, True, False]
        assert found.ratios.tolist() == [2.0]


class TestCommand:
    def test_it_writes_the_table(self, tmp_path):
        told = ["--datasets", "loan", "--models", BOOSTED, "--rows", "4"]
        assert main(["trees", *told, "--out", str(tmp_path)]) == 0
        table = pd.read_csv(tmp_path / "trees.csv")
        assert table["search"].tolist() == ["cheapest", "default"]
        assert (table["mean"] >= 1.0).all() and (table["people"] == 4).all()

    def test_a_package_that_is_not_there_is_said(self, monkeypatch):
        def missing(*_):
            raise ModuleNotFoundError("no", name="xgboost")

        monkeypatch.setitem(forests.FORESTS, "XGBoost", missing)
        (line,) = Trees("loan", "XGBoost", 4).lines()
        assert line["search"] == "xgboost is not installed"
