"""Closed forms: Propositions 1 and 2 and the corollary, and the alignment.

Closed forms are compared with linear algebra, Jacobians with maps of known derivatives and with
the costs of short steps.
"""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Encoder, Schema
from dear_plugin.decoders import Decoders, Sample
from dear_plugin.paper import Autoencoder, Design, Training
from dear_plugin.paper.closed_forms import alignment, direct_action, recourse_action
from dear_plugin.paper.jacobians import parts

HALVINGS = (0.1, 0.05, 0.025, 0.0125)


def normal(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


@pytest.mark.parametrize("weight", [0.01, 0.3, 5.0])
class TestPropositionTwo:
    """`d = m / (lambda + ||w||^2) w` minimises `(m - w'd)^2 + lambda ||d||^2`."""

    def test_it_solves_the_normal_equations(self, weight):
        m, w = normal(40), normal(40, 3, seed=1)
        system = w[:, :, None] * w[:, None, :] + weight * torch.eye(3, dtype=torch.float64)
        solved = torch.linalg.solve(system, m[:, None] * w)
        torch.testing.assert_close(direct_action(m, w, weight), solved)

    def test_the_corollary_is_the_jacobian_times_it(self, weight):
        m, w, jacobian = normal(40), normal(40, 3, seed=1), normal(40, 6, 3, seed=2)
        delta = recourse_action(m, w, jacobian, weight)
        expected = (jacobian @ direct_action(m, w, weight)[..., None])[..., 0]
        torch.testing.assert_close(delta, expected)


class Smooth:
    """A trained autoencoder with smooth activations and a smooth model, both in double precision.

    One set of one feature, one of two; the model is a small tanh network.
    """

    def __init__(self):
        rng = np.random.default_rng(0)
        root = rng.normal(size=(6, 6))
        frame = pd.DataFrame(rng.normal(size=(2000, 6)) @ root, columns=list("abcdef"))
        schema = Schema.infer(frame)
        encoder, self.sets = Encoder(schema), ActionSets.of(schema, ["a", ("b", "c")])
        rows = encoder.rows(frame)
        sample, members = Sample(rows, encoder), self.sets.members
        decoders = Decoders(
            Autoencoder(Design(layers=(8, 4)), Training(epochs=5)), sample, members
        )
        decoders.fit(members)
        self.networks = [decoders.of(each).networks.double() for each in members]
        self.rows = encoder.expand(rows[:200]).double()
        self.v = [networks.latents(self.rows) for networks in self.networks]
        self.parts = parts(decoders, encoder, self.sets, rows[:200], rows[:200])
        self.first, self.second = 2.0 * normal(6, 8), normal(8, 1)

    def model(self, x):
        return (torch.tanh((x - 0.5) @ self.first) @ self.second)[..., 0]

    def gradient(self, x):
        x = x.detach().requires_grad_(True)
        return torch.autograd.grad(self.model(x).sum(), x)[0]

    def reached(self, which, action=None):
        """(n, d) g(v, x_S + d_S) for an action (n, q); the reconstruction without one."""
        values = self.rows.clone()
        if action is not None:
            values[:, self.parts[which].own] += action
        return self.networks[which].generate(self.v[which], values)[0]


@pytest.fixture(scope="module")
def smooth():
    return Smooth()


def shrinks(errors, factor):
    """Every halving of the step divides the median error by about `factor`."""
    sizes = [float(e.median()) for e in errors]
    ratios = [a / b for a, b in pairwise(sizes)]
    return all(0.8 * factor <= r <= 1.25 * factor for r in ratios)


@pytest.mark.parametrize("which", [0, 1], ids=["one feature", "two features"])
class TestFirstOrder:
    """For smooth f and g the closed forms are right to first order."""

    def closed_form(self, smooth, which, share):
        """The action for a target step of `share` times the slope, and its predicted effect."""
        jacobian = smooth.parts[which].given
        gradient = smooth.gradient(smooth.reached(which))
        w = torch.einsum("ndq,nd->nq", jacobian, gradient)
        m = share * w.norm(dim=1)
        return m, w, direct_action(m, w, 0.0)

    def test_the_change_of_all_features_has_a_quarter_of_the_error_too(self, smooth, which):
        start, errors = smooth.reached(which), []
        for share in HALVINGS:
            m, w, action = self.closed_form(smooth, which, share)
            delta = recourse_action(m, w, smooth.parts[which].given, 0.0)
            errors.append((smooth.reached(which, action) - start - delta).norm(dim=1))
        assert shrinks(errors, 4.0)

    def test_the_entangled_part_is_the_cost_of_latents_that_follow(self, smooth, which):
        part, size = smooth.parts[which], 1e-5
        action = size * normal(*part.given.shape[::2], seed=3)
        train, v = smooth.rows - smooth.rows.mean(0), smooth.v[which]
        slope = torch.linalg.lstsq(train[:, part.own], v[0]).solution
        values = smooth.rows.clone()
        values[:, part.own] += action
        moved = smooth.networks[which].generate(v + action @ slope, values)[0]
        change = moved - smooth.reached(which)
        real = change[:, part.own].square().sum(1), change[:, ~part.own].square().sum(1)
        for claimed, true in zip(part.costs(action), real, strict=True):
            torch.testing.assert_close(claimed, true, rtol=1e-3, atol=1e-3 * size**2)


class TestAlignment:
    def test_it_is_1_where_jacobian_and_gradient_are_parallel(self):
        gradient = normal(50, 7)
        for size in (-3.0, 1e-3, 1.0, 40.0):
            found = alignment((size * gradient)[:, :, None], gradient)
            torch.testing.assert_close(found, torch.ones(50, dtype=torch.float64))

    def test_it_is_0_and_not_nan_on_a_plateau(self):
        assert alignment(normal(5, 7, 2), torch.zeros(5, 7).double()).tolist() == [0.0] * 5
