"""A world made by hand: who raises a raises b as much again and moves to town; d goes alone."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from dear_plugin import ActionSets, Constraints, Encoder, Schema, Target
from dear_plugin.decoders.redraws import Redraws
from dear_plugin.evaluation.neighbours import Neighbours
from dear_plugin.evaluation.plausibility import Plausibility
from dear_plugin.evaluation.support import Support
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.case import Case
from dear_plugin.problem.constraints import feasible
from dear_plugin.search import Actions, Evidence, SearchProblem
from tests.rule import Rule

A, B, D, TOWN = range(4)
ACT_ON = ["a", "d"]
# From so large an action on a on, people are expected to move to town.
MOVES_FROM = 0.2


def followed(x, values, gain):
    """(m, p) rows where a becomes new values, (m,): b follows by a gain, and people may move."""
    out = x.clone()
    step = values - x[:, A]
    out[:, A] = values
    out[:, B] = x[:, B] + gain * step
    out[:, TOWN] = torch.where(step >= MOVES_FROM, 1.0, x[:, TOWN])
    return out


def decoded(x, values, sets, gain=1.0):
    """(m, p) where actions on a, the first set, or on d lead."""
    alone = x.clone()
    alone[:, D] = values
    return torch.where((sets == 0)[:, None], followed(x, values, gain), alone)


class Follows:
    """As a decoder."""

    def decode(self, x, v, values, sets):
        del v
        each = [decoded(x, values[:, i, 0], sets) for i in range(values.shape[1])]
        return torch.stack(each, 1)


class Gains(Redraws):
    """Redraws of it, each with a gain of its own; they note what they are asked."""

    def __init__(self, gains):
        self.gains, self.count, self.asked = gains, len(gains), []

    def decode(self, x, values, sets, which):
        self.asked.append((len(x), which.tolist()))
        each = [decoded(x, values[:, 0], sets, self.gains[int(i)]) for i in which]
        return torch.stack(each, 1)


def crowd(n=600, seed=0):
    """Numbers in [0, 1], and whether somebody lives in town."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.random((n, 3)), columns=["a", "b", "d"])
    frame["town"] = rng.choice(["no", "yes"], n)
    frame.loc[0, ["a", "b", "d"]], frame.loc[1, ["a", "b", "d"]] = 0.0, 1.0
    return frame


@dataclass(frozen=True)
class World:
    """A question about some people, and what answers are judged by."""

    problem: SearchProblem
    evidence: Evidence

    def actions(self, sets, values):
        """The first people act on a set each, to some value."""
        sets, values = torch.tensor(sets), torch.tensor(values)[:, None]
        return Actions.of(self.problem, torch.arange(len(sets)), sets, values)


def world(margin, people, *, gains=None, within=None, frame=None, **marks):
    """A world with a model of a margin, for people given as a frame."""
    frame = crowd() if frame is None else frame
    schema = Schema.infer(frame, **marks)
    encoder = Encoder(schema)
    sets, x = ActionSets.of(schema, ACT_ON), encoder.rows(people)
    classifier = Classifier(Rule(margin), encoder)
    box = feasible(within or Constraints(), x, encoder, encoder.units.resolutions(people))
    case = Case(x, Target.of_class(1).resolve(len(x), None), box, 1e-4, torch.arange(len(x)))
    redraws = None if gains is None else Gains(gains)
    problem = SearchProblem(
        x,
        torch.zeros(len(x), len(sets), 1),
        case.goal,
        box,
        sets,
        Follows(),
        classifier,
        box.may_act(sets),
        redraws=redraws,
    )
    rows = encoder.rows(frame)
    support = Support(Neighbours(rows, encoder), classifier)
    return World(problem, Evidence(Plausibility(rows, encoder), support))


def person(a=0.1, b=0.1, d=0.1, town="no", times=1):
    """So many people alike."""
    return pd.DataFrame({"a": [a] * times, "b": b, "d": d, "town": town})
