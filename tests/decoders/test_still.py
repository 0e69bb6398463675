"""Still: no indirect changes."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders import Decoders, Sample
from dear_plugin.decoders.still import Still
from dear_plugin.evaluation.jacobians import latent_jacobians, parts

SETS = ["b", ("a", "town")]


@pytest.fixture
def case():
    """The decoders of two sets, their encoder and the rows."""
    frame = pd.DataFrame(
        {
            "a": np.arange(60.0),
            "town": np.resize(list("ABC"), 60).astype(object),
            "b": np.arange(60)[::-1],
        }
    )
    encoder = Encoder(Schema.infer(frame))
    rows, sets = encoder.rows(frame), ActionSets.of(encoder.schema, SETS)
    still = Still.with_settings(Still().settings())
    return Decoders(still, Sample(rows, encoder), sets.members), sets, rows


def test_only_features_acted_on_change(case):
    decoders, sets, rows = case
    still = decoders.of(sets.members[1])
    v = still.encode(rows)
    assert v.shape == (60, 0)
    values = torch.tensor([[[0.5, 2.0], [0.25, 0.0]]]).expand(60, -1, -1)
    reached = still.decode(rows, v, values)
    assert torch.equal(reached[..., [0, 1]], values)
    assert torch.equal(reached[..., 2], rows[:, None, 2].expand(-1, 2))


def test_at_their_own_values_rows_are_unchanged(case):
    decoders, sets, rows = case
    for members in sets.members:
        still, own = decoders.of(members), rows[:, list(members)][:, None]
        assert torch.equal(still.decode(rows, still.encode(rows), own)[:, 0], rows)


def test_its_redraws_are_all_the_same(case):
    decoders, sets, rows = case
    draws, values = torch.tensor([1, 4]), torch.full((60, 1), 0.5)
    redrawn = decoders.redraw(sets.members[0], rows, values, draws)
    expected = rows.clone()
    expected[:, 2] = 0.5
    assert torch.equal(redrawn, expected[:, None].expand(-1, 2, -1))


def test_its_derivative_is_one_along_the_set_and_zero_elsewhere(case):
    decoders, sets, rows = case
    encoder = decoders.sample.encoder
    x = encoder.expand(rows)
    for members in sets.members:
        still = decoders.of(members)
        a = torch.rand(x.shape, generator=torch.Generator().manual_seed(0)).requires_grad_(True)
        still.follow(x, still.encode(rows), a).sum().backward()
        own = torch.isin(encoder.feature_of, torch.tensor(members)).expand(x.shape)
        assert torch.equal(a.grad, own.float())


def test_its_jacobians_are_those_of_independent_changes(case):
    """The part of Proposition 1 on S is the identity; elasticity and entanglement are zero."""
    decoders, sets, rows = case
    encoder = decoders.sample.encoder
    for members, found in zip(
        sets.members, parts(decoders, encoder, sets, rows[:7], rows), strict=True
    ):
        still, q = decoders.of(members), int(found.own.sum())
        assert torch.equal(found.given[:, found.own], torch.eye(q).expand(7, -1, -1))
        assert not found.given[:, ~found.own].any()
        assert not found.entangled.any()
        assert latent_jacobians(still, rows[:7]).shape == (7, encoder.d, 0)
        assert not still.entanglement(rows).any()
