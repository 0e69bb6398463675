"""Tables: the conditional distributions at every node, and their inverses."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin.decoders.transport.bins import MAX_NODES
from dear_plugin.decoders.transport.nodes import Nodes, nearest
from dear_plugin.decoders.transport.rank_levels import middles
from dear_plugin.decoders.transport.relevance import links
from dear_plugin.decoders.transport.supports import MAX_VALUES, Supports
from dear_plugin.decoders.transport.tables import CELLS, LEAST_DETAIL, Tables, detail

N = 4000
GROUP, SCORE = range(2)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Four groups; the score's distribution shifts from group to group."""
    rng = np.random.default_rng(0)
    group = np.arange(N) % 4
    return pd.DataFrame({"group": group, "score": rng.binomial(10, 0.2 + 0.15 * group)})


@pytest.fixture(scope="module")
def case(gather, frame):
    crowd = gather(frame)
    supports = Supports.of(crowd.rows, crowd.encoder, torch.empty(0).long())
    return supports, *Nodes.of(crowd, MAX_NODES), crowd


@pytest.fixture(scope="module")
def tables(case):
    supports, _, parts, crowd = case
    return Tables.of(crowd, supports, parts, 256, links(crowd, supports))


def at_group(case, table, group):
    """One row of a table: given the group, over the score's values."""
    return table[group, case[0].segment(SCORE)]


def inverse(tables, feature):
    """(q, g) the value of a feature at each standing and node."""
    first = int(tables.line[feature])
    return tables.inverse[first : first + 256]


@pytest.mark.parametrize("group", range(4))
def test_shares_are_those_of_the_people_in_the_group(case, tables, frame, group):
    own = frame["score"][frame["group"] == group]
    expected = [(own == v).mean() for v in sorted(frame["score"].unique())]
    assert at_group(case, tables.share, group).tolist() == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("group", range(4))
def test_below_is_the_share_of_smaller_values(case, tables, group):
    share, below = (at_group(case, t, group) for t in (tables.share, tables.below))
    assert torch.allclose(below, share.cumsum(0) - share, atol=1e-5)


def test_every_feature_has_a_whole_distribution_at_every_node(case, tables):
    for feature in (GROUP, SCORE):
        total = tables.share[:, case[0].segment(feature)].sum(1)
        assert torch.allclose(total, torch.ones(total.shape), atol=1e-5)


def test_what_is_acted_on_is_certain_given_itself(case, tables):
    shares = tables.share[:4, case[0].segment(GROUP)]
    assert torch.allclose(shares, torch.eye(4), atol=0.01)


@pytest.mark.parametrize("group", range(4))
def test_the_inverse_is_the_quantile_function(case, tables, frame, group):
    own = np.sort(frame["score"][frame["group"] == group])
    at = middles(256).numpy()
    expected = own[np.ceil(at * len(own)).astype(int) - 1] / frame["score"].max()
    made = inverse(tables, SCORE)[:, group].numpy()
    assert (abs(made - expected)[(at > 0.02) & (at < 0.98)] > 1e-6).mean() <= 0.06


def test_a_higher_standing_is_never_a_lower_value(tables):
    for feature in (GROUP, SCORE):
        assert (inverse(tables, feature).diff(dim=0) >= 0).all()


def test_standing_and_reached_bring_people_back_to_themselves(case, tables):
    supports, nodes, _, crowd = case
    rows = crowd.rows
    node = nearest(*nodes.of_rows(rows, torch.zeros(N, dtype=torch.int64)))
    below, share = tables.ranks_of(supports.codes(rows), node)
    v = (below + share / 2).clamp(1e-6, 1 - 1e-6)
    for which in (GROUP, SCORE):
        own_node = node[:, which, None].expand(-1, 2)
        back = tables.reached(rows, v[:, which], own_node)[:, 0]
        assert torch.equal(back, rows)


def test_a_value_between_supported_ones_is_kept_until_the_nearest_moves(case, tables):
    supports, _, _, crowd = case
    x = crowd.rows[:200] + torch.tensor([0.0, 0.01])
    node = torch.arange(4).int().expand(200, -1)
    first = node[:, :1].expand(-1, 2)
    below, share = tables.ranks_of(supports.codes(x), first)
    v = (below + share / 2).clamp(1e-6, 1 - 1e-6)[:, 0]
    made = tables.reached(x, v, torch.cat([first[:, :1], node], 1))[..., 1]
    assert torch.equal(made[:, 0], x[:, 1])
    moved = made != x[:, 1:]
    assert moved.any()
    assert torch.isin(made[moved], crowd.rows[:, 1]).all()


class TestCells:
    """People of each cell are counted apart; the first tables are everyone's."""

    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, gather):
        group, half = np.arange(N) % 2, np.arange(N) // 2 % 2
        score = np.random.default_rng(0).random(N) < np.where(half, 0.9 - 0.6 * group, 0.5)
        crowd = gather(
            pd.DataFrame({"group": group, "score": score * 1, "half": half}), ["group"], ["half"]
        )
        supports = Supports.of(crowd.rows, crowd.encoder, torch.tensor([2]))
        return supports, Tables.of(
            crowd, supports, Nodes.of(crowd, MAX_NODES)[1], 256, links(crowd, supports)
        )

    def test_shares_are_those_of_the_people_of_the_cell(self, case):
        supports, tables = case
        second = tables.share[:, supports.segment(1)][:, 1]
        expected = [0.7, 0.4, 0.5, 0.5, 0.9, 0.3]  # everyone, then each half; by group
        assert second.tolist() == pytest.approx(expected, abs=0.04)

    def test_what_is_given_has_no_table(self, case):
        supports, tables = case
        assert supports.sizes.tolist() == [2, 2, 0]
        assert tables.line.tolist()[2] == 0


class TestDetail:
    """How fine tables are, so that they fit."""

    def test_narrow_data_are_told_apart_as_finely_as_can_be(self):
        nodes, fine = detail(11, 13)
        assert nodes == MAX_NODES
        assert fine >= MAX_VALUES

    @pytest.mark.parametrize(("slots", "features"), [(200, 200), (1100, 13), (50, 400)])
    def test_no_table_has_many_more_entries_than_planned(self, slots, features):
        nodes, fine = detail(slots, features)
        assert slots * features * nodes * fine <= 1.1 * CELLS

    def test_some_detail_is_always_left(self):
        assert detail(100_000, 1000) == (LEAST_DETAIL, LEAST_DETAIL)
