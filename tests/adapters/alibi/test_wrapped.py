"""Alibi's CounterfactualRLTabular as a method; barely trained, so few rows succeed."""

import numpy as np
import pandas as pd
import pytest
import torch
from alibi.explainers import AnchorTabular, CounterfactualRLTabular
from alibi.explainers.backends.cfrl_tabular import get_he_preprocessor

import dear_plugin
from dear_alibi import wrap_alibi
from dear_plugin import Kind, RecourseMethod
from dear_plugin.testing import LAWS, Subject

# Alibi's preprocessors are local functions.
HOLDING = [law for law in LAWS if law.__name__ != "methods_and_results_can_be_pickled"]


class Heads(torch.nn.Module):
    """A decoder as Alibi wants it: one head for numbers, one per category."""

    def __init__(self, latent, sizes):
        super().__init__()
        self.heads = torch.nn.ModuleList([torch.nn.Linear(latent, size) for size in sizes])

    def forward(self, z):
        return [head(z) for head in self.heads]


def unfitted(data, predictor):
    forth, back = get_he_preprocessor(
        data.X, data.names, data.maps, feature_types=dict.fromkeys(data.names[1:3], int)
    )
    torch.manual_seed(0)
    width, numbers = forth(data.X[:1]).shape[1], len(data.names) - len(data.maps)
    return CounterfactualRLTabular(
        predictor=predictor,
        encoder=torch.nn.Sequential(torch.nn.Linear(width, 6), torch.nn.Tanh()),
        decoder=Heads(6, [numbers, *map(len, data.maps.values())]),
        latent_dim=6,
        encoder_preprocessor=forth,
        decoder_inv_preprocessor=back,
        coeff_sparsity=0.5,
        coeff_consistency=0.5,
        category_map=data.maps,
        feature_names=data.names,
        ranges={"age": [0.0, 1.0]},
        immutable_features=["gender"],
        train_steps=30,
        batch_size=50,
        num_workers=0,
        backend="pytorch",
    )


@pytest.fixture(scope="module")
def counterfactual_rl(data, predictor):
    with torch.random.fork_rng(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "seed", lambda seed: None)
        return unfitted(data, predictor).fit(data.X.astype(float))


@pytest.fixture(scope="module")
def words(data):
    """The rows as a frame, with text for categories."""
    return data.frame.astype({"gender": object, "job": object})


@pytest.fixture(scope="module")
def method(counterfactual_rl, words):
    return wrap_alibi(counterfactual_rl).fit(words)


def test_it_is_a_method_with_the_explainers_own_schema(method, data):
    assert isinstance(method, RecourseMethod)
    age, job = method.schema.features[1], method.schema.features[3]
    low, high = data.X[:, 1].min(), data.X[:, 1].max()
    assert (age.kind, age.bounds, age.precision) == (Kind.NUMERIC, (low, high), 0)
    assert job.categories == tuple(data.maps[3])
    assert [f.name for f in method.schema if f.immutable] == ["gender"]


@pytest.mark.parametrize("law", HOLDING, ids=lambda law: law.__name__)
def test_the_laws_hold(law, method, words, data, pipeline):
    accepted = pipeline.predict(data.X) == 1
    law(Subject.of(method, pd.concat([words[~accepted].iloc[:6], words[accepted].iloc[:2]])))


def test_other_explainers_are_refused(predictor, data):
    other = AnchorTabular(predictor, data.names, data.maps)
    with pytest.raises(dear_plugin.errors.ModelError, match="got a AnchorTabular"):
        wrap_alibi(other)


def test_an_unfitted_explainer_is_refused(explainer, data, predictor, monkeypatch):
    monkeypatch.setattr(np.random, "seed", lambda seed: None)
    with torch.random.fork_rng():
        other = unfitted(data, predictor)
    with pytest.raises(dear_plugin.errors.ModelError, match=r"without \[.*'stats'\]"):
        wrap_alibi(other)
    with pytest.raises(dear_plugin.errors.ModelError, match="fitted CounterfactualRLTabular"):
        wrap_alibi(explainer)


class Named:
    """A predictor with a decision and classes of its own names."""

    classes_ = ("no", "yes")

    def __init__(self, predictor):
        self.predict_proba = predictor

    def predict(self, X):
        return np.array(self.classes_)[self.predict_proba(X).argmax(1)]


def test_a_target_is_a_label_of_the_predictors_classes(
    counterfactual_rl, method, words, data, pipeline
):
    params = {
        **counterfactual_rl.params,
        "predictor": Named(counterfactual_rl.params["predictor"]),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counterfactual_rl, "params", params)
        named = wrap_alibi(counterfactual_rl).fit(words)
    frame = words[pipeline.predict(data.X) == 0].iloc[:40]
    with pytest.raises(dear_plugin.errors.TargetError, match=r"which of the classes \['no', 'yes"):
        named.generate(frame)
    same = method.generate(frame, 1)
    found = named.generate(frame, "yes")
    assert found.counterfactuals.equals(same.counterfactuals)
    assert found.actions["success"].equals(same.actions["success"])
