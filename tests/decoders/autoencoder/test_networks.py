"""Networks: the batched e and g of all sets equal those of every set alone."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders.autoencoder.derivatives import (
    column_tangents,
    directional_derivative,
    mixed_derivatives,
)
from dear_plugin.decoders.autoencoder.networks import Networks
from dear_plugin.decoders.autoencoder.stack import StackedMLP, Tanh, by_set

SETS = ["a", "town", ("b", "a")]
A, TOWN, PAIR = range(3)
K = 3


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


class TestStack:
    def test_every_network_of_a_stack_computes_as_if_alone(self):
        stack = StackedMLP(3, (4, 5, 2), Tanh, rng())
        x = torch.randn(3, 7, 4, generator=rng(1))
        first, _, second = stack
        for i in range(3):
            hidden = torch.tanh(x[i] @ first.weight[i] + first.bias[i])
            alone = hidden @ second.weight[i] + second.bias[i]
            torch.testing.assert_close(stack(x)[i], alone)

    def test_weights_are_drawn_from_the_generator(self):
        one, same, other = (StackedMLP(2, (3, 4), Tanh, rng(s)) for s in (0, 0, 1))
        assert torch.equal(one[0].weight, same[0].weight)
        assert not torch.equal(one[0].weight, other[0].weight)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_tanh_is_the_hyperbolic_tangent(self, dtype):
        x = torch.linspace(-30.0, 30.0, 601, dtype=dtype)
        torch.testing.assert_close(Tanh()(x), torch.tanh(x), atol=2e-7, rtol=0.0)

    def test_rows_go_through_the_network_of_their_own_set(self):
        def g(v, x_s):
            return (torch.arange(4.0)[:, None, None] + 1.0) * (x_s + v.sum(2, keepdim=True))

        v = torch.randn(9, 2, generator=rng())
        x_s = torch.randn(9, 3, 5, generator=rng(1))
        sets = torch.tensor([2, 0, 2, 3, 0, 0, 2, 2, 3])
        expected = (sets[:, None, None] + 1.0) * (x_s + v.sum(1)[:, None, None])
        torch.testing.assert_close(by_set(g, v, x_s, sets, 4), expected)


@pytest.fixture(scope="module")
def case():
    """Networks with fitted scaling, in double precision, and 30 rows."""
    draws, n = np.random.default_rng(0), 300
    frame = pd.DataFrame(
        {
            "a": draws.normal(size=n),
            "b": draws.exponential(size=n),
            "town": draws.choice(list("ABC"), n),
        }
    )
    encoder = Encoder(Schema.infer(frame))
    networks = Networks(
        encoder,
        ActionSets.of(encoder.schema, SETS),
        layers=(5, K),
        activation=Tanh,
        use_asinh=True,
        generator=rng(),
    )
    x = encoder.expand(encoder.rows(frame))
    networks.gauge.fit(x, ~encoder.blocks[encoder.feature_of])
    return networks.double().requires_grad_(False), x[:30].double()


class TestNetworks:
    def test_rows_given_once_or_per_set_have_the_same_latents(self, case):
        networks, x = case
        assert networks.latents(x).shape == (3, 30, K)
        assert torch.equal(networks.latents(x), networks.latents(x.expand(3, -1, -1)))

    def test_g_reads_only_the_columns_of_s(self, case):
        networks, x = case
        v, wide = networks.latents(x), x.expand(3, -1, -1)
        other = torch.where(networks.mask.bool(), wide, wide.flip(1))
        assert torch.equal(networks.generate(v, wide), networks.generate(v, other))

    def test_the_residual_connection_adds_x_s_to_its_own_output(self, case):
        """With a g that is zero, S is returned unchanged and the rest at its mean."""
        networks, x = case
        zero = StackedMLP(3, (K + 3, 5), Tanh, rng()).double().requires_grad_(False)
        for weight in zero.parameters():
            weight.zero_()
        trained, networks.g = networks.g, zero
        output = networks.generate(networks.latents(x), x.expand(3, -1, -1))
        networks.g = trained
        torch.testing.assert_close(output[A, :, 0], x[:, 0])
        torch.testing.assert_close(output[PAIR, :, :2], x[:, :2])
        torch.testing.assert_close(output[A, :, 1], networks.gauge.centre[1].expand(30))

    def test_categorical_blocks_end_in_a_softmax(self, case):
        networks, x = case
        block = networks.generate(networks.latents(x), x.expand(3, -1, -1))[..., 2:]
        torch.testing.assert_close(block.sum(2), torch.ones(3, 30).double())
        assert (block > 0).all()

    def test_smaller_sets_are_padded_with_zeros(self, case):
        networks, x = case
        assert networks.valid[:, 0].tolist() == [[1, 0, 0], [1, 1, 1], [1, 1, 0]]
        gathered = networks.gather(x.expand(3, -1, -1))
        assert not gathered[A, :, 1:].any()
        assert torch.equal(gathered[TOWN], x[:, 2:])


class TestDerivatives:
    def test_mixed_derivatives_are_those_of_finite_differences(self, case):
        networks, x = case
        wide, step = x.expand(3, -1, -1), 1e-3
        v = networks.latents(x)

        def g(v, a):
            return networks.generate(v, wide.scatter(2, networks._index(wide), a))

        gathered = networks.gather(wide)
        exact = mixed_derivatives(g, v, gathered, networks.valid)
        assert exact.shape == (3, K, 3, 30, 5)
        for w in range(3):
            for k in range(K):
                along_x = step * torch.eye(3).double()[w] * networks.valid
                along_v = step * torch.eye(K).double()[k]
                corners = [
                    sign_v * sign_x * g(v + sign_v * along_v, gathered + sign_x * along_x)
                    for sign_v in (1, -1)
                    for sign_x in (1, -1)
                ]
                difference = sum(corners) / (4.0 * step**2)
                torch.testing.assert_close(exact[w, k], difference, atol=1e-4, rtol=1e-3)

    def test_entanglement_is_the_mean_mixed_derivative_over_own_columns(self, case):
        networks, x = case
        wide = x.expand(3, -1, -1)

        def g(v, a):
            return networks.generate(v, wide.scatter(2, networks._index(wide), a))

        mixed = mixed_derivatives(g, networks.latents(x), networks.gather(wide), networks.valid)
        expected = [mixed[:w, :, i].abs().mean((0, 1, 3)) for i, w in enumerate((1, 3, 2))]
        torch.testing.assert_close(networks.entanglement(wide), torch.stack(expected))

    def test_directional_derivative(self):
        at = torch.tensor([1.0, 2.0])
        slope = directional_derivative(lambda x: x**2, at, torch.tensor([1.0, 0.5]))
        assert slope.tolist() == [2.0, 2.0]

    def test_tangents_are_the_columns_of_every_set_in_turn(self):
        mask = torch.tensor([[[0.0, 1.0, 0.0]], [[1.0, 0.0, 1.0]]])
        found = column_tangents(mask)[:, :, 0]
        assert found.tolist() == [
            [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
            [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]],
        ]
