"""Fidelity: numbers that say 0 to a decoder that moves nothing and 1 to the truth.

The oracles know the system that the rows were drawn from: one redraws what is not acted on from
its true law given x_S (strangers), the other shifts people along the true slope (themselves).
"""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema, fidelity
from dear_plugin.datasets import load_loan
from dear_plugin.decoders import Transport
from tests.still import Still

ROWS = 6000


class Gaussian(Still):
    """The true conditional law: of the same people, or of strangers."""

    def __init__(self, covariance, strangers):
        self.covariance, self.strangers = covariance, strangers
        self.rng = torch.Generator().manual_seed(0)

    def fit(self, rows, encoder, sets):
        self.sets = sets
        self.width = torch.tensor([f.width for f in encoder.schema])
        self.low = torch.tensor([f.bounds[0] for f in encoder.schema])

    def decode(self, x, v, values, sets):
        out = super().decode(x, v, values, sets) * self.width + self.low
        here = x[:, None] * self.width + self.low
        for i in sets.unique().tolist():
            own = list(self.sets.members[i])
            rest = [j for j in range(x.shape[1]) if j not in own]
            within, across = (self.covariance[np.ix_(own, k)] for k in (own, rest))
            slope = np.linalg.solve(within, across)
            left = self.covariance[np.ix_(rest, rest)] - across.T @ slope
            slope, root = (
                torch.tensor(slope).float(),
                torch.tensor(np.linalg.cholesky(left)).float(),
            )
            at = sets == i
            mine = out[at]
            if self.strangers:
                noise = torch.randn(*mine.shape[:2], len(rest), generator=self.rng) @ root.T
                mine[..., rest] = mine[..., own] @ slope + noise
            else:
                mine[..., rest] = here[at][..., rest] + (mine - here[at])[..., own] @ slope
            out[at] = mine
        return (out - self.low) / self.width


def gaussian():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(4, 4))
    covariance = root @ root.T + 0.2 * np.eye(4)
    drawn = rng.multivariate_normal(np.zeros(4), covariance, size=ROWS)
    return pd.DataFrame(drawn, columns=list("abcd")), covariance


def ratio(table):
    return 1.0 - table["left"].sum() / table["all"].sum()


class Measured:
    """A decoder's sample on some sets of some rows."""

    def __init__(self, decoder, frame, act_on, fit_on=0, **draw):
        schema = Schema.infer(frame)
        self.encoder, self.sets = Encoder(schema), ActionSets.of(schema, act_on)
        rows = self.encoder.rows(frame)
        self.decoder = decoder
        self.decoder.fit(rows[:fit_on] if fit_on else rows, self.encoder, self.sets)
        self.held = rows[fit_on:]
        self.sample = self.draw(**draw)

    def draw(self, **options):
        return fidelity.draw(self.decoder, self.encoder, self.sets, self.held, **options)

    @property
    def dependence(self):
        return ratio(fidelity.dependence(self.sample))

    @property
    def distribution(self):
        return ratio(fidelity.distribution(self.sample))

    @property
    def identity(self):
        return float(np.mean(fidelity.identity(self.sample)))


ACT_ON = ["a", "c", ("a", "b")]


@pytest.fixture(scope="module")
def still():
    return Measured(Still(), gaussian()[0], ACT_ON)


@pytest.fixture(scope="module")
def strangers():
    frame, covariance = gaussian()
    return Measured(Gaussian(covariance, strangers=True), frame, ACT_ON)


@pytest.fixture(scope="module")
def selves():
    frame, covariance = gaussian()
    return Measured(Gaussian(covariance, strangers=False), frame, ACT_ON)


@pytest.fixture(scope="module")
def transport():
    return Measured(Transport(), load_loan(9000, seed=0).features, ["income", "age"], fit_on=5000)


class TestNothingMoves:
    def test_both_fidelities_are_about_0(self, still):
        assert still.dependence == pytest.approx(0.0, abs=0.06)
        assert still.distribution == pytest.approx(0.0, abs=0.06)

    def test_on_average_over_draws_they_are_0(self, still):
        found = [ratio(fidelity.dependence(still.draw(seed=seed))) for seed in range(1, 9)]
        assert np.mean(found) == pytest.approx(0.0, abs=0.03)

    def test_people_remain_themselves(self, still):
        assert still.identity == pytest.approx(1.0, abs=1e-4)

    def test_a_classifier_sees_that_the_rows_do_not_fit(self, still, strangers):
        assert fidelity.joint(still.sample) > fidelity.joint(strangers.sample) + 0.04


