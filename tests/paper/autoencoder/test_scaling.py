"""Scaling: standardised columns, asinh, and atoms."""

import pytest
import torch

from dear_plugin.paper.autoencoder.scaling import ColumnScaler

N = 5000
PLAIN, TAIL, ATOM, BLOCK, CONSTANT = range(5)
NUMERIC = torch.tensor([True, True, True, False, True])


@pytest.fixture(scope="module")
def x():
    rng = torch.Generator().manual_seed(0)
    normal, uniform = torch.randn(N, 4, generator=rng), torch.rand(N, generator=rng)
    plain = 0.5 + 0.1 * normal[:, 0]
    tail = 1e-3 * torch.exp(2.0 * normal[:, 1])
    atom = torch.where(uniform < 0.9, 0.0, 0.2 + 0.01 * normal[:, 2])
    block = (uniform < 0.4).float()
    return torch.stack([plain, tail, atom, block, torch.full((N,), 0.3)], 1)


@pytest.fixture(scope="module")
def scaler(x):
    scaler = ColumnScaler(5, use_asinh=True)
    scaler.fit(x, NUMERIC)
    return scaler


class TestScaling:
    def test_numbers_get_mean_0_and_variance_1(self, scaler, x):
        z = scaler.scale(x)[0, :, :BLOCK]
        torch.testing.assert_close(z.mean(0), torch.zeros(3), atol=1e-3, rtol=0.0)
        torch.testing.assert_close(z.std(0), torch.ones(3), atol=1e-3, rtol=0.0)

    def test_unscale_is_the_inverse_of_scale(self, scaler, x):
        torch.testing.assert_close(scaler.unscale(scaler.scale(x)), x[None])


class TestAsinh:
    def test_the_bulk_of_a_heavy_tail_is_spread_out(self, scaler, x):
        """Half of the rows lie in a hundredth of the range before, in over a tenth of it after."""

        def bulk(column):
            low, high = column.quantile(torch.tensor([0.25, 0.75]))
            return float((high - low) / (column.max() - column.min()))

        z, read = scaler.read(x)[0].chunk(2, 1)
        assert bulk(z[:, TAIL]) < 0.01
        assert bulk(read[:, TAIL]) > 0.1


class TestAtoms:
    def test_an_atom_and_its_mean_jump(self, scaler):
        assert float(scaler.atom[0, 0, ATOM]) == 0.0
        assert float(scaler.jump[0, 0, ATOM]) == pytest.approx(0.2, abs=0.01)

    def test_no_atom_in_smooth_constant_or_categorical_columns(self, scaler):
        others = [PLAIN, TAIL, BLOCK, CONSTANT]
        assert scaler.atom[..., others].isinf().all()
        assert (scaler.jump[..., others] == 1.0).all()
