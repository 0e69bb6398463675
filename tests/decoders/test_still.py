"""Still: no indirect changes."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders.still import Still


@pytest.fixture
def case():
    frame = pd.DataFrame(
        {
            "a": np.arange(60.0),
            "town": np.resize(list("ABC"), 60).astype(object),
            "b": np.arange(60)[::-1],
        }
    )
    schema = Schema.infer(frame)
    encoder, sets = Encoder(schema), ActionSets.of(schema, ["b", ("a", "town")])
    still = Still.with_settings(Still().settings())
    rows = encoder.rows(frame)
    still.fit(rows, encoder, sets)
    return still, encoder, sets, rows


def test_only_features_acted_on_change(case):
    still, _, _, rows = case
    v = still.encode(rows)
    assert v.shape == (60, 2, 0)
    values = torch.tensor([[[0.5, 2.0], [0.25, 0.0]]]).expand(60, -1, -1)
    reached = still.decode(rows, v[:, 1], values, torch.ones(60, dtype=torch.int64))
    assert torch.equal(reached[..., [0, 1]], values)
    assert torch.equal(reached[..., 2], rows[:, None, 2].expand(-1, 2))


def test_at_their_own_values_rows_are_unchanged(case):
    still, _, sets, rows = case
    for which in (0, 1):
        own = rows[:, sets.positions[which]][:, None]
        at = torch.full((60,), which)
        assert torch.equal(still.decode(rows, still.encode(rows)[:, which], own, at)[:, 0], rows)


def test_its_derivative_is_one_along_the_set_and_zero_elsewhere(case):
    still, encoder, sets, rows = case
    x = encoder.expand(rows).expand(2, -1, -1)
    a = torch.rand(x.shape, generator=torch.Generator().manual_seed(0)).requires_grad_(True)
    still.follow(x, still.encode(rows).transpose(0, 1), a).sum().backward()
    own = sets.masks[:, encoder.feature_of][:, None].expand(x.shape)
    assert torch.equal(a.grad, own.float())
