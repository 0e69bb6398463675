"""Known truth: systems whose dependence is known exactly, and what the default makes of them.

An error is always a share of what is true: the mean of |slope made - slope true| over the mean of
|slope true|, and the same for changes of conditional means.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from dear_plugin import DEAR, ActionSets, Encoder, Schema
from dear_plugin.datasets import load_loan
from dear_plugin.decoders import Decoders, Sample, Transport

ROWS, PEOPLE, DRAWS = 20_000, 2_000, 1_000_000
SYSTEMS = range(6)
GROUPS = [("x0", "x1"), ("x2", "x3", "x4")]
LEAST = 0.5  # Changes of less than half a standard deviation are not looked at one by one.


@dataclass(frozen=True)
class Moved:
    """A default decoder fitted on some sets, and people to move.

    Attributes:
        decoders: fitted.
        sets: its sets.
        rows: (n, p) the people.
        v: s times (n, k) their latents.
    """

    decoders: Decoders
    sets: ActionSets
    rows: torch.Tensor
    v: list[torch.Tensor]

    @classmethod
    def of(cls, frame, act_on=None, people=PEOPLE, ties=None, given=()):
        schema = Schema.infer(frame)
        encoder, sets = Encoder(schema), ActionSets.of(schema, act_on)
        rows = encoder.rows(frame)
        decoders = Decoders(Transport(given=given), Sample(rows, encoder), sets.members)
        some = rows[:people]
        latents = [decoders.of(members).encode(some, ties) for members in sets.members]
        return cls(decoders, sets, some, latents)

    def to(self, which, values):
        """(n, c, p) where everybody ends up at each of c values, (c, w) or (n, c, w)."""
        wide = torch.as_tensor(values).double().expand(len(self.rows), -1, -1)
        decoder = self.decoders.of(self.sets.members[which])
        return decoder.decode(self.rows, self.v[which], wide)

    def slopes(self, which, member, low=0.05, high=0.95):
        """(n, p) change of every feature per unit of one member of a set."""
        feature, members = self.sets.members[which][member], list(self.sets.members[which])
        ends = torch.quantile(self.rows[:, feature], self.rows.new_tensor([low, high]))
        values = self.rows[:, None, members].repeat(1, 2, 1)
        values[:, :, member] = ends
        made = self.to(which, values).numpy()
        return (made[:, 1] - made[:, 0]) / float(ends[1] - ends[0])


def system(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A linear-Gaussian system of 5 to 8 variables of variance 1, and its covariance."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(5, 9))
    root = rng.normal(size=(p, p))
    covariance = root @ root.T / p + 0.3 * np.eye(p)
    scale = np.sqrt(np.diag(covariance))
    covariance /= np.outer(scale, scale)
    drawn = rng.multivariate_normal(np.zeros(p), covariance, size=ROWS)
    return pd.DataFrame(drawn, columns=[f"x{j}" for j in range(p)]), covariance


def regression(covariance, own):
    """(p, q) the slopes of all variables on those of a set: cov / var for one."""
    return covariance[:, own] @ np.linalg.inv(covariance[np.ix_(own, own)])


def others(own, p):
    return [j for j in range(p) if j not in own]


@pytest.fixture(scope="module")
def systems():
    return [system(seed) for seed in SYSTEMS]


@pytest.fixture(scope="module", params=SYSTEMS)
def singles(request, systems):
    frame, covariance = systems[request.param]
    return Moved.of(frame), covariance


def error(moved, covariance, held=(), each=False):
    """The mean error of slopes over all pairs as a share of the mean |slope|.

    Args:
        moved: people to move.
        covariance: of all variables.
        held: those whose part the slopes are to leave out.
        each: of each person's slope, not of their mean.
    """
    wrong, true = [], []
    for i, (own,) in enumerate(moved.sets.members):
        rest = others([own, *held], len(covariance))
        slope, made = regression(covariance, [own, *held])[:, 0], moved.slopes(i, 0)
        wrong.append((abs(made - slope).mean(0) if each else abs(made.mean(0) - slope))[rest])
        true.append(abs(slope[rest]))
    return np.mean(wrong) / np.mean(true)


class TestLinearGaussian:
    def test_acting_on_one_moves_the_others_by_cov_over_var(self, singles):
        assert error(*singles) <= 0.05

    def test_acting_on_a_group_follows_multiple_regression(self, systems):
        errors = []
        for frame, _ in systems:
            moved, sample = Moved.of(frame, GROUPS), np.cov(frame.to_numpy().T)
            wrong, true = [], []
            for i, own in enumerate(map(list, moved.sets.members)):
                rest, slope = others(own, len(sample)), regression(sample, own)
                for q in range(len(own)):
                    made = moved.slopes(i, q, 0.1, 0.9).mean(0)
                    wrong.append(abs(made - slope[:, q])[rest])
                    true.append(abs(slope[:, q])[rest])
            errors.append(np.mean(np.concatenate(wrong)) / np.mean(np.concatenate(true)))
        assert np.mean(errors) <= 0.05
        assert np.max(errors) <= 0.1

    def test_the_recourse_that_people_see_follows_the_slope(self, systems):
        frame, covariance = systems[0]
        model = nn.Linear(len(covariance), 1)
        with torch.no_grad():
            model.weight.zero_()
            model.weight[0, 0], model.bias[0] = 20.0, -11.0
        dear = DEAR(model, Schema.infer(frame), act_on=["x0"]).fit(frame)
        recourses = dear.generate(frame.iloc[:PEOPLE])
        change = recourses.counterfactuals - recourses.factuals
        helped = change["x0"] > 0.5
        assert helped.sum() > 100
        made = (change[helped].sum() / change.loc[helped, "x0"].sum()).to_numpy()
        slope = regression(covariance, [0])[:, 0]
        # Of one feature alone, 20,000 rows do not know the slopes better than this.
        assert np.mean(abs(made - slope)[1:]) <= 0.1 * np.mean(abs(slope[1:]))


@pytest.fixture(scope="module", params=[(0, 1), (1, 1), (2, 2), (3, 2)], ids=str)
def held(request, systems):
    """People moved given the last one or two variables, and given none."""
    seed, count = request.param
    frame, covariance = systems[seed]
    names, last = list(frame), range(len(covariance) - count, len(covariance))
    free, given = names[:-count], names[-count:]
    return Moved.of(frame, free, given=given), Moved.of(frame, free), covariance, last


class TestGiven:
    """What is given takes its part: others follow the partial regression coefficient."""

    def test_acting_on_one_moves_the_others_by_the_partial_coefficient(self, held):
        moved, _, covariance, last = held
        assert error(moved, covariance, last) <= 0.05

    def test_it_does_so_for_each_person(self, held):
        moved, _, covariance, last = held
        assert error(moved, covariance, last, each=True) <= 0.07

    def test_with_nothing_given_it_does_not(self, held):
        _, marginal, covariance, last = held
        assert error(marginal, covariance, last) > 0.08


@pytest.fixture(scope="module")
def loan():
    """Changes of conditional means between the first and the last decile of x_S, in sd of x_j.

    True: the mean of x_j among those of a million draws whose x_S is at the decile (within 0.02
    standard deviations; exactly, for whole numbers). Made: the mean of x_j of people moved there
    by the default decoder, fitted on 20,000 rows, their ties broken at random.
    """
    frame, rows = load_loan(DRAWS, seed=7).features, load_loan(ROWS, seed=0).features
    schema = Schema.infer(rows)
    crowd = frame[[*schema.names]].assign(gender=frame["gender"] == "male").to_numpy(float)
    deviation = crowd.std(0)
    moved = Moved.of(rows, people=ROWS, ties=torch.Generator().manual_seed(0))
    parts = []
    for i, feature in enumerate(schema):
        ends = np.quantile(crowd[:, i], [0.1, 0.9]).round(feature.precision or 0)
        near = 0.02 * deviation[i] if feature.precision else 0.0
        true = [crowd[abs(crowd[:, i] - end) <= near].mean(0) for end in ends]
        made = moved.to(i, torch.tensor(ends)[:, None]).mean(0).numpy()
        table = pd.DataFrame({"true": true[1] - true[0], "made": made[1] - made[0]})
        parts.append(table.div(deviation, axis=0).assign(S=feature.name, j=schema.names))
    table = pd.concat(parts)
    return table[table["S"] != table["j"]].set_index(["S", "j"])


class TestLoan:
    def test_conditional_means_change_as_they_do_in_a_million_draws(self, loan):
        error = (loan["made"] - loan["true"]).abs().sum() / loan["true"].abs().sum()
        assert error <= 0.1

    def test_so_does_nearly_every_pair_of_features_by_itself(self, loan):
        large = loan[loan["true"].abs() >= LEAST]
        error = (large["made"] - large["true"]).abs() / large["true"].abs()
        assert len(large) >= 25
        assert error.median() <= 0.05
        assert (error <= 0.1).mean() >= 0.85
        # The worst pairs of four samples have .21, .13, .12 and .17. Here it is the age that
        # follows a loan_amount, which is a parabola in age.
        assert error.max() <= 0.25
