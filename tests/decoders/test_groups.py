"""Groups: a regression tree per set of several features, and where the others lie on average."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.tree import DecisionTreeRegressor

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders import Transport
from dear_plugin.decoders.groups import LEAST_ROWS, MOST_LEAVES, Groups, hinges

SETS = ["a", ("a", "b"), ("c", "town"), ("b", "c", "town")]
SMOOTH = torch.tensor([0, 1, 3])


def crowd(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.normal(size=n)
    town = rng.choice(list("ABC"), n)
    c = rng.integers(0, 10, n)
    y = 0.5 * a - 0.3 * b + 0.1 * c + (town == "B") + 0.2 * rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "c": c, "y": y, "town": town.astype(object)})


@pytest.fixture(scope="module")
def encoder():
    return Encoder(Schema.infer(crowd()))


@pytest.fixture(scope="module")
def rows(encoder):
    return encoder.rows(crowd())


@pytest.fixture(scope="module")
def sets(encoder):
    return ActionSets.of(encoder.schema, SETS)


@pytest.fixture(scope="module")
def groups(rows, encoder, sets):
    return Groups.of(rows, encoder, sets, SMOOTH)


def leaves(groups, encoder, rows, which):
    wide = encoder.expand(rows)[:, None]
    return groups.leaves(wide, torch.full((len(rows),), which))[:, 0]


def located(groups, encoder, rows, which):
    wide = encoder.expand(rows)[:, None]
    return groups.location(wide, torch.full((len(rows),), which))[:, 0]


def test_without_groups_there_is_nothing_to_grow(rows, encoder):
    singles = ActionSets.of(encoder.schema, ["a", "b", "town"])
    assert Groups.of(rows, encoder, singles, SMOOTH) is None


def test_every_set_of_several_features_has_a_tree(groups):
    assert groups.tree.tolist() == [-1, 0, 1, 2]


@pytest.mark.parametrize("which", [1, 2, 3])
class TestTrees:
    def test_people_fall_where_the_regression_tree_puts_them(
        self, groups, rows, encoder, sets, which
    ):
        x = encoder.expand(rows)
        own = sets.masks[which, encoder.feature_of]
        rest = x[:, ~own] / x[:, ~own].std(0).clamp_min(1e-6)
        tree = DecisionTreeRegressor(
            min_samples_leaf=LEAST_ROWS, max_leaf_nodes=MOST_LEAVES, random_state=0
        ).fit(x[:, own].numpy(), rest.numpy())
        grown = tree.apply(x[:, own].numpy())
        mine = leaves(groups, encoder, rows, which).numpy()
        assert len(set(zip(grown, mine, strict=True))) == tree.get_n_leaves() == len(set(mine))

    def test_leaves_are_numbered_hold_enough_people_and_are_not_too_many(
        self, groups, rows, encoder, which
    ):
        counts = torch.bincount(leaves(groups, encoder, rows, which))
        assert 2 <= len(counts) <= MOST_LEAVES
        assert counts.min() >= LEAST_ROWS

    def test_only_the_features_of_the_set_are_read(self, groups, rows, encoder, sets, which):
        others = ~sets.masks[which]
        blurred = rows.clone()
        blurred[:, others] = rows.flip(0)[:, others]
        for ask in (leaves, located):
            assert torch.equal(
                ask(groups, encoder, rows, which), ask(groups, encoder, blurred, which)
            )

    def test_people_beyond_the_range_fall_into_a_leaf_too(self, groups, rows, encoder, which):
        far = rows[:50].clone()
        far[:, :4] = torch.where(far[:, :4] > 0.5, 9.0, -9.0)
        assert leaves(groups, encoder, far, which).max() < len(
            leaves(groups, encoder, rows, which).unique()
        )
        assert located(groups, encoder, far, which).isfinite().all()


def test_people_who_ask_about_different_sets_are_answered_in_one_batch(groups, rows, encoder):
    sets = torch.arange(300) % 3 + 1
    wide = encoder.expand(rows[:300])[:, None]
    mixed = groups.leaves(wide, sets)[:, 0], groups.location(wide, sets)[:, 0]
    for which in (1, 2, 3):
        own = sets == which
        assert torch.equal(mixed[0][own], leaves(groups, encoder, rows[:300][own], which))
        torch.testing.assert_close(mixed[1][own], located(groups, encoder, rows[:300][own], which))


class TestLocations:
    def test_hinges_by_hand(self):
        x = torch.tensor([[0.2, 0.9]])
        kinks = torch.tensor([[0.1, 0.5], [0.3, 1.0]])
        expected = [1.0, 0.2, 0.9, 0.1, 0.6, 0.0, 0.0]
        torch.testing.assert_close(hinges(x, kinks)[0], torch.tensor(expected))

    def test_they_are_the_conditional_means(self, groups, rows, encoder):
        """y given a and b is their plane, at the mean of the rest."""
        frame = crowd()
        made = located(groups, encoder, rows, 1)[:, 2].numpy()
        high = encoder.schema.features[3]
        user = high.bounds[0] + high.width * made
        plane = 0.5 * frame["a"] - 0.3 * frame["b"] + 0.1 * 4.5 + 1 / 3
        assert np.abs(user - plane).mean() <= 0.03

    def test_a_category_has_a_level_of_its_own(self, groups, rows, encoder):
        frame = crowd()
        made = located(groups, encoder, rows, 2)[:, 2].numpy()
        high = encoder.schema.features[3]
        user = pd.Series(high.bounds[0] + high.width * made)
        by_town = user.groupby(frame["town"]).mean()
        assert by_town["B"] - by_town["A"] == pytest.approx(1.0, abs=0.05)
        assert by_town["C"] == pytest.approx(by_town["A"], abs=0.05)
        within = frame["town"] == "A"
        slope = np.polyfit(frame["c"][within], user[within], 1)[0]
        assert slope == pytest.approx(0.1, abs=0.01)

    def test_a_bend_at_a_tercile_is_followed_exactly(self):
        rng = np.random.default_rng(0)
        a, b = rng.random(3000), rng.random(3000)
        kink = np.sort(a)[1000]
        frame = pd.DataFrame({"a": a, "b": b, "y": 2 * a + 5 * np.maximum(a - kink, 0) - b})
        encoder = Encoder(Schema.infer(frame))
        sets = ActionSets.of(encoder.schema, [("a", "b")])
        rows = encoder.rows(frame)
        groups = Groups.of(rows, encoder, sets, torch.tensor([2]))
        torch.testing.assert_close(
            located(groups, encoder, rows, 0)[:, 0], rows[:, 2], atol=2e-3, rtol=0.0
        )

    def test_beyond_the_range_they_go_on_in_a_straight_line(self, groups, rows, encoder):
        ladder = rows[:1].repeat(4, 1)
        ladder[:, 0] = torch.tensor([1.5, 2.0, 2.5, 3.0])
        steps = located(groups, encoder, ladder, 1).diff(dim=0)
        torch.testing.assert_close(steps[0], steps[2], atol=1e-5, rtol=1e-4)


class TestOddData:
    @pytest.mark.parametrize("n", [5, 30])
    def test_few_people(self, n):
        frame = crowd(n).assign(town=np.resize(["A", "B", "C"], n))
        encoder = Encoder(Schema.infer(frame))
        sets = ActionSets.of(encoder.schema, SETS)
        rows = encoder.rows(frame)
        groups = Groups.of(rows, encoder, sets, SMOOTH)
        for which in (1, 2, 3):
            assert located(groups, encoder, rows, which).isfinite().all()
            assert leaves(groups, encoder, rows, which).max() < n

    def test_a_constant_among_the_others(self):
        frame = crowd(500).assign(y=3.0)
        encoder = Encoder(Schema.infer(frame))
        rows = encoder.rows(frame)
        groups = Groups.of(
            rows, encoder, ActionSets.of(encoder.schema, [("a", "b")]), torch.tensor([2])
        )
        assert located(groups, encoder, rows, 0).isfinite().all()

    def test_a_group_of_all_features_there_are(self):
        frame = crowd(500)[["a", "b"]]
        encoder = Encoder(Schema.infer(frame))
        rows, sets = encoder.rows(frame), ActionSets.of(encoder.schema, [("a", "b")])
        decoder = Transport()
        decoder.fit(rows, encoder, sets)
        values = torch.tensor([[[0.3, 0.7]]]).expand(20, 1, 2)
        made = decoder.decode(
            rows[:20], decoder.encode(rows[:20])[:, 0], values, torch.zeros(20, dtype=torch.int64)
        )
        torch.testing.assert_close(made, values)
