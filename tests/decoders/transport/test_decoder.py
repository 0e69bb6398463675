"""Transport: people keep their rank. What is counted here is known exactly."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders import Transport
from dear_plugin.errors import NotFittedError

A_GROUP = 1000


class Fitted:
    """A decoder, its sets, and the rows it was fitted on."""

    def __init__(self, frame, act_on=None, ranks=256):
        self.frame = frame
        self.encoder = Encoder(Schema.infer(frame))
        self.sets = ActionSets.of(self.encoder.schema, act_on)
        self.rows = self.encoder.rows(frame)
        self.decoder = Transport(ranks)
        self.decoder.fit(self.rows, self.encoder, self.sets)

    def moved(self, people, values, which=0, ties=None):
        """(m, c, p) rows of people moved to each of c values of one set."""
        rows = self.rows[people]
        v = self.decoder.encode(rows, ties)[:, which]
        width = self.sets.positions.shape[1]
        wide = torch.as_tensor(values).float().view(1, -1, 1).expand(len(rows), -1, width)
        return self.decoder.decode(rows, v, wide, torch.full((len(rows),), which))


def grouped(shares: dict[int, list[float]], labels: str = "ABC") -> pd.DataFrame:
    """1,000 people a group, of whom exactly these shares have each label."""
    parts = []
    for group, share in shares.items():
        counts = [round(s * A_GROUP) for s in share]
        column = np.repeat(list(labels[: len(share)]), counts)
        parts.append(pd.DataFrame({"group": group, "label": column}))
    return pd.concat(parts, ignore_index=True)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


class TestStayingPut:
    @pytest.mark.parametrize("act_on", [None, [("age", "job"), ("income", "debt", "town")]])
    @pytest.mark.parametrize("ties", [False, True])
    def test_at_ones_own_value_one_is_oneself_exactly(self, mixed, act_on, ties):
        fitted = Fitted(mixed.frame, act_on)
        v = fitted.decoder.encode(fitted.rows, rng() if ties else None)
        for i in range(len(fitted.sets)):
            own = fitted.rows[:, None, fitted.sets.positions[i]]
            sets = torch.full((len(fitted.rows),), i)
            back = fitted.decoder.decode(fitted.rows, v[:, i], own, sets)[:, 0]
            assert torch.equal(back, fitted.rows)

    def test_also_for_people_it_never_saw(self, mixed):
        fitted = Fitted(mixed.frame)
        strange = fitted.rows[:50] + torch.tensor([0.3, -0.2, 1.5, 0, 0, 0, 0, 0])
        v = fitted.decoder.encode(strange)
        for i in range(len(fitted.sets)):
            own = strange[:, None, fitted.sets.positions[i]]
            back = fitted.decoder.decode(strange, v[:, i], own, torch.full((50,), i))[:, 0]
            assert torch.equal(back, strange)

    def test_what_is_acted_on_takes_the_value_it_is_given(self, mixed):
        fitted = Fitted(mixed.frame)
        values = [0.123, 0.9, 1.4]
        made = fitted.moved(slice(0, 50), values)
        assert torch.equal(made[:, :, 0], torch.tensor(values).expand(50, 3))


class TestBinary:
    """A person flips if, and only if, the probability of their value more than halves."""

    shares = (0.9, 0.8, 0.6, 0.47, 0.43, 0.2)

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls):
        return Fitted(grouped({g: [1 - p, p] for g, p in enumerate(cls.shares)}), ["group"])

    @pytest.mark.parametrize("group", range(6))
    @pytest.mark.parametrize("label", "AB")
    def test_the_rule(self, fitted, group, label):
        frame = fitted.frame
        who = np.flatnonzero((frame["group"] == group) & (frame["label"] == label))[:3]
        made = fitted.moved(who, np.arange(6) / 5)[:, :, 1]
        own = {"A": 1 - np.array(self.shares), "B": np.array(self.shares)}[label]
        flips = own < own[group] / 2
        sure = abs(own - own[group] / 2) > 0.005
        came = (made[0] != fitted.rows[who[0], 1]).numpy()
        assert (came == flips)[sure].all()

    def test_everyone_with_the_same_label_is_told_the_same(self, fitted):
        who = np.flatnonzero(fitted.frame["group"] == 0)
        made = fitted.moved(who, [0.8])[:, 0, 1]
        own = fitted.rows[who, 1]
        assert len(made[own == 1].unique()) == len(made[own == 0].unique()) == 1

    def test_with_random_ties_as_many_have_it_as_have_it_there(self, fitted):
        who = np.flatnonzero(fitted.frame["group"] == 0)
        made = fitted.moved(who, np.arange(6) / 5, ties=rng())[:, :, 1]
        assert made.mean(0).tolist() == pytest.approx(list(self.shares), abs=0.02)

    def test_random_ties_move_as_few_as_possible(self, fitted):
        """From .9 to .6 three in ten must change; nobody else does."""
        who = np.flatnonzero(fitted.frame["group"] == 0)
        made = fitted.moved(who, [0.4], ties=rng())[:, 0, 1]
        changed = (made != fitted.rows[who, 1]).float().mean()
        assert changed == pytest.approx(0.3, abs=0.02)

    @pytest.mark.parametrize(("label", "rng"), [("A", (0.0, 0.0)), ("B", (1.0, 0.47 / 0.9))])
    def test_leanings_are_a_persons_own_chances(self, fitted, label, rng):
        """From .9 to .47: nobody with A leaves it, and 47 in 90 keep B."""
        values = torch.tensor([0.0, 0.6]).view(1, 2, 1)
        own = np.flatnonzero((fitted.frame["group"] == 0) & (fitted.frame["label"] == label))
        x, sets = fitted.rows[own[:1]], torch.tensor([0])
        (leaning,) = fitted.decoder.flip_probabilities(x, values, sets).values()
        assert leaning == pytest.approx(rng, abs=2e-3)


class TestCategories:
    """Maximal coupling: one keeps one's category unless its probability more than halves."""

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
        who = np.flatnonzero((fitted.frame["group"] == 0) & (fitted.frame["label"] == label))
        made = fitted.moved(who, [group / 3])[:, 0, 1]
        assert {"ABC"[int(c)] for c in made} == {becomes}

    @pytest.mark.parametrize("group", range(4))
    def test_with_random_ties_the_shares_are_those_there(self, fitted, group):
        who = np.flatnonzero(fitted.frame["group"] == 0)
        made = fitted.moved(who, [group / 3], ties=rng())[:, 0, 1].long()
        share = torch.bincount(made, minlength=3) / len(who)
        assert share.tolist() == pytest.approx(self.shares[group], abs=0.03)

    @pytest.mark.parametrize("group", range(4))
    def test_as_few_change_as_possible(self, fitted, group):
        who = np.flatnonzero(fitted.frame["group"] == 0)
        made = fitted.moved(who, [group / 3], ties=rng())[:, 0, 1]
        changed = (made != fitted.rows[who, 1]).float().mean()
        least = np.maximum(np.array(self.shares[0]) - self.shares[group], 0).sum()
        assert changed == pytest.approx(least, abs=0.03)


