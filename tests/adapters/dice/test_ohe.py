"""DiCE's vector, column by column, whatever the features are called."""

import pickle

import dice_ml
import numpy as np
import pandas as pd
import pytest
import torch

from dear_dice import DiceDEAR
from dear_dice.interface import Interface
from dear_dice.model import OheMinMax
from dear_plugin import Encoder
from tests.adapters.dice.asked import examples

N = 300


def words(*levels, seed=0):
    return np.random.default_rng(seed).choice(levels, N)


def numbers(low, high, seed=0):
    return np.random.default_rng(seed).integers(low, high, N)


FRAMES = {
    "names that begin alike": (
        {
            "sex": words("f", "m", seed=1),
            "sex_pref": words("x", "y", "z", seed=2),
            "sex_age": numbers(0, 9),
        },
        ["sex_age"],
    ),
    "levels that hold their feature's name": (
        {"c": words("c_1", "c_c_1", "1", seed=1), "n": numbers(0, 50)},
        ["n"],
    ),
    "numbers only, in another order": (
        {"a": numbers(0, 9, 1), "b": numbers(100, 200, 2), "c": numbers(-5, 5, 3) / 4},
        ["c", "a", "b"],
    ),
    "words only": ({"a": words("u", "v"), "b": words("p", "q", "r", seed=4)}, []),
    "one level and a constant": (
        {"only": words("one"), "flat": np.full(N, 3), "x": numbers(0, 9), "w": words("a", "b")},
        ["x", "flat"],
    ),
    "levels that sort as text": ({"code": numbers(8, 13), "x": numbers(0, 9, 5)}, ["x"]),
    "two values called continuous": (
        {"z": numbers(0, 2) * 5, "w": words("a", "b", seed=4)},
        ["z"],
    ),
    "numbers in the middle": (
        {"w": words("a", "b"), "x": numbers(0, 9), "v": words("c", "d", "e"), "t": numbers(3, 8)},
        ["t", "x"],
    ),
}


def case(name):
    columns, continuous = FRAMES[name]
    frame = pd.DataFrame(columns)
    labels = np.random.default_rng(9).integers(0, 2, N)
    data = dice_ml.Data(
        dataframe=frame.assign(y=labels), continuous_features=continuous, outcome_name="y"
    )
    return frame, data


def ramp(data, frame):
    """A module that weighs every column of DiCE's vector differently and refuses half the rows."""
    vectors = data.get_ohe_min_max_normalized_data(frame).to_numpy(dtype=np.float32)
    weight = torch.linspace(-2, 3, vectors.shape[1])
    layer = torch.nn.Linear(len(weight), 1)
    with torch.no_grad():
        layer.weight.copy_(weight[None])
        layer.bias.copy_(-(torch.tensor(vectors) @ weight).median())
    return torch.nn.Sequential(layer, torch.nn.Sigmoid())


@pytest.mark.parametrize("name", FRAMES)
def test_it_is_what_dices_own_transformer_gives(name):
    frame, data = case(name)
    interface = Interface(data)
    encoder = Encoder(interface.schema)
    ours = OheMinMax(encoder, data.continuous_feature_names)(encoder.encode(interface.frame))
    theirs = data.get_ohe_min_max_normalized_data(frame).to_numpy(dtype=np.float64)
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=0, atol=1e-6)


def explained(frame, data, count, **arguments):
    """An explainer, DiCE's probabilities of a frame's rows, and examples of some refused ones."""
    module = ramp(data, frame)
    explainer = DiceDEAR(data, dice_ml.Model(model=module, backend="PYT", func="ohe-min-max"))

    def probability(rows):
        vectors = data.get_ohe_min_max_normalized_data(rows[frame.columns])
        return module(torch.tensor(vectors.to_numpy(dtype=np.float32)))[:, 0].detach().numpy()

    query = frame[probability(frame) < 0.5].iloc[:count]
    return explainer, probability, examples(explainer, query, total_CFs=2, **arguments)


@pytest.mark.parametrize("name", FRAMES)
def test_a_torch_model_gets_columns_in_that_order(name):
    explainer, probability, found = explained(*case(name), 15)
    assert explainer.dear.classifier.is_module
    for example in found:
        after = probability(example.final_cfs_df)
        assert (after > 0.5).all()
        np.testing.assert_allclose(example.actions["score_after"], after, rtol=0, atol=1e-5)


def test_a_frozen_feature_stays_though_another_one_begins_with_its_name():
    frame, data = case("names that begin alike")
    *_, found = explained(frame, data, 20, features_to_vary=["sex_age", "sex"])
    assert any(len(example.final_cfs_df) for example in found)
    for example in found:
        own = example.test_instance_df["sex_pref"].iat[0]
        assert (example.final_cfs_df["sex_pref"] == own).all()


def test_dices_column_names_that_collide_are_left_to_dice():
    frame = pd.DataFrame({"a": words("b", "c"), "a_b": numbers(0, 9) / 1.0, "x": numbers(0, 9, 1)})
    labelled = frame.assign(y=np.random.default_rng(9).integers(0, 2, N))
    data = dice_ml.Data(dataframe=labelled, continuous_features=["a_b", "x"], outcome_name="y")
    explainer, probability, found = explained(frame, data, 5)
    assert not explainer.dear.classifier.is_module
    assert all((probability(example.final_cfs_df) > 0.5).all() for example in found)


def test_it_is_differentiable_and_can_be_pickled():
    _, data = case("numbers in the middle")
    encoder = Encoder(Interface(data).schema)
    encode = pickle.loads(pickle.dumps(OheMinMax(encoder, data.continuous_feature_names)))
    x = torch.rand(3, encoder.d, requires_grad=True)
    encode(x).sum().backward()
    assert x.grad.shape == x.shape
    assert encode(x.detach().double()).dtype == torch.float64
