"""Growing spheres: near the l2-nearest success, of few changes."""

import numpy as np
import pytest
import torch

from dear_plugin.rivals import GrowingSpheres
from dear_plugin.rivals.growing_spheres import steps_between


def test_it_ends_near_the_l2_nearest_success(square, steep, schema, refused):
    method = GrowingSpheres(steep, schema).fit(square)
    result = method.generate(refused)
    reached = np.linalg.norm((result.counterfactuals - refused)[["a", "b"]], axis=1)
    nearest = (2.0 - 3 * refused["a"] - refused["b"]) / np.sqrt(10.0)
    assert result.actions["success"].all()
    assert (reached > nearest - 1e-6).all()
    assert (reached < 1.15 * nearest + 0.003).all()


def test_changes_that_are_not_needed_are_undone(square, linear, schema, refused):
    method = GrowingSpheres(linear(1.0, 0.0, 0.0, bias=-0.7), schema).fit(square)
    below = refused[refused["a"] < 0.69]
    assert (method.generate(below).counterfactuals["b"] == below["b"]).all()


def test_draws_fill_the_layer_of_the_movable_columns():
    rng = torch.Generator().manual_seed(0)
    draws = torch.randn(4000, 3, generator=rng), torch.rand(4000, generator=rng)
    movable = torch.tensor([[True, True, False]])
    steps = steps_between(torch.ones(1), torch.full((1,), 2.0), draws=draws, movable=movable)
    lengths = steps[0].norm(dim=1)
    assert (steps[..., 2] == 0.0).all()
    assert lengths.min() >= 1.0 - 1e-6 and lengths.max() <= 2.0 + 1e-6
    assert (lengths < 2.5**0.5).float().mean().item() == pytest.approx(0.5, abs=0.03)
