"""Derivatives of g along directions, once and twice."""

import torch

from dear_plugin.decoders.autoencoder.derivatives import along, mixed_derivatives

VALID = torch.ones(1, 1, 2)


def test_along_a_direction():
    at = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    slope = along(lambda x: x.square() * x.new_tensor([1.0, 10.0]), at, torch.tensor([1.0, -1.0]))
    assert torch.equal(slope, torch.tensor([[2.0, -40.0], [6.0, -80.0]]))
    assert not slope.requires_grad


def test_what_does_not_depend_on_a_point_has_no_slope():
    at = torch.ones(3, 2)
    assert torch.equal(along(lambda x: 0.0 * x + 7.0, at, torch.ones(2)), torch.zeros(3, 2))
    assert torch.equal(along(lambda x: torch.ones(3, 4), at, torch.ones(2)), torch.zeros(3, 4))


def test_mixed_derivatives_of_a_product():
    """`d2 (v_0 x_0 + v_1 x_1^2) / dv dx` is 1 and 2 x_1, and 0 across."""
    v, x_s = torch.rand(1, 5, 2), torch.rand(1, 5, 2)
    found = mixed_derivatives(
        lambda v, x: v[..., :1] * x[..., :1] + v[..., 1:] * x[..., 1:].square(), v, x_s, VALID
    )
    assert found.shape == (2, 2, 1, 5, 1)
    assert torch.equal(found[0, 0], torch.ones(1, 5, 1))
    assert torch.allclose(found[1, 1], 2.0 * x_s[..., 1:])
    assert not found[0, 1].any()
    assert not found[1, 0].any()


def test_what_is_piecewise_linear_has_no_mixed_derivatives():
    v, x_s = torch.randn(1, 5, 2), torch.randn(1, 5, 2)
    for g in (lambda v, x: torch.relu(v + x), lambda v, x: x + 0.0 * v, lambda v, x: x):
        assert not mixed_derivatives(g, v, x_s, VALID).any()


def test_torchs_own_deprecations_stay_out_of_it():
    """Its forward mode compiles with `torch.jit.script`, which warns: an error here."""
    with torch.no_grad():
        found = mixed_derivatives(torch.mul, torch.rand(1, 5, 2), torch.rand(1, 5, 2), VALID)
    assert torch.equal(found[0, 0, 0], torch.tensor([1.0, 0.0]).expand(5, 2))
