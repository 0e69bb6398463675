"""Dense: the optimum over single features by a dense scan of their values.

The optimum of a row is the least price of an action on one feature. All categories are evaluated,
and all numbers: those between the least and the greatest training value that the constraints
allow, at steps of the feature's precision. If there are more than 2,000, as many are evaluated: a
third evenly spaced, a third at quantiles of the training values, a third at geometrically growing
distances from the factual, starting at one step. Decoder, constraints, margin and criteria are
DEAR's; there is no pruning, bisection or surrogate: successes are vetted in order of price until
one meets all criteria. Where none does with the margin, the optimum is the least price without it,
since DEAR requires the margin only where it can be reached. The price is the cost, discounted by
`prefer_alone` where no indirect change is needed. DEAR's own answers count among the candidates,
so no answer costs less than the optimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.benchmark.metrics.decision import Floats, Truths
from dear_plugin.data.special_values import without_special
from dear_plugin.methods.base import SLACKS
from dear_plugin.methods.dear import DEAR
from dear_plugin.problem.case import Case
from dear_plugin.problem.constraints import feasible_set
from dear_plugin.problem.target import goal_of
from dear_plugin.search import Choice, RankedCandidates, SearchProblem, criteria, vet
from dear_plugin.search.candidates import Candidates, other_categories, special_levels
from dear_plugin.search.criteria import met

MOST_VALUES = 2_000
# The smallest distance from the factual that is evaluated, as a share of the range.
LEAST = 1e-9


@dataclass(frozen=True)
class Compared:
    """The prices of DEAR's answers and of the optimum; infinite without an answer.

    Attributes:
        dear: (n,) the price of DEAR's answer, where it meets all criteria.
        optimum: (n,) the least price.
        with_margin: (n,) bool, whether the optimum has the margin.
    """

    dear: Floats
    optimum: Floats
    with_margin: Truths

    @property
    def possible(self) -> Truths:
        """(n,) bool, rows with an answer."""
        return np.isfinite(self.optimum)

    @property
    def missed(self) -> Truths:
        """(n,) bool, rows with an answer that DEAR did not find."""
        return self.possible & ~np.isfinite(self.dear)

    @property
    def both(self) -> Truths:
        """(n,) bool, rows that DEAR solves."""
        return self.possible & ~self.missed

    @property
    def ratios(self) -> Floats:
        """(m,) DEAR's price divided by the least one, for rows that DEAR solves."""
        return self.dear[self.both] / self.optimum[self.both]

    @property
    def excess(self) -> Floats:
        """(m,) DEAR's price minus the least one, for rows that DEAR solves."""
        return self.dear[self.both] - self.optimum[self.both]


def compared(dear: DEAR, frame: pd.DataFrame) -> Compared:
    """Compare the answers of DEAR with the optimum.

    Args:
        dear: fitted on single features, with `groups=False`.
        frame: n rejected rows.
    """
    search, actions = dear.search, dear.generate(frame).actions
    price = actions["cost"].to_numpy(dtype=float)
    alone = (actions["reliance"] == 0.0).to_numpy()
    price = np.where(alone, price / (1.0 + search.prefer_alone), price)
    with torch.inference_mode():
        case = _case(dear, frame)
        valid = actions["credible"] if search.has_criteria else actions["success"]
        found = np.where(valid, price, np.inf)
        optimum = np.minimum(found, _optimum(dear, dear._with_margin(case), found))
        with_margin = np.isfinite(optimum)
        if search.margin and not with_margin.all():
            rest = np.flatnonzero(~with_margin)
            part = case.select(torch.from_numpy(rest))
            passed = _passes(dear, part, actions.iloc[rest])
            found[rest] = np.where(passed, price[rest], np.inf)
            optimum[rest] = np.minimum(found[rest], _optimum(dear, part, found[rest]))
    return Compared(found, optimum, with_margin)


def _passes(dear: DEAR, case: Case, actions: pd.DataFrame) -> Truths:
    """(n,) bool, answers that meet all criteria besides the margin."""
    names = ("confidence", "reliance", "plausibility")
    sure, needed, plausible = (
        torch.from_numpy(actions[name].to_numpy(dtype=float)) for name in names
    )
    own = dear._evidence.plausibility.of(case.x)
    passed = met(dear.search, sure, needed, plausible, own)
    passes: Truths = passed.numpy() & actions["success"].to_numpy(dtype=bool)
    return passes


