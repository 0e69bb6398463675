"""Training: the minimum, early stopping, and the history of losses."""

import numpy as np
import torch
from torch import nn

from dear_plugin.paper.autoencoder.training import Training, train

CENTRE = 3.0


class Target:
    """`(w - x)^2` for one weight, on rows around a centre; it records its calls."""

    def __init__(self):
        self.weight = nn.Parameter(torch.zeros(1))
        self.batches, self.held_out, self.states = [], [], []

    def __call__(self, x, generator):
        if torch.is_grad_enabled():
            self.batches.append(len(x))
        else:
            self.held_out.append(len(x))
            self.states.append(float(self.weight))
        noise = 0.01 * torch.randn(len(x), 1, generator=generator)
        error = (self.weight - x + noise).square().mean()
        return {"near": error, "small": 0.1 * self.weight.square().sum()}


def rows(n=1000):
    return CENTRE + torch.randn(n, 1, generator=torch.Generator().manual_seed(0))


def run(target, training, n=1000, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return train(target, [target.weight], rows(n), training, generator)


class TestLearning:
    def test_the_rate_is_constant_where_it_is_not_annealed(self):
        """After one step of many, annealing has not begun; after all of them the rate is zero."""
        ends = {}
        for anneal in (True, False):
            target = Target()
            training = Training(epochs=20, batch=1000, rate=0.01, anneal=anneal, patience=99)
            run(target, training)
            ends[anneal] = target.states
        steps = {anneal: np.diff(states) for anneal, states in ends.items()}
        assert steps[True][-1] < 0.2 * steps[True][0]
        assert steps[False][-1] > 0.8 * steps[False][0]

    def test_the_best_held_out_state_is_restored(self):
        """A rate that overshoots: the last state is not the best one."""
        target = Target()
        history = run(target, Training(epochs=6, batch=1000, rate=5.0))
        losses = [epoch["held_out"] for epoch in history.epochs]
        assert losses[-1] > min(losses)
        assert float(target.weight.detach()) == target.states[losses.index(min(losses))]

    def test_the_same_seed_gives_the_same_weights_and_the_random_state_is_left_alone(self):
        state = torch.random.get_rng_state()
        weights = []
        for seed in (0, 0, 1):
            target = Target()
            run(target, Training(epochs=3, batch=64), seed=seed)
            weights.append(float(target.weight.detach()))
        assert weights[0] == weights[1] != weights[2]
        assert torch.equal(state, torch.random.get_rng_state())


class TestStopping:
    def test_after_the_steps_even_within_an_epoch(self):
        target = Target()
        history = run(target, Training(epochs=100, batch=300, most_steps=7))
        assert len(target.batches) == 7
        assert len(history.epochs) == 3
        assert history.stopped == "all steps taken"

    def test_without_improvement(self):
        history = run(Target(), Training(epochs=50, rate=0.0, patience=3))
        assert len(history.epochs) == 4
        assert history.stopped == "no better for 3 epochs"
