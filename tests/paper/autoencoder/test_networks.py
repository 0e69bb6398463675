"""Networks: the batched e and g of all sets equal those of every set alone."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.paper import Design
from dear_plugin.paper.autoencoder.derivatives import entanglement, mixed_derivatives
from dear_plugin.paper.autoencoder.design import Tanh
from dear_plugin.paper.autoencoder.networks import Networks, StackedMLP
from dear_plugin.paper.autoencoder.scaling import ColumnScaler

# a, town, and b with a.
SETS = [(0,), (2,), (1, 0)]
A, TOWN, PAIR = range(3)
K = 3
DESIGN = Design(layers=(5, K))


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def case():
    """Networks of three sets with fitted scaling, in double precision, and 30 rows."""
    draws, n = np.random.default_rng(0), 300
    frame = pd.DataFrame(
        {
            "a": draws.normal(size=n),
            "b": draws.exponential(size=n),
            "town": draws.choice(list("ABC"), n),
        }
    )
    encoder = Encoder(Schema.infer(frame))
    x = encoder.expand(encoder.rows(frame))
    scaler = ColumnScaler(encoder.d, use_asinh=True)
    scaler.fit(x, ~encoder.blocks[encoder.feature_of])
    networks = Networks(encoder, SETS, ColumnScaler.stacked([scaler] * 3), DESIGN, rng())
    return networks.double().requires_grad_(False), x[:30].double()


def alone(networks, i):
    """The networks of one set."""
    scaler = ColumnScaler(networks.encoder.d, use_asinh=True)
    own = Networks(networks.encoder, SETS[i : i + 1], scaler, DESIGN, rng(9)).double()
    own.load_state_dict(networks.state_of(i))
    return own.requires_grad_(False)


class TestNetworks:
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
        torch.testing.assert_close(output[A, :, 1], networks.scaler.centre[1, 0, 1].expand(30))

    @pytest.mark.parametrize("which", [A, TOWN, PAIR])
    def test_the_network_of_a_set_alone_computes_as_in_the_stack(self, case, which):
        networks, x = case
        own, v = alone(networks, which), networks.latents(x)
        torch.testing.assert_close(own.latents(x)[0], v[which])
        output = own.generate(v[which : which + 1], x)[0]
        torch.testing.assert_close(output, networks.generate(v, x)[which])
        assert own.valid.all()
        assert own.columns.shape[1] == int(networks.valid[which].sum())

    def test_categorical_blocks_end_in_a_softmax(self, case):
        networks, x = case
        block = networks.generate(networks.latents(x), x.expand(3, -1, -1))[..., 2:]
        torch.testing.assert_close(block.sum(2), torch.ones(3, 30).double())
        assert (block > 0).all()


class TestDerivatives:
    @pytest.mark.parametrize("which", [A, TOWN, PAIR])
    def test_mixed_derivatives_are_those_of_finite_differences(self, case, which):
        networks, x = alone(case[0], which), case[1]
        columns, step = networks.columns[0], 1e-3
        v, x_s = networks.latents(x), x[:, columns]

        def g(v, a):
            return networks.generate(v, x.index_copy(1, columns, a))

        exact = mixed_derivatives(g, v, x_s)
        assert exact.shape == (len(columns), K, 1, 30, 5)
        for w in range(len(columns)):
            for k in range(K):
                along_x = step * torch.eye(len(columns)).double()[w]
                along_v = step * torch.eye(K).double()[k]
                corners = [
                    sign_v * sign_x * g(v + sign_v * along_v, x_s + sign_x * along_x)
                    for sign_v in (1, -1)
                    for sign_x in (1, -1)
                ]
                difference = sum(corners) / (4.0 * step**2)
                torch.testing.assert_close(exact[w, k], difference, atol=1e-4, rtol=1e-3)
        found = entanglement(networks, x)
        torch.testing.assert_close(found, exact.abs().mean((0, 1, 2, 4)))
