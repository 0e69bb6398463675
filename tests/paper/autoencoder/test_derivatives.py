"""Derivatives of g along directions, once and twice."""

import torch

from dear_plugin.paper.autoencoder.derivatives import directional_derivatives, mixed_derivatives


def test_directional_derivatives():
    at = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    slopes = directional_derivatives(
        lambda x: x.square() * x.new_tensor([1.0, 10.0]),
        at,
        torch.tensor([[1.0, -1.0], [0.0, 0.5]]),
    )
    assert torch.equal(slopes[..., 0], torch.tensor([[2.0, -40.0], [6.0, -80.0]]))
    assert torch.equal(slopes[..., 1], torch.tensor([[0.0, 20.0], [0.0, 40.0]]))
    assert not slopes.requires_grad


def test_mixed_derivatives_of_a_product():
    """`d2 (v_0 x_0 + v_1 x_1^2) / dv dx` is 1 and 2 x_1, and 0 across."""
    v, x_s = torch.rand(1, 5, 2), torch.rand(1, 5, 2)
    found = mixed_derivatives(
        lambda v, x: v[..., :1] * x[..., :1] + v[..., 1:] * x[..., 1:].square(), v, x_s
    )
    assert found.shape == (2, 2, 1, 5, 1)
    assert torch.equal(found[0, 0], torch.ones(1, 5, 1))
    assert torch.allclose(found[1, 1], 2.0 * x_s[..., 1:])
    assert not found[0, 1].any()
    assert not found[1, 0].any()
