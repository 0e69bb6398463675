"""Neighbours: of wide rows all distances are computed, of others a tree finds the nearest."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.evaluation import neighbours
from dear_plugin.evaluation.neighbours import MOST_COLUMNS, Neighbours


@pytest.fixture(scope="module")
def wide():
    """Neighbours of 900 rows of a number and 200 levels, some rows equal, and their encoder."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"level": [f"l{i}" for i in rng.integers(0, 200, 900)]})
    frame["number"] = rng.integers(0, 50, 900).astype(float)
    encoder = Encoder(Schema.infer(frame))
    assert encoder.d > MOST_COLUMNS
    return Neighbours(encoder.rows(frame), encoder)


@pytest.mark.parametrize("skip", [0, 1])
def test_distances_are_those_of_a_tree(wide, skip, monkeypatch):
    found = wide.query(wide.rows[:300], 5, skip=skip)
    monkeypatch.setattr(neighbours, "MOST_COLUMNS", wide.encoder.d)
    expected = wide.query(wide.rows[:300], 5, skip=skip)[0]
    np.testing.assert_allclose(found[0], expected, atol=1e-12)
    own = wide.encoder.expand(wide.rows).double()
    exact = (own[found[1]] - own[:300, None]).square().sum(2).sqrt()
    np.testing.assert_allclose(found[0], exact, atol=1e-12)


def test_a_row_does_not_depend_on_the_others_of_its_batch(wide):
    whole = wide.distance(wide.rows[:600])
    each = torch.cat([wide.distance(row[None]) for row in wide.rows[:600:50]])
    assert torch.equal(whole[::50], each)
