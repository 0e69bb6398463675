"""Groups: a regression tree per set of several features."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.tree import DecisionTreeRegressor

from dear_plugin.decoders import Transport
from dear_plugin.decoders.transport.groups import LEAST_ROWS, MOST_LEAVES, Groups

SETS = ["a", ("a", "b"), ("c", "town"), ("b", "c", "town")]


def people(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.normal(size=n)
    town = rng.choice(list("ABC"), n)
    c = rng.integers(0, 10, n)
    y = 0.5 * a - 0.3 * b + 0.1 * c + (town == "B") + 0.2 * rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "c": c, "y": y, "town": town.astype(object)})


@pytest.fixture(scope="module")
def crowd(gather):
    return gather(people(), SETS)


@pytest.fixture(scope="module")
def groups(crowd):
    return Groups.of(crowd)


def leaves(groups, crowd, which, rows=None):
    wide = crowd.encoder.expand(crowd.rows if rows is None else rows)[:, None]
    return groups.leaves(wide, torch.full((len(wide),), which))[:, 0]


def test_without_groups_there_is_nothing_to_grow(gather):
    assert Groups.of(gather(people(), ["a", "b", "town"])) is None


def test_every_set_of_several_features_has_a_tree(groups):
    assert groups.tree.tolist() == [-1, 0, 1, 2]


def test_all_cells_have_the_same_trees(gather):
    groups = Groups.of(gather(people(3000), ["a", ("a", "b")], ["town"]))
    assert groups.tree.tolist() == [-1, 0] * 4


@pytest.mark.parametrize("which", [1, 2, 3])
class TestTrees:
    def test_people_fall_where_the_regression_tree_puts_them(self, groups, crowd, which):
        x = crowd.encoder.expand(crowd.rows)
        own = crowd.sets.masks[which, crowd.encoder.feature_of]
        rest = x[:, ~own] / x[:, ~own].std(0).clamp_min(1e-6)
        tree = DecisionTreeRegressor(
            min_samples_leaf=LEAST_ROWS, max_leaf_nodes=MOST_LEAVES, random_state=0
        ).fit(x[:, own].numpy(), rest.numpy())
        grown = tree.apply(x[:, own].numpy())
        mine = leaves(groups, crowd, which).numpy()
        assert len(set(zip(grown, mine, strict=True))) == tree.get_n_leaves() == len(set(mine))

    def test_leaves_are_numbered_hold_enough_people_and_are_not_too_many(
        self, groups, crowd, which
    ):
        counts = torch.bincount(leaves(groups, crowd, which))
        assert 2 <= len(counts) <= MOST_LEAVES
        assert counts.min() >= LEAST_ROWS

    def test_only_the_features_of_the_set_are_read(self, groups, crowd, which):
        others = ~crowd.sets.masks[which]
        blurred = crowd.rows.clone()
        blurred[:, others] = crowd.rows.flip(0)[:, others]
        assert torch.equal(leaves(groups, crowd, which), leaves(groups, crowd, which, blurred))

    def test_people_beyond_the_range_fall_into_a_leaf_too(self, groups, crowd, which):
        far = crowd.rows[:50].clone()
        far[:, :4] = torch.where(far[:, :4] > 0.5, 9.0, -9.0)
        assert leaves(groups, crowd, which, far).max() <= leaves(groups, crowd, which).max()


def test_people_who_ask_about_different_sets_are_answered_in_one_batch(groups, crowd):
    sets, some = torch.arange(300) % 3 + 1, crowd.rows[:300]
    mixed = groups.leaves(crowd.encoder.expand(some)[:, None], sets)[:, 0]
    for which in (1, 2, 3):
        own = sets == which
        assert torch.equal(mixed[own], leaves(groups, crowd, which, some[own]))


class TestOddData:
    @pytest.mark.parametrize("n", [5, 30])
    def test_few_people(self, gather, n):
        crowd = gather(people(n).assign(town=np.resize(["A", "B", "C"], n)), SETS)
        groups = Groups.of(crowd)
        for which in (1, 2, 3):
            assert leaves(groups, crowd, which).max() < n

    def test_a_group_of_all_features_there_are(self, gather):
        crowd = gather(people(500)[["a", "b"]], [("a", "b")])
        decoder, rows = Transport(), crowd.rows[:20]
        decoder.fit(crowd.rows, crowd.encoder, crowd.sets)
        values = torch.tensor([[[0.3, 0.7]]]).expand(20, 1, 2)
        v = decoder.encode(rows)[:, 0]
        made = decoder.decode(rows, v, values, torch.zeros(20, dtype=torch.int64))
        torch.testing.assert_close(made, values)