class TestNumbersWithAtoms:
    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls):
        """Half the people gain nothing; the more schooling, the fewer of them."""
        rng = np.random.default_rng(0)
        school = rng.integers(0, 9, 8000)
        none = rng.random(8000) < 0.9 - 0.1 * school
        gain = np.where(none, 0.0, np.round(rng.exponential(100 + 50 * school), 1))
        return Fitted(pd.DataFrame({"school": school, "gain": gain}), ["school"])

    def test_values_stay_values_that_people_have(self, fitted):
        made = fitted.moved(slice(0, 2000), np.linspace(0, 1, 23))
        assert torch.isin(made[:, :, 1], fitted.rows[:, 1]).all()

    def test_between_two_values_of_x_s_nothing_is_invented(self, fitted):
        """Distributions are mixed, never quantiles: at 3.5 years the gain of 3 or of 4."""
        made = fitted.moved(slice(0, 2000), [3.5 / 8])[:, 0, 1]
        assert torch.isin(made, fitted.rows[:, 1]).all()

    def test_zero_stays_zero_for_most(self, fitted):
        who = np.flatnonzero((fitted.frame["school"] == 4) & (fitted.frame["gain"] == 0))
        made = fitted.moved(who, [5 / 8])[:, 0, 1]
        assert (made == 0).all()

    def test_who_stands_higher_ends_higher(self, fitted):
        who = np.flatnonzero((fitted.frame["school"] == 2) & (fitted.frame["gain"] > 0))
        order = fitted.rows[who, 1].argsort()
        made = fitted.moved(who[order], [1.0])[:, 0, 1]
        assert (made.diff() >= 0).all()

    @pytest.mark.parametrize("to", [0, 4, 8])
    def test_with_random_ties_the_distribution_is_the_one_there(self, fitted, to):
        who = np.flatnonzero(fitted.frame["school"] == 2)
        made = fitted.moved(who, [to / 8], ties=rng())[:, 0, 1]
        there = fitted.rows[np.flatnonzero(fitted.frame["school"] == to), 1]
        deciles = torch.linspace(0.1, 0.9, 9)
        assert torch.allclose(made.quantile(deciles), there.quantile(deciles), atol=0.04)


