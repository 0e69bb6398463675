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


class Half(Gaussian):
    """Half of the shift."""

    def decode(self, x, v, values):
        return (super().decode(x, v, values) + Still.decode(self, x, v, values)) / 2.0


ACT_ON = ["a", "c", ("a", "b")]
# Of a decoder: both fidelities, and how far chance takes them. Half of the shift leaves a quarter
# of the squared error.
KNOWN = {
    "unmoved": (lambda of: Still(), 0.0, 0.06, 0.0, 0.06),
    "half of the shift": (lambda of: Half(of, resampled=False), 0.75, 0.03, 0.5, 0.2),
    "resampled": (lambda of: Gaussian(of, resampled=True), 1.0, 0.02, 1.0, 0.05),
    "shifted": (lambda of: Gaussian(of, resampled=False), 1.0, 0.02, 1.0, 0.05),
}


@pytest.fixture(scope="module")
def decoded():
    frame, covariance = gaussian()
    return {name: Measured(make(covariance), frame, ACT_ON) for name, (make, *_) in KNOWN.items()}


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_decoder_has_its_fidelities(decoded, name):
    _, dependence, by, distribution, at_most = KNOWN[name]
    assert decoded[name].dependence == pytest.approx(dependence, abs=by)
    assert decoded[name].distribution == pytest.approx(distribution, abs=at_most)


def test_a_classifier_separates_from_real_rows_only_what_is_told_wrongly(decoded):
    auc = {name: fidelity.joint(measured.sample) for name, measured in decoded.items()}
    assert [auc["resampled"], auc["shifted"]] == pytest.approx([0.5, 0.5], abs=0.03)
    assert auc["unmoved"] > 0.55


def test_no_row_is_used_twice_by_the_classifier():
    sources = torch.randint(300, (3, 1200), generator=torch.Generator().manual_seed(0))
    allowed, rng = torch.arange(300) % 3 > 0, np.random.default_rng(0)
    at, move = fidelity.disjoint_moves(sources, allowed, rng, 300)
    rows = torch.cat([sources[at, move], move % 300])
    assert len(rows.unique()) == len(rows)


def test_the_slope_of_halved_values_is_one_half():
    x = torch.randn(50, 1, generator=torch.Generator().manual_seed(0))
    assert fidelity.slope(0.5 * x, x).tolist() == pytest.approx([0.5])


@pytest.mark.ci
def test_tabulated_values_are_not_recognised():
    """Rounded to 300 quantiles, a sample still has the same distribution."""
    x = torch.randn(4, 2, 3000, 3, generator=torch.Generator().manual_seed(0))
    grid = torch.special.ndtri((torch.arange(300) + 0.5) / 300)
    tabulated = grid[(x[:, 1, ..., None] - grid).abs().argmin(-1)]
    pairs = enumerate(zip(x[:, 0], tabulated, strict=True))
    aucs = [fidelity.auc(a, b, seed) for seed, (a, b) in pairs]
    assert np.mean(aucs) == pytest.approx(0.5, abs=0.02)


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


def test_sources_have_the_distribution_of_held_features_in_their_bin():
    """a and b depend on the immutable feature h."""
    rng = np.random.default_rng(0)
    h, noise = rng.normal(size=ROWS), rng.normal(size=(3, ROWS))
    a = h + noise[0]
    frame = pd.DataFrame({"a": a, "b": a - 2 * h + noise[1], "h": h, "half": noise[2] > 0})
    measured = Measured(Transport(), frame, ["a"], fit_on=3000, immutable=["h", "half"])
    sample = measured.sample
    real, moved = sample.real.repeat(fidelity.SOURCES, 1), sample.real[sample.sources[0]]
    assert torch.equal(real[:, 3], moved[:, 3])
    assert (real[:, 2] - moved[:, 2]).abs().mean() < 0.01
    assert measured.dependence == pytest.approx(1.0, abs=0.05)
    assert measured.distribution == pytest.approx(1.0, abs=0.1)
    assert set(fidelity.dependence(sample)["column"]) == {1}


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

    def test_the_columns_of_s_are_left_out(self, decoded):
        table = fidelity.dependence(decoded["unmoved"].sample)
        pairs = set(zip(table["set"], table["column"], strict=True))
        assert pairs == {(0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 3), (2, 2), (2, 3)}


@pytest.mark.parametrize("n", [2, 5, 60])
def test_few_rows_give_finite_numbers_or_nan(decoded, n):
    unmoved = decoded["unmoved"]
    few = unmoved.draw(unmoved.held[:n])
    assert np.isfinite(fidelity.dependence(few)[["left", "all"]]).all(axis=None)
    assert np.isfinite(fidelity.distribution(few)[["left", "all"]]).all(axis=None)
    assert np.isnan(fidelity.joint(few)) or 0.0 <= fidelity.joint(few) <= 1.0
