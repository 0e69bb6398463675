"""Derivatives of g along directions, once and twice."""

import pytest
import torch

from dear_plugin.decoders.autoencoder.derivatives import directional_derivatives, mixed_derivatives


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


@pytest.mark.parametrize("constant", [lambda x: 0.0 * x + 7.0, lambda x: torch.ones(3, 4)])
def test_the_derivative_of_a_constant_is_zero(constant):
    slopes = directional_derivatives(constant, torch.ones(3, 2), torch.ones(1, 2))
    assert torch.equal(slopes[..., 0], torch.zeros_like(constant(torch.ones(3, 2))))


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


def test_piecewise_linear_functions_have_no_mixed_derivatives():
    v, x_s = torch.randn(1, 5, 2), torch.randn(1, 5, 2)
    for g in (lambda v, x: torch.relu(v + x), lambda v, x: x + 0.0 * v, lambda v, x: x):
        assert not mixed_derivatives(g, v, x_s).any()
