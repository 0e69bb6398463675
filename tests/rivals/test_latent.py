"""REVISE, C-CHVAE and CLUE: counterfactuals near the data manifold."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from dear_plugin import Schema
from dear_plugin.errors import ModelError
from dear_plugin.paper import Training
from dear_plugin.rivals import CCHVAE, CCHVAEConfig, Clue, LatentConfig, Revise, Vae, VaeDesign
from dear_plugin.rivals.latent import entropy

DESIGN = VaeDesign(layers=(16, 16, 2), training=Training(epochs=40, batch=128, rate=2e-2))


class First(nn.Module):
    """A model of the first column alone."""

    def __init__(self, steepness=8.0):
        super().__init__()
        self.steepness = nn.Parameter(torch.tensor(steepness))

    def forward(self, x):
        return self.steepness * (x[:, :1] - 0.6)


@pytest.fixture(scope="module")
def line():
    """Rows on a line: b is 1 - a, and the immutable group is independent of both."""
    rng = np.random.default_rng(0)
    a = rng.random(800)
    b = 1.0 - a + rng.normal(0.0, 0.01, 800)
    frame = pd.DataFrame({"a": a, "b": b, "group": rng.integers(0, 2, 800)}).round(3)
    return frame, Schema.infer(frame, immutable=["group"])


@pytest.fixture(scope="module")
def vae(line):
    return Vae.fit(*line, DESIGN)


@pytest.fixture(scope="module")
def refused(line):
    return line[0][line[0]["a"] < 0.55].iloc[:60]


@pytest.fixture
def answers(line, vae, refused):
    """What a method with a configuration answers, of a model of the first column."""
    frame, schema = line

    def generate(method, config=None, model=None):
        made = method(model or First(), schema, vae=vae, config=config)
        return made.fit(frame).generate(refused)

    return generate


@pytest.mark.parametrize("method", [Revise, CCHVAE, Clue])
def test_every_row_has_a_success_on_the_manifold(method, answers):
    found = answers(method)
    after = found.counterfactuals
    assert found.actions["success"].all()
    assert (after["a"] + after["b"] - 1.0).abs().quantile(0.9) < 0.1


def test_on_a_line_the_optimum_is_known(answers):
    """`softplus(-8 (a - 0.6)) + lambda |2 (a - x)|` is minimal where its derivative is zero."""
    weight = 0.5
    best = 0.6 + math.log(8.0 / (2.0 * weight) - 1.0) / 8.0
    found = answers(Revise, LatentConfig(weight=weight)).counterfactuals
    assert found["a"].median() == pytest.approx(best, abs=0.05)


def test_of_the_first_shell_with_a_success_the_nearest_is_taken(answers, refused):
    cost = answers(CCHVAE, CCHVAEConfig(width=0.05)).actions["cost"]
    wide = answers(CCHVAE, CCHVAEConfig(width=2.0, draws=5)).actions["cost"]
    assert cost.median() < wide.median()
    assert np.allclose(cost, 2.0 * (0.6 - refused["a"]), atol=0.15)


@pytest.mark.ci
def test_a_plateau_is_left_by_restarts_nearer_to_accepted_latents(answers):
    class Step(nn.Module):
        def forward(self, x):
            return torch.relu(x[:, :1] - 0.6) * 8.0 - 0.1

    once = answers(Revise, LatentConfig(starts=1), Step())
    assert once.actions["success"].mean() < 0.5
    assert answers(Revise, model=Step()).actions["success"].all()


def test_entropy_is_that_of_the_probabilities():
    one = torch.tensor([[0.0], [3.0]])
    p = torch.sigmoid(one[:, 0])
    expected = -(p * p.log() + (1 - p) * (1 - p).log())
    assert torch.allclose(entropy(None, one), expected)
    assert torch.allclose(entropy(None, torch.cat([0.0 * one, one], 1)), expected)
    assert entropy(None, torch.zeros(1, 4)).item() == pytest.approx(math.log(4.0))


@pytest.mark.ci
def test_clue_lowers_the_entropy_of_the_model(answers):
    weak, strong = (
        answers(Clue, LatentConfig(weight=weight)).actions["score_after"].median()
        for weight in (0.02, 0.5)
    )
    assert weak > 0.9 > strong


def test_unsuitable_models_are_refused(line):
    schema = line[1]
    for method in (Revise, Clue):
        with pytest.raises(ModelError, match="needs a torch module"):
            method(lambda f: f["a"], schema)
    with pytest.raises(ModelError, match="entropy"):
        Clue(First(), schema, output="values")
