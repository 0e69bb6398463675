"""The criteria that answers must meet, and what the answers are worth by them.

Each criterion is a function of a search problem and some actions; no search optimises it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from inspect import isgeneratorfunction
from typing import Any, Self, TypeAlias, TypeVar

import torch
from torch import Tensor

from dear_plugin.data.numbers import known
from dear_plugin.decoders import Decoder
from dear_plugin.evaluation.trained import Trained
from dear_plugin.models.classifier import share_of
from dear_plugin.models.copies import agreement
from dear_plugin.problem.feasible import Case
from dear_plugin.problem.goals import Goal
from dear_plugin.search.problem import Asking, SearchProblem, answered, margins_of, together
from dear_plugin.search.settings import CRITERIA, Search

# Rounding error of a share; cells of the resamples that are decoded at a time.
TOLERANCE, CELLS = 1e-6, 1 << 20
# Actions of which the model says all at once, also where a part would do.
AT_ONCE = 64


@dataclass(frozen=True)
class Reached:
    """m counterfactuals, however they were found.

    Attributes:
        rows: (m,) the row.
        reached: (m, p) the counterfactual.
    """

    rows: Tensor
    reached: Tensor

    def __len__(self) -> int:
        """The number of counterfactuals (m)."""
        return len(self.rows)

    def part(self, at: Tensor) -> Self:
        """Those at positions (q,), or where a mask, (m,) bool, is true."""
        return type(self)(*[column[at] for column in vars(self).values()])


# Training rows whose margins distinguish targets.
TARGET_PROBES = 8
R = TypeVar("R", bound=Reached)
# Of m counterfactuals: (m,) the measured values, from 0 to 1; (m,) or a number, how much more
# margin may be expected to suffice; and what else is measured. A measure gives that, or asks the
# model and then gives it.
Measured: TypeAlias = tuple[Tensor, Tensor | float, Mapping[str, Tensor]]
Measure: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True)
class Criterion:
    """What a search requires of the counterfactuals of n rows.

    Attributes:
        measure: the measured values of m counterfactuals.
        least: (n,) the required value of each row.
    """

    measure: Measure
    least: Tensor


Wanted: TypeAlias = Mapping[str, Criterion]


def criteria(
    problem: SearchProblem, search: Search, evidence: Trained | None, own: Tensor | None = None
) -> tuple[Wanted, Wanted]:
    """The criteria of a search by name, the cheapest to evaluate first; and those of a report.

    A search asks for more than it reports, see `Search.stricter`; what is reported is evaluated
    under resamples that no search sees.

    Args:
        problem: the search problem.
        search: the required values.
        evidence: what answers are compared with; None for no criteria.
        own: (n,) the plausibility of the factuals, if it is known.
    """
    if evidence is None:
        return {}, {}
    own = evidence.plausibility(problem.x) if own is None else own
    decoder, found = problem.decoders.decoder, []
    draws = torch.arange(1, decoder.draws + 1), unseen(decoder)
    for wanted, some in zip((search.stricter, search), draws, strict=True):
        measures = measures_of_rows(problem.goal, evidence, wanted.min_agreement)
        measures |= measures_of_actions(problem, evidence, wanted.min_confidence, some)
        found.append(required(measures, wanted, own))
    return found[0], found[1]


def required(measures: Mapping[str, Measure], search: Search, own: Tensor) -> dict[str, Criterion]:
    """What a search requires, of what can be measured; for `own` see `least_values`."""
    least = least_values(search, own)
    return {n: Criterion(measures[n], value) for n, value in least.items() if n in measures}


def measures_of_rows(goal: Goal, evidence: Trained, least: float = 0.0) -> dict[str, Measure]:
    """What depends on the counterfactual alone: the criteria that any method can meet.

    Args:
        goal: the targets of the rows.
        evidence: what answers are compared with; without copies there is no agreement.
        least: the agreement to reach.
    """
    agree = partial(agreement, evidence.copies)
    measures: dict[str, Measure] = {
        "agreement": lambda found: (*agree(found.reached, goal, found.rows, least), {}),
        "plausibility": lambda found: (evidence.plausibility(found.reached), 0.0, {}),
        "support": lambda found: (evidence.support(found.reached, goal, found.rows), 0.0, {}),
    }
    return {n: each for n, each in measures.items() if evidence.copies or n != "agreement"}


def measures_of_actions(
    problem: SearchProblem, evidence: Trained, least: float, draws: Tensor
) -> dict[str, Measure]:
    """What depends on the action and the decoder; confidence is of resamples, `draws`, (r,)."""

    def consistency(actions: Decoded) -> Measured:
        x, acted = problem.x[actions.rows], problem.sets.masks[actions.sets]
        goal, rows = problem.goal, actions.rows
        return evidence.consistency.of(x, actions.reached, acted, goal, rows).amin(1), 0.0, {}

    def gain(actions: Decoded) -> Asking[Measured]:
        shares = yield from by_share(problem, actions)
        return shares["gain"], 0.0, {"reliance": 1.0 - shares["reliance"]}

    def reliance(actions: Decoded) -> Asking[Measured]:
        return 1.0 - (yield from by_share(problem, actions))["reliance"], 0.0, {}

    def confident(actions: Decoded) -> Asking[Measured]:
        cells = len(draws) * problem.x.shape[1]
        parts = map(actions.part, torch.arange(len(actions)).split(max(1, CELLS // cells)))
        each = [problem.resample(part.rows, part.sets, part.values, draws) for part in parts]
        return (*(yield from confidence(problem, actions.rows, torch.cat(each), least)), {})

    own = {} if problem.has_order else {"gain": gain}
    return {"consistency": consistency, **own, "reliance": reliance, "confidence": confident}


def least_values(search: Search, own: Tensor) -> dict[str, Tensor]:
    """(n,) the required value of each criterion of a search, by name, in order.

    An answer need not be more plausible than the factual, whose plausibility is `own`, (n,).
    """
    least = {name: torch.full_like(own, value) for name, value in search.required.items()}
    if "plausibility" in least:
        least["plausibility"] = least["plausibility"].minimum(own)
    return least


def margins(case: Case, search: Search, trained: Trained) -> Tensor:
    """(n,) the margin that an answer of each row must have, see `Search.margin`."""
    if not search.margin:
        return case.aim
    return case.aim + (search.margin * case.goal.unit(trained.scored[1])).float()


def accepted_beyond(case: Case, trained: Trained) -> Tensor:
    """(n, p) bool, numbers of which most accepted training rows lie beyond the central values.

    Rows with equal margins of some training rows have the same target.
    """
    (rows, scores), (low, high) = trained.scored, trained.classifier.encoder.central
    beyond = (known(rows) & ((rows < low) | (rows > high))).double()
    some = [case.goal.margin(each.expand(len(case), -1)) for each in scores[:TARGET_PROBES]]
    targets, which = torch.stack(some, 1).unique(dim=0, return_inverse=True)
    first = [(which == i).nonzero()[:1, 0].expand(len(scores)) for i in range(len(targets))]
    accepted = torch.stack([case.goal.accepts(scores, at) for at in first]).double()
    return (accepted @ beyond > accepted.sum(1, keepdim=True) / 2.0)[which]


# See `scoring`.
Met: TypeAlias = tuple[Tensor, Tensor, Tensor]


def scored(actions: R, wanted: Wanted, known: Tensor | None = None) -> Met:
    """As `scoring`, by criteria that do not ask the model."""
    return answered(_no_model, scoring(actions, wanted, known))


def scoring(actions: R, wanted: Wanted, known: Tensor | None = None) -> Asking[Met]:
    """Evaluate criteria of m actions in order; one that is not met ends the evaluation.

    Args:
        actions: the actions.
        wanted: the criteria.
        known: (m, c) what is known and not evaluated again, NaN elsewhere; None for nothing.

    Returns:
        (m,) double, the number of criteria met plus 1 minus what is missing of the next one,
        infinite for all; (m,) how much more margin may be expected to suffice; and (m, c) the
        measured values in the order of `CRITERIA`, NaN where not evaluated.
    """
    m = len(actions)
    score, more_margin = torch.full((m,), torch.inf, dtype=torch.float64), torch.zeros(m)
    more = torch.zeros(m, len(CRITERIA))
    measured = torch.full((m, len(CRITERIA)), torch.nan) if known is None else known.clone()
    at = torch.arange(m)
    for passed, (name, criterion) in enumerate(wanted.items()):
        column = CRITERIA.index(name)
        if len(new := at[measured[at, column].isnan()]):
            # A further call of the model costs as much as many rows.
            asking = [n for n in list(wanted)[passed:] if isgeneratorfunction(wanted[n].measure)]
            names = asking if name in asking and len(new) <= AT_ONCE else [name]
            found = [wanted[each].measure(actions.part(new)) for each in names]
            found = (yield from together(found)) if name in asking else found
            for each, (share, short, also) in zip(names, found, strict=True):
                more[new, CRITERIA.index(each)] = torch.as_tensor(short).to(more)
                for other, values in ((each, share), *also.items()):
                    measured[new, CRITERIA.index(other)] = values.to(measured)
        more_margin[at] = more[at, column]
        missing = criterion.least[actions.rows[at]] - measured[at, column]
        passes = missing <= TOLERANCE
        score[at] = torch.where(passes, torch.inf, passed + 1.0 - missing.double())
        at = at[passes]
    return score, more_margin, measured


def _no_model(rows: Tensor) -> Tensor:
    raise AssertionError(f"criteria of rows ask no model, got {len(rows)} rows")


@dataclass(frozen=True)
class RowCriteria:
    """What a search requires of counterfactuals, however they were found.

    Attributes:
        wanted: the criteria of the rows of a call.
        at: (m,) the positions of m of them.
    """

    wanted: Wanted
    at: Tensor

    @classmethod
    def of(cls, case: Case, search: Search, evidence: Trained) -> RowCriteria | None:
        """The criteria of the rows of a call; None where a search has none of them."""
        measures = measures_of_rows(case.goal, evidence)
        wanted = required(measures, search, evidence.plausibility(case.x))
        return cls(wanted, torch.arange(len(case))) if wanted else None

    def met(self, reached: Tensor, rows: Tensor) -> Tensor:
        """(m,) bool, whether counterfactuals, (m, p), of the rows at positions (m,) meet them."""
        return scored(Reached(self.at[rows], reached), self.wanted)[0] == torch.inf

    def mask(self, reached: Tensor) -> Tensor:
        """(n, r) bool, for which of the n rows each of r counterfactuals, (r, p), meets them."""
        mask = torch.ones(len(self.at), len(reached), dtype=torch.bool)
        for criterion in self.wanted.values():
            some = mask.any(0).nonzero()[:, 0]
            pairs = Reached(self.at[:, None].expand(-1, len(some)), reached[some])
            least = criterion.least[self.at, None] - TOLERANCE
            mask[:, some] &= criterion.measure(pairs)[0] >= least
        return mask

    def select(self, rows: Tensor) -> RowCriteria:
        """Those of the rows at positions (q,)."""
        return replace(self, at=self.at[rows])


# Shares of the indirect change; from the half on, categories change.
SHARES = (0.0, 0.25, 0.5, 0.75)
HALF = 0.5
# Relative rounding error of a margin.
ROUNDING = 1e-5


@dataclass(frozen=True)
class Decoded(Reached):
    """m actions, decoded.

    Attributes:
        sets: (m,) the set acted on.
        values: (m, w) the new values of the set's features.
    """

    sets: Tensor
    values: Tensor


def confidence(
    problem: SearchProblem, rows: Tensor, resampled: Tensor, least: float = 0.0
) -> Asking[tuple[Tensor, Tensor]]:
    """The share of resamples (decoders of resampled rows) under which actions succeed.

    A search chooses among many actions those that do well under the resamples that it evaluates;
    their share among the same resamples is too high. What is reported is of `unseen` ones.

    Args:
        problem: the search problem.
        rows: (m,) the row of each action.
        resampled: (m, r, p) the counterfactuals under some resamples.
        least: the share to reach.

    Returns:
        (m,) double, the share, and (m,) by how much the margin falls short in the resample that
        decides whether `least` is reached; 0 where none does.
    """
    found, owner = resampled.flatten(0, 1), rows.repeat_interleave(resampled.shape[1])
    scores = yield found
    margins = margins_of(problem, scores, found, owner)
    valid = problem.goal.accepts(scores, owner) & (margins > -torch.inf)
    shape = resampled.shape[:2]
    return share_of(margins.view(shape), valid.view(shape), least)


def unseen(decoder: Decoder) -> Tensor:
    """(r,) the resamples of a decoder that no search evaluates."""
    return torch.arange(decoder.draws + 1, 2 * decoder.draws + 1)


def by_share(problem: SearchProblem, actions: Decoded) -> Asking[dict[str, Tensor]]:
    """What the model says of m actions where only a share of the indirect change happens.

    Returns:
        - `reliance`, (m,) double, the least of `SHARES` and 1 from which on all are accepted, and
          of which the row is possible. At 0 the action alone suffices, and no part of what follows
          undoes it; at 1 all of the indirect change is needed;
        - `alone`, (m,) bool, whether the action alone, with what it forces, is accepted, and the
          row with that is possible, see `Admissible.is_possible`; `possible`, (m,) bool, False
          where it is accepted, but is not possible;
        - `gain`, (m,) double, 1 where the action itself helps: alone it is accepted; or it does
          not lower the score, and the row with all that follows but the action is refused. Else 0;
        - `least`, (m, p) the row with the share that is the reliance.
    """
    x, whole, count = problem.x[actions.rows][:, None], actions.reached[:, None], len(SHARES)
    acted, (m, p) = problem.sets.masks[actions.sets][:, None], actions.reached.shape
    rows = _partial(problem, actions)
    # The model is called once, with the factual and what follows without the action besides.
    every = torch.cat([rows, x, torch.where(acted, x, whole)], 1).view(-1, p)
    owner = actions.rows.repeat_interleave(count + 2)
    scores = yield every
    accepted = problem.goal.accepts(scores, owner).view(m, -1)
    margin = problem.goal.margin(scores, owner).view(m, -1)
    own, gained = margin[:, count], margin[:, 0] - margin[:, count]
    helps = (gained >= -ROUNDING * own.abs()) & ~accepted[:, -1]
    accepted = accepted[:, :count]
    owner = actions.rows.repeat_interleave(count)
    before, part, after = (e.expand(-1, count, -1).flatten(0, 1) for e in (x, rows, whole))
    possible = problem.feasible.is_possible(before, part, after, owner).view(m, -1)
    # The first that is possible, and from which on all are accepted; or else the whole.
    onwards = accepted.flip(1).long().cumprod(1).flip(1).bool() & possible
    first = torch.cat([onwards, torch.ones_like(onwards[:, :1])], 1).int().argmax(1)
    return {
        "reliance": torch.tensor([*SHARES, 1.0]).double()[first],
        "alone": (accepted & possible)[:, 0],
        "possible": (possible | ~accepted)[:, 0],
        "gain": (accepted[:, 0] | helps).double(),
        "least": torch.cat([rows, whole], 1)[torch.arange(m), first],
    }


def _partial(problem: SearchProblem, actions: Decoded) -> Tensor:
    """(m, 4, p) the rows of actions with the `SHARES` of their indirect changes."""
    x, whole = problem.x[actions.rows][:, None], actions.reached[:, None]
    shares = torch.tensor(SHARES)[:, None]
    number = problem.classifier.encoder.amounts(x, whole)
    rows = torch.where(number, x + shares * (whole - x), torch.where(shares >= HALF, whole, x))
    rows = problem.feasible.project(x[:, 0], rows, actions.rows)
    still = problem.sets.masks[actions.sets]
    rows = torch.where(still[:, None], whole, rows)
    # The first has the action alone: of what it reaches nothing but what it forces.
    rows[:, 0] = x[:, 0].scatter(1, problem.sets.positions[actions.sets], actions.values)
    still = still | problem.held[actions.sets] if problem.has_order else still
    return problem.feasible.repair(x[:, 0], rows, still, actions.rows, alone=1)
