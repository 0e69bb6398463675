"""Tables: the conditional distributions at every node, and their inverses."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin.decoders.transport.bins import MAX_NODES
from dear_plugin.decoders.transport.nodes import Nodes, nearest
from dear_plugin.decoders.transport.rank_levels import midpoints
from dear_plugin.decoders.transport.relevance import linked_features
from dear_plugin.decoders.transport.supports import MAX_VALUES, Supports
from dear_plugin.decoders.transport.tables import MAX_ENTRIES, MIN_DETAIL, Tables, detail

N = 4000
GROUP, SCORE = range(2)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Four groups; the score's distribution shifts from group to group."""
    rng = np.random.default_rng(0)
    group = np.arange(N) % 4
    return pd.DataFrame({"group": group, "score": rng.binomial(10, 0.2 + 0.15 * group)})


@pytest.fixture(scope="module")
def case(training_sample, frame):
    sample = training_sample(frame)
    supports = Supports.of(sample.rows, sample.encoder, torch.empty(0).long())
    return supports, *Nodes.of(sample, MAX_NODES), sample


@pytest.fixture(scope="module")
def tables(case):
    supports, _, parts, sample = case
    return Tables.of(sample, supports, parts, 256, linked_features(sample, supports))


def at_group(case, table, group):
    """One row of a table: given the group, over the score's values."""
    return table[group, case[0].segment(SCORE)]


def inverse(tables, feature):
    """(q, g) the value of a feature at each rank level and node."""
    first = int(tables.line[feature])
    return tables.inverse[first : first + 256]


@pytest.mark.parametrize("group", range(4))
def test_shares_are_those_of_the_rows_in_the_group(case, tables, frame, group):
    own = frame["score"][frame["group"] == group]
    expected = [(own == v).mean() for v in sorted(frame["score"].unique())]
    assert at_group(case, tables.share, group).tolist() == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("group", range(4))
def test_below_is_the_share_of_smaller_values(case, tables, group):
    share, below = (at_group(case, t, group) for t in (tables.share, tables.below))
    assert torch.allclose(below, share.cumsum(0) - share, atol=1e-5)


def test_shares_add_up_to_one_at_every_node(case, tables):
    for feature in (GROUP, SCORE):
        total = tables.share[:, case[0].segment(feature)].sum(1)
        assert torch.allclose(total, torch.ones(total.shape), atol=1e-5)


def test_the_feature_acted_on_is_certain_given_itself(case, tables):
    shares = tables.share[:4, case[0].segment(GROUP)]
    assert torch.allclose(shares, torch.eye(4), atol=0.01)


@pytest.mark.parametrize("group", range(4))
def test_the_inverse_is_the_quantile_function(case, tables, frame, group):
    own = np.sort(frame["score"][frame["group"] == group])
    at = midpoints(256).numpy()
    expected = own[np.ceil(at * len(own)).astype(int) - 1] / frame["score"].max()
    made = inverse(tables, SCORE)[:, group].numpy()
    assert (abs(made - expected)[(at > 0.02) & (at < 0.98)] > 1e-6).mean() <= 0.06


def test_the_inverse_increases_with_the_rank(tables):
    for feature in (GROUP, SCORE):
        assert (inverse(tables, feature).diff(dim=0) >= 0).all()


def test_quantiles_at_the_own_rank_and_node_are_the_own_values(case, tables):
    supports, nodes, _, sample = case
    rows = sample.rows
    node = nearest(*nodes.of_rows(rows, torch.zeros(N, dtype=torch.int64)))
    below, share = tables.ranks_of(supports.codes(rows), node)
    v = (below + share / 2).clamp(1e-6, 1 - 1e-6)
    for i in (GROUP, SCORE):
        own_node = node[:, i, None].expand(-1, 2)
        back = tables.quantiles(rows, v[:, i], own_node)[:, 0]
        assert torch.equal(back, rows)


def test_an_unsupported_value_is_kept_until_the_nearest_supported_one_changes(case, tables):
    supports, _, _, sample = case
    x = sample.rows[:200] + torch.tensor([0.0, 0.01])
    node = torch.arange(4).int().expand(200, -1)
    first = node[:, :1].expand(-1, 2)
    below, share = tables.ranks_of(supports.codes(x), first)
    v = (below + share / 2).clamp(1e-6, 1 - 1e-6)[:, 0]
    made = tables.quantiles(x, v, torch.cat([first[:, :1], node], 1))[..., 1]
    assert torch.equal(made[:, 0], x[:, 1])
    moved = made != x[:, 1:]
    assert moved.any()
    assert torch.isin(made[moved], sample.rows[:, 1]).all()


class TestCells:
    """Every cell has tables of its own; those of cell 0 are of all rows."""

    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, training_sample):
        group, half = np.arange(N) % 2, np.arange(N) // 2 % 2
        score = np.random.default_rng(0).random(N) < np.where(half, 0.9 - 0.6 * group, 0.5)
        sample = training_sample(
            pd.DataFrame({"group": group, "score": score * 1, "half": half}), ["group"], ["half"]
        )
        supports = Supports.of(sample.rows, sample.encoder, torch.tensor([2]))
        return supports, Tables.of(
            sample,
            supports,
            Nodes.of(sample, MAX_NODES)[1],
            256,
            linked_features(sample, supports),
        )

    def test_shares_are_those_of_the_rows_of_the_cell(self, case):
        supports, tables = case
        second = tables.share[:, supports.segment(1)][:, 1]
        expected = [0.7, 0.4, 0.5, 0.5, 0.9, 0.3]  # all rows, then each half; by group
        assert second.tolist() == pytest.approx(expected, abs=0.04)

    def test_given_features_have_no_table(self, case):
        supports, tables = case
        assert supports.sizes.tolist() == [2, 2, 0]
        assert tables.line.tolist()[2] == 0


class TestDetail:
    """The size of tables is bounded."""

    def test_narrow_data_have_the_finest_tables(self):
        nodes, values = detail(11, 13)
        assert nodes == MAX_NODES
        assert values >= MAX_VALUES

    @pytest.mark.parametrize(("slots", "features"), [(200, 200), (1100, 13), (50, 400)])
    def test_tables_have_about_the_maximum_number_of_entries_at_most(self, slots, features):
        nodes, values = detail(slots, features)
        assert slots * features * nodes * values <= 1.1 * MAX_ENTRIES

    def test_there_is_a_minimum_of_detail(self):
        assert detail(100_000, 1000) == (MIN_DETAIL, MIN_DETAIL)
