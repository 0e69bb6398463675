"""Encoder: conversion between frames, rows and encoded columns."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Feature, Kind, Schema
from dear_plugin.errors import SchemaError


@pytest.fixture
def encoder(mixed) -> Encoder:
    return mixed.encoder


def where(encoder: Encoder, name: str) -> int:
    return encoder.schema.index([name])[0]


class TestEncode:
    def test_a_number_or_binary_takes_one_column_and_categories_one_each(self, mixed, encoder):
        assert encoder.p == 8
        assert encoder.d == 6 + 4 + 6
        assert encoder.encode(mixed.frame).shape == (len(mixed.frame), encoder.d)
        assert encoder.encode(mixed.frame).dtype == torch.float32

    def test_numbers_are_scaled_to_the_observed_bounds(self, mixed, encoder):
        column = encoder.encode(mixed.frame)[:, 0]
        age = mixed.frame["age"]
        expected = (age - age.min()) / (age.max() - age.min())
        assert np.allclose(column, expected, atol=1e-6)

    def test_a_binary_is_zero_for_its_first_value(self, mixed, encoder):
        column = encoder.rows(mixed.frame)[:, where(encoder, "gender")]
        assert (column.numpy() == (mixed.frame["gender"] == "male")).all()

    def test_a_category_is_one_hot(self, mixed, encoder):
        start = encoder.starts[where(encoder, "job")]
        block = encoder.encode(mixed.frame)[:, start : start + 4]
        assert (block.sum(1) == 1).all()
        jobs = ["porter", "cook", "nurse", "judge"]
        assert [jobs[i] for i in block.argmax(1)] == mixed.frame["job"].tolist()


class TestRowsAndColumns:
    def test_collapse_undoes_expand(self, mixed, encoder):
        rows = encoder.rows(mixed.frame)
        back = encoder.collapse(encoder.expand(rows), torch.zeros_like(rows))
        assert torch.allclose(encoder.scaled(back), encoder.scaled(rows), atol=1e-6)
        assert torch.equal(encoder.rounded(back)[:, :2], rows[:, :2])

    def test_they_take_any_leading_shape(self, mixed, encoder):
        rows = encoder.rows(mixed.frame)[:12].view(3, 4, encoder.p)
        wide = encoder.expand(rows)
        assert wide.shape == (3, 4, encoder.d)
        assert torch.equal(encoder.collapse(wide, rows), rows)

    def test_collapse_takes_the_argmax_category(self, encoder):
        x = torch.zeros(1, encoder.d)
        start = encoder.starts[where(encoder, "job")]
        x[0, start : start + 4] = torch.tensor([0.1, 0.2, 0.4, 0.3])
        like = torch.zeros(1, encoder.p).double()
        assert encoder.collapse(x, like)[0, where(encoder, "job")] == 2


class TestDistance:
    def test_a_changed_category_counts_one(self, encoder):
        a, b = torch.zeros(2, encoder.p).double()
        for name, level in (("job", 3), ("town", 5), ("owner", 1)):
            b[where(encoder, name)] = level
        assert encoder.distance(a, b).tolist() == [0, 0, 0, 0, 1, 0, 1, 1]

    def test_it_is_the_weighted_l1_of_the_encoding(self, mixed, encoder):
        rows = encoder.rows(mixed.frame)
        a, b = rows[:50], rows[50:100]
        wide = (encoder.expand(a) - encoder.expand(b)).abs() * encoder.weights
        assert torch.allclose(encoder.distance(a, b).sum(1), wide.sum(1).double(), atol=1e-6)


class TestScaled:
    def test_numbers_are_shares_of_their_range_and_categories_stay(self, mixed, encoder):
        rows = encoder.rows(mixed.frame)
        scaled = encoder.scaled(rows)
        number = encoder.amounts(rows).any(0)
        assert scaled[:, number].min() == 0.0 and scaled[:, number].max() == 1.0
        assert torch.equal(scaled[:, ~number], rows[:, ~number])

    def test_some_features_are_scaled_as_all_of_them_are(self, mixed, encoder):
        rows, some = encoder.rows(mixed.frame), torch.tensor([1, 4])
        assert torch.equal(encoder.scaled(rows[:, some], some), encoder.scaled(rows)[:, some])


class TestLevels:
    """Models that use codes or an order get the dtype that they were trained on."""

    frame = pd.DataFrame(
        {
            "job": pd.Categorical(["a", "b", "c"] * 300, categories=["z", "a", "b", "c"]),
            "size": pd.Categorical(["S", "M", "L"] * 300, ["S", "M", "L", "XL"], ordered=True),
            "x": np.arange(900),
        }
    )

    def test_unobserved_levels_and_the_order_are_kept(self):
        encoder = Encoder(Schema.infer(self.frame))
        written = encoder.frame(encoder.rows(self.frame))
        pd.testing.assert_frame_equal(written, self.frame)
        assert Schema.from_dict(encoder.schema.to_dict()) == encoder.schema

    def test_categories_must_be_among_the_levels(self):
        with pytest.raises(SchemaError, match="'job': its categories must be among its levels"):
            Schema.infer(self.frame).replace("job", levels=("a", "b"))


def test_a_category_column_without_levels_has_all_of_its_categories():
    feature = Feature("a", Kind.CATEGORICAL, categories=("z", "y", "x"), dtype="category")
    frame = Encoder(Schema((feature,))).frame(torch.tensor([[1.0], [0.0]]))
    assert frame["a"].cat.categories.tolist() == ["z", "y", "x"]
