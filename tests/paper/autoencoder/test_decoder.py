"""Autoencoder: the paper's decoder exactly, and with the independence penalty."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders import Decoders, Fit, Sample
from dear_plugin.errors import NotFittedError
from dear_plugin.paper import PAPER_LAYERS, Autoencoder, Design, Training

SMALL = Design(layers=(8, 4))
FEW_STEPS = Training(most_steps=300)


class Case:
    """Rows of a frame, and decoders of sets fitted on them."""

    def __init__(self, frame, act_on=None):
        self.encoder = Encoder(Schema.infer(frame))
        self.sets = ActionSets.of(self.encoder.schema, act_on).members
        self.rows = self.encoder.rows(frame)
        self.sample = Sample(self.rows, self.encoder)

    def fits(self, sample=None):
        return [Fit(sample or self.sample, members, ()) for members in self.sets]

    def fitted(self, design=SMALL, training=FEW_STEPS, seed=0):
        """The decoders of all sets, trained together."""
        return Autoencoder(design, training, seed).fitted(self.fits())

    def decoded(self, decoders, which, change=0.0, count=50, rng=None):
        """The first rows after x_S changes by so much, (count, p), and their factuals."""
        x, decoder = self.rows[:count], decoders[which]
        values = (x[:, list(self.sets[which])] + change)[:, None]
        return decoder.decode(x, decoder.encode(x, rng), values)[:, 0], x


@pytest.fixture(scope="module")
def gaussian():
    """6,000 rows of a linear-Gaussian system of 5 variables."""
    rng = np.random.default_rng(3)
    root = rng.normal(size=(5, 5))
    draws = rng.normal(size=(6000, 5)) @ root
    return Case(pd.DataFrame(draws, columns=[f"x{j}" for j in range(5)]))


@pytest.fixture(scope="module")
def several(mixed):
    """Features of every kind, sets of one and of two."""
    return Case(mixed.frame, ["income", "town", "owner", ("age", "town")])


@pytest.fixture(scope="module")
def decoders(several):
    return several.fitted(training=Training(most_steps=60))


def slope_error(case, decoders):
    """Mean error of the slopes of x_j on x_S, in units of their mean size."""
    covariance = np.cov(case.rows.double().numpy().T)
    wrong, size = [], []
    for i, (s,) in enumerate(case.sets):
        up, _ = case.decoded(decoders, i, 0.05, 500)
        down, _ = case.decoded(decoders, i, -0.05, 500)
        rest = [j for j in range(5) if j != s]
        slope = ((up - down).mean(0) / 0.1).numpy()[rest]
        true = covariance[s, rest] / covariance[s, s]
        wrong.append(abs(slope - true))
        size.append(abs(true))
    return np.mean(wrong) / np.mean(size)


class TestDependence:
    def test_slopes_of_a_linear_gaussian_system_are_right(self, gaussian):
        assert slope_error(gaussian, gaussian.fitted()) <= 0.1

    def test_without_the_independence_penalty_they_are_not(self, gaussian):
        """The encoder copies what it needs into v, and the decoder ignores x_S."""
        free = replace(SMALL, independence=0.0, noise=0.0)
        assert slope_error(gaussian, gaussian.fitted(free)) >= 0.2

    def test_with_the_papers_losses_alone_they_are_far_too_small(self, gaussian):
        paper = replace(Autoencoder.paper((8, 4)).design, reconstruct="remainder")
        assert slope_error(gaussian, gaussian.fitted(paper)) >= 0.5


class TestRoundTrip:
    @pytest.mark.parametrize("ties", ["middle", "random"])
    def test_at_their_own_values_rows_are_returned_bit_for_bit(self, several, decoders, ties):
        rng = torch.Generator().manual_seed(0) if ties == "random" else None
        for which in range(4):
            reached, x = several.decoded(decoders, which, rng=rng)
            assert torch.equal(reached, x)

    def test_features_acted_on_take_the_given_values(self, several, decoders):
        reached, x = several.decoded(decoders, 0, 0.125)
        (j,) = several.sets[0]
        assert torch.equal(reached[:, j], x[:, j] + 0.125)

    def test_categories_stay_categories(self, several, decoders):
        for rng in (None, torch.Generator().manual_seed(0)):
            reached, _ = several.decoded(decoders, 0, 0.4, rng=rng)
            for j, feature in enumerate(several.encoder.schema):
                if feature.categories:
                    assert set(reached[:, j].tolist()) <= {*range(feature.columns + 1)}

    def test_a_row_does_not_depend_on_the_others_of_its_batch(self, several, decoders):
        x, decoder = several.rows[:20], decoders[3]
        v, own = decoder.encode(x), x[:, list(several.sets[3])]
        values = torch.stack([own.roll(1, 0), own.roll(2, 0)], 1)
        together = decoder.decode(x, v, values)
        for i in range(20):
            one = slice(i, i + 1)
            alone = decoder.decode(x[one], v[one], values[one])
            assert float(several.encoder.distance(alone, together[one]).max()) < 1e-6

    def test_nothing_is_conditioned_on(self, mixed):
        """Constraints restore the features that may not change."""
        (income,) = mixed.schema.index(["income"])
        assert mixed.schema.causal_order.held((income,))
        assert Autoencoder().held(mixed.schema, (income,)) == ()


@pytest.mark.parametrize("which", range(4))
def test_the_gradient_of_follow_is_that_of_finite_differences(several, which):
    decoder = several.fitted(training=Training(epochs=2))[which]
    decoder.networks.double()
    rows = several.rows[:40]
    x, v = several.encoder.expand(rows).double(), decoder.encode(rows).double()
    weight = torch.randn(x.shape, generator=torch.Generator().manual_seed(0)).double()

    def f(a):
        return (weight * decoder.follow(x, v, a)).sum()

    a = (x + 0.05).requires_grad_(True)
    (gradient,) = torch.autograd.grad(f(a), a)
    own = decoder.networks.mask[0, 0].bool()
    step = torch.zeros(x.shape).double()
    step[7, own.nonzero()[0]] = 1e-5
    slope = (f(a.detach() + step) - f(a.detach() - step)) / 2e-5
    assert float((gradient * step).sum() / 1e-5) == pytest.approx(float(slope), rel=1e-4)
    assert not gradient[:, ~own].any()


class TestPaper:
    @pytest.fixture(scope="class")
    @staticmethod
    def paper(gaussian):
        # Its own training takes thousands of steps.
        return gaussian.fitted(Autoencoder.paper((8, 10, 5)).design, Training(epochs=30))

    def test_its_settings(self, paper):
        """Among them: it trains at a constant rate until no better, not for so many steps."""
        layers = {"adult": (16, 32, 10), "compas": (8, 10, 5), "gmc": (8, 10, 5)}
        assert layers == PAPER_LAYERS
        assert Autoencoder.paper().settings() == Autoencoder.paper(layers["adult"]).settings()
        training = Autoencoder.paper().training
        assert not training.anneal
        assert training.epochs == training.most_steps > 10 * Training().most_steps
        assert not paper[0].keeps_factual and Autoencoder().keeps_factual

    def test_rows_are_replaced_by_the_output_of_g(self, gaussian, paper):
        """With its reconstruction error, at their own values too."""
        x = gaussian.encoder.expand(gaussian.rows[:50])
        output = paper[1].networks.generate(paper[1].networks.latents(x), x)[0]
        reached = gaussian.encoder.expand(gaussian.decoded(paper, 1)[0])
        rest = [0, 2, 3, 4]
        torch.testing.assert_close(reached[:, rest], output[:, rest])
        assert float((reached - x)[:, rest].abs().mean()) > 1e-3

    def test_its_penalty_pushes_mixed_derivatives_to_zero(self, gaussian, paper):
        free = gaussian.fitted(replace(paper[0].design, hessian=0.0))
        assert median_entanglement(paper, gaussian) <= 0.01
        assert median_entanglement(free, gaussian) >= 3.0 * median_entanglement(paper, gaussian)

    def test_columns_are_not_scaled(self, paper):
        x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
        assert torch.equal(paper[0].networks.scaler.read(x)[0], torch.cat([x, x], 1))

    def test_encoder_and_decoder_mirror_each_other_and_the_decoder_reads_x_s(self, paper):
        widths = [
            [tuple(step.weight.shape[1:]) for step in list(steps)[::2]]
            for steps in (paper[0].networks.e, paper[0].networks.g)
        ]
        assert widths == [[(5, 8), (8, 10), (10, 5)], [(5 + 1, 10), (10, 8), (8, 5)]]


def median_entanglement(decoders, case):
    return float(torch.cat([each.entanglement(case.rows[:200]) for each in decoders]).median())


def test_entanglement_is_one_number_per_row_for_any_size_of_a_part(several, decoders, monkeypatch):
    for decoder in decoders:
        found = decoder.entanglement(several.rows[:30])
        assert found.shape == (30,)
        assert (found > 0).all()
        w, k, d = decoder.networks.columns.shape[1], decoder.networks.k, several.encoder.d
        with monkeypatch.context() as patch:
            patch.setattr("dear_plugin.paper.autoencoder.decoder.CELLS", 20 * w * k * d)
            torch.testing.assert_close(decoder.entanglement(several.rows[:30]), found)


def test_the_same_seed_gives_the_same_networks_and_the_random_state_is_left_alone(several):
    state, few = torch.random.get_rng_state(), Training(most_steps=4)
    one, same, other = (several.fitted(training=few, seed=s)[0].tensors() for s in (1, 1, 2))
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(one[k], same[k]) for k in one)
    assert not torch.equal(one["e.0.weight"], other["e.0.weight"])


class TestTogether:
    """Several fits are trained in one stack of networks."""

    def test_a_single_fit_is_that_of_one_set_alone(self, several):
        one = Autoencoder(SMALL, Training(epochs=1))
        one.fit(*several.fits()[2])
        (other,) = Autoencoder(SMALL, Training(epochs=1)).fitted(several.fits()[2:3])
        assert all(torch.equal(one.tensors()[k], t) for k, t in other.tensors().items())

    def test_samples_of_other_sizes_are_trained_apart_in_the_order_of_the_fits(self, several):
        few = Sample(several.rows[:200], several.encoder)
        whole, income, town = several.sample, *several.sets[:2]
        fits = [Fit(whole, income, ()), Fit(few, town, ()), Fit(whole, town, ())]
        found = Autoencoder(SMALL, Training(epochs=1)).fitted(fits)
        same = Autoencoder(SMALL, Training(epochs=1)).fitted([fits[0], fits[2]])
        (alone,) = Autoencoder(SMALL, Training(epochs=1)).fitted([fits[1]])
        for one, other in zip(found, (same[0], alone, same[1]), strict=True):
            assert all(torch.equal(one.tensors()[k], t) for k, t in other.tensors().items())

    def test_resamples_are_copies_on_bootstrap_samples(self, several):
        """Trained together; they encode the row themselves, and return it at its own values."""
        decoders = Decoders(
            Autoencoder(SMALL, Training(most_steps=4)), several.sample, several.sets
        )
        decoders.fit(several.sets)
        x, members = several.rows[:8], several.sets[0]
        own, draws = x[:, list(members)], torch.arange(1, Autoencoder.draws + 1)
        assert torch.equal(decoders.resample(members, x, own, draws), x[:, None].repeat(1, 4, 1))
        found = decoders.resample(members, x, own + 0.2, draws)
        assert len({tuple(row.flatten().tolist()) for row in found.transpose(0, 1)}) == 4
        again = decoders.resample(members, x, own + 0.2, draws.flip(0)).flip(1)
        assert torch.equal(found, again)


def test_before_fit_it_raises(several):
    with pytest.raises(NotFittedError, match="call fit first"):
        Autoencoder().encode(several.rows)


def test_a_state_of_other_layers_is_refused_before_any_memory_is_asked_for(several, decoders):
    huge = Autoencoder(Design(layers=(10**12, 4)))
    with pytest.raises(ValueError, match=r"layers of \(1000000000000, 4\)"):
        huge.load_state(decoders[0].tensors(), several.fits()[0])
