"""One predictor and the same rows: a module, a black box, DiCE and Alibi give the same answers.

Each host gets its usual wrapping of that predictor: DiCE a torch module on its own min-max +
one-hot vector, Alibi a numpy function on label-encoded rows.
"""

import copy
from dataclasses import replace

import pytest
import torch

from dear_plugin import DEAR, Search
from dear_plugin.demo import Demo
from dear_plugin.demo.experiment import make_experiment
from dear_plugin.demo.hosts import through_alibi, through_dice
from dear_plugin.demo.wrappings import OnAlibi, OnDice

DATA = {"loan": 60, "adult": 30}


HOWS = {
    "default": {"search": None},
    "cheapest": {"search": Search.cheapest()},
    "consistent": {"search": Search(min_consistency=0.7)},
    "copies": {"search": None, "copies": 3},
}


def copied(model, seed):
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
def experiment(request):
    if request.param == "adult":
        request.getfixturevalue("data_home")
    return make_experiment(Demo(request.param, rows=DATA[request.param]))


@pytest.fixture(
    scope="module", params=[pytest.param("default", marks=pytest.mark.ci), *list(HOWS)[1:]]
)
def how(request):
    return request.param


def options(experiment, how, wrapped):
    """The arguments of a method, whose copies are `wrapped` as its model is."""
    nets = [copied(experiment.model, seed) for seed in range(HOWS[how].get("copies", 0))]
    return experiment.how | HOWS[how] | {"copies": [wrapped(net) for net in nets]}


def recourses(experiment, how, wrapped=lambda net: net):
    own = options(experiment, how, wrapped)
    dear = DEAR(wrapped(experiment.model), experiment.schema, **own)
    return dear.fit(experiment.train).generate(experiment.refused, within=experiment.within)


@pytest.fixture(scope="module")
def engine(experiment, how):
    """The counterfactuals of the module; rows without one, which DiCE leaves, as they are."""
    found = recourses(experiment, how)
    success = found.actions["success"]
    assert success.all() or experiment.data.name == "adult"
    assert success.mean() > 0.5
    names = list(experiment.schema.names)
    return found.counterfactuals[names].where(success, experiment.refused[names])


def same(left, right):
    numbers = left.select_dtypes("number").columns
    assert (left[numbers].astype(float) == right[numbers].astype(float)).all(axis=None)
    others = left.columns.difference(numbers)
    assert (left[others].astype(str) == right[others].astype(str)).all(axis=None)


def test_dice_gives_the_engine_s_counterfactuals(experiment, how, engine):
    dice_ml = pytest.importorskip("dice_ml")

    def wrapped(net):
        module = OnDice(net, experiment.schema)
        return dice_ml.Model(model=module, backend="PYT", func="ohe-min-max")

    own = options(experiment, how, wrapped)
    same(through_dice(replace(experiment, how=own)), engine)


def test_alibi_and_a_black_box_give_the_engine_s_counterfactuals(experiment, how, engine):
    pytest.importorskip("alibi")

    def on_frames(net):
        predictor = OnAlibi(net, experiment.schema)
        return lambda rows: predictor(predictor.array(rows))

    by_function = recourses(experiment, how, on_frames)
    solved = by_function.actions["success"]
    found = by_function.counterfactuals[engine.columns]
    same(found.where(solved, experiment.refused[engine.columns]), engine)
    own = options(experiment, how, lambda net: OnAlibi(net, experiment.schema))
    through = through_alibi(replace(experiment, how=own))
    same(through[solved], engine[solved])


def test_other_searches_and_copies_give_other_answers(experiment):
    default, *others = (
        recourses(experiment, name).counterfactuals for name in ("default", "cheapest", "copies")
    )
    assert not any(each.equals(default) for each in others)
