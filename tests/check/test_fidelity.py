"""Fidelity: 0 for a decoder that changes only x_S and 1 for the true conditional distribution.

Two decoders know the distribution of the rows: one resamples the other features from their
distribution given x_S (resampled), the other shifts them along the regression slope (shifted).
"""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.check import fidelity
from dear_plugin.decoders import Decoders, Sample, Transport
from tests.still import Still

ROWS = 6000


class Gaussian(Still):
    """The true conditional distribution, resampled or shifted."""

    def __init__(self, covariance, resampled):
        self.covariance, self.resampled = covariance, resampled
        self.rng = torch.Generator().manual_seed(0)

    def settings(self):
        return {"covariance": self.covariance, "resampled": self.resampled}

    def decode(self, x, v, values):
        before, out = x[:, None], super().decode(x, v, values)
        own, rest = self.acted, [j for j in range(x.shape[1]) if j not in self.acted]
        within, across = (self.covariance[np.ix_(own, k)] for k in (own, rest))
        slope = np.linalg.solve(within, across)
        left = self.covariance[np.ix_(rest, rest)] - across.T @ slope
        slope, root = torch.tensor(slope), torch.tensor(np.linalg.cholesky(left))
        if self.resampled:
            noise = torch.randn(*out.shape[:2], len(rest), generator=self.rng).double() @ root.T
            out[..., rest] = out[..., own] @ slope + noise
        else:
            out[..., rest] = before[..., rest] + (out - before)[..., own] @ slope
        return out


def gaussian():
    rng = np.random.default_rng(2)
    root = rng.normal(size=(4, 4))
    covariance = root @ root.T + 0.2 * np.eye(4)
    drawn = rng.multivariate_normal(np.zeros(4), covariance, size=ROWS)
    return pd.DataFrame(drawn, columns=list("abcd")), covariance


def ratio(table):
    return 1.0 - table["left"].sum() / table["all"].sum()


class Measured:
    """The sample of a decoder on sets and rows."""

    def __init__(self, decoder, frame, act_on, fit_on=0, immutable=(), **draw):
        schema = Schema.infer(frame, immutable=immutable)
        self.encoder, self.sets = Encoder(schema), ActionSets.of(schema, act_on)
        rows = self.encoder.rows(frame)
        sample = Sample(rows[:fit_on] if fit_on else rows, self.encoder)
        self.decoders = Decoders(decoder, sample, self.sets.members)
        self.held = rows[fit_on:]
        self.sample = self.draw(**draw)

    def draw(self, rows=None, **options):
        held = self.held if rows is None else rows
        return fidelity.draw(self.decoders, self.sets, held, **options)

    @property
    def dependence(self):
        return ratio(fidelity.dependence(self.sample))

    @property
    def distribution(self):
        return ratio(fidelity.distribution(self.sample))


ACT_ON = ["a", "c", ("a", "b")]


@pytest.fixture(scope="module")
def unmoved():
    return Measured(Still(), gaussian()[0], ACT_ON)


@pytest.fixture(scope="module")
def resampled():
    frame, covariance = gaussian()
    return Measured(Gaussian(covariance, resampled=True), frame, ACT_ON)


@pytest.fixture(scope="module")
def shifted():
    frame, covariance = gaussian()
    return Measured(Gaussian(covariance, resampled=False), frame, ACT_ON)


class TestOnlyXSChanges:
    def test_both_fidelities_are_about_0(self, unmoved):
        assert unmoved.dependence == pytest.approx(0.0, abs=0.06)
        assert unmoved.distribution == pytest.approx(0.0, abs=0.06)


class TestTrueConditionals:
    def test_resampled_rows_have_fidelity_1(self, resampled):
        assert resampled.dependence == pytest.approx(1.0, abs=0.02)
        assert resampled.distribution == pytest.approx(1.0, abs=0.05)

    def test_shifted_rows_have_fidelity_1(self, shifted):
        assert shifted.dependence == pytest.approx(1.0, abs=0.02)
        assert shifted.distribution == pytest.approx(1.0, abs=0.05)

    def test_no_classifier_separates_them_from_real_rows(self, resampled, shifted):
        for measured in (resampled, shifted):
            assert fidelity.joint(measured.sample) == pytest.approx(0.5, abs=0.03)

    def test_half_of_the_shift_has_a_fidelity_in_between(self):
        frame, covariance = gaussian()

        class Half(Gaussian):
            def decode(self, x, v, values):
                whole = super().decode(x, v, values)
                unmoved = Still.decode(self, x, v, values)
                return (whole + unmoved) / 2.0

        half = Measured(Half(covariance, resampled=False), frame, ACT_ON)
        # Half of the shift leaves a quarter of the squared error.
        assert half.dependence == pytest.approx(0.75, abs=0.03)
        assert 0.3 < half.distribution < 0.7


