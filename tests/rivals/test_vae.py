"""Vae: reconstruction, conditioning on immutable features, and sharing between methods."""

import pytest
import torch

from dear_plugin.errors import SchemaError
from dear_plugin.paper import Training
from dear_plugin.rivals import Revise, Vae, VaeDesign

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


def test_one_for_another_schema_is_refused(mixed, vae):
    free = mixed.schema.replace("gender", immutable=False)
    with pytest.raises(SchemaError, match="another schema"):
        Revise(mixed.net, free, vae=vae)
