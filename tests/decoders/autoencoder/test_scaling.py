"""Gauge: what is scaled, what is squashed, and whose value many share."""

import pytest
import torch

from dear_plugin.decoders.autoencoder.scaling import ColumnScaler

N = 5000
PLAIN, TAIL, ATOM, BLOCK, CONSTANT = range(5)
NUMBER = torch.tensor([True, True, True, False, True])


@pytest.fixture(scope="module")
def x():
    rng = torch.Generator().manual_seed(0)
    normal, coin = torch.randn(N, 4, generator=rng), torch.rand(N, generator=rng)
    plain = 0.5 + 0.1 * normal[:, 0]
    tail = 1e-3 * torch.exp(2.0 * normal[:, 1])
    atom = torch.where(coin < 0.9, 0.0, 0.2 + 0.01 * normal[:, 2])
    block = (coin < 0.4).float()
    return torch.stack([plain, tail, atom, block, torch.full((N,), 0.3)], 1)


@pytest.fixture(scope="module")
def gauge(x):
    gauge = ColumnScaler(5, squashing=True)
    gauge.set_by(x, NUMBER)
    return gauge


class TestBeforeItIsSet:
    def test_scaling_changes_nothing(self, x):
        gauge = ColumnScaler(5, squashing=False)
        assert torch.equal(gauge.scale(x), x)
        assert torch.equal(gauge.unscale(x), x)
        assert torch.equal(gauge.asinh_scale(x), x)

    def test_nobody_is_at_an_atom(self, x):
        assert not (x == ColumnScaler(5, squashing=True).atom).any()


class TestScaling:
    def test_numbers_get_mean_0_and_variance_1(self, gauge, x):
        z = gauge.scale(x)[:, :BLOCK]
        torch.testing.assert_close(z.mean(0), torch.zeros(3), atol=1e-3, rtol=0.0)
        torch.testing.assert_close(z.std(0), torch.ones(3), atol=1e-3, rtol=0.0)

    def test_what_is_no_number_is_left_alone(self, gauge, x):
        assert torch.equal(gauge.scale(x)[:, BLOCK], x[:, BLOCK])

    def test_a_constant_column_stays_finite(self, gauge, x):
        assert gauge.asinh_scale(gauge.scale(x)).isfinite().all()

    def test_back_again(self, gauge, x):
        torch.testing.assert_close(gauge.unscale(gauge.scale(x)), x)


class TestSquashing:
    def test_the_bulk_of_a_heavy_tail_is_spread_out(self, gauge, x):
        """Half of the rows lie in a hundredth of the range, and in a good part of it squashed."""

        def bulk(column):
            low, high = column.quantile(torch.tensor([0.25, 0.75]))
            return float((high - low) / (column.max() - column.min()))

        z = gauge.scale(x)
        assert bulk(z[:, TAIL]) < 0.01
        assert bulk(gauge.asinh_scale(z)[:, TAIL]) > 0.1

    def test_order_is_kept_and_the_middle_is_0(self, gauge, x):
        z = gauge.scale(x)
        squashed = gauge.asinh_scale(z)
        for j in (PLAIN, TAIL):
            order = z[:, j].argsort()
            assert (squashed[order, j].diff() >= 0).all()
            assert float(squashed[:, j].median()) == pytest.approx(0.0, abs=1e-6)

    def test_some_columns_are_squashed_as_they_are_among_all(self, gauge, x):
        columns = torch.tensor([[TAIL, PLAIN], [ATOM, TAIL]])
        z = gauge.scale(x)
        some = gauge.asinh_scale(torch.stack([z[:, c] for c in columns]), columns)
        every = gauge.asinh_scale(z)
        assert torch.equal(some, torch.stack([every[:, c] for c in columns]))


class TestAtoms:
    def test_the_value_of_many_and_how_far_the_others_are(self, gauge):
        assert float(gauge.atom[ATOM]) == 0.0
        assert float(gauge.leap[ATOM]) == pytest.approx(0.2, abs=0.01)

    def test_no_atom_where_few_share_a_value_or_all_do_or_it_is_no_number(self, gauge):
        others = [PLAIN, TAIL, BLOCK, CONSTANT]
        assert gauge.atom[others].isinf().all()
        assert (gauge.leap[others] == 1.0).all()

    def test_what_was_measured_is_saved_without_nan(self, gauge):
        other = ColumnScaler(5, squashing=True)
        other.load_state_dict(gauge.state_dict())
        for name, value in gauge.state_dict().items():
            assert torch.equal(value, other.state_dict()[name])
