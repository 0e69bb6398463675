"""Nodes: the common grid of values a, for all sets in one batch."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders.nodes import Nodes

N = 3000
WHOLE, SPREAD, COLOUR = range(3)


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "whole": rng.integers(0, 11, N),
            "spread": rng.uniform(size=N),
            "colour": rng.choice(["blue", "green", "red"], N),
        }
    )
    encoder = Encoder(Schema.infer(frame))
    rows = encoder.rows(frame)
    nodes, bins = Nodes.of(rows, encoder, ActionSets.of(encoder.schema), torch.tensor([SPREAD]))
    return nodes, bins, rows


def locate(nodes, which, values):
    values = torch.tensor(values).view(1, -1, 1)
    left, weight = nodes.locate(values, torch.tensor([which]))
    return left[0], weight[0]


class TestTheGrid:
    def test_every_set_has_its_own_size_and_the_rest_repeats_the_last(self, case):
        nodes, _, _ = case
        assert nodes.sizes[[WHOLE, COLOUR]].tolist() == [11, 3]
        assert nodes.discrete.tolist() == [False, False, True]
        last = nodes.grid[COLOUR, 2:]
        assert (last == 2.0).all()

    def test_every_row_lies_in_a_bin_of_every_set(self, case):
        nodes, bins, rows = case
        assert bins.of_row.shape == (len(rows), 3)
        assert bins.mix.shape[:2] == nodes.grid.shape
        assert torch.equal(bins.of_row[:, COLOUR], rows[:, COLOUR].long())

    def test_weights_add_up_to_one_at_every_node(self, case):
        _, bins, _ = case
        assert torch.allclose(bins.mix.sum(2), torch.ones(bins.mix.shape[:2]))


class TestLocate:
    def test_a_node_is_found_exactly(self, case):
        nodes, _, _ = case
        for which in (WHOLE, SPREAD, COLOUR):
            grid = nodes.grid[which, : nodes.sizes[which]]
            left, weight = locate(nodes, which, grid.tolist())
            assert torch.allclose(left + weight, torch.arange(len(grid)).float())

    def test_a_value_between_two_nodes_weighs_them(self, case):
        nodes, _, _ = case
        left, weight = locate(nodes, WHOLE, [0.32])
        assert left.item() == 3
        assert weight.item() == pytest.approx(0.2, abs=1e-4)

    @pytest.mark.parametrize("which", [WHOLE, SPREAD, COLOUR])
    def test_values_beyond_the_ends_are_taken_at_the_ends(self, case, which):
        nodes, _, _ = case
        left, weight = locate(nodes, which, [-100.0, 100.0])
        assert (left + weight).tolist() == [0.0, float(nodes.sizes[which] - 1)]

    def test_all_sets_are_served_in_one_batch(self, case):
        nodes, _, _ = case
        values = torch.rand(50, 7, 1, generator=torch.Generator().manual_seed(0))
        sets = torch.arange(50) % 3
        left, weight = nodes.locate(values, sets)
        for i in range(50):
            alone = nodes.locate(values[i : i + 1], sets[i : i + 1])
            assert torch.equal(left[i], alone[0][0])
            assert torch.allclose(weight[i], alone[1][0], atol=1e-6)

    def test_rows_are_found_at_their_own_values(self, case):
        nodes, _, rows = case
        left, weight = nodes.of_rows(rows)
        for which in range(3):
            grid = nodes.grid[which]
            right = (left[:, which] + 1).clamp_max(int(nodes.sizes[which]) - 1)
            value = torch.lerp(grid[left[:, which]], grid[right], weight[:, which])
            assert torch.allclose(value, rows[:, which], atol=1e-6)
