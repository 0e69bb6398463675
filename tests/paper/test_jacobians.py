"""Jacobians: the parts of Proposition 1 and the alignment, for both kinds of decoder."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from dear_plugin import ActionSets, Encoder, Schema, Target
from dear_plugin.decoders import Decoders, Sample, Transport
from dear_plugin.errors import DearError
from dear_plugin.models.classifier import Classifier
from dear_plugin.paper import Autoencoder, Design, Training
from dear_plugin.paper.closed_forms import latent_cost
from dear_plugin.paper.jacobians import alignments, latent_jacobians, parts

DECODERS = {
    "transport": Transport,
    "autoencoder": lambda: Autoencoder(Design(layers=(16, 8)), Training(epochs=30)),
}
SETS = ["x0", "x3", ("x2", "x1")]


def fitted_decoders(decoder, encoder, sets, rows):
    """The decoders of some sets, fitted together on rows."""
    decoders = Decoders(decoder, Sample(rows, encoder), sets.members)
    decoders.fit(sets.members)
    return decoders


class Fitted:
    """A decoder fitted on 20,000 rows of a linear-Gaussian system, and 500 rows."""

    def __init__(self, decoder):
        rng = np.random.default_rng(1)
        root = rng.normal(size=(6, 6))
        covariance = root @ root.T / 6 + 0.3 * np.eye(6)
        frame = pd.DataFrame(
            rng.multivariate_normal(np.zeros(6), covariance, size=20_000),
            columns=[f"x{j}" for j in range(6)],
        )
        schema = Schema.infer(frame)
        self.encoder, self.sets = Encoder(schema), ActionSets.of(schema, SETS)
        train = self.encoder.rows(frame)
        self.rows, decoders = train[:500], fitted_decoders(decoder, self.encoder, self.sets, train)
        self.parts = parts(decoders, self.encoder, self.sets, self.rows, train)
        self.covariance = np.cov(self.encoder.expand(train).double().numpy().T)

    def regression(self, part):
        """(d - q, q) the multiple regression of the rest on a set, its columns in frame order."""
        own, rest = np.flatnonzero(part.own), np.flatnonzero(~part.own)
        within, across = (self.covariance[np.ix_(own, k)] for k in (own, rest))
        return np.linalg.solve(within, across).T


@pytest.fixture(scope="module", params=DECODERS)
def fitted(request):
    return Fitted(DECODERS[request.param]())


class TestLinearGaussian:
    @pytest.mark.ci
    def test_given_and_entangled_add_up_to_the_regression_slopes(self, fitted):
        wrong, true = [], []
        for part in fitted.parts:
            slope = fitted.regression(part)
            total = (part.elasticity + part.indirect_entanglement).mean(0).numpy()
            wrong.append(abs(total - slope).ravel())
            true.append(abs(slope).ravel())
        assert np.concatenate(wrong).mean() <= 0.1 * np.concatenate(true).mean()

    def test_on_s_itself_the_mapping_is_the_identity(self, fitted):
        for part in fitted.parts:
            on_s = (part.identity + part.direct_entanglement).mean(0)
            torch.testing.assert_close(on_s, torch.eye(len(on_s)), atol=0.01, rtol=0.0)


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(400, 4)), columns=[f"x{j}" for j in range(4)])
    encoder = Encoder(Schema.infer(frame))
    sets = ActionSets.of(encoder.schema, ["x0", ("x2", "x1")])
    rows, trained = encoder.rows(frame), Autoencoder(Design(layers=(6, 3)), Training(epochs=3))
    decoders = fitted_decoders(trained, encoder, sets, rows)
    for members in sets.members:
        decoders.of(members).networks.double()
    return decoders, encoder, sets, rows


class TestLemma1:
    """The cost of a change of v and x_S, against the networks themselves."""

    def test_it_is_the_squared_change_of_g_for_small_changes_of_v_and_x(self, small):
        decoders, encoder, sets, rows = small
        few, size = encoder.expand(rows[:15]).double(), 1e-5
        rng = torch.Generator().manual_seed(0)
        found = parts(decoders, encoder, sets, rows[:15], rows)
        for members, part in zip(sets.members, found, strict=True):
            decoder, own = decoders.of(members), part.own.nonzero()[:, 0]
            networks, v = decoder.networks, decoder.networks.latents(few)
            d_v = torch.randn(15, 3, generator=rng).double()
            d_s = torch.randn(15, len(own), generator=rng).double()
            moved = few.index_add(1, own, size * d_s)
            change = networks.generate(v + size * d_v, moved) - networks.generate(v, few)
            direct = change[0].square().sum(1) / size**2
            cost = latent_cost(latent_jacobians(decoder, rows[:15]), part.given, d_v, d_s)
            torch.testing.assert_close(cost, direct, rtol=1e-3, atol=1e-6)

    def test_latents_that_move_with_x_give_proposition_1(self, small):
        """At `d_v = dv / dx_S d_S`, and at `d_v = 0` that of an action at fixed latents."""
        decoders, encoder, sets, rows = small
        few, decoder = rows[:15], decoders.of(sets.members[1])
        x = encoder.expand(rows).double()
        x_s, v = x[:, [1, 2]], decoder.networks.latents(x)[0]
        slope = torch.linalg.lstsq(x_s - x_s.mean(0), v - v.mean(0)).solution
        part = parts(decoders, encoder, sets, few, rows)[1]
        by_latent = latent_jacobians(decoder, few)
        action = torch.tensor([[0.3, -0.2]]).double().expand(15, -1)
        together = latent_cost(by_latent, part.given, action @ slope, action)
        torch.testing.assert_close(together, sum(part.costs(action)), rtol=1e-4, atol=1e-8)
        fixed = latent_cost(by_latent, part.given, torch.zeros(15, 3).double(), action)
        expected = torch.einsum("ndq,nq->nd", part.given, action).square().sum(1)
        torch.testing.assert_close(fixed, expected)
        assert (together - fixed).abs().max() > 1e-6

    def test_a_decoder_without_derivatives_is_rejected(self, mixed):
        rows, sets = mixed.encoder.rows(mixed.frame), ActionSets.of(mixed.schema, ["income"])
        decoder = fitted_decoders(Transport(), mixed.encoder, sets, rows).of(sets.members[0])
        with pytest.raises(DearError, match=r"derivatives, got Transport.*decoder='autoencoder'"):
            latent_jacobians(decoder, rows[:5])


@pytest.fixture(scope="module")
def mixed_parts(mixed):
    sets = ActionSets.of(mixed.schema, ["town", "member", "income", ("income", "town")])
    rows = mixed.encoder.rows(mixed.frame)
    decoders = fitted_decoders(Transport(), mixed.encoder, sets, rows)
    return rows[:40], parts(decoders, mixed.encoder, sets, rows[:40], rows), mixed.encoder


class TestCategories:
    """Finite differences of Transport on features of every kind."""

    def test_a_category_has_a_column_for_every_level(self, mixed_parts):
        _, found, encoder = mixed_parts
        levels = len(encoder.schema.features[encoder.schema.index(["town"])[0]].categories)
        assert [part.given.shape[2] for part in found] == [levels, 1, 1, 1 + levels]

    def test_a_step_to_a_level_turns_it_on_and_the_factual_one_off(self, mixed_parts):
        rows, (town, *_), encoder = mixed_parts
        own = rows[:, encoder.schema.index(["town"])[0]].long()
        levels = town.identity.shape[2]
        expected = torch.eye(levels) - nn.functional.one_hot(own, levels)[:, :, None]
        torch.testing.assert_close(town.identity, expected.float())


class TestAlignments:
    @staticmethod
    def of(found, encoder, weight, rows):
        model = nn.Linear(len(weight), 1)
        with torch.no_grad():
            model.weight.copy_(weight)
        classifier = Classifier(model, encoder)
        goal = Target.of_class(1).resolve(len(rows), None)
        return alignments(found, classifier, goal, rows)

    def test_it_is_1_where_the_models_gradient_is_the_decoders_jacobian(self, fitted):
        for i in (0, 1):
            weight = 3.0 * fitted.parts[i].given[7, :, 0]
            found = self.of(fitted.parts, fitted.encoder, weight, fitted.rows)
            assert float(found[7, i]) == pytest.approx(1.0, abs=1e-5)
