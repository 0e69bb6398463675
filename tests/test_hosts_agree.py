"""One predictor and the same rows: the engine, DiCE and Alibi give the same counterfactuals.

Each host gets its usual wrapping of that predictor: DiCE a torch module on its own min-max +
one-hot vector, Alibi a numpy function on label-encoded rows. The engine gets the same, since it
evaluates other values of a black box, which may be a step function, than of a module.
"""

import pandas as pd
import pytest

from dear_plugin import DEAR, Search
from dear_plugin.benchmark.wrappings import OnAlibi
from dear_plugin.demo import Demo
from dear_plugin.demo.experiment import Experiment, make_experiment
from dear_plugin.demo.hosts import through_alibi, through_dice

SEARCHES = {"default": None, "cheapest": Search.cheapest()}


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return make_experiment(Demo("loan", rows=60))


@pytest.fixture(scope="module", params=SEARCHES)
def search(request) -> Search | None:
    return SEARCHES[request.param]


def answers(experiment: Experiment, model, search: Search | None) -> pd.DataFrame:
    dear = DEAR(model, experiment.schema, act_on=experiment.data.act_on, search=search).fit(
        experiment.train
    )
    recourses = dear.generate(experiment.refused)
    assert recourses.actions["success"].all()
    return recourses.counterfactuals[list(experiment.schema.names)]


def same(left: pd.DataFrame, right: pd.DataFrame) -> None:
    numbers = left.select_dtypes("number").columns
    assert (left[numbers].astype(float) == right[numbers].astype(float)).all(axis=None)
    others = left.columns.difference(numbers)
    assert (left[others].astype(str) == right[others].astype(str)).all(axis=None)


def test_dice_gives_the_engine_s_counterfactuals(
    experiment: Experiment, search: Search | None
) -> None:
    pytest.importorskip("dice_ml")
    engine = answers(experiment, experiment.model, search)
    same(through_dice(experiment, Demo("loan"), search), engine)


def test_alibi_gives_the_engine_s_counterfactuals(
    experiment: Experiment, search: Search | None
) -> None:
    pytest.importorskip("alibi")
    predictor = OnAlibi(experiment.model, experiment.schema)
    engine = answers(experiment, lambda frame: predictor(predictor.array(frame)), search)
    same(through_alibi(experiment, Demo("loan"), search), engine)


def test_the_cheapest_differs_from_the_default(experiment: Experiment) -> None:
    cheapest = answers(experiment, experiment.model, Search.cheapest())
    assert not cheapest.equals(answers(experiment, experiment.model, None))
