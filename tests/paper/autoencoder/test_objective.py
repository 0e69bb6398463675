"""Objective: penalties are zero where v and x_S are independent, and large where they are not."""

import pytest
import torch

from dear_plugin.paper.autoencoder.objective import (
    hessian_penalty,
    independence_penalty,
    probes,
    witness_penalty,
)

N, K, W, D = 4000, 3, 2, 4
BOTH = torch.ones(1, 1, W)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=rng(seed))


@pytest.fixture
def v():
    return normal(1, N, K, seed=1)


@pytest.fixture
def x_s():
    return normal(1, N, W, seed=2)


class TestHessian:
    def test_an_additive_g_has_no_penalty(self, v, x_s):
        into, across = normal(K, D), normal(W, D)
        found = hessian_penalty(
            lambda a, b: torch.tanh(a @ into) + torch.sin(b @ across), v, x_s, BOTH, rng()
        )
        assert float(found) < 1e-6

    def test_of_a_bilinear_g_it_is_the_squared_norm_per_output(self, v, x_s):
        table = normal(D, K, W)
        found = hessian_penalty(
            lambda a, b: torch.einsum("snk,snw,dkw->snd", a, b, table), v, x_s, BOTH, rng()
        )
        assert float(found) == pytest.approx(float(table.square().sum() / D), rel=0.1)

    def test_only_the_columns_of_s_count(self, v, x_s):
        """A bilinear term in a column that the set does not have."""
        first = torch.tensor([[[1.0, 0.0]]])
        found = hessian_penalty(
            lambda a, b: a[..., :1] * b[..., 1:].expand(1, -1, D), v, x_s, first, rng()
        )
        assert float(found) < 1e-9


class TestIndependence:
    @staticmethod
    def of(v, x_s):
        return float(independence_penalty(v, probes(x_s, BOTH, rng()), rng(1)))

    def test_of_independent_v_and_x_it_is_sampling_error(self, v, x_s):
        assert self.of(v, x_s) <= 2.0 / N

    @pytest.mark.parametrize(
        "leak",
        [lambda x: x, torch.square, lambda x: torch.sin(2.0 * x)],
        ids=["linear", "even", "sine"],
    )
    def test_dependence_of_any_form_is_detected(self, v, x_s, leak):
        leaked = torch.cat([v[..., :-1], leak(x_s[..., :1])], 2)
        assert self.of(leaked, x_s) >= 10.0 / N


class TestWitness:
    @staticmethod
    def of(v, x_s):
        """For the decoder `g(v, x_S) = v + x_S`."""
        difference = v.roll(1, 1) - v
        return float(witness_penalty(difference, probes(x_s, BOTH, rng())))

    def test_latents_independent_of_x_have_almost_no_penalty(self, v, x_s):
        assert self.of(v, x_s) <= 4.0 / N

    def test_latents_that_depend_on_x_have_one(self, v, x_s):
        assert self.of(v + x_s[..., :1], x_s) >= 40.0 / N


def test_probes_of_a_smaller_set_read_only_its_own_columns():
    first = torch.tensor([[[1.0, 0.0]]])
    one = normal(1, N, 1)
    moved = torch.cat([one[:, 1:], one[:, :1]], 1)
    found, other = (
        probes(torch.cat([column, torch.zeros_like(one)], 2), first, rng())
        for column in (one, moved)
    )
    torch.testing.assert_close(found[:, 1:], other[:, :-1], atol=1e-5, rtol=0.0)