@pytest.mark.slow
class TestIndependentFeatures:
    """Without dependence, both sums of the ratio are noise."""

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
    def test_noise_is_the_variance_of_all(self, samples, measure):
        """Over independent draws."""
        tables = [measure(sample).groupby("set")[["all", "noise"]].sum() for sample in samples]
        varied = np.var([table["all"] for table in tables], axis=0)
        reported = np.mean([table["noise"] for table in tables], axis=0)
        assert 0.7 < np.mean(varied / reported) < 1.6

    @pytest.mark.parametrize("measure", [fidelity.dependence, fidelity.distribution])
    @pytest.mark.parametrize("column", ["left", "all"])
    def test_the_excess_is_0_on_average(self, samples, measure, column):
        """Without the correction for common rows it is 7 to 9 standard errors below."""
        found = [measure(sample)[column].sum() for sample in samples]
        assert abs(np.mean(found)) < 3.0 * np.std(found, ddof=1) / np.sqrt(len(found))

    def test_fidelities_are_nan(self, samples):
        for standardised in (False, True):
            tables = [fidelity.dependence(sample, standardised) for sample in samples]
            reported = [not np.isnan(fidelity.ratio(table)) for table in tables]
            assert not any(reported)
            sets = [t[t["set"] == i] for t in tables for i in range(4)]
            assert np.mean([not np.isnan(fidelity.ratio(table)) for table in sets]) <= 0.03


class TestHeld:
    """Sources have the distribution of held features in their bin."""

    @pytest.fixture(scope="class")
    @classmethod
    def frame(cls):
        """a and b depend on the immutable feature h."""
        rng = np.random.default_rng(0)
        h, noise = rng.normal(size=ROWS), rng.normal(size=(3, ROWS))
        a = h + noise[0]
        return pd.DataFrame({"a": a, "b": a - 2 * h + noise[1], "h": h, "half": noise[2] > 0})

    @pytest.fixture(scope="class")
    @classmethod
    def measured(cls, frame):
        return Measured(Transport(), frame, ["a"], fit_on=3000, immutable=["h", "half"])

    def test_sources_are_matched_in_held_features(self, measured):
        sample = measured.sample
        real, moved = sample.real.repeat(fidelity.SOURCES, 1), sample.real[sample.sources[0]]
        assert torch.equal(real[:, 3], moved[:, 3])
        assert (real[:, 2] - moved[:, 2]).abs().mean() < 0.01

    def test_a_conditioning_decoder_has_fidelity_1(self, measured):
        assert measured.dependence == pytest.approx(1.0, abs=0.05)
        assert measured.distribution == pytest.approx(1.0, abs=0.1)

    def test_held_features_are_left_out(self, measured):
        assert set(fidelity.dependence(measured.sample)["column"]) == {1}


class TestSample:
    def test_rounding_errors_are_not_recognised(self):
        """A computed float32 may differ in its last bits from one that was read."""
        frame, _ = gaussian()

        class Perturbed(Still):
            def decode(self, x, v, values):
                moved = super().decode(x, v, values)
                return moved * (1.0 + 2.0**-22)

        whole = frame.round(0)
        one, other = (Measured(kind(), whole, ACT_ON) for kind in (Still, Perturbed))
        assert other.distribution == pytest.approx(one.distribution, abs=1e-6)
        assert fidelity.joint(other.sample) == pytest.approx(fidelity.joint(one.sample), abs=1e-6)

    def test_the_columns_of_s_are_left_out(self, unmoved):
        table = fidelity.dependence(unmoved.sample)
        pairs = set(zip(table["set"], table["column"], strict=True))
        assert pairs == {(0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 3), (2, 2), (2, 3)}


class TestFewRows:
    @pytest.mark.parametrize("n", [2, 5, 60])
    def test_it_gives_finite_numbers_or_nan(self, unmoved, n):
        few = unmoved.draw(unmoved.held[:n])
        assert np.isfinite(fidelity.dependence(few)[["left", "all"]]).all(axis=None)
        assert np.isfinite(fidelity.distribution(few)[["left", "all"]]).all(axis=None)
        assert np.isnan(fidelity.joint(few)) or 0.0 <= fidelity.joint(few) <= 1.0
