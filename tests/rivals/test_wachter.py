"""Wachter: on a linear model the cheapest change has a closed form."""

import numpy as np
import pytest
import torch
from torch import nn

from dear_plugin import Schema, Target
from dear_plugin.rivals import Wachter, WachterConfig
from dear_plugin.rivals.weights import Weights


def test_only_the_steepest_feature_moves_and_to_the_boundary(square, steep, schema, refused):
    method = Wachter(steep, schema).fit(square)
    actions = method.generate(refused).actions
    distance = 2.0 - (3 * refused["a"] + refused["b"])
    assert (actions["acted_on"] == "a").all()
    assert np.allclose(actions["cost"], distance / 3.0, atol=2e-3)
    assert (actions["indirect_cost"] == 0.0).all()


def test_the_next_steepest_feature_moves_when_the_first_reaches_its_end(square, linear, schema):
    method = Wachter(linear(3.0, 1.0, 0.0, bias=-3.5), schema).fit(square)
    result = method.generate(square.iloc[[0]])
    assert result.counterfactuals.iloc[0].tolist() == pytest.approx([1.0, 0.5, 0.0], abs=5e-3)


def test_a_binary_feature_flips_where_that_is_cheapest(square, linear):
    schema = Schema.infer(square)
    method = Wachter(linear(1.0, 1.0, 9.0, bias=-5.0), schema).fit(square)
    rows = square[square["group"] == 0].iloc[:20]
    assert (method.generate(rows).actions["acted_on"] == "group").all()


def test_the_best_category_is_taken(mixed):
    town = [f.name for f in mixed.schema].index("town")
    start, width = mixed.encoder.starts[town], mixed.schema.features[town].columns
    model = nn.Linear(mixed.encoder.d, 1)
    with torch.no_grad():
        model.weight.zero_(), model.bias.fill_(-1.0)
        model.weight[0, start : start + width] = torch.arange(width).float()
    rows = mixed.frame[mixed.frame["town"] == "A"].iloc[:10]
    result = Wachter(model, mixed.schema).fit(mixed.frame).generate(rows)
    assert result.actions["success"].all()
    assert (result.actions["cost"] == 1.0).all()


@pytest.mark.ci
def test_a_plateau_is_left_by_restarts(square, schema):
    class Plateau(nn.Module):
        """Flat below a + b = 0.8, where the gradient is exactly zero."""

        def forward(self, x):
            return torch.relu(x[:, :1] + x[:, 1:2] - 0.8) - 0.3

    rows = square[square["a"] + square["b"] < 0.7].iloc[:20]
    once = Wachter(Plateau(), schema, config=WachterConfig(starts=1)).fit(square)
    assert not once.generate(rows).actions["success"].any()
    again = Wachter(Plateau(), schema).fit(square)
    assert again.generate(rows).actions["success"].mean() > 0.8


def test_a_range_of_values_is_reached(square, linear, schema, refused):
    method = Wachter(linear(300.0, 100.0, 0.0), schema, output="values").fit(square)
    result = method.generate(refused, Target.of_range(200.0, 210.0))
    assert result.actions["success"].all()


def test_the_weight_is_bisected_to_the_largest_that_succeeds():
    weights = Weights.starting(1.0, 2)
    for _ in range(25):
        weights = weights.after(weights.now <= torch.tensor([0.3, 40.0]))
    assert torch.allclose(weights.succeeded, torch.tensor([0.3, 40.0]), rtol=1e-3)
