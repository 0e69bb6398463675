"""Partitions: bins of rows by x_S, and a grid of nodes over them."""

import pytest
import torch

from dear_plugin.decoders.transport.bins import (
    MAX_BINS,
    MAX_NODES,
    MIN_ROWS,
    category_partition,
    cut,
    heavy_values,
    numeric_partition,
)


def uniform(n: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(n, generator=torch.Generator().manual_seed(seed))


# Half the rows are zero, the others are uniform.
SPIKE = torch.cat([torch.zeros(2000), uniform(2000)])
COLUMNS = {
    "spread": uniform(4000),
    "spike": SPIKE,
    "whole numbers": (uniform(4000) * 10).floor() / 10,
    "few rows": uniform(5),
    "constant": torch.zeros(100),
    "heavy tail": uniform(4000).pow(-2).clamp_max(1e4) / 1e4,
}


class TestHeavyValues:
    def test_a_share_of_the_rows_has_them(self):
        assert heavy_values(SPIKE).tolist() == [0.0]
        assert not len(heavy_values(uniform(4000)))

    def test_enough_rows_have_them(self):
        column = torch.tensor([0.0, 0.0, 0.0, 1.0])
        assert not len(heavy_values(column))
        assert heavy_values(column, min_rows=3).tolist() == [0.0]


class TestCut:
    @pytest.mark.parametrize("name", COLUMNS)
    def test_bins_are_in_the_order_of_their_centres(self, name):
        column = COLUMNS[name]
        bins, centres = cut(column, MAX_BINS)
        assert (centres.diff() > 0).all()
        for b in range(len(centres)):
            assert column[bins == b].mean() == pytest.approx(float(centres[b]), abs=1e-5)

    def test_a_heavy_value_is_a_bin_of_its_own(self):
        bins, _ = cut(SPIKE, MAX_BINS)
        assert (SPIKE[bins == 0] == 0.0).all()
        assert (SPIKE[bins > 0] > 0.0).all()

    @pytest.mark.parametrize("name", ["spread", "spike", "heavy tail"])
    def test_other_values_are_cut_into_bins_of_enough_rows(self, name):
        bins, centres = cut(COLUMNS[name], MAX_BINS)
        assert torch.bincount(bins).min() >= MIN_ROWS
        assert MAX_BINS - 1 <= len(centres) <= MAX_BINS + 1

    def test_outer_bins_are_halved_down_to_a_minimum_of_rows(self):
        bins, centres = cut(COLUMNS["spread"], 4, tails=True)
        sizes = torch.bincount(bins).tolist()
        assert sizes == [62, 63, 125, 250, 500, 1000, 1000, 500, 250, 125, 63, 62]
        assert (centres.diff() > 0).all()

    def test_few_rows_are_one_bin(self):
        bins, _ = cut(COLUMNS["few rows"], MAX_BINS)
        assert (bins == 0).all()


class TestNumeric:
    @pytest.mark.parametrize("name", COLUMNS)
    def test_the_weights_of_bins_at_a_node_add_up_to_one(self, name):
        part = numeric_partition(COLUMNS[name])
        assert torch.allclose(part.mix.sum(1), torch.ones(len(part.nodes)))
        assert (part.mix >= 0).all()

    @pytest.mark.parametrize("name", COLUMNS)
    def test_a_node_mixes_at_most_two_adjacent_bins(self, name):
        for weights in numeric_partition(COLUMNS[name]).mix:
            some = weights.nonzero()[:, 0]
            assert len(some) <= 2
            assert some.max() - some.min() <= 1

    @pytest.mark.parametrize("name", COLUMNS)
    def test_nodes_are_observed_values_from_the_minimum_to_the_maximum(self, name):
        column = COLUMNS[name]
        nodes = numeric_partition(column).nodes
        assert torch.isin(nodes, column).all()
        assert nodes[0] == column.min()
        assert nodes[-1] == column.max()
        assert (nodes.diff() > 0).all()
        assert len(nodes) <= MAX_NODES

    def test_of_few_values_each_is_a_node_and_a_bin(self):
        column = COLUMNS["whole numbers"]
        part = numeric_partition(column)
        assert torch.equal(part.nodes, column.unique())
        assert torch.allclose(part.mix, torch.eye(len(part.nodes)), atol=1e-3)

    def test_a_heavy_value_is_a_node_of_its_own_bin_only(self):
        part = numeric_partition(SPIKE)
        assert part.nodes[0] == 0.0
        assert part.mix[0].tolist() == [1.0] + [0.0] * (part.mix.shape[1] - 1)


class TestCategories:
    def test_each_category_is_a_bin_and_a_node(self):
        column = torch.tensor([0.0, 2.0, 2.0, 1.0])
        part = category_partition(column, 3)
        assert part.bins.tolist() == [0, 2, 2, 1]
        assert part.nodes.tolist() == [0.0, 1.0, 2.0]

    def test_each_node_has_the_weight_of_its_own_bin_only(self):
        assert torch.equal(category_partition((uniform(9000) * 3).floor(), 3).mix, torch.eye(3))
