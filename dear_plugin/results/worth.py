"""What answers are worth: what becomes of them under resamples, and by the criteria of a method.

The resamples are others than those that a search evaluates. One decoding of them gives the
confidence and the ranges of what changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dear_plugin._threads import bar
from dear_plugin.evaluation.trained import Trained
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.feasible import Case, Status
from dear_plugin.results.proposal import Proposal, Question, Scored, selected
from dear_plugin.search import Search, SearchProblem, criteria
from dear_plugin.search.problem import answered, together
from dear_plugin.search.settings import CRITERIA

# Rows whose resamples are held in memory at a time.
ROWS_RESAMPLED = 1024
# Resamples, of half of the rows, differ from an estimate sqrt(2) times as much as the truth does:
# 95 % of the truths are between these quantiles of means; and 95 % of the rows between those.
OF_MEANS, OF_PEOPLE = 0.166, 0.025

# What texts read, as arrays.
WRITTEN = ("alone", "possible", "gain", "moved")

Amounts: TypeAlias = Callable[..., Tensor]
Columns: TypeAlias = dict[str, Tensor]
# The columns of ranges.
ENDS = ("low", "high", "low_one", "high_one")


@dataclass(frozen=True)
class Worth:
    """What n answers are worth.

    Attributes:
        confidence: (n,) double, the share of resamples under which an answer succeeds.
        reliance: (n,) double, the least share of the indirect change from which on it succeeds.
        alone: (n,) bool, whether the model accepts the action alone, with what it forces, and the
            row with that is possible.
        possible: (n,) bool, False where the model accepts it, though the row is not.
        gain: (n,) double, 1 where the action itself helps, see `by_share`.
        least: (n, p) the row with the share of the indirect change that is the reliance.
        moved: (n, p) the number of resamples in which a feature changes; 0 for what is acted on.
        low: (n, p) the least change of a number in user units, on average in similar rows,
            which 95 % of such ranges contain; 0 for categories. The change in the answer itself is
            in the range, and without resamples it is both of its ends.
        high: (n, p) likewise, the largest.
        low_one: (n, p) the least change of a single row, likewise.
        high_one: (n, p) likewise.
        measured: (n, c) double, the criteria in their order, one minus the value for reliance; NaN
            where there is no answer, or where the criterion is not evaluated.
        required: (n, c) double, the required values; NaN where none is.
        margin: (n,) double, how far past the boundary the score is.
        least_margin: (n,) double, the required one; NaN where none is, or where nothing is done.
        consistency: (n, p) double, the consistency of what is acted on; NaN elsewhere.
        credible: (n,) bool, whether there is an answer that has them, and the margin.
        count: the number of resamples; 0 without any.
    """

    confidence: Tensor
    reliance: Tensor
    alone: npt.NDArray[np.bool_]
    possible: npt.NDArray[np.bool_]
    gain: npt.NDArray[np.float64]
    least: Tensor
    moved: npt.NDArray[np.int64]
    low: Tensor
    high: Tensor
    low_one: Tensor
    high_one: Tensor
    measured: Tensor
    required: Tensor
    margin: Tensor
    least_margin: Tensor
    consistency: Tensor
    credible: Tensor
    count: int

    @classmethod
    def of(cls, question: Question, written: Scored) -> Worth:
        """The worth of answers of any origin to n rows."""
        trained, case, proposal = question.trained, question.case, written.proposal
        parts = torch.arange(len(case)).split(ROWS_RESAMPLED)
        found = [
            under_resamples(case.select(at), selected(proposal, at), trained)
            for at in bar(parts, "resamples, chunks of rows")
        ]
        known = {name: torch.cat([each[name] for each in found]) for name in found[0]}
        known |= by_criteria(question, written, known)
        count = 0 if trained.decoders is None else len(criteria.unseen(trained.decoders.decoder))
        columns: dict[str, Any] = {n: v.numpy() if n in WRITTEN else v for n, v in known.items()}
        good = written.success & ~proposal.failed & (proposal.status != Status.NO_ADVICE)
        worth = cls(**columns, credible=good, count=count)
        return replace(worth, credible=good & ~worth.near & ~worth.lacks.any(1))

    @property
    def lacks(self) -> Tensor:
        """(n, c) bool, the criteria that are not met."""
        return self.measured < self.required - criteria.TOLERANCE

    @property
    def near(self) -> Tensor:
        """(n,) bool, answers with less than the required margin."""
        return self.margin < self.least_margin * (1.0 - criteria.ROUNDING)


def under_resamples(case: Case, proposal: Proposal, trained: Trained) -> Columns:
    """The first columns of `Worth`, of m answers; without decoders there are no resamples.

    Confidence is 1 and reliance 0 where nothing follows. No end of a range is beyond what a
    counterfactual may be.
    """
    x, rows, amounts = case.x, proposal.rows, trained.classifier.encoder.amounts
    own, one = _steps(x, rows, amounts)[0], torch.ones(len(x), dtype=torch.float64)
    yes, decoders = torch.ones(len(x), dtype=torch.bool), trained.decoders
    draws = torch.arange(0) if decoders is None else criteria.unseen(decoders.decoder)
    out = {"confidence": one, "reliance": 0.0 * one, "alone": yes, "possible": yes, "gain": one}
    out |= {"least": rows, "moved": len(draws) * ((rows != x) & ~proposal.direct).long()}
    out |= dict.fromkeys(ENDS, own)
    at = ((rows != x).any(1) & proposal.direct.any(1)).nonzero()[:, 0]
    if not len(draws) or not len(at):
        return out
    with torch.inference_mode():
        problem, acts = as_actions(case, proposal, at, trained)
        after = problem.resample(acts.rows, acts.sets, acts.values, draws)
        asks = criteria.confidence(problem, acts.rows, after), criteria.by_share(problem, acts)
        (share, _), parts = answered(problem.scores, together(asks))
        known = {
            "confidence": share,
            **parts,
            "moved": (after != problem.x[:, None]).sum(1) * ~proposal.direct[at],
            **_ranges(problem.x, acts.reached, after, amounts),
        }
        whole = {name: values.index_copy(0, at, known[name]) for name, values in out.items()}
    limits, some = case.feasible.limits, amounts(x)
    least, most = ((end - x).where(some, 0.0) for end in (limits.floor, limits.ceiling))
    return {n: v.clamp(least, most) if n in ENDS else v.clone() for n, v in whole.items()}


def by_criteria(question: Question, written: Scored, known: Columns) -> Columns:
    """The next columns of `Worth`, given what resamples say."""
    trained, case, proposal = question.trained, question.case, written.proposal
    n, rows = len(case), written.success.nonzero()[:, 0]
    search = question.search if question.search.has_criteria else Search()
    # What the search has measured is not evaluated again; its confidence is of resamples by
    # which it chose, in whose place are others.
    order, own = question.encoder.schema.causal_order, proposal.measured[rows].double()
    # With an order of causes, what follows is an effect of the action.
    gain = torch.ones_like(known["gain"]) if order.is_stated else known["gain"]
    new = {"gain": gain, "reliance": 1.0 - known["reliance"], "confidence": known["confidence"]}
    for name, column in new.items():
        own[:, CRITERIA.index(name)] = column[rows]
    consistency = torch.full(proposal.rows.shape, torch.nan, dtype=torch.float64)
    consistency[rows] = 1.0
    acting = rows[proposal.direct[rows].any(1)]
    if len(acting):
        x, reached, direct = (each[acting] for each in (case.x, proposal.rows, proposal.direct))
        consistency[acting] = trained.consistency.of(x, reached, direct, case.goal, acting)
    measures: dict[str, criteria.Measure] = {
        **criteria.measures_of_rows(case.goal, trained),
        "consistency": lambda found: (consistency[found.rows].amin(1), 0.0, {}),
    }
    evaluated = {"plausibility", "consistency", "agreement"} | search.required.keys()
    # All are evaluated: of none a value is required here.
    none = torch.full((n,), -torch.inf)
    wanted = {n: criteria.Criterion(m, none) for n, m in measures.items() if n in evaluated}
    measured, required = torch.full((2, n, len(CRITERIA)), torch.nan).double()
    measured[rows] = criteria.scored(criteria.Reached(rows, proposal.rows[rows]), wanted, own)[2]
    least = proposal.least[rows].double()
    unknown = least.isnan()
    own_least = trained.plausibility(case.x[rows[unknown]]).double()
    least = least.masked_scatter(unknown, own_least)
    for name, column in criteria.least_values(search, least).items():
        required[rows, CRITERIA.index(name)] = column.double()
    if not order.is_stated and bool((known["reliance"][rows] > 0.0).any()):
        _ = trained.advised
    enough = torch.full((n,), torch.nan).double()
    if n and question.search.margin:
        enough = criteria.margins(case, question.search, trained).double()
    enough = enough.masked_fill(~written.success | proposal.accepted, torch.nan)
    return {
        "measured": measured,
        "required": required,
        "margin": case.goal.margin(written.scores).double(),
        "least_margin": enough,
        "consistency": consistency,
    }


def as_actions(
    case: Case, proposal: Proposal, rows: Tensor, trained: Trained
) -> tuple[SearchProblem, criteria.Decoded]:
    """The answers at positions, (q,), as actions of a search problem."""
    part, acted = selected(proposal, rows), proposal.direct[rows]
    sets, which = ActionSets.acted_on(acted, trained.classifier.encoder.schema)
    problem = SearchProblem.of(case.select(rows), sets, trained)
    values = part.rows.gather(1, sets.positions[which])
    return problem, criteria.Decoded(torch.arange(len(rows)), part.rows, which, values)


def _ranges(x: Tensor, rows: Tensor, resampled: Tensor, amounts: Amounts) -> Columns:
    """The ends of the changes of answers, (m, p), over r resamples of single rows.

    Args:
        x: (m, p) the factual rows.
        rows: (m, p) the answers.
        resampled: (m, r, p) the counterfactuals under the resamples.
        amounts: says which cells are amounts in all of some rows.
    """
    own = _steps(x, rows, amounts)[0]
    steps, known = _steps(x[:, None], resampled, amounts)
    mean = steps.sum(1) / known.sum(1).clamp_min(1)
    # Where one becomes missing the others stand for it.
    steps = torch.where(known, steps, mean[:, None])
    found = zip(("low", "high") * 2, (*around(steps, mean), *ends(steps, OF_PEOPLE)), strict=True)
    out = [end.minimum(own) if name == "low" else end.maximum(own) for name, end in found]
    return dict(zip(ENDS, out, strict=True))


def around(values: Tensor, middle: Tensor) -> tuple[Tensor, Tensor]:
    """(m, p) twice, the ends of the range of a mean that is about some middle, (m, p).

    So far from the middle as the values, (m, r, p), of resamples are, on either side.
    """
    far = ends((values - middle[:, None]).abs(), OF_MEANS)[1]
    return middle - far, middle + far


def ends(values: Tensor, outer: float) -> tuple[Tensor, Tensor]:
    """(m, p) twice, between which all but an outer share of a distribution is on either side.

    Args:
        values: (m, r, p) a sample of it, of which the i-th smallest is at i / (r + 1).
        outer: the share.
    """
    ordered, last = values.sort(1).values, values.shape[1] - 1
    place = min(max(outer * (last + 2) - 1.0, 0.0), last / 2.0)
    at, part = int(place), place - int(place)
    low, high = (
        torch.lerp(each[:, at], each[:, min(at + 1, last)], part)
        for each in (ordered, ordered.flip(1))
    )
    return low, high


def _steps(x: Tensor, rows: Tensor, amounts: Amounts) -> tuple[Tensor, Tensor]:
    """The changes of numbers, 0 from or to a special value; and where not, bool; as `rows`."""
    known = amounts(x, rows)
    return torch.where(known, rows - x, 0.0), known