def _optimum(dear: DEAR, case: Case, known: Floats) -> Floats:
    """(n,) the least price below known ones, (n,); infinite where there is none."""
    search, optimizer = dear.search, dear._fitted_optimizer
    problem = optimizer.problem(case)
    # An upper bound of the cost of cheaper answers, for those without an indirect change too.
    limit = torch.from_numpy(known * (1.0 + search.prefer_alone)).float()
    categories = other_categories(problem, problem.actionable, optimizer.grids)
    candidates = chain(_numbers(problem, dear._fitted_rows), categories, special_levels(problem))
    parts = list(_cheaper(problem, candidates, limit, search.slack))
    if not search.has_criteria:
        least = torch.full_like(limit, torch.inf)
        for rows, _, _, cost in parts:
            least.scatter_reduce_(0, rows, cost, "amin")
        return least.double().numpy()
    problem = replace(problem, redrawn=True)
    ranked = RankedCandidates.of(problem, [part[:3] for part in parts], search)
    # With infinite margins, `vet` skips no candidate.
    ranked = replace(ranked, margin=torch.full_like(ranked.price, torch.inf))
    choice = Choice.none(problem)
    vet(problem, ranked, list(criteria(problem, search, dear._evidence).values()), choice)
    return torch.where(choice.passed, choice.price, torch.inf).double().numpy()


def _case(dear: DEAR, frame: pd.DataFrame) -> Case:
    """Rejected rows as the search takes them."""
    encoder, classifier = dear.encoder, dear.classifier
    x = encoder.rows(frame)
    goal = goal_of(None, len(x), classifier.classes, classifier.output)
    goal = goal.bind(classifier.frame_scores(frame, x), lambda: dear._cutoffs)
    feasible = feasible_set(None, x, encoder, encoder.units.resolutions(frame))
    return Case(x, goal, feasible, SLACKS[0], torch.arange(len(x)))


def _cheaper(
    problem: SearchProblem, candidates: Iterator[Candidates], limit: Tensor, slack: float
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Successes that cost less than (n,) limits: rows (m,), sets (m,), values (m, 1, 1), costs."""
    for rows, sets, values in candidates:
        evaluation = problem.evaluate(rows, sets, values, slack)
        cheap = evaluation.valid & (evaluation.cost < limit[rows, None])
        at, place = cheap.nonzero(as_tuple=True)
        yield rows[at], sets[at], values[at, place][:, None], evaluation.cost[at, place]


def _numbers(problem: SearchProblem, train: Tensor) -> Iterator[Candidates]:
    """The values of all numeric features, set by set: rows (m,), sets (m,), values (m, c, 1)."""
    for at, (feature, *_) in enumerate(problem.sets.members):
        rows = problem.actionable[:, at].nonzero()[:, 0]
        if not bool(problem.numeric[feature]) or not len(rows):
            continue
        step = float(problem.feasible.steps[feature])
        values = _values(problem.x[rows, feature, None], train[:, feature], step)
        features = torch.full_like(rows, feature)
        snapped = problem.feasible.snap(values, features, rows)
        yield rows, torch.full_like(rows, at), snapped[..., None]


def _values(own: Tensor, column: Tensor, step: float) -> Tensor:
    """(m, c) candidate values of a numeric feature for m rows.

    Args:
        own: (m, 1) the factual values.
        column: (n,) the training values.
        step: the precision.
    """
    count = round(1.0 / step) + 1 if step else MOST_VALUES + 1
    if count <= MOST_VALUES:
        return torch.linspace(0.0, 1.0, count).expand(len(own), -1)
    third = MOST_VALUES // 3
    known = without_special(column).unique()
    quantiles = known[torch.linspace(0, len(known) - 1, third).long()]
    least = max(step, LEAST)
    away = least * (1.0 / least) ** (torch.arange(third // 2) / (third // 2 - 1))
    shared = torch.cat([torch.linspace(0.0, 1.0, third), quantiles])
    near = own + torch.cat([-away, away])
    return torch.cat([shared.expand(len(own), -1), near], 1)
