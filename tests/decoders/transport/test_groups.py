"""Groups: one regression tree per set of several features."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.tree import DecisionTreeRegressor

from dear_plugin.decoders import Transport
from dear_plugin.decoders.transport.groups import MAX_LEAVES, MIN_ROWS, Groups

SETS = ["a", ("a", "b"), ("c", "town"), ("b", "c", "town")]


def make_frame(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.normal(size=n)
    town = rng.choice(list("ABC"), n)
    c = rng.integers(0, 10, n)
    y = 0.5 * a - 0.3 * b + 0.1 * c + (town == "B") + 0.2 * rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "c": c, "y": y, "town": town.astype(object)})


@pytest.fixture(scope="module")
def sample(training_sample):
    return training_sample(make_frame(), SETS)


@pytest.fixture(scope="module")
def groups(sample):
    return Groups.of(sample)


def leaves(groups, sample, i, rows=None):
    wide = sample.encoder.expand(sample.rows if rows is None else rows)[:, None]
    return groups.leaves(wide, torch.full((len(wide),), i))[:, 0]


def test_without_groups_there_are_no_trees(training_sample):
    assert Groups.of(training_sample(make_frame(), ["a", "b", "town"])) is None


def test_every_set_of_several_features_has_a_tree(groups):
    assert groups.tree.tolist() == [-1, 0, 1, 2]


def test_all_cells_have_the_same_trees(training_sample):
    groups = Groups.of(training_sample(make_frame(3000), ["a", ("a", "b")], ["town"]))
    assert groups.tree.tolist() == [-1, 0] * 4


@pytest.mark.parametrize("i", [1, 2, 3])
class TestTrees:
    def test_leaves_are_those_of_the_regression_tree(self, groups, sample, i):
        x = sample.encoder.expand(sample.rows)
        own = sample.sets.masks[i, sample.encoder.feature_of]
        rest = x[:, ~own] / x[:, ~own].std(0).clamp_min(1e-6)
        tree = DecisionTreeRegressor(
            min_samples_leaf=MIN_ROWS, max_leaf_nodes=MAX_LEAVES, random_state=0
        ).fit(x[:, own].numpy(), rest.numpy())
        grown = tree.apply(x[:, own].numpy())
        own_leaves = leaves(groups, sample, i).numpy()
        assert (
            len(set(zip(grown, own_leaves, strict=True)))
            == tree.get_n_leaves()
            == len(set(own_leaves))
        )

    def test_leaves_are_bounded_in_number_and_size(self, groups, sample, i):
        counts = torch.bincount(leaves(groups, sample, i))
        assert 2 <= len(counts) <= MAX_LEAVES
        assert counts.min() >= MIN_ROWS

    def test_only_the_features_of_the_set_are_read(self, groups, sample, i):
        others = ~sample.sets.masks[i]
        shuffled = sample.rows.clone()
        shuffled[:, others] = sample.rows.flip(0)[:, others]
        assert torch.equal(leaves(groups, sample, i), leaves(groups, sample, i, shuffled))

    def test_rows_outside_the_range_have_a_leaf(self, groups, sample, i):
        far = sample.rows[:50].clone()
        far[:, :4] = torch.where(far[:, :4] > 0.5, 9.0, -9.0)
        assert leaves(groups, sample, i, far).max() <= leaves(groups, sample, i).max()


def test_a_batch_may_mix_sets(groups, sample):
    sets, some = torch.arange(300) % 3 + 1, sample.rows[:300]
    mixed = groups.leaves(sample.encoder.expand(some)[:, None], sets)[:, 0]
    for i in (1, 2, 3):
        own = sets == i
        assert torch.equal(mixed[own], leaves(groups, sample, i, some[own]))


class TestEdgeCases:
    @pytest.mark.parametrize("n", [5, 30])
    def test_few_rows(self, training_sample, n):
        sample = training_sample(make_frame(n).assign(town=np.resize(["A", "B", "C"], n)), SETS)
        groups = Groups.of(sample)
        for i in (1, 2, 3):
            assert leaves(groups, sample, i).max() < n

    def test_a_group_of_all_features(self, training_sample):
        sample = training_sample(make_frame(500)[["a", "b"]], [("a", "b")])
        decoder, rows = Transport(), sample.rows[:20]
        decoder.fit(sample.rows, sample.encoder, sample.sets)
        values = torch.tensor([[[0.3, 0.7]]]).expand(20, 1, 2)
        v = decoder.encode(rows)[:, 0]
        made = decoder.decode(rows, v, values, torch.zeros(20, dtype=torch.int64))
        torch.testing.assert_close(made, values)
