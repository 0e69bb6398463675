"""Smooth: atom-free features move by a location and keep the person's own remainder."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders import Transport
from dear_plugin.decoders.nodes import Nodes
from dear_plugin.decoders.smooth import Smooth
from dear_plugin.decoders.supports import Supports

N = 6000


def fitted(frame):
    encoder = Encoder(Schema.infer(frame))
    rows = encoder.rows(frame)
    supports = Supports.of(rows, encoder)
    smooth = supports.smooth.nonzero()[:, 0]
    nodes, _ = Nodes.of(rows, encoder, ActionSets.of(encoder.schema), smooth)
    return Smooth.of(rows, supports, nodes, 256), nodes, rows, encoder


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


def test_without_an_atom_free_feature_there_is_nothing_to_do():
    frame = pd.DataFrame({"a": np.arange(1000) % 7, "b": np.arange(1000) % 5})
    assert fitted(frame)[0] is None


@pytest.mark.parametrize(
    ("kind", "truth"),
    [("line", lambda x: 2 * x), ("bend", lambda x: np.where(x < 1, 0.0, 3 * (x - 1)))],
)
def test_the_location_is_the_conditional_mean(kind, truth):
    smooth, nodes, _, encoder = fitted(system(kind))
    x, y = encoder.schema.features
    grid = nodes.grid[0].double().numpy() * x.width + x.bounds[0]
    level = smooth.centre[0, 1].double().numpy() * y.width + y.bounds[0]
    assert np.abs(level - truth(grid)).max() < 0.2


def test_the_residuals_spread_as_they_do_at_that_value():
    smooth, nodes, _, encoder = fitted(system("spread"))
    x, y = encoder.schema.features
    grid = nodes.grid[0].double().numpy() * x.width + x.bounds[0]
    deviation = smooth.spread[0, 1].std(0).double().numpy() * y.width
    inside = (grid > 0.5) & (grid < 2.5)
    assert np.abs(deviation - (0.2 + grid))[inside].mean() < 0.25


def test_standings_are_uniform_whatever_x_is():
    smooth, nodes, rows, _ = fitted(system("line"))
    left, weight = nodes.of_rows(rows)
    v = smooth.standing(rows, nodes, left, weight)[:, 0, 1]
    for part in v[rows[:, 0].argsort()].split(1500):
        assert part.mean() == pytest.approx(0.5, abs=0.03)
        assert part.std() == pytest.approx(12**-0.5, abs=0.03)


def test_who_stands_high_stays_above_who_stands_low():
    smooth = fitted(system("line"))[0]
    assert (smooth.spread[0, 1].diff(dim=0) >= 0).all()


def test_a_category_has_its_own_location():
    rng = np.random.default_rng(0)
    colour = rng.choice(["blue", "green", "red"], N)
    shift = pd.Series(colour).map({"blue": 0.0, "green": 2.0, "red": 5.0}).to_numpy()
    frame = pd.DataFrame({"colour": colour, "y": shift + rng.normal(size=N)})
    smooth, _, _, encoder = fitted(frame)
    level = smooth.centre[0, 0, :3].double() * encoder.schema.features[1].width
    assert (level - level[0]).tolist() == pytest.approx([0.0, 2.0, 5.0], abs=0.15)


def test_a_linear_gaussian_system_is_followed_within_five_percent():
    """dx_j / dx_S is cov / var, whichever is acted on."""
    rng = np.random.default_rng(3)
    root = rng.normal(size=(5, 5))
    frame = pd.DataFrame(rng.normal(size=(20_000, 5)) @ root.T, columns=list("abcde"))
    covariance = np.cov(frame.to_numpy().T)
    slopes = covariance / np.diag(covariance)[:, None]
    encoder, decoder = Encoder(Schema.infer(frame)), Transport()
    rows, sets = encoder.rows(frame), ActionSets.of(encoder.schema)
    decoder.fit(rows, encoder, sets)
    people = rows[:400]
    v = decoder.encode(people)
    width = np.array([f.width for f in encoder.schema])
    errors = []
    for i in range(5):
        low, high = torch.quantile(rows[:, i], torch.tensor([0.05, 0.95])).tolist()
        values = torch.tensor([low, high]).view(1, 2, 1).expand(400, -1, -1)
        made = decoder.decode(people, v[:, i], values, torch.full((400,), i)).double().numpy()
        slope = (made[:, 1] - made[:, 0]) * width / ((high - low) * width[i])
        errors.append(np.delete(np.abs(slope.mean(0) - slopes[i]), i))
    off_diagonal = slopes[~np.eye(5, dtype=bool)]
    assert np.mean(errors) <= 0.05 * np.abs(off_diagonal).mean()
