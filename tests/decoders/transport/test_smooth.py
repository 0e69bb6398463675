"""Smooth: the conditional distributions of atom-free features."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders import Transport
from dear_plugin.decoders.transport.bins import MAX_NODES
from dear_plugin.decoders.transport.conditioning import TrainingSample
from dear_plugin.decoders.transport.nodes import Nodes
from dear_plugin.decoders.transport.relevance import linked_features
from dear_plugin.decoders.transport.smooth import Smooth
from dear_plugin.decoders.transport.supports import Supports

N = 6000


@dataclass(frozen=True)
class Fitted:
    smooth: Smooth | None
    nodes: Nodes
    sample: TrainingSample

    def grid(self, which=0):
        """The nodes of one set, in the user's units."""
        feature = self.sample.encoder.schema.features[which]
        return (
            self._own(self.nodes.grid, which).double().numpy() * feature.width + feature.bounds[0]
        )

    def centre(self, feature, which=0):
        """The location of a feature at the nodes of one set, in the user's units."""
        j = self.sample.encoder.schema.features[int(self.smooth.features[feature])]
        level = self._own(self.smooth.centre[feature], which)
        return level.double().numpy() * j.width + j.bounds[0]

    def spread(self, feature, which=0):
        """(q, g) the residual quantiles of a feature at the nodes of one set."""
        return self._own(self.smooth.spread[feature], which)

    def _own(self, table, which):
        return table.split(self.nodes.sizes.tolist(), -1)[which]


@pytest.fixture(scope="module")
def fitted(training_sample):
    def fit(frame):
        sample = training_sample(frame)
        supports = Supports.of(sample.rows, sample.encoder, torch.empty(0).long())
        nodes, parts = Nodes.of(sample, MAX_NODES)
        return Fitted(
            Smooth.of(sample, supports, parts, 256, linked_features(sample, supports)),
            nodes,
            sample,
        )

    return fit


def system(kind: str) -> pd.DataFrame:
    """y on x: a line, a bend, or spread that grows with x."""
    rng = np.random.default_rng(1)
    x, noise = rng.uniform(0, 3, N), rng.normal(size=N)
    y = {
        "line": 2 * x + noise,
        "bend": np.where(x < 1, 0.0, 3 * (x - 1)) + 0.3 * noise,
        "spread": (0.2 + x) * noise,
    }
    return pd.DataFrame({"x": x, "y": y[kind]})


def test_without_an_atom_free_feature_there_is_none(fitted):
    frame = pd.DataFrame({"a": np.arange(1000) % 7, "b": np.arange(1000) % 5})
    assert fitted(frame).smooth is None


@pytest.mark.parametrize(
    ("kind", "truth"),
    [("line", lambda x: 2 * x), ("bend", lambda x: np.where(x < 1, 0.0, 3 * (x - 1)))],
)
def test_the_location_is_the_conditional_mean(fitted, kind, truth):
    made = fitted(system(kind))
    assert np.abs(made.centre(1) - truth(made.grid())).max() < 0.2


def test_the_spread_of_residuals_follows_x(fitted):
    made = fitted(system("spread"))
    grid, width = made.grid(), made.sample.encoder.schema.features[1].width
    deviation = made.spread(1).std(0).double().numpy() * width
    inside = (grid > 0.5) & (grid < 2.5)
    assert np.abs(deviation - (0.2 + grid))[inside].mean() < 0.25


def test_ranks_are_uniform_at_every_x(fitted):
    made = fitted(system("line"))
    nodes, rows = made.nodes, made.sample.rows
    left, weight = nodes.of_rows(rows, torch.zeros(N, dtype=torch.int64))
    v = made.smooth.ranks_of(rows, made.sample.covariates, nodes, left, weight)[:, 0, 1]
    for part in v[rows[:, 0].argsort()].split(1500):
        assert part.mean() == pytest.approx(0.5, abs=0.03)
        assert part.std() == pytest.approx(12**-0.5, abs=0.03)


def test_quantiles_increase_with_the_rank(fitted):
    assert (fitted(system("line")).spread(1).diff(dim=0) >= 0).all()


def test_a_category_has_its_own_location(fitted):
    rng = np.random.default_rng(0)
    colour = rng.choice(["blue", "green", "red"], N)
    shift = pd.Series(colour).map({"blue": 0.0, "green": 2.0, "red": 5.0}).to_numpy()
    frame = pd.DataFrame({"colour": colour, "y": shift + rng.normal(size=N)})
    level = fitted(frame).centre(0)
    assert (level - level[0]).tolist() == pytest.approx([0.0, 2.0, 5.0], abs=0.15)


def test_slopes_of_a_linear_gaussian_system_are_exact_within_five_percent():
    """dx_j / dx_S is cov / var for every set."""
    rng = np.random.default_rng(3)
    root = rng.normal(size=(5, 5))
    frame = pd.DataFrame(rng.normal(size=(20_000, 5)) @ root.T, columns=list("abcde"))
    covariance = np.cov(frame.to_numpy().T)
    slopes = covariance / np.diag(covariance)[:, None]
    encoder, decoder = Encoder(Schema.infer(frame)), Transport()
    rows, sets = encoder.rows(frame), ActionSets.of(encoder.schema)
    decoder.fit(rows, encoder, sets)
    x = rows[:400]
    v = decoder.encode(x)
    width = np.array([f.width for f in encoder.schema])
    errors = []
    for i in range(5):
        low, high = torch.quantile(rows[:, i], torch.tensor([0.05, 0.95])).tolist()
        values = torch.tensor([low, high]).view(1, 2, 1).expand(400, -1, -1)
        made = decoder.decode(x, v[:, i], values, torch.full((400,), i)).double().numpy()
        slope = (made[:, 1] - made[:, 0]) * width / ((high - low) * width[i])
        errors.append(np.delete(np.abs(slope.mean(0) - slopes[i]), i))
    off_diagonal = slopes[~np.eye(5, dtype=bool)]
    assert np.mean(errors) <= 0.05 * np.abs(off_diagonal).mean()