class TestLatents:
    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, mixed):
        return Fitted(mixed.frame)

    def test_they_are_standings(self, fitted):
        v = fitted.decoder.encode(fitted.rows)
        n, p = fitted.rows.shape
        assert v.shape == (n, len(fitted.sets), p)
        assert ((v > 0) & (v < 1)).all()

    def test_without_a_generator_ties_take_the_middle_and_nothing_is_drawn(self, fitted):
        one, other = (fitted.decoder.encode(fitted.rows) for _ in range(2))
        assert torch.equal(one, other)

    def test_with_the_same_generator_the_same_is_drawn(self, fitted):
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
    """Tables are bounded: fewer values and standings are told apart, and people still move."""

    @staticmethod
    def frame(p, kind, n=1500):
        rng = np.random.default_rng(0)
        x = rng.normal(size=(n, 5)) @ rng.normal(size=(5, p)) + rng.normal(size=(n, p))
        values = x if kind == "smooth" else (3 * x).round()
        return pd.DataFrame(values, columns=[f"x{j}" for j in range(p)])

    @pytest.mark.parametrize("kind", ["smooth", "atoms"])
    def test_two_hundred_features_and_sets_take_less_than_half_a_gibibyte(self, kind):
        fitted = Fitted(self.frame(200, kind))
        assert sum(t.nbytes for t in fitted.decoder.tensors().values()) < 2**29
        made = fitted.moved(slice(0, 20), [0.2, 0.8])
        assert made.isfinite().all()
        assert (made[:, 1] != made[:, 0]).float().mean() > 0.3

    def test_who_is_oneself_stays_oneself(self):
        fitted = Fitted(self.frame(200, "atoms", 600))
        rows, which = fitted.rows[:50], 7
        v = fitted.decoder.encode(rows)[:, which]
        sets = torch.full((50,), which)
        assert torch.equal(
            fitted.decoder.decode(rows, v, rows[:, None, [which]], sets)[:, 0], rows
        )


class TestManyCategories:
    """A thousand towns, acted on and moved along."""

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

    def test_all_who_move_there_are_like_those_who_live_there(self, fitted):
        for town in (13, 57, 99):
            made = fitted.moved(slice(0, 4000), [float(town)], ties=rng())[:, 0]
            there = fitted.rows[fitted.rows[:, 0] == town]
            assert made[:, 1].mean() == pytest.approx(there[:, 1].mean().item(), abs=0.03)
            assert (made[:, 2] == (town // 10) / 9).float().mean() > 0.75

    def test_who_learns_more_moves_to_a_town_of_the_learned(self, fitted):
        made = fitted.moved(slice(1000, 3000), [5 / 9], which=2)[:, 0, 0]
        moved = made != fitted.rows[1000:3000, 0]
        assert moved.float().mean() > 0.5
        assert ((made[moved] >= 50) & (made[moved] < 60)).float().mean() > 0.9

    def test_a_town_of_one_is_no_obstacle(self, fitted):
        assert fitted.moved(slice(0, 1000), [999.0]).isfinite().all()


class TestTheProtocol:
    def test_before_fit_it_says_so(self):
        with pytest.raises(NotFittedError, match="call fit first"):
            Transport().encode(torch.zeros(1, 2))

    def test_a_blank_copy_has_the_settings_and_nothing_learned(self, mixed):
        copied = Fitted(mixed.frame, ranks=99).decoder.clone_unfitted()
        assert copied.settings() == {"ranks": 99, "given": "immutable", "ties": "middle"}
        with pytest.raises(NotFittedError):
            copied.tensors()

    @pytest.mark.parametrize("act_on", [None, ["debt", ("age", "job")]])
    def test_what_it_learned_can_be_handed_over(self, mixed, act_on):
        fitted = Fitted(mixed.frame, act_on)
        heir = Transport.with_settings(fitted.decoder.settings())
        heir.load_state(fitted.decoder.tensors(), fitted.encoder, fitted.sets)
        expected = fitted.moved(slice(0, 50), [0.2, 0.8])
        fitted.decoder = heir
        assert torch.equal(fitted.moved(slice(0, 50), [0.2, 0.8]), expected)

    def test_many_people_values_and_sets_are_one_batch(self, mixed):
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

    def test_it_draws_on_no_global_random_numbers(self, mixed):
        torch.manual_seed(3)
        expected = torch.rand(3)
        torch.manual_seed(3)
        Fitted(mixed.frame).decoder.encode(torch.zeros(1, 8), rng())
        assert torch.equal(torch.rand(3), expected)
