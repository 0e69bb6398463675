"""Supports: the observed values that the tables of a feature are indexed by."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.decoders.transport.supports import MAX_VALUES, Supports

N = 3000
NONE = torch.empty(0, dtype=torch.int64)
WHOLE, SPREAD, SPIKE, BINARY, COLOUR = range(5)


def read(frame, given=NONE, **options):
    encoder = Encoder(Schema.infer(frame))
    rows = encoder.rows(frame)
    return Supports.of(rows, encoder, given, **options), rows


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "whole": rng.integers(0, 11, N),
            "spread": rng.normal(size=N),
            "spike": np.where(rng.random(N) < 0.5, 0.0, rng.exponential(size=N)),
            "binary": rng.choice(["n", "y"], N),
            "colour": rng.choice(["blue", "green", "red"], N),
        }
    )


@pytest.fixture(scope="module")
def case(frame):
    return read(frame)


def test_few_values_are_all_supported(case):
    supports, rows = case
    assert torch.equal(supports.values[supports.segment(WHOLE)], rows[:, 0].unique())


def test_many_values_are_thinned_to_observed_ones(case):
    supports, rows = case
    values = supports.values[supports.segment(SPIKE)]
    assert len(values) <= MAX_VALUES
    assert torch.isin(values, rows[:, SPIKE]).all()


def test_the_number_of_values_can_be_chosen(frame):
    supports, _ = read(frame, max_values=20)
    assert supports.sizes[WHOLE] == 11
    assert supports.sizes[SPIKE] <= 20
    assert 0.0 in supports.values[supports.segment(SPIKE)]


def test_a_heavy_value_is_always_supported(case):
    supports, _ = case
    assert 0.0 in supports.values[supports.segment(SPIKE)]


def test_categories_are_their_indices(case):
    supports, _ = case
    assert supports.values[supports.segment(BINARY)].tolist() == [0.0, 1.0]
    assert supports.values[supports.segment(COLOUR)].tolist() == [0.0, 1.0, 2.0]
    assert supports.binaries == (BINARY,)
    assert supports.blocks == (COLOUR,)


def test_only_numbers_without_an_atom_are_smooth(case):
    supports, _ = case
    assert supports.smooth.tolist() == [False, True, False, False, False]


def test_smooth_features_are_not_counted_and_categories_are_not_ranked(case):
    supports, _ = case
    assert supports.sizes[SPREAD] == 0
    assert supports.counted.tolist() == [WHOLE, SPIKE, BINARY, COLOUR]
    assert supports.ranked.tolist() == [WHOLE, SPIKE, BINARY]


def test_given_features_are_neither_counted_nor_smooth(frame):
    supports, _ = read(frame, torch.tensor([SPREAD, BINARY]))
    assert supports.counted.tolist() == [WHOLE, SPIKE, COLOUR]
    assert not supports.smooth.any()
    assert supports.binaries == ()


def test_the_segments_lie_end_to_end(case):
    supports, _ = case
    ends = [supports.segment(j) for j in range(5)]
    assert [s.start for s in ends[1:]] == [s.stop for s in ends[:-1]]
    assert ends[-1].stop == len(supports.values)


def test_codes_are_the_nearest_supported_values(case):
    supports, rows = case
    near = dict(zip(supports.counted.tolist(), supports.values[supports.codes(rows)], strict=True))
    for j in (WHOLE, BINARY, COLOUR):
        assert torch.equal(near[j], rows[:, j])
    values = supports.values[supports.segment(SPIKE)]
    best = (rows[:, SPIKE, None] - values).abs().amin(1)
    assert torch.allclose((near[SPIKE] - rows[:, SPIKE]).abs(), best, atol=1e-6)


def test_values_outside_the_range_have_the_last_code(case):
    supports, rows = case
    codes = supports.codes(rows[:1] + torch.tensor([[9.0, 9.0, 9.0, 0.0, 0.0]]))
    last = (supports.starts + supports.sizes - 1)[[WHOLE, SPIKE]]
    assert torch.equal(codes[:2, 0], last.int())


def test_a_constant_feature_has_one_value_and_is_not_smooth():
    frame = pd.DataFrame({"same": [3] * 20, "other": range(20)})
    supports, _ = read(frame)
    assert supports.sizes.tolist() == [1, 0]
    assert not supports.smooth[0]
