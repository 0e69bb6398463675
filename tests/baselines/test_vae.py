"""Vae: reconstruction, conditioning on immutable features, and sharing between methods."""

import copy
from dataclasses import replace

import pandas as pd
import pytest
import torch

from dear_plugin import Schema
from dear_plugin.baselines import CCHVAE, Clue, Revise, Vae, VaeDesign
from dear_plugin.decoders import Training
from dear_plugin.errors import NotFittedError, SchemaError

TRAINING = Training(epochs=30, batch=128, rate=2e-2)
DESIGN = VaeDesign(layers=(16, 16, 6), beta=0.1, training=TRAINING)


@pytest.fixture(scope="module")
def vae(mixed):
    return Vae.fit(mixed.frame, mixed.schema, DESIGN)


@pytest.fixture(scope="module")
def x(mixed):
    return mixed.encoder.rows(mixed.frame)


def test_most_of_the_variance_is_reconstructed(vae, x):
    encoded = vae.encoder.expand(x)
    error = (vae.decode(vae.encode(x), encoded) - encoded).square().mean(0) / encoded.var(0)
    assert error[vae.networks.numeric].mean() < 0.3


def test_it_does_not_collapse(vae, x):
    decoded = vae.encoder.collapse(vae.decode(vae.encode(x), vae.encoder.expand(x)))
    assert len(decoded.unique(dim=0)) == len(x.unique(dim=0))


def test_categories_are_probabilities_and_immutable_features_stay(vae, x):
    encoded = vae.encoder.expand(x)
    drawn = torch.randn(len(x), vae.k, generator=torch.Generator().manual_seed(0))
    decoded = vae.decode(drawn, encoded)
    blocks = vae.encoder.blocks.nonzero()[:, 0].tolist()
    for start, j in ((vae.encoder.starts[j], j) for j in blocks):
        probabilities = decoded[:, start : start + vae.encoder.schema.features[j].columns]
        assert torch.allclose(probabilities.sum(1), torch.ones(len(x)), atol=1e-5)
    gender = [f.name for f in vae.encoder.schema].index("gender")
    assert torch.equal(decoded[:, gender], encoded[:, gender])


def test_draws_depend_on_the_immutable_features(mixed):
    """Draws from the prior differ between genders as the training rows do."""
    frame = mixed.frame[["gender", "income"]].copy()
    frame["income"] += 40.0 * (frame["gender"] == "male")
    schema = Schema.infer(frame, immutable=["gender"])
    vae = Vae.fit(frame, schema, replace(DESIGN, layers=(8, 2)))
    x = vae.encoder.expand(vae.encoder.rows(frame))
    drawn = torch.randn(len(x), vae.k, generator=torch.Generator().manual_seed(0))
    decoded, male = vae.decode(drawn, x)[:, 1], x[:, 0] == 1.0
    difference = [float(y[male].mean() - y[~male].mean()) for y in (decoded, x[:, 1])]
    assert difference[0] == pytest.approx(difference[1], abs=0.1)


def test_the_same_seed_gives_the_same_vae_and_leaves_the_global_one_alone(mixed, x):
    brief = replace(DESIGN, training=Training(epochs=2))
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    one, again = (Vae.fit(mixed.frame, mixed.schema, brief).encode(x) for _ in range(2))
    assert torch.equal(torch.rand(2), expected)
    assert torch.equal(one, again)
    other = Vae.fit(mixed.frame, mixed.schema, replace(brief, seed=1))
    assert not torch.equal(other.encode(x), one)


@pytest.mark.ci
@pytest.mark.parametrize("method", [Revise, CCHVAE, Clue])
def test_a_trained_one_is_shared_and_unchanged(mixed, vae, method):
    before = copy.deepcopy(vae.networks.state_dict())
    fitted = method(mixed.net, mixed.schema, vae=vae).fit(mixed.frame)
    fitted.generate(mixed.refused(5))
    assert fitted.vae is vae
    assert all(torch.equal(before[k], v) for k, v in vae.networks.state_dict().items())


def test_one_for_another_schema_is_refused(mixed, vae):
    free = mixed.schema.replace("gender", immutable=False)
    with pytest.raises(SchemaError, match="another schema"):
        Revise(mixed.net, free, vae=vae)


def test_there_is_none_before_fit(mixed):
    with pytest.raises(NotFittedError, match="fit"):
        _ = Revise(mixed.net, mixed.schema).vae


def test_each_fit_learns_anew(mixed):
    method = CCHVAE(mixed.net, mixed.schema, vae=replace(DESIGN, training=Training(epochs=2)))
    first = method.fit(mixed.frame).vae
    assert method.fit(mixed.frame.iloc[:500]).vae is not first


def test_a_single_numeric_feature_is_enough():
    frame = pd.DataFrame({"a": [0.0, 0.5, 1.0] * 20})
    vae = Vae.fit(frame, Schema.infer(frame), replace(DESIGN, layers=(4, 1)))
    assert vae.encode(vae.encoder.rows(frame)).shape == (60, 1)
