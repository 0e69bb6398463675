"""Supports: the observed values that a feature may take in a table."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.decoders.supports import MAX_VALUES, Supports

N = 3000


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "whole": rng.integers(0, 11, N),
            "spread": rng.normal(size=N),
            "spike": np.where(rng.random(N) < 0.5, 0.0, rng.exponential(size=N)),
            "binary": rng.choice(["n", "y"], N),
            "colour": rng.choice(["blue", "green", "red"], N),
        }
    )
    encoder = Encoder(Schema.infer(frame))
    rows = encoder.rows(frame)
    return Supports.of(rows, encoder), rows


def test_few_values_are_all_kept(case):
    supports, rows = case
    assert torch.equal(supports.values[supports.segment(0)], rows[:, 0].unique())


@pytest.mark.parametrize("feature", [1, 2])
def test_many_are_thinned_to_observed_ones(case, feature):
    supports, rows = case
    values = supports.values[supports.segment(feature)]
    assert len(values) <= MAX_VALUES
    assert torch.isin(values, rows[:, feature]).all()


def test_a_heavy_value_is_never_lost(case):
    supports, _ = case
    assert 0.0 in supports.values[supports.segment(2)]


def test_categories_are_their_indices(case):
    supports, _ = case
    assert supports.values[supports.segment(3)].tolist() == [0.0, 1.0]
    assert supports.values[supports.segment(4)].tolist() == [0.0, 1.0, 2.0]
    assert supports.binaries == (3,)
    assert supports.blocks == (4,)


def test_only_numbers_without_an_atom_are_smooth(case):
    supports, _ = case
    assert supports.smooth.tolist() == [False, True, False, False, False]


def test_the_segments_lie_end_to_end(case):
    supports, _ = case
    ends = [supports.segment(j) for j in range(5)]
    assert [s.start for s in ends[1:]] == [s.stop for s in ends[:-1]]
    assert ends[-1].stop == len(supports.values)


def test_codes_name_the_nearest_supported_value(case):
    supports, rows = case
    codes = supports.codes(rows)
    near = supports.values[codes]
    assert torch.equal(near[:, [0, 3, 4]], rows[:, [0, 3, 4]])
    for j in (1, 2):
        values = supports.values[supports.segment(j)]
        best = (rows[:, j, None] - values).abs().amin(1)
        assert torch.allclose((near[:, j] - rows[:, j]).abs(), best, atol=1e-6)


def test_values_beyond_the_ends_take_the_last(case):
    supports, rows = case
    codes = supports.codes(rows[:1] + torch.tensor([[9.0, 9.0, 9.0, 0.0, 0.0]]))
    assert (codes[0, :3] == supports.starts[:3] + supports.sizes[:3] - 1).all()


def test_a_constant_feature_has_one_value_and_is_not_smooth():
    frame = pd.DataFrame({"same": [3] * 20, "other": range(20)})
    encoder = Encoder(Schema.infer(frame))
    supports = Supports.of(encoder.rows(frame), encoder)
    assert supports.sizes.tolist() == [1, 20]
    assert not supports.smooth[0]