class TestTheTruth:
    def test_strangers_with_the_right_law_score_1_and_have_no_identity(self, strangers):
        assert strangers.dependence == pytest.approx(1.0, abs=0.02)
        assert strangers.distribution == pytest.approx(1.0, abs=0.05)
        assert strangers.identity == pytest.approx(0.0, abs=0.02)

    def test_people_moved_along_the_true_slope_score_1_too_and_remain_themselves(self, selves):
        assert selves.dependence == pytest.approx(1.0, abs=0.02)
        assert selves.distribution == pytest.approx(1.0, abs=0.05)
        assert 0.3 < selves.identity < 1.0

    def test_no_classifier_tells_them_from_real_rows(self, strangers, selves):
        for measured in (strangers, selves):
            assert fidelity.joint(measured.sample) == pytest.approx(0.5, abs=0.03)

    def test_nor_do_few_rows_of_them_give_anybody_away(self, selves):
        """Several copies of a person would: .53 on average, where each was moved up to 4 times."""
        few = [
            fidelity.draw(selves.decoder, selves.encoder, selves.sets, part, seed=i)
            for i, part in enumerate(selves.held.split(ROWS // 6))
        ]
        found = [fidelity.joint(sample) for sample in few]
        assert np.mean(found) == pytest.approx(0.5, abs=0.015)

    def test_only_those_who_remain_themselves_come_back(self, strangers, selves):
        assert selves.sample.round_trip < 1e-5
        assert strangers.sample.round_trip > 0.02

    def test_half_of_the_truth_lies_between(self):
        frame, covariance = gaussian()

        class Half(Gaussian):
            def decode(self, x, v, values, sets):
                whole = super().decode(x, v, values, sets)
                still = Still.decode(self, x, v, values, sets)
                return (whole + still) / 2.0

        half = Measured(Half(covariance, strangers=False), frame, ACT_ON)
        # Squared errors: half the way leaves a quarter of them.
        assert half.dependence == pytest.approx(0.75, abs=0.03)
        assert 0.3 < half.distribution < 0.7


class TestNothingToFollow:
    """Features that do not depend on each other: both sums of a ratio are noise."""

    @staticmethod
    def independent(seed, n=1500):
        rng = np.random.default_rng(seed)
        heavy = (rng.random(n) < 0.05) * rng.lognormal(8, 1, n).round()
        columns = {"a": rng.normal(size=n).round(1), "b": rng.choice(list("xyz"), n), "c": heavy}
        return pd.DataFrame(columns | {"d": rng.random(n) < 0.3})

    @pytest.fixture(scope="class")
    @classmethod
    def samples(cls):
        return [
            Measured(Still(), cls.independent(seed), ["a", "b", "c", "d"]).sample
            for seed in range(40)
        ]

    @pytest.mark.parametrize(
        "measure",
        [
            fidelity.dependence,
            lambda sample: fidelity.dependence(sample, standardised=True),
            fidelity.distribution,
        ],
        ids=["dependence", "standardised", "distribution"],
    )
    def test_its_noise_is_what_all_varies_by(self, samples, measure):
        """Seed by seed the same world is drawn anew."""
        tables = [measure(sample).groupby("set")[["all", "noise"]].sum() for sample in samples]
        varied = np.var([table["all"] for table in tables], axis=0)
        told = np.mean([table["noise"] for table in tables], axis=0)
        assert 0.7 < np.mean(varied / told) < 1.6

    @pytest.mark.parametrize("measure", [fidelity.dependence, fidelity.distribution])
    @pytest.mark.parametrize("column", ["left", "all"])
    def test_nothing_exceeds_chance_on_average(self, samples, measure, column):
        """The same people on both sides agree too well: that was 7 to 9 standard errors below."""
        found = [measure(sample)[column].sum() for sample in samples]
        assert abs(np.mean(found)) < 3.0 * np.std(found, ddof=1) / np.sqrt(len(found))

    def test_nobody_is_recognised_where_rows_are_as_good_as_real(self, samples):
        """A person or a value in two folds would be: .536 where each was moved up to 4 times."""
        for independent in (False, True):
            found = [fidelity.joint(sample, independent=independent) for sample in samples[:15]]
            assert np.mean(found) == pytest.approx(0.5, abs=0.01)

    def test_no_ratio_is_told(self, samples):
        for standardised in (False, True):
            tables = [fidelity.dependence(sample, standardised) for sample in samples]
            told = [not np.isnan(fidelity.ratio(table)) for table in tables]
            assert not any(told)
            sets = [t[t["set"] == i] for t in tables for i in range(4)]
            assert np.mean([not np.isnan(fidelity.ratio(table)) for table in sets]) <= 0.03

    def test_nor_one_of_distributions(self, samples):
        tables = [fidelity.distribution(sample) for sample in samples[:10]]
        assert all(np.isnan(fidelity.ratio(table)) for table in tables)

    def test_where_features_depend_it_is_told_as_before(self, still, transport):
        for sample in (still.sample, transport.sample):
            for table in (fidelity.dependence(sample), fidelity.distribution(sample)):
                assert fidelity.ratio(table) == pytest.approx(ratio(table), abs=1e-12)

    def test_one_pair_among_many_features_is_told(self):
        frame = pd.DataFrame(
            np.random.default_rng(0).normal(size=(1500, 8)), columns=list("abcdefgh")
        )
        frame["b"] += frame["a"]
        measured = Measured(Transport(), frame, list(frame))
        assert fidelity.ratio(fidelity.dependence(measured.sample)) > 0.8

    def test_a_constant_column_is_not_scaled(self):
        """The held-out rows may hold one category of a rare one; nothing is as heavy as 1 / 0."""
        frame = gaussian()[0]
        frame["rare"] = np.arange(ROWS) < 30
        measured = Measured(Transport(), frame, ["a", "c"], fit_on=3000)
        assert (measured.sample.real[:, 4] == 0).all()
        table = fidelity.dependence(measured.sample, standardised=True)
        assert 4 not in set(table["column"])
        assert fidelity.ratio(table) == pytest.approx(1.0, abs=0.1)

    def test_a_set_that_leaves_no_other_column_has_none(self):
        measured = Measured(Still(), gaussian()[0][["a", "b"]], ["a", ("a", "b")])
        table = fidelity.dependence(measured.sample)
        assert set(table["set"]) == {0}
        assert np.isnan(fidelity.ratio(table[table["set"] == 1]))


class TestTransport:
    def test_it_is_faithful_on_the_loan_data(self, transport):
        assert transport.dependence >= 0.9
        assert transport.distribution >= 0.8
        assert transport.identity >= 0.7
        assert transport.sample.round_trip < 1e-5

    def test_middle_ties_show_less_than_random_ones(self):
        """Somebody's category flips for all or for none, so shares do not follow."""
        frame = load_loan(6000, seed=0).features
        share = 0.1 + 0.35 * frame["income"].rank(pct=True)
        frame["owner"] = (np.random.default_rng(0).random(6000) < share).astype(int)
        frame = frame[["income", "owner"]]
        random = Measured(Transport(), frame, ["income"], fit_on=3000)
        shown = ratio(fidelity.dependence(random.draw(as_displayed=True)))
        assert random.dependence >= 0.9
        assert shown < 0.6


class TestGiven:
    """Held-out people are drawn with the bin's own distribution of what is given."""

    @pytest.fixture(scope="class")
    @classmethod
    def frame(cls):
        """b is what it is by a and c, and both follow h, which is given."""
        rng = np.random.default_rng(0)
        h, noise = rng.normal(size=ROWS), rng.normal(size=(3, ROWS))
        a = h + noise[0]
        return pd.DataFrame({"a": a, "b": a - 2 * h + noise[1], "h": h, "half": noise[2] > 0})

    @pytest.fixture(scope="class")
    @classmethod
    def measured(cls, frame):
        return Measured(Transport(given=["h", "half"]), frame, ["a"], fit_on=3000)

    def test_who_is_moved_to_a_row_is_like_it_in_what_is_given(self, measured):
        sample = measured.sample
        real, moved = sample.real.repeat(fidelity.PEOPLE, 1), sample.real[sample.people[0]]
        assert torch.equal(real[:, 3], moved[:, 3])
        assert (real[:, 2] - moved[:, 2]).abs().mean() < 0.01

    def test_but_is_like_anybody_in_the_rest(self, measured):
        sample = measured.sample
        real, moved = sample.real.repeat(fidelity.PEOPLE, 1), sample.real[sample.people[0]]
        within = [(x[:, 0] - 0.5 * x[:, 2]).double() for x in (real, moved)]
        gap = (within[0] - within[1]).square().mean() / (2 * within[0].var())
        assert gap.item() > 0.6

    def test_what_is_given_does_not_count(self, measured):
        assert set(fidelity.dependence(measured.sample)["column"]) == {1}

    def test_a_decoder_that_conditions_on_it_is_faithful(self, measured):
        assert measured.dependence == pytest.approx(1.0, abs=0.05)
        assert measured.distribution == pytest.approx(1.0, abs=0.1)

    def test_one_that_does_not_moves_people_the_wrong_way(self, frame):
        """b falls by 0 a unit of a among everybody, and rises by 1 at equal h."""

        class Blind(Transport):
            given_features = torch.tensor([2, 3])

        assert Measured(Blind(), frame, ["a"], fit_on=3000).dependence < 0.5

    def test_nothing_moves_scores_0_here_too(self, frame):
        class Held(Still):
            given_features = torch.tensor([2])

        assert Measured(Held(), frame, ["a"]).dependence == pytest.approx(0.0, abs=0.06)

    @pytest.mark.parametrize("n", [2, 5, 60])
    def test_few_rows_will_do(self, measured, n):
        few = fidelity.draw(measured.decoder, measured.encoder, measured.sets, measured.held[:n])
        assert np.isfinite(fidelity.dependence(few)[["left", "all"]]).all(axis=None)


class TestTheSample:
    def test_it_moves_people_to_the_values_of_real_rows(self, still):
        sample, (feature, *_) = still.sample, still.sets.members[0]
        made = sample.generated[0, :, feature]
        n = len(sample.real)
        assert torch.equal(sample.bin_of[0][:n], sample.bins[0])
        assert len(made) == fidelity.PEOPLE * n
        for part in made.split(n):
            torch.testing.assert_close(part, sample.real[:, feature])

    def test_bins_cut_x_s_into_cells_of_some_people(self, still):
        sample = still.sample
        for bins in sample.bins:
            assert torch.bincount(bins).min() > 0
        assert sample.bins[0].max() + 1 <= fidelity.METRIC_BINS
        inside = [sample.real[sample.bins[0] == b, 0] for b in sample.bins[0].unique()]
        ends = sorted((float(x.min()), float(x.max())) for x in inside)
        assert all(a[1] < b[0] for a, b in pairwise(ends))

    def test_what_is_generated_is_rounded_as_people_see_it(self, transport):
        frame_like = transport.sample.generated[0]
        (j,) = transport.encoder.schema.index(["duration"])
        feature = transport.encoder.schema.features[j]
        user = feature.bounds[0] + feature.width * frame_like[:, j].double()
        torch.testing.assert_close(user, user.round(), atol=1e-3, rtol=0.0)

    def test_a_number_has_the_same_bits_in_real_and_generated_rows(self, transport):
        sample = transport.sample
        for j, feature in enumerate(transport.encoder.schema):
            if feature.precision is None:
                continue
            column = transport.encoder.starts[j]
            both = torch.cat([sample.real[:, column], sample.generated[:, :, column].flatten()])
            user = feature.bounds[0] + feature.width * both.double()
            assert len(both.unique()) == len(user.mul(10**feature.precision).round().unique())

    def test_people_moved_by_a_hair_are_not_told_apart(self):
        """A computed float32 beside the one that was read gives nobody away."""
        frame, _ = gaussian()

        class Hair(Still):
            def decode(self, x, v, values, sets):
                moved = super().decode(x, v, values, sets)
                return moved * (1.0 + 2.0**-22)

        whole = frame.round(0)
        one, other = (Measured(kind(), whole, ACT_ON) for kind in (Still, Hair))
        assert other.distribution == pytest.approx(one.distribution, abs=1e-6)
        assert fidelity.joint(other.sample) == pytest.approx(fidelity.joint(one.sample), abs=1e-6)

    def test_independent_moves_are_the_same_people_with_another_x_s(self, still, strangers):
        alike = fidelity.joint(still.sample)
        assert fidelity.joint(still.sample, independent=True) == alike
        assert fidelity.joint(strangers.sample, independent=True) > 0.54

    def test_the_columns_of_s_do_not_count(self, still):
        table = fidelity.dependence(still.sample)
        pairs = set(zip(table["set"], table["column"], strict=True))
        assert pairs == {(0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 3), (2, 2), (2, 3)}

    def test_the_same_seed_draws_the_same_and_nothing_global_is_touched(self, transport):
        state, numpy_state = torch.random.get_rng_state(), np.random.get_state()[1].copy()
        one, other, third = (transport.draw(seed=seed) for seed in (3, 3, 4))
        assert torch.equal(one.generated, other.generated)
        assert not torch.equal(one.people, third.people)
        fidelity.distribution(one)
        fidelity.joint(one)
        assert torch.equal(state, torch.random.get_rng_state())
        assert (numpy_state == np.random.get_state()[1]).all()

    def test_it_looks_at_so_many_rows_and_no_more(self, still):
        twice = torch.cat([still.held, still.held])
        big = fidelity.draw(still.decoder, still.encoder, still.sets, twice)
        assert len(big.real) == fidelity.MOST_ROWS < len(twice)


class TestFewRows:
    @pytest.mark.parametrize("n", [2, 5, 60])
    def test_it_gives_numbers_or_says_that_it_has_none(self, still, n):
        few = fidelity.draw(still.decoder, still.encoder, still.sets, still.held[:n])
        assert np.isfinite(fidelity.dependence(few)[["left", "all"]]).all(axis=None)
        assert np.isfinite(fidelity.distribution(few)[["left", "all"]]).all(axis=None)
        assert np.isnan(fidelity.joint(few)) or 0.0 <= fidelity.joint(few) <= 1.0
