"""One predictor and the same rows: a module, a black box, DiCE and Alibi give the same answers.

Each host gets its usual wrapping of that predictor: DiCE a torch module on its own min-max +
one-hot vector, Alibi a numpy function on label-encoded rows.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import pytest
import torch
from torch import nn

from dear_plugin import DEAR, Recourses, Search
from dear_plugin.demo import Demo
from dear_plugin.demo.experiment import Experiment, make_experiment
from dear_plugin.demo.hosts import through_alibi, through_dice
from dear_plugin.demo.wrappings import OnAlibi, OnDice

DATA = {"loan": 60, "adult": 30}


@dataclass(frozen=True)
class How:
    """A search, and how many copies of the model there are."""

    search: Search | None
    copies: int = 0

    def options(self, experiment: Experiment, wrapped: Callable[[Any], Any]) -> dict[str, Any]:
        """The arguments of a method, whose copies are `wrapped` as its model is."""
        nets = [copied(experiment.model, seed) for seed in range(self.copies)]
        return experiment.how | {"search": self.search, "copies": [wrapped(net) for net in nets]}


HOWS = {
    "default": How(None),
    "cheapest": How(Search.cheapest()),
    "consistent": How(Search(min_consistency=0.7)),
    "copies": How(None, copies=3),
}


def copied(model: nn.Module, seed: int) -> nn.Module:
    """A network as another training might have given it."""
    other, rng = copy.deepcopy(model), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weights in other.parameters():
            weights += 0.1 * weights.std(correction=0) * torch.randn(weights.shape, generator=rng)
    return other


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
    params=[pytest.param("default", marks=pytest.mark.ci), *list(HOWS)[1:]],
)
def how(request) -> How:
    return HOWS[request.param]


def with_how(experiment: Experiment, how: How, wrapped: Callable[[Any], Any]) -> Experiment:
    return replace(experiment, how=how.options(experiment, wrapped))


def recourses(
    experiment: Experiment, how: How, wrapped: Callable[[Any], Any] = lambda net: net
) -> Recourses:
    options = how.options(experiment, wrapped)
    dear = DEAR(wrapped(experiment.model), experiment.schema, **options)
    return dear.fit(experiment.train).generate(experiment.refused, within=experiment.within)


@pytest.fixture(scope="module")
def engine(experiment: Experiment, how: How) -> pd.DataFrame:
    """The counterfactuals of the module; rows without one, which DiCE leaves, as they are."""
    found = recourses(experiment, how)
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
    experiment: Experiment, how: How, engine: pd.DataFrame
) -> None:
    dice_ml = pytest.importorskip("dice_ml")

    def wrapped(net):
        module = OnDice(net, experiment.schema)
        return dice_ml.Model(model=module, backend="PYT", func="ohe-min-max")

    same(through_dice(with_how(experiment, how, wrapped)), engine)


def test_alibi_and_a_black_box_give_the_engine_s_counterfactuals(
    experiment: Experiment, how: How, engine: pd.DataFrame
) -> None:
    pytest.importorskip("alibi")

    def on_frames(net):
        predictor = OnAlibi(net, experiment.schema)
        return lambda rows: predictor(predictor.array(rows))

    by_function = recourses(experiment, how, on_frames)
    solved = by_function.actions["success"]
    found = by_function.counterfactuals[engine.columns]
    same(found.where(solved, experiment.refused[engine.columns]), engine)
    through = through_alibi(with_how(experiment, how, lambda net: OnAlibi(net, experiment.schema)))
    same(through[solved], engine[solved])


def test_other_searches_and_copies_give_other_answers(experiment: Experiment) -> None:
    default, *others = (
        recourses(experiment, HOWS[name]).counterfactuals
        for name in ("default", "cheapest", "copies")
    )
    assert not any(each.equals(default) for each in others)
