"""Dense: the optimum over single features, by asking about all values that they can take.

The optimum of a person is the least price of an action on one feature. All its categories are
asked about, and all its numbers: those from the least to the greatest of the training rows that
limits allow, at steps of its precision. Where these are more than 2,000, as many of them are: a
third spread evenly, a third as the training rows' values are, a third nearer and nearer to the
factual, from one step on. Decoder, limits, margin and criteria are DEAR's own, but nothing is
passed over, bracketed or guessed: what succeeds is vetted cheapest first until one action passes.
Where no action passes with the margin, the least price without it is the optimum: DEAR asks for a
margin where it can be reached. The price is the cost, less by what `prefer_alone` grants where
nothing has to follow. What DEAR found counts among the values, so no answer is cheaper than the
optimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.benchmark.rulers.decision import Floats, Truths
from dear_plugin.case import Case
from dear_plugin.constraints import limits
from dear_plugin.dear import DEAR
from dear_plugin.levels import ordinary
from dear_plugin.method import SLACKS
from dear_plugin.search import Candidates, Choice, Question, criteria, vet
from dear_plugin.search.criteria import TOLERANCE
from dear_plugin.search.grids import others, special_levels
from dear_plugin.target import goal_of

MOST_VALUES = 2_000
# Nothing is tried nearer to the factual, as a share of the range.
LEAST = 1e-9


@dataclass(frozen=True)
class Compared:
    """DEAR's answers beside the optimum; infinite where there is none.

    Attributes:
        ours: (n,) the price of DEAR's answer, where it has all that is asked.
        best: (n,) the least price there is.
        ahead: (n,) whether that is with the margin.
    """

    ours: Floats
    best: Floats
    ahead: Truths

    @property
    def possible(self) -> Truths:
        """(n,) for whom there is an answer at all."""
        return np.isfinite(self.best)

    @property
    def missed(self) -> Truths:
        """(n,) for whom there is an answer that DEAR did not find."""
        return self.possible & ~np.isfinite(self.ours)

    @property
    def both(self) -> Truths:
        """(n,) for whom DEAR has one."""
        return self.possible & ~self.missed

    @property
    def ratios(self) -> Floats:
        """(m,) DEAR's price over the least one, of people for whom it has an answer."""
        return self.ours[self.both] / self.best[self.both]


def compared(dear: DEAR, people: pd.DataFrame) -> Compared:
    """The answers of DEAR, fitted on single features, beside the optimum.

    Args:
        dear: it searches as it is asked to, without groups.
        people: n refused rows.
    """
    search, actions = dear.search, dear.generate(people).actions
    price = actions["cost"].to_numpy(dtype=float)
    alone = (actions["reliance"] == 0.0).to_numpy()
    price = np.where(alone, price / (1.0 + search.prefer_alone), price)
    with torch.inference_mode():
        case = _case(dear, people)
        fine = actions["credible"] if search.vets else actions["success"]
        ours = np.where(fine, price, np.inf)
        best = np.minimum(ours, _optimum(dear, dear._ahead(case), ours))
        ahead = np.isfinite(best)
        if search.margin and not ahead.all():
            rest = np.flatnonzero(~ahead)
            some = case.select(torch.from_numpy(rest))
            ours[rest] = np.where(_passes(dear, some, actions.iloc[rest]), price[rest], np.inf)
            best[rest] = np.minimum(ours[rest], _optimum(dear, some, ours[rest]))
    return Compared(ours, best, ahead)


def _passes(dear: DEAR, case: Case, actions: pd.DataFrame) -> Truths:
    """(n,) which answers have all that is asked besides the margin."""
    search, own = dear.search, dear._evidence.plausibility.of(case.x).double().numpy()
    least = np.minimum(own, search.min_plausibility)
    fine = actions["success"] & (actions["confidence"] >= search.min_confidence - TOLERANCE)
    fine &= actions["plausibility"] >= least - TOLERANCE
    passes: Truths = (fine & (actions["reliance"] <= search.max_reliance)).to_numpy(dtype=bool)
    return passes


