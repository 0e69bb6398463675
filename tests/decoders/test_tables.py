"""Tables: the conditional distributions at every node, and their inverses."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders.nodes import Nodes
from dear_plugin.decoders.supports import Supports
from dear_plugin.decoders.tables import count

N = 4000
GROUP, SCORE = range(2)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Four groups; the score's distribution shifts from group to group."""
    rng = np.random.default_rng(0)
    group = np.arange(N) % 4
    return pd.DataFrame({"group": group, "score": rng.binomial(10, 0.2 + 0.15 * group)})


@pytest.fixture(scope="module")
def case(frame):
    encoder = Encoder(Schema.infer(frame))
    rows = encoder.rows(frame)
    supports = Supports.of(rows, encoder)
    nodes, bins = Nodes.of(rows, encoder, ActionSets.of(encoder.schema), torch.empty(0).long())
    return supports, nodes, bins, rows


@pytest.fixture(scope="module")
def tables(case):
    supports, _, bins, rows = case
    return count(rows, supports, bins, 256)


def at_group(case, table, group):
    """One row of a table: given the group, over the score's values."""
    return table[GROUP, group, case[0].segment(SCORE)]


@pytest.mark.parametrize("group", range(4))
def test_shares_are_those_of_the_people_in_the_group(case, tables, frame, group):
    own = frame["score"][frame["group"] == group]
    expected = [(own == v).mean() for v in sorted(frame["score"].unique())]
    assert at_group(case, tables.share, group).tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("group", range(4))
def test_below_is_the_share_of_smaller_values(case, tables, group):
    share, below = (at_group(case, t, group) for t in (tables.share, tables.below))
    assert torch.allclose(below, share.cumsum(0) - share, atol=1e-5)


def test_every_feature_has_a_whole_distribution_at_every_node(case, tables):
    for feature in (GROUP, SCORE):
        total = tables.share[..., case[0].segment(feature)].sum(2)
        assert torch.allclose(total, torch.ones(total.shape), atol=1e-5)


def test_what_is_acted_on_is_certain_given_itself(case, tables):
    shares = tables.share[GROUP, :4, case[0].segment(GROUP)]
    assert torch.allclose(shares, torch.eye(4), atol=1e-5)


@pytest.mark.parametrize("group", range(4))
def test_the_inverse_is_the_quantile_function(case, tables, frame, group):
    own = np.sort(frame["score"][frame["group"] == group])
    standings = (np.arange(256) + 0.5) / 256
    expected = own[np.ceil(standings * len(own)).astype(int) - 1] / frame["score"].max()
    assert np.allclose(tables.inverse[GROUP, SCORE, :, group], expected, atol=1e-6)


def test_a_higher_standing_is_never_a_lower_value(tables):
    assert (tables.inverse.diff(dim=2) >= 0).all()


def test_standing_and_reached_bring_people_back_to_themselves(case, tables):
    supports, nodes, _, rows = case
    left, weight = nodes.of_rows(rows)
    node = left + (weight > 0.5)
    below, own = tables.standing(supports.codes(rows), node)
    v = below + own / 2
    for which in (GROUP, SCORE):
        sets = torch.full((len(rows),), which)
        back = tables.reached(v[:, which], node[:, which, None], sets)[:, 0]
        # What fewer people have than standings are told apart may land next to it.
        common = own[:, which] >= 1 / 128
        assert torch.allclose(back[common], rows[common], atol=1e-6)


def test_between_two_nodes_it_is_linear(case, tables):
    v, sets = torch.full((1, 2), 0.5), torch.tensor([GROUP])
    left, column = torch.tensor([[1]]), torch.tensor([SCORE])
    ends = [tables.reached(v, torch.tensor([[i]]), sets)[0, 0, SCORE] for i in (1, 2)]
    half = tables.between(v, left, torch.tensor([[0.5]]), sets, column)
    assert half.item() == pytest.approx(float(sum(ends)) / 2)


def test_wide_data_tell_fewer_standings_apart(case, monkeypatch):
    supports, nodes, bins, rows = case
    monkeypatch.setattr("dear_plugin.decoders.tables.CELLS", 2 * 2 * nodes.grid.shape[1] * 32)
    assert count(rows, supports, bins, 256).ranks == 32
