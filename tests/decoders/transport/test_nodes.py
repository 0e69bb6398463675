"""Nodes: the grids of values a, end to end, for all sets in one batch."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin.decoders.transport.bins import MAX_NODES
from dear_plugin.decoders.transport.nodes import Nodes, nearest

N = 3000
WHOLE, SPREAD, COLOUR = range(3)


@pytest.fixture(scope="module")
def case(training_sample):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "whole": rng.integers(0, 11, N),
            "spread": rng.uniform(size=N),
            "colour": rng.choice(["blue", "green", "red"], N),
        }
    )
    sample = training_sample(frame)
    nodes, parts = Nodes.of(sample, MAX_NODES)
    return nodes, parts, sample.rows


def begin(nodes, which):
    return int(nodes.sizes[:which].sum())


def grid_of(nodes, which):
    return nodes.grid.split(nodes.sizes.tolist())[which]


def locate(nodes, which, values):
    """The node left of each value, relative to its grid, and the weight of the next one."""
    values = torch.tensor(values).view(1, -1, 1)
    left, weight = nodes.locate(values, torch.tensor([which]))
    return left[0] - begin(nodes, which), weight[0]


def no_cells(rows):
    return torch.zeros(len(rows), dtype=torch.int64)


class TestTheGrid:
    def test_every_set_has_its_own_size(self, case):
        nodes, parts, _ = case
        assert nodes.sizes.tolist() == [11, len(parts[SPREAD].nodes), 3]
        assert 2 < len(parts[SPREAD].nodes) <= MAX_NODES
        assert grid_of(nodes, COLOUR).tolist() == [0.0, 1.0, 2.0]

    def test_every_row_lies_in_a_bin_of_every_set(self, case):
        nodes, parts, rows = case
        for which, part in enumerate(parts):
            assert part.bins.shape == (len(rows),)
            assert torch.equal(part.nodes, grid_of(nodes, which))
        assert torch.equal(parts[COLOUR].bins, rows[:, COLOUR].long())

    def test_weights_add_up_to_one_at_every_node(self, case):
        _, parts, _ = case
        for part in parts:
            assert torch.allclose(part.mix.sum(1), torch.ones(len(part.nodes)))

    def test_wide_data_get_fewer_nodes(self, training_sample):
        frame = pd.DataFrame({"a": np.arange(500) / 7.0, "b": np.arange(500) % 9})
        most, few = Nodes.of(training_sample(frame), 20)[0].sizes.tolist()
        assert 9 < most <= 20
        assert few == 9


class TestLocate:
    def test_a_node_is_found_exactly(self, case):
        nodes, _, _ = case
        for which in (WHOLE, SPREAD, COLOUR):
            grid = grid_of(nodes, which)
            left, weight = locate(nodes, which, grid.tolist())
            assert torch.allclose(left + weight, torch.arange(len(grid)).float())

    def test_a_value_between_two_nodes_is_interpolated(self, case):
        nodes, _, _ = case
        left, weight = locate(nodes, WHOLE, [0.32])
        assert left.item() == 3
        assert weight.item() == pytest.approx(0.2, abs=1e-4)

    @pytest.mark.parametrize("which", [WHOLE, SPREAD, COLOUR])
    def test_values_outside_the_range_are_clamped(self, case, which):
        nodes, _, _ = case
        left, weight = locate(nodes, which, [-100.0, 100.0])
        assert (left + weight).tolist() == [0.0, float(nodes.sizes[which] - 1)]

    def test_a_batch_may_mix_sets(self, case):
        nodes, _, _ = case
        values = torch.rand(50, 7, 1, generator=torch.Generator().manual_seed(0))
        sets = torch.arange(50) % 3
        left, weight = nodes.locate(values, sets)
        for i in range(50):
            alone = nodes.locate(values[i : i + 1], sets[i : i + 1])
            assert torch.equal(left[i], alone[0][0])
            assert torch.allclose(weight[i], alone[1][0], atol=1e-6)

    def test_rows_are_located_at_their_own_values(self, case):
        nodes, _, rows = case
        left, weight = nodes.of_rows(rows, no_cells(rows))
        for which in range(3):
            grid, own = grid_of(nodes, which), left[:, which].long() - begin(nodes, which)
            right = (own + 1).clamp_max(len(grid) - 1)
            value = torch.lerp(grid[own], grid[right], weight[:, which])
            assert torch.allclose(value, rows[:, which], atol=1e-6)

    def test_the_nearest_node_is_the_nearer_of_two(self):
        assert nearest(torch.tensor([3, 3, 3]), torch.tensor([0.2, 0.5, 0.7])).tolist() == [
            3,
            3,
            4,
        ]


class TestCells:
    """Each cell has a copy of the grids of cell 0, which has all rows."""

    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, training_sample):
        frame = pd.DataFrame({"low": np.arange(2000) % 7, "half": np.arange(2000) // 1000})
        frame.loc[1000:, "low"] += 10
        sample = training_sample(frame, ["low"], ["half"])
        return Nodes.of(sample, MAX_NODES)[0], sample

    def test_every_cell_has_the_grid_of_all_values(self, case):
        assert case[0].sizes.tolist() == [14, 14, 14]

    def test_rows_are_located_on_the_grid_of_their_cell(self, case):
        nodes, sample = case
        cells = torch.arange(2000) // 1000 + 1
        node = nearest(*nodes.of_rows(sample.rows, cells))[:, 0].long()
        assert torch.equal(nodes.grid[node], sample.rows[:, 0])
        assert torch.equal(node // 14, cells)
