"""Metrics: yNN on rows with a known result."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Schema
from dear_plugin.models.classifier import Classifier
from dear_plugin.rivals.metrics import neighbours


@pytest.fixture(scope="module")
def frame():
    """a, b independent and uniform on 0 ... 100; a town of three."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": rng.integers(0, 101, 2000).astype(float),
            "b": rng.integers(0, 101, 2000).astype(float),
            "town": rng.choice(["x", "y", "z"], 2000),
        }
    )


@pytest.fixture(scope="module")
def schema(frame):
    return Schema.infer(frame)


def above(threshold):
    """A black box that accepts rows with a >= threshold."""
    return lambda f: (f["a"] >= threshold).to_numpy(dtype=float)


@pytest.fixture(scope="module")
def solved(frame, schema):
    factuals = frame[frame["a"] < 40].iloc[:30]
    return DEAR(above(60), schema).fit(frame).generate(factuals)


class TestNeighbours:
    def test_it_is_the_share_of_the_nearest_with_the_same_label(self, solved, frame):
        encoder = solved.encoder
        rows, classifier = encoder.rows(frame), Classifier(above(60), encoder)
        x, data = encoder.expand(solved.proposal.rows), encoder.expand(rows)
        distances = torch.cdist(x.double(), data.double())
        distances[distances == 0.0] = torch.inf
        nearest = distances.topk(5, largest=False).indices
        accepted = torch.tensor((frame["a"] >= 60).to_numpy())
        by_hand = accepted[nearest].double().mean(1).numpy()
        shares = neighbours(solved, rows, classifier)
        # Ties may be ordered differently.
        assert np.abs(shares - by_hand).mean() < 0.05
