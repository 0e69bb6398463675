"""A small synthetic problem: raising a raises b as much and may set town; d changes alone."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import nn

from dear_plugin import ActionSets, Encoder, Schema, Target
from dear_plugin.decoders import Decoder, Decoders, Sample
from dear_plugin.evaluation.trained import Trained
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.constraints import admissible
from dear_plugin.search import SearchProblem
from dear_plugin.search.criteria import Decoded

A, B, D, TOWN = range(4)
ACT_ON = ["a", "d"]
# From so large a change of a on, the decoder sets town to "yes".
MOVES_FROM = 0.2


class Rule(nn.Module):
    """A margin written down as a function of the encoded columns."""

    def __init__(self, margin):
        super().__init__()
        self.margin = margin

    def forward(self, x):
        return self.margin(x)[:, None]


def followed(x, values, gain):
    """(m, p) rows with new values, (m,), of a: b follows by a gain, and town may change."""
    out = x.clone()
    step = values - x[:, A]
    out[:, A] = values
    out[:, B] = x[:, B] + gain * step
    out[:, TOWN] = torch.where(step >= MOVES_FROM, 1.0, x[:, TOWN])
    return out


class Follows(Decoder):
    """The decoder; each resample has its own gain."""

    def __init__(self, gains=()):
        self.gains, self.draws = gains, len(gains)

    def settings(self):
        return {"gains": self.gains}

    def clone_unfitted(self):
        return Follows(self.gains)

    def fit(self, sample, acted, held):
        (self.acted,) = acted

    def encode(self, x, generator=None):
        return x[:, :1]

    def decode(self, x, v, values):
        return torch.stack([self.moved(x, value, 1.0) for value in values[..., 0].T], 1)

    def resample(self, x, values, draws, copy):
        return torch.stack([self.moved(x, values[:, 0], self.gains[int(i) - 1]) for i in draws], 1)

    def moved(self, x, values, gain):
        if self.acted == A:
            return followed(x, values, gain)
        out = x.clone()
        out[:, D] = values
        return out


def training_frame(n=600, seed=0):
    """Numbers in [0, 1] and a binary category."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.random((n, 3)), columns=["a", "b", "d"])
    frame["town"] = rng.choice(["no", "yes"], n)
    frame.loc[0, ["a", "b", "d"]], frame.loc[1, ["a", "b", "d"]] = 0.0, 1.0
    return frame


@dataclass(frozen=True)
class World:
    """A search problem and the evidence for its criteria."""

    problem: SearchProblem
    evidence: Trained

    def actions(self, sets, values):
        """One action of each of the first rows."""
        rows, sets, values = (
            torch.arange(len(sets)),
            torch.tensor(sets),
            torch.tensor(values).double(),
        )
        reached = self.problem.decode_actions(rows, sets, values[:, None, None])[:, 0]
        return Decoded(rows, reached, sets, values[:, None])


def make_world(margin, factuals, *, gains=None, within=None, frame=None):
    """A world with a model given by its margin, for a frame of factuals."""
    frame = training_frame() if frame is None else frame
    schema = Schema.infer(frame)
    encoder = Encoder(schema)
    sets, x = ActionSets.of(schema, ACT_ON), encoder.rows(factuals)
    classifier = Classifier(Rule(margin), encoder)
    feasible = admissible(within, x, encoder, encoder.held(factuals))
    rows, decoder = encoder.rows(frame), Follows(() if gains is None else gains)
    problem = SearchProblem(
        x,
        Target.of_class(1).resolve(len(x), None),
        feasible,
        sets,
        Decoders(decoder, Sample(rows, encoder), sets.members),
        classifier,
        feasible.limits.may_act(sets).numpy(),
    )
    return World(problem, Trained(rows, classifier))


def factual(a=0.1, b=0.1, d=0.1, town="no", times=1):
    """A frame of equal rows."""
    return pd.DataFrame({"a": [a] * times, "b": b, "d": d, "town": town})
