"""One predictor and the same rows: a module, a black box, DiCE and Alibi give the same answers.

Each host gets its usual wrapping of that predictor: DiCE a torch module on its own min-max +
one-hot vector, Alibi a numpy function on label-encoded rows.
"""

from dataclasses import replace

import pandas as pd
import pytest

from dear_plugin import DEAR, Recourses, Search
from dear_plugin.demo import Demo
from dear_plugin.demo.experiment import Experiment, make_experiment
from dear_plugin.demo.hosts import through_alibi, through_dice
from dear_plugin.demo.wrappings import OnAlibi

DATA = {"loan": 60, "adult": 30}
SEARCHES = {
    "default": None,
    "cheapest": Search.cheapest(),
    "consistent": Search(min_consistency=0.7),
}


@pytest.fixture(
    scope="module",
    params=["loan", pytest.param("adult", marks=[pytest.mark.real_data, pytest.mark.slow])],
)
def experiment(request) -> Experiment:
    if request.param == "adult":
        request.getfixturevalue("data_home")
    return make_experiment(Demo(request.param, rows=DATA[request.param]))


@pytest.fixture(
    scope="module",
    params=[pytest.param("default", marks=pytest.mark.ci), "cheapest", "consistent"],
)
def search(request) -> Search | None:
    return SEARCHES[request.param]


def with_search(experiment: Experiment, search: Search | None) -> Experiment:
    return replace(experiment, how=experiment.how | {"search": search})


def recourses(experiment: Experiment, model, search: Search | None) -> Recourses:
    dear = DEAR(model, experiment.schema, **with_search(experiment, search).how)
    return dear.fit(experiment.train).generate(experiment.refused, within=experiment.within)


@pytest.fixture(scope="module")
def engine(experiment: Experiment, search: Search | None) -> pd.DataFrame:
    """The counterfactuals of the module; rows without one, which DiCE leaves, as they are."""
    found = recourses(experiment, experiment.model, search)
    success = found.actions["success"]
    assert success.all() or experiment.data.name == "adult"
    assert success.mean() > 0.5
    names = list(experiment.schema.names)
    return found.counterfactuals[names].where(success, experiment.refused[names])


def same(left: pd.DataFrame, right: pd.DataFrame) -> None:
    numbers = left.select_dtypes("number").columns
    assert (left[numbers].astype(float) == right[numbers].astype(float)).all(axis=None)
    others = left.columns.difference(numbers)
    assert (left[others].astype(str) == right[others].astype(str)).all(axis=None)


def test_dice_gives_the_engine_s_counterfactuals(
    experiment: Experiment, search: Search | None, engine: pd.DataFrame
) -> None:
    pytest.importorskip("dice_ml")
    same(through_dice(with_search(experiment, search)), engine)


def test_alibi_and_a_black_box_give_the_engine_s_counterfactuals(
    experiment: Experiment, search: Search | None, engine: pd.DataFrame
) -> None:
    pytest.importorskip("alibi")
    predictor = OnAlibi(experiment.model, experiment.schema)
    by_function = recourses(experiment, lambda rows: predictor(predictor.array(rows)), search)
    solved = by_function.actions["success"]
    found = by_function.counterfactuals[engine.columns]
    same(found.where(solved, experiment.refused[engine.columns]), engine)
    through = through_alibi(with_search(experiment, search))
    same(through[solved], engine[solved])


def test_the_cheapest_differs_from_the_default(experiment: Experiment) -> None:
    cheapest, default = (
        recourses(experiment, experiment.model, SEARCHES[name]).counterfactuals
        for name in ("cheapest", "default")
    )
    assert not cheapest.equals(default)
