"""Autoencoder: the paper's decoder exactly, and with the independence penalty."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders import PAPER_LAYERS, Autoencoder, Design, Training, make_decoder
from dear_plugin.decoders.autoencoder.remainder import MIDDLE
from dear_plugin.errors import DearError, NotFittedError

SMALL = Design(layers=(8, 4), members=1)
ENSEMBLE = replace(SMALL, members=3)
FEW_STEPS = Training(most_steps=300)


class Case:
    """Rows of a frame, and decoders fitted on them."""

    def __init__(self, frame, act_on=None):
        self.encoder = Encoder(Schema.infer(frame))
        self.sets = ActionSets.of(self.encoder.schema, act_on)
        self.rows = self.encoder.rows(frame)

    def fitted(self, design=SMALL, training=FEW_STEPS, seed=0):
        decoder = Autoencoder(design, training, seed)
        decoder.fit(self.rows, self.encoder, self.sets)
        return decoder

    def decoded(self, decoder, which, change=0.0, count=50, rng=None):
        """The first rows after x_S changes by so much, (count, p), and their factuals."""
        x = self.rows[:count]
        v = decoder.encode(x, rng)[:, which]
        values = (x[:, self.sets.positions[which]] + change)[:, None]
        return decoder.decode(x, v, values, torch.full((count,), which))[:, 0], x


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
def decoder(several):
    return several.fitted(training=Training(most_steps=60))


def slope_error(case, decoder):
    """Mean error of the slopes of x_j on x_S, in units of their mean size."""
    covariance = np.cov(case.rows.double().numpy().T)
    wrong, size = [], []
    for i, (s,) in enumerate(case.sets.members):
        up, _ = case.decoded(decoder, i, 0.05, 500)
        down, _ = case.decoded(decoder, i, -0.05, 500)
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
    def test_at_their_own_values_rows_are_returned_bit_for_bit(self, several, decoder, ties):
        rng = torch.Generator().manual_seed(0) if ties == "random" else None
        for which in range(4):
            reached, x = several.decoded(decoder, which, rng=rng)
            assert torch.equal(reached, x)

    def test_features_acted_on_take_the_given_values(self, several, decoder):
        reached, x = several.decoded(decoder, 0, 0.125)
        (j,) = several.sets.members[0]
        assert torch.equal(reached[:, j], x[:, j] + 0.125)

    def test_categories_stay_categories(self, several, decoder):
        features = several.encoder.schema.features
        for rng in (None, torch.Generator().manual_seed(0)):
            reached, _ = several.decoded(decoder, 0, 0.4, rng=rng)
            for j, feature in enumerate(features):
                if feature.categories:
                    assert set(reached[:, j].tolist()) <= set(
                        map(float, range(feature.columns + 1))
                    )

    def test_a_row_does_not_depend_on_the_others_of_its_batch(self, several, decoder):
        x = several.rows[:20]
        v, own = decoder.encode(x), x[:, several.sets.positions[3]]
        values = torch.stack([own.roll(1, 0), own.roll(2, 0)], 1)
        together = decoder.decode(x, v[:, 3], values, torch.full((20,), 3))
        for i in range(20):
            one = slice(i, i + 1)
            alone = decoder.decode(x[one], v[one, 3], values[one], torch.tensor([3]))
            torch.testing.assert_close(alone, together[one], atol=1e-6, rtol=0.0)


class TestTies:
    def test_every_feature_has_one_in_the_middle_unless_drawn(self, several, decoder):
        x, k = several.rows[:9], decoder.networks.k
        v = decoder.encode(x)
        assert v.shape == (9, 4, k + several.encoder.p)
        assert (v[..., k:] == MIDDLE).all()
        drawn = decoder.encode(x, torch.Generator().manual_seed(0))
        assert torch.equal(drawn[..., :k], v[..., :k])
        assert len(drawn[..., k:].unique()) > 200
        assert drawn[..., k:].min() >= 0.0
        assert drawn[..., k:].max() < 1.0

    def test_the_same_seed_gives_the_same_ties(self, several, decoder):
        one, other = (
            decoder.encode(several.rows[:9], torch.Generator().manual_seed(7)) for _ in range(2)
        )
        assert torch.equal(one, other)


class TestFollow:
    @staticmethod
    def inputs(case, decoder):
        x = case.encoder.expand(case.rows[:40]).expand(len(case.sets), -1, -1)
        return x, decoder.encode(case.rows[:40]).transpose(0, 1)

    def test_it_keeps_the_residual_and_returns_x_s_as_given(self, several, decoder):
        x, v = self.inputs(several, decoder)
        torch.testing.assert_close(decoder.follow(x, v, x), x)
        a = x + 0.1
        reached = decoder.follow(x, v, a)
        own = decoder.networks.mask.bool().expand(x.shape)
        assert torch.equal(reached[own], a[own])
        assert not torch.equal(reached[~own], x[~own])

    def test_numbers_are_those_of_decode(self, gaussian):
        decoder = gaussian.fitted(training=Training(epochs=2))
        x, v = self.inputs(gaussian, decoder)
        reached, _ = gaussian.decoded(decoder, 2, 0.05, 40)
        torch.testing.assert_close(decoder.follow(x, v, x + 0.05)[2], reached, atol=1e-5, rtol=0.0)

    def test_its_gradient_is_that_of_finite_differences(self, several):
        decoder = several.fitted(training=Training(epochs=2))
        decoder.networks.double()
        x, v = (t.double() for t in self.inputs(several, decoder))
        weight = torch.randn(x.shape, generator=torch.Generator().manual_seed(0)).double()

        def f(a):
            return (weight * decoder.follow(x, v, a)).sum()

        a = (x + 0.05).requires_grad_(True)
        (gradient,) = torch.autograd.grad(f(a), a)
        for i, columns in enumerate(decoder.networks.mask[:, 0]):
            step = torch.zeros(x.shape).double()
            step[i, 7, columns.nonzero()[0]] = 1e-5
            slope = (f(a.detach() + step) - f(a.detach() - step)) / 2e-5
            assert float((gradient * step).sum() / 1e-5) == pytest.approx(float(slope), rel=1e-4)
        assert not gradient[~decoder.networks.mask.bool().expand(x.shape)].any()


class TestPaper:
    @pytest.fixture(scope="class")
    @staticmethod
    def paper(gaussian):
        # Its own training takes thousands of steps.
        decoder = Autoencoder(Autoencoder.paper((8, 10, 5)).design, Training(epochs=30))
        decoder.fit(gaussian.rows, gaussian.encoder, gaussian.sets)
        return decoder

    def test_it_trains_at_a_constant_rate_until_the_held_out_loss_stops_improving(self, gaussian):
        training = Autoencoder.paper().training
        assert not training.anneal
        assert training.epochs == training.most_steps > 10 * Training().most_steps
        decoder = Autoencoder.paper((4, 2))
        decoder.training = replace(training, patience=2)
        decoder.fit(gaussian.rows[:500], gaussian.encoder, gaussian.sets)
        losses = [epoch["held_out"] for epoch in decoder.history.epochs]
        assert decoder.history.stopped == "no better for 2 epochs"
        assert min(losses) == losses[-3] < losses[0]

    def test_it_keeps_no_factual(self, paper):
        assert not paper.keeps_factual
        assert Autoencoder().keeps_factual

    def test_its_layers(self):
        assert PAPER_LAYERS == {"adult": (16, 32, 10), "compas": (8, 10, 5), "gmc": (8, 10, 5)}
        assert (
            make_decoder("paper").settings() == Autoencoder.paper(PAPER_LAYERS["adult"]).settings()
        )

    def test_encoder_and_decoder_mirror_each_other_and_the_decoder_reads_x_s(self, paper):
        widths = [
            [tuple(step.weight.shape[1:]) for step in list(steps)[::2]]
            for steps in (paper.networks.e, paper.networks.g)
        ]
        assert widths == [[(5, 8), (8, 10), (10, 5)], [(5 + 1, 10), (10, 8), (8, 5)]]

    def test_its_losses_are_squared_error_and_hessian_penalty(self, paper):
        assert set(paper.history.epochs[0]) == {"reconstruction", "hessian", "held_out"}
        assert paper.design.independence == paper.design.noise == 0.0

    def test_columns_are_not_scaled(self, paper):
        x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
        assert torch.equal(paper.networks.gauge.asinh_scale(paper.networks.gauge.scale(x)), x)

    def test_rows_are_replaced_by_the_output_of_g(self, gaussian, paper):
        """With its reconstruction error, at their own values too."""
        x = gaussian.rows[:50]
        output = paper.networks.generate(paper.networks.latents(x), x.expand(5, -1, -1))[1]
        reached, _ = gaussian.decoded(paper, 1)
        rest = [0, 2, 3, 4]
        torch.testing.assert_close(reached[:, rest], output[:, rest])
        assert float((reached - x)[:, rest].abs().mean()) > 1e-3

    def test_mixed_derivatives_are_pushed_to_zero(self, gaussian, paper):
        assert float(paper.entanglement(gaussian.rows[:200]).median()) <= 0.01

    def test_without_the_penalty_they_are_not(self, gaussian, paper):
        free = gaussian.fitted(replace(paper.design, hessian=0.0))
        rows = gaussian.rows[:200]
        assert free.entanglement(rows).median() >= 3.0 * paper.entanglement(rows).median()


class TestEntanglement:
    def test_one_number_per_row_and_set_for_any_size_of_a_part(
        self, several, decoder, monkeypatch
    ):
        found = decoder.entanglement(several.rows[:30])
        assert found.shape == (30, 4)
        assert (found > 0).all()
        (s, w), k, d = decoder.networks.columns.shape, decoder.networks.k, several.encoder.d
        monkeypatch.setattr("dear_plugin.decoders.autoencoder.decoder.CELLS", 20 * s * w * k * d)
        torch.testing.assert_close(decoder.entanglement(several.rows[:30]), found)


class TestFitting:
    def test_the_same_seed_gives_the_same_networks_and_the_random_state_is_left_alone(
        self, several
    ):
        state = torch.random.get_rng_state()
        one, same, other = (
            several.fitted(training=Training(most_steps=4), seed=s).tensors() for s in (1, 1, 2)
        )
        assert torch.equal(state, torch.random.get_rng_state())
        assert all(torch.equal(one[k], same[k]) for k in one)
        assert not torch.equal(one["e.0.weight"], other["e.0.weight"])

    def test_an_interrupt_leaves_the_previous_state(self, several, monkeypatch):
        decoder = several.fitted(training=Training(most_steps=4))
        before, history = several.decoded(decoder, 0, 0.1)[0], decoder.history

        def stop(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr("dear_plugin.decoders.autoencoder.objective.Objective.__call__", stop)
        with pytest.raises(KeyboardInterrupt):
            decoder.fit(several.rows[:100], several.encoder, several.sets)
        assert torch.equal(several.decoded(decoder, 0, 0.1)[0], before)
        assert decoder.history is history

    def test_five_rows_and_a_constant_column_are_enough(self):
        frame = pd.DataFrame(
            {"a": [1.0, 2.0, 3.0, 4.5, 5.0], "b": [1, 0, 1, 1, 0], "c": list("xyzxy"), "k": 7.0}
        )
        case = Case(frame)
        decoder = case.fitted(training=Training(epochs=3))
        for which in range(len(case.sets)):
            reached, x = case.decoded(decoder, which, count=5)
            assert torch.equal(reached, x)
        assert case.decoded(decoder, 0, 0.5, count=5)[0].isfinite().all()

    def test_categorical_blocks_end_in_a_softmax(self, several, decoder):
        networks, encoder = decoder.networks, several.encoder
        x = encoder.expand(several.rows[:20])
        output = networks.generate(networks.latents(x), x.expand(4, -1, -1))
        for j in encoder.blocks.nonzero()[:, 0].tolist():
            block = output[..., encoder.starts[j] :][..., : encoder.schema.features[j].columns]
            torch.testing.assert_close(block.sum(-1), torch.ones(4, 20))


class TestEnsemble:
    @pytest.fixture(scope="class")
    @classmethod
    def ensemble(cls, several):
        return several.fitted(ENSEMBLE, Training(most_steps=60))

    def test_every_set_has_a_network_per_member(self, several, ensemble):
        networks = ensemble.networks
        assert networks.mask.shape[0] == 3 * len(several.sets)
        v = ensemble.encode(several.rows[:9])
        assert v.shape == (9, len(several.sets), 3 * networks.k + several.rows.shape[1])

    @pytest.mark.parametrize("ties", [None, 4])
    def test_at_their_own_values_rows_are_returned_bit_for_bit(self, several, ensemble, ties):
        rng = torch.Generator().manual_seed(ties) if ties else None
        for which in range(len(several.sets)):
            reached, x = several.decoded(ensemble, which, rng=rng)
            assert torch.equal(reached, x)

    def test_equal_members_give_the_result_of_one(self, several, ensemble):
        state = ensemble.tensors()
        s = len(several.sets)
        equal = {
            name: t if name.startswith("gauge.") else torch.cat([t[:s]] * 3)
            for name, t in state.items()
        }
        other = ensemble.clone_unfitted()
        other.load_state(equal, several.encoder, several.sets)
        one, *_ = ensemble.apart()
        for which in range(s):
            whole, single = (several.decoded(d, which, 0.2)[0] for d in (other, one))
            torch.testing.assert_close(whole, single, rtol=0.0, atol=1e-5)

    def test_its_members_as_separate_decoders_differ_and_are_reproducible(self, several, ensemble):
        decoders = (ensemble, *ensemble.apart())
        results = [several.decoded(each, 0, 0.2)[0] for each in decoders]
        for i, one in enumerate(results):
            assert one.isfinite().all()
            assert not any(torch.equal(one, other) for other in results[:i])
        again = ensemble.apart()[1]
        assert torch.equal(several.decoded(again, 0, 0.2)[0], results[2])

    def test_its_redraws_are_its_members(self, several, ensemble):
        x, which = several.rows[:8], torch.zeros(8, dtype=torch.int64)
        values = x[:, several.sets.positions[0]] + 0.2
        redraws = ensemble.redraws(several.rows, several.encoder, several.sets)
        out = redraws.decode(x, values, which, torch.arange(redraws.count))
        assert redraws.count == 3
        for at, one in enumerate(ensemble.apart()):
            own = one.decode(x, one.encode(x)[:, 0], values[:, None], which)[:, 0]
            assert torch.equal(out[:, at], own)

    def test_its_derivatives_are_those_of_finite_differences(self, several, ensemble):
        other = ensemble.clone_unfitted()
        other.load_state(ensemble.tensors(), several.encoder, several.sets)
        other.networks.double()
        x = several.encoder.expand(several.rows[:6]).double().expand(4, -1, -1)
        v = other.networks.member_latents(x[0])
        a = (x + 0.05).requires_grad_(True)
        (gradient,) = torch.autograd.grad(other.follow(x, v, a).sum(), a)
        step = torch.zeros_like(x)
        step[0, :, 0] = 1e-6
        with torch.no_grad():
            ends = [other.follow(x, v, a + sign * step).sum((0, 2)) for sign in (1.0, -1.0)]
        slope = (ends[0] - ends[1]) / 2e-6
        torch.testing.assert_close(slope, gradient[0, :, 0], rtol=1e-3, atol=1e-4)

    def test_changes_within_sampling_noise_are_shrunk_to_zero(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"a": rng.normal(size=600), "b": rng.normal(size=600)})
        case, unmoved = Case(frame, ["a"]), []
        for design in (SMALL, replace(SMALL, members=4)):
            reached, x = case.decoded(case.fitted(design), 0, 0.2, count=600)
            unmoved.append(float((reached[:, 1] == x[:, 1]).float().mean()))
        assert unmoved[0] < 0.05
        assert unmoved[1] > 0.25

    def test_its_slopes_of_a_linear_gaussian_system_are_right(self, gaussian):
        decoder = gaussian.fitted(replace(SMALL, members=4), Training())
        assert slope_error(gaussian, decoder) < 0.25

    def test_settings_of_0_1_without_members_mean_one(self):
        settings = Autoencoder(SMALL).settings()
        del settings["design"]["members"]
        assert Autoencoder.with_settings(settings).design == SMALL


class TestSettings:
    def test_they_survive_json(self):
        decoder = Autoencoder(Design((5, 2), "softplus", noise=0.3), Training(epochs=3), seed=4)
        settings = json.loads(json.dumps(decoder.settings()))
        assert Autoencoder.with_settings(settings).settings() == decoder.settings()

    def test_a_loaded_state_gives_the_same_results(self, several, decoder):
        other = decoder.clone_unfitted()
        other.load_state(decoder.tensors(), several.encoder, several.sets)
        for which in range(4):
            first, second = (several.decoded(d, which, 0.1)[0] for d in (decoder, other))
            assert torch.equal(first, second)

    def test_before_fit_it_raises(self, several):
        with pytest.raises(NotFittedError, match="call fit first"):
            Autoencoder().encode(several.rows)

    def test_an_unknown_activation_is_refused(self):
        with pytest.raises(DearError, match="tanh"):
            Autoencoder(Design(activation="tan"))

    @pytest.mark.parametrize("activation", ["relu", "softplus"])
    def test_other_activations_lower_the_loss(self, several, activation):
        decoder = several.fitted(Design((6, 3), activation), Training(epochs=3, batch=256))
        losses = [epoch["held_out"] for epoch in decoder.history.epochs]
        assert losses[-1] < losses[0]
