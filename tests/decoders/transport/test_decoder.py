"""Transport: rows keep their conditional ranks; the distributions here are known exactly."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders import Transport
from dear_plugin.decoders.transport import tables
from dear_plugin.errors import NotFittedError

GROUP_SIZE = 1000


class Fitted:
    """A decoder, its sets, and the rows it was fitted on."""

    def __init__(self, frame, act_on=None, ranks=256):
        self.frame = frame
        self.encoder = Encoder(Schema.infer(frame))
        self.sets = ActionSets.of(self.encoder.schema, act_on)
        self.rows = self.encoder.rows(frame)
        self.decoder = Transport(ranks)
        self.decoder.fit(self.rows, self.encoder, self.sets)

    def moved(self, at, values, i=0, ties=None):
        """(m, c, p) decoded rows with these indices at each of c values of set i."""
        rows = self.rows[at]
        v = self.decoder.encode(rows, ties)[:, i]
        width = self.sets.positions.shape[1]
        wide = torch.as_tensor(values).float().view(1, -1, 1).expand(len(rows), -1, width)
        return self.decoder.decode(rows, v, wide, torch.full((len(rows),), i))


def grouped(shares: dict[int, list[float]], labels: str = "ABC") -> pd.DataFrame:
    """1,000 rows per group, with exactly these shares of each label."""
    parts = []
    for group, share in shares.items():
        counts = [round(s * GROUP_SIZE) for s in share]
        column = np.repeat(list(labels[: len(share)]), counts)
        parts.append(pd.DataFrame({"group": group, "label": column}))
    return pd.concat(parts, ignore_index=True)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


class TestIdentity:
    @pytest.mark.parametrize("act_on", [None, [("age", "job"), ("income", "debt", "town")]])
    @pytest.mark.parametrize("ties", [False, True])
    def test_rows_are_unchanged_at_their_own_value(self, mixed, act_on, ties):
        fitted = Fitted(mixed.frame, act_on)
        v = fitted.decoder.encode(fitted.rows, rng() if ties else None)
        for i in range(len(fitted.sets)):
            own = fitted.rows[:, None, fitted.sets.positions[i]]
            sets = torch.full((len(fitted.rows),), i)
            back = fitted.decoder.decode(fitted.rows, v[:, i], own, sets)[:, 0]
            assert torch.equal(back, fitted.rows)

    def test_rows_outside_the_training_range_are_unchanged_too(self, mixed):
        fitted = Fitted(mixed.frame)
        outside = fitted.rows[:50] + torch.tensor([0.3, -0.2, 1.5, 0, 0, 0, 0, 0])
        v = fitted.decoder.encode(outside)
        for i in range(len(fitted.sets)):
            own = outside[:, None, fitted.sets.positions[i]]
            back = fitted.decoder.decode(outside, v[:, i], own, torch.full((50,), i))[:, 0]
            assert torch.equal(back, outside)

    def test_the_feature_acted_on_takes_the_new_value(self, mixed):
        fitted = Fitted(mixed.frame)
        values = [0.123, 0.9, 1.4]
        made = fitted.moved(slice(0, 50), values)
        assert torch.equal(made[:, :, 0], torch.tensor(values).expand(50, 3))


class TestBinary:
    """A value changes if, and only if, its probability more than halves."""

    shares = (0.9, 0.8, 0.6, 0.47, 0.43, 0.2)

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls):
        return Fitted(grouped({g: [1 - p, p] for g, p in enumerate(cls.shares)}), ["group"])

    @pytest.mark.parametrize("group", range(6))
    @pytest.mark.parametrize("label", "AB")
    def test_it_flips_as_the_rule_says(self, fitted, group, label):
        frame = fitted.frame
        at = np.flatnonzero((frame["group"] == group) & (frame["label"] == label))[:3]
        made = fitted.moved(at, np.arange(6) / 5)[:, :, 1]
        own = {"A": 1 - np.array(self.shares), "B": np.array(self.shares)}[label]
        flips = own < own[group] / 2
        clear = abs(own - own[group] / 2) > 0.005
        changed = (made[0] != fitted.rows[at[0], 1]).numpy()
        assert (changed == flips)[clear].all()

    def test_rows_with_the_same_label_change_alike(self, fitted):
        at = np.flatnonzero(fitted.frame["group"] == 0)
        made = fitted.moved(at, [0.8])[:, 0, 1]
        own = fitted.rows[at, 1]
        assert len(made[own == 1].unique()) == len(made[own == 0].unique()) == 1

    def test_with_random_ties_the_share_is_the_conditional_one(self, fitted):
        at = np.flatnonzero(fitted.frame["group"] == 0)
        made = fitted.moved(at, np.arange(6) / 5, ties=rng())[:, :, 1]
        assert made.mean(0).tolist() == pytest.approx(list(self.shares), abs=0.02)

    def test_random_ties_change_as_few_rows_as_possible(self, fitted):
        """From .9 to .6 three in ten rows must change; no other row does."""
        at = np.flatnonzero(fitted.frame["group"] == 0)
        made = fitted.moved(at, [0.4], ties=rng())[:, 0, 1]
        changed = (made != fitted.rows[at, 1]).float().mean()
        assert changed == pytest.approx(0.3, abs=0.02)

    @pytest.mark.parametrize(("label", "expected"), [("A", (0.0, 0.0)), ("B", (1.0, 0.47 / 0.9))])
    def test_flip_probabilities_are_those_of_the_coupling(self, fitted, label, expected):
        """From .9 to .47: all rows with A keep it, and 47 in 90 keep B."""
        values = torch.tensor([0.0, 0.6]).view(1, 2, 1)
        own = np.flatnonzero((fitted.frame["group"] == 0) & (fitted.frame["label"] == label))
        x, sets = fitted.rows[own[:1]], torch.tensor([0])
        (probabilities,) = fitted.decoder.flip_probabilities(x, values, sets).values()
        assert probabilities == pytest.approx(expected, abs=2e-3)


class TestCategories:
    """Maximal coupling: a category is kept unless its probability more than halves."""

    shares = ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.3, 0.5, 0.2], [0.1, 0.6, 0.3])

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls):
        return Fitted(grouped(dict(enumerate(cls.shares))), ["group"])

    @pytest.mark.parametrize(
        ("label", "group", "becomes"),
        [
            ("A", 1, "C"),  # .5 -> .2, and C gains most
            ("A", 2, "A"),  # .5 -> .3
            ("A", 3, "B"),  # .5 -> .1, and B gains most
            ("B", 1, "B"),
            ("B", 2, "B"),
            ("C", 1, "C"),
            ("C", 2, "C"),
        ],
    )
    def test_from_the_first_group(self, fitted, label, group, becomes):
        at = np.flatnonzero((fitted.frame["group"] == 0) & (fitted.frame["label"] == label))
        made = fitted.moved(at, [group / 3])[:, 0, 1]
        assert {"ABC"[int(c)] for c in made} == {becomes}

    @pytest.mark.parametrize("group", range(4))
    def test_with_random_ties_the_shares_are_the_conditional_ones(self, fitted, group):
        at = np.flatnonzero(fitted.frame["group"] == 0)
        made = fitted.moved(at, [group / 3], ties=rng())[:, 0, 1].long()
        share = torch.bincount(made, minlength=3) / len(at)
        assert share.tolist() == pytest.approx(self.shares[group], abs=0.03)

    @pytest.mark.parametrize("group", range(4))
    def test_as_few_rows_change_as_possible(self, fitted, group):
        at = np.flatnonzero(fitted.frame["group"] == 0)
        made = fitted.moved(at, [group / 3], ties=rng())[:, 0, 1]
        changed = (made != fitted.rows[at, 1]).float().mean()
        least = np.maximum(np.array(self.shares[0]) - self.shares[group], 0).sum()
        assert changed == pytest.approx(least, abs=0.03)


class TestNumbersWithAtoms:
    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls):
        """Half the rows gain zero; the more schooling, the fewer."""
        rng = np.random.default_rng(0)
        school = rng.integers(0, 9, 8000)
        none = rng.random(8000) < 0.9 - 0.1 * school
        gain = np.where(none, 0.0, np.round(rng.exponential(100 + 50 * school), 1))
        return Fitted(pd.DataFrame({"school": school, "gain": gain}), ["school"])

    def test_decoded_values_are_observed_ones(self, fitted):
        made = fitted.moved(slice(0, 2000), np.linspace(0, 1, 23))
        assert torch.isin(made[:, :, 1], fitted.rows[:, 1]).all()

    def test_decoded_values_between_nodes_are_observed_ones(self, fitted):
        """Distributions are mixed, never quantiles: at 3.5 years the gain of 3 or of 4."""
        made = fitted.moved(slice(0, 2000), [3.5 / 8])[:, 0, 1]
        assert torch.isin(made, fitted.rows[:, 1]).all()

    def test_zero_stays_zero_for_most_rows(self, fitted):
        at = np.flatnonzero((fitted.frame["school"] == 4) & (fitted.frame["gain"] == 0))
        made = fitted.moved(at, [5 / 8])[:, 0, 1]
        assert (made == 0).all()

    def test_the_order_of_rows_is_kept(self, fitted):
        at = np.flatnonzero((fitted.frame["school"] == 2) & (fitted.frame["gain"] > 0))
        order = fitted.rows[at, 1].argsort()
        made = fitted.moved(at[order], [1.0])[:, 0, 1]
        assert (made.diff() >= 0).all()

    @pytest.mark.parametrize("to", [0, 4, 8])
    def test_with_random_ties_the_distribution_is_the_conditional_one(self, fitted, to):
        at = np.flatnonzero(fitted.frame["school"] == 2)
        made = fitted.moved(at, [to / 8], ties=rng())[:, 0, 1]
        there = fitted.rows[np.flatnonzero(fitted.frame["school"] == to), 1]
        deciles = torch.linspace(0.1, 0.9, 9)
        assert torch.allclose(made.quantile(deciles), there.quantile(deciles), atol=0.04)


class TestLatents:
    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, mixed):
        return Fitted(mixed.frame)

    def test_they_are_ranks(self, fitted):
        v = fitted.decoder.encode(fitted.rows)
        n, p = fitted.rows.shape
        assert v.shape == (n, len(fitted.sets), p)
        assert ((v > 0) & (v < 1)).all()

    def test_without_a_generator_nothing_is_random(self, fitted):
        one, other = (fitted.decoder.encode(fitted.rows) for _ in range(2))
        assert torch.equal(one, other)

    def test_the_same_seed_gives_the_same_ranks(self, fitted):
        one, other = (fitted.decoder.encode(fitted.rows, rng(7)) for _ in range(2))
        assert torch.equal(one, other)
        assert not torch.equal(one, fitted.decoder.encode(fitted.rows, rng(8)))

    @pytest.mark.parametrize("name", ["age", "owner", "town"])
    def test_each_is_independent_of_x_s(self, fitted, name):
        """With random ties every v_j is uniform whatever x_S is."""
        i = fitted.sets.labels.index(name)
        v = fitted.decoder.encode(fitted.rows, rng())[:, i]
        j = fitted.encoder.schema.index([name])[0]
        own = fitted.rows[:, j]
        others = [k for k in range(v.shape[1]) if k != j]
        parts = v[own.argsort()].split(300) if name == "age" else [v[own == c] for c in (0, 1)]
        for part in parts:
            assert torch.allclose(part[:, others].mean(0), torch.tensor(0.5), atol=0.08)


class TestWideData:
    """The size of tables is bounded: they have fewer values and ranks, and rows still change."""

    MAX_ENTRIES = 1_000_000

    @pytest.fixture
    def fitted(self, kind, monkeypatch):
        monkeypatch.setattr(tables, "MAX_ENTRIES", self.MAX_ENTRIES)
        rng = np.random.default_rng(0)
        x = rng.normal(size=(600, 5)) @ rng.normal(size=(5, 40)) + rng.normal(size=(600, 40))
        values = x if kind == "smooth" else (3 * x).round()
        return Fitted(pd.DataFrame(values, columns=[f"x{j}" for j in range(40)]))

    @pytest.mark.parametrize("kind", ["smooth", "atoms"])
    def test_tensors_are_small_and_rows_change(self, fitted):
        sizes = [tensor.numel() for tensor in fitted.decoder.tensors().values()]
        assert max(sizes) <= 1.5 * self.MAX_ENTRIES
        made = fitted.moved(slice(0, 20), [0.2, 0.8])
        assert made.isfinite().all()
        assert (made[:, 1] != made[:, 0]).float().mean() > 0.3

    @pytest.mark.parametrize("kind", ["atoms"])
    def test_rows_are_unchanged_at_their_own_value(self, fitted):
        rows, i = fitted.rows[:50], 7
        v = fitted.decoder.encode(rows)[:, i]
        sets = torch.full((50,), i)
        back = fitted.decoder.decode(rows, v, rows[:, None, [i]], sets)[:, 0]
        assert torch.equal(back, rows)


class TestManyCategories:
    """A thousand towns, acted on and changed indirectly."""

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls):
        rng = np.random.default_rng(0)
        town = np.r_[np.arange(1000), rng.integers(0, 100, 7000)]
        wage = 0.1 * (town % 10) + 0.2 * rng.normal(size=8000)
        school = np.where(town < 100, town // 10, rng.integers(0, 10, 8000))
        names = np.array([f"town {i:03}" for i in range(1000)])
        frame = pd.DataFrame({"town": names[town], "wage": wage, "school": school})
        return Fitted(frame, ["town", "wage", "school"])

    def test_rows_moved_to_a_town_have_its_distribution(self, fitted):
        for town in (13, 57, 99):
            made = fitted.moved(slice(0, 4000), [float(town)], ties=rng())[:, 0]
            there = fitted.rows[fitted.rows[:, 0] == town]
            assert made[:, 1].mean() == pytest.approx(there[:, 1].mean().item(), abs=0.03)
            assert (made[:, 2] == (town // 10) / 9).float().mean() > 0.75

    def test_towns_follow_schooling(self, fitted):
        made = fitted.moved(slice(1000, 3000), [5 / 9], i=2)[:, 0, 0]
        moved = made != fitted.rows[1000:3000, 0]
        assert moved.float().mean() > 0.5
        assert ((made[moved] >= 50) & (made[moved] < 60)).float().mean() > 0.9

    def test_a_town_with_one_row_is_supported(self, fitted):
        assert fitted.moved(slice(0, 1000), [999.0]).isfinite().all()


class TestProtocol:
    def test_an_unfitted_decoder_raises(self):
        with pytest.raises(NotFittedError, match="call fit first"):
            Transport().encode(torch.zeros(1, 2))

    def test_an_unfitted_copy_has_the_settings_only(self, mixed):
        copied = Fitted(mixed.frame, ranks=99).decoder.clone_unfitted()
        assert copied.settings() == {"ranks": 99, "given": "immutable", "ties": "middle"}
        with pytest.raises(NotFittedError):
            copied.tensors()

    @pytest.mark.parametrize("act_on", [None, ["debt", ("age", "job")]])
    def test_tensors_can_be_loaded(self, mixed, act_on):
        fitted = Fitted(mixed.frame, act_on)
        loaded = Transport.with_settings(fitted.decoder.settings())
        loaded.load_state(fitted.decoder.tensors(), fitted.encoder, fitted.sets)
        expected = fitted.moved(slice(0, 50), [0.2, 0.8])
        fitted.decoder = loaded
        assert torch.equal(fitted.moved(slice(0, 50), [0.2, 0.8]), expected)

    def test_a_batch_may_mix_rows_values_and_sets(self, mixed):
        fitted = Fitted(mixed.frame)
        rows = fitted.rows[:30]
        sets = torch.arange(30) % len(fitted.sets)
        v = fitted.decoder.encode(rows)[torch.arange(30), sets]
        feature = fitted.sets.positions[sets, 0]
        levels = torch.tensor([max(len(f.categories), 1) for f in fitted.encoder.schema])
        values = torch.rand(30, 4, 1, generator=rng())
        whole = (values * levels[feature][:, None, None]).floor()
        values = torch.where(levels[feature][:, None, None] > 1, whole, values)
        made = fitted.decoder.decode(rows, v, values, sets)
        for i in range(30):
            one = slice(i, i + 1)
            alone = fitted.decoder.decode(rows[one], v[one], values[one], sets[one])
            assert torch.allclose(alone, made[one], atol=1e-6)

    def test_the_global_generator_is_unchanged(self, mixed):
        torch.manual_seed(3)
        expected = torch.rand(3)
        torch.manual_seed(3)
        Fitted(mixed.frame).decoder.encode(torch.zeros(1, 8), rng())
        assert torch.equal(torch.rand(3), expected)