def _optimum(dear: DEAR, case: Case, known: Floats) -> Floats:
    """(n,) the least price below what is known, (n,); infinite where there is none."""
    search, moves = dear.search, dear._fitted_moves
    question = moves.question(case)
    # More than that costs nothing that is cheaper, even where nothing has to follow.
    limit = torch.from_numpy(known * (1.0 + search.prefer_alone)).float()
    every = chain(_numbers(question, moves.rows), _levels(dear, question))
    parts = list(_cheaper(question, every, limit, search.slack))
    if not search.vets:
        least = torch.full_like(limit, torch.inf)
        for rows, _, _, cost in parts:
            least.scatter_reduce_(0, rows, cost, "amin")
        return least.double().numpy()
    question = replace(question, redraws=moves.redraws)
    candidates = Candidates.of(question, [part[:3] for part in parts], search)
    # What one action lacks in margin makes nobody pass over the next.
    candidates = replace(candidates, margin=torch.full_like(candidates.price, torch.inf))
    choice = Choice.none(question)
    vet(question, candidates, list(criteria(question, search, dear._evidence).values()), choice)
    return torch.where(choice.passed, choice.price, torch.inf).double().numpy()


def _case(dear: DEAR, people: pd.DataFrame) -> Case:
    """Refused people as the search sees them."""
    encoder, classifier = dear.encoder, dear.classifier
    x = encoder.rows(people)
    goal = goal_of(None, len(x), classifier.classes, classifier.output)
    goal = goal.from_here(classifier.frame_scores(people, x), lambda: dear._cutoffs)
    box = limits(None, x, encoder, encoder.units.grains(people))
    return Case(x, goal, box, SLACKS[0], torch.arange(len(x)))


def _cheaper(
    question: Question,
    actions: Iterator[tuple[Tensor, Tensor, Tensor]],
    limit: Tensor,
    slack: float,
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """What succeeds for less than a limit, (n,): rows (m,), sets (m,), values (m, 1, 1), costs."""
    for rows, sets, values in actions:
        answer = question.ask(rows, sets, values, slack)
        at, place = (answer.good & (answer.cost < limit[rows, None])).nonzero(as_tuple=True)
        yield rows[at], sets[at], values[at, place][:, None], answer.cost[at, place]


def _levels(dear: DEAR, question: Question) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """All other categories, and levels that are no numbers."""
    yield from others(question, question.may, dear._fitted_moves.grids)
    yield from special_levels(question)


def _numbers(question: Question, train: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """All numbers, set by set: rows (m,), sets (m,), values (m, c, 1)."""
    for at, (feature, *_) in enumerate(question.sets.members):
        rows = question.may[:, at].nonzero()[:, 0]
        if not bool(question.numbers[feature]) or not len(rows):
            continue
        step = float(question.limits.steps[feature])
        values = _values(question.x[rows, feature, None], train[:, feature], step)
        where = torch.full_like(rows, feature)
        snapped = question.limits.snap(values, where, rows)
        yield rows, torch.full_like(rows, at), snapped[..., None]


def _values(own: Tensor, column: Tensor, step: float) -> Tensor:
    """(m, c) the values of a number for people who have some value, (m, 1).

    Args:
        own: (m, 1) the factual values.
        column: (n,) those of training rows.
        step: of precision.
    """
    count = round(1.0 / step) + 1 if step else MOST_VALUES + 1
    if count <= MOST_VALUES:
        return torch.linspace(0.0, 1.0, count).expand(len(own), -1)
    third = MOST_VALUES // 3
    known = ordinary(column).unique()
    ranked = known[torch.linspace(0, len(known) - 1, third).long()]
    least = max(step, LEAST)
    away = least * (1.0 / least) ** (torch.arange(third // 2) / (third // 2 - 1))
    spread = torch.cat([torch.linspace(0.0, 1.0, third), ranked])
    beside = own + torch.cat([-away, away])
    return torch.cat([spread.expand(len(own), -1), beside], 1)
