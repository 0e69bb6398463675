"""Why a row has no answer, or why its answer is not credible: reasons and obstacles."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dear_plugin.problem.feasible import Reason, Status
from dear_plugin.results.changes import join
from dear_plugin.results.proposal import Proposal, Question, Scored, selected
from dear_plugin.results.worth import Worth
from dear_plugin.search.criteria import TOLERANCE, Criterion, Reached, RowCriteria, margins, scored
from dear_plugin.search.settings import CRITERIA

# The texts of an answer that does not meet a criterion.
WORDS = {
    "consistency": "a change that the model does not clearly favour",
    "plausibility": "unusual values",
    "gain": "an action that does not help by itself: only associated changes do",
    "reliance": "reliance on too much of the indirect change",
    "support": "too few accepted neighbours",
    "agreement": "too few copies of the model that accept it",
    "confidence": "success in too few resamples",
}

Texts = npt.NDArray[Any]
# The criteria that depend on more than the counterfactual.
OF_ACTIONS = [CRITERIA.index(n) for n in ("consistency", "gain", "reliance", "confidence")]
# The training rows that the most usual accepted one is chosen from; cells of trials, 32 MiB.
SOUGHT, CELLS = 200, 1 << 22


def reasons(question: Question, written: Scored) -> Texts:
    """(n,) the reason of every failure, and remarks on successes that need no criteria."""
    proposal, success = written.proposal, written.success
    out = np.where(proposal.accepted.numpy(), str(Reason.ACCEPTED), "").astype(object)
    said = ~success | proposal.failed | (proposal.status > Status.ACCEPTED)
    for i in (said & ~proposal.accepted).nonzero()[:, 0].tolist():
        out[i] = str(_reason(question, proposal, i, done=bool(success[i])))
    return out


def _reason(question: Question, proposal: Proposal, i: int, *, done: bool) -> str:
    """The reason of the row at position i, which succeeds if `done`."""
    if not proposal.searched:
        own = str(proposal.reasons[i])
        return own if done else own or Reason.NOT_WANTED
    if done:
        advice = proposal.status[i] != Status.NO_ADVICE
        return Reason.LESS_FAR if bool(proposal.failed[i]) else "" if advice else Reason.NO_ADVICE
    return _failure(question, proposal, i) if bool(proposal.failed[i]) else Reason.REFUSED_ROUNDED


def _failure(question: Question, proposal: Proposal, i: int) -> str:
    """Why the row at position i has no recourse."""
    if proposal.reasons[i]:
        return str(proposal.reasons[i])
    if proposal.status[i] == Status.EXCLUDED:
        return _excluded(question, i)
    if proposal.status[i] == Status.NO_MORE:
        return Reason.NO_MORE
    alone, together, excluded = proposal.tried[i].tolist()
    names = [feature.called for feature in question.encoder.schema]
    label = " + ".join(compress(names, proposal.direct[i].tolist()))
    text = Reason.CLOSEST.format(_unreached(alone, together, question.search.max_features), label)
    return f"{text}; {_excluded(question, i)}" if excluded else text


def _excluded(question: Question, i: int) -> str:
    """Why actions of the row at position i were left out."""
    feasible = question.case.feasible
    names = [*compress(feasible.rules.names, feasible.required[i].tolist())]
    return Reason.EXCLUDED_RULES.format(names[0]) if names else Reason.EXCLUDED


def _unreached(alone: int, together: int, most: int) -> str:
    """The action sets that were tried for a row without success, as a text.

    Args:
        alone: the number of features that may be acted on alone.
        together: the number of given sets of several features that may be acted on.
        most: the largest number of single features that are tried together.
    """
    most, of, tried = min(most, alone), f"of the {alone} actionable features", []
    if most > 1:
        tried.append(f"1 {'or' if most == 2 else 'to'} {most} {of}")
    elif alone:
        tried.append("the only actionable feature" if alone == 1 else f"a single one {of}")
    if together:
        tried.append(f"the {together} given groups" if together > 1 else "the given group")
    return Reason.UNREACHED.format(" or of ".join(tried))


def complete(
    question: Question, written: Scored, worth: Worth, known: Texts, found: Tensor
) -> Texts:
    """(n,) the reasons `known`, completed by unmet criteria and obstacles.

    Args:
        question: n rows.
        written: their answers.
        worth: the measures of the answers.
        known: (n,) see `reasons`; a reason that is not "" is kept.
        found: (n, p) bool, see `obstacles`.
    """
    out = np.array(known, dtype=object)
    sought = written.proposal.searched and question.search.has_criteria
    unconfirmed = _unconfirmed(question, written.proposal, worth)
    for i in (written.success & (worth.lacks.any(1) | worth.near)).nonzero()[:, 0].tolist():
        at = worth.lacks[i].nonzero()[:, 0].tolist()
        measured, least = (each[i, at].tolist() for each in (worth.measured, worth.required))
        text = join([*map(short_of, [CRITERIA[c] for c in at], measured, least)])
        reason = Reason.UNCONFIRMED if bool(unconfirmed[i]) else Reason.LACKING
        out[i] = known[i] or (reason.format(text) if sought and at else text)
        out[i] = out[i] or Reason.LESS_MARGIN
    for i in found.any(1).nonzero()[:, 0].tolist():
        some = compress(question.encoder.schema, found[i].tolist())
        names = [*dict.fromkeys(feature.called for feature in some)]
        out[i] = Reason.IN_THE_WAY.format(out[i], join(names))
    return out


def _unconfirmed(question: Question, proposal: Proposal, worth: Worth) -> Tensor:
    """(n,) bool, answers that lack only confidence, and had it in the resamples of the search."""
    at, least = CRITERIA.index("confidence"), question.search.stricter.min_confidence
    enough: Tensor = proposal.measured[:, at] >= least - TOLERANCE
    return enough & worth.lacks[:, at] & (worth.lacks.sum(1) == 1)


def short_of(name: str, share: float, least: float) -> str:
    """The text of an unmet criterion, with both values if they differ once rounded.

    Args:
        name: the criterion.
        share: its value, from 0 to 1; for reliance, one minus it.
        least: the required value; for reliance, one minus it.
    """
    ends, bound = (share, least), "at least"
    if name == "reliance":
        ends, bound = (1.0 - share, 1.0 - least), "at most"
    value, wanted = (f"{end:.2g}" for end in ends)
    if name == "gain" or value == wanted:
        return WORDS[name]
    return f"{WORDS[name]} ({name} {value}, {bound} {wanted} is required)"


def obstacles(question: Question, proposal: Proposal, worth: Worth, some: Tensor) -> Tensor:
    """(n, p) bool, features that cannot be acted on and prevent a credible answer.

    A trial gives such features the values of a usual accepted training row. The nearest attempt
    then has the margin and meets the criteria of counterfactuals. If the criteria of actions are
    unmet, the factual is tried first.

    Args:
        question: n rows.
        proposal: their answers.
        worth: the measures of the answers.
        some: (n,) bool, the rows to evaluate: the first answers. Obstacles of further answers are
            stated with the first one, or are none.
    """
    x, out = question.case.x, torch.zeros_like(proposal.direct)
    if not (proposal.searched and question.search.has_criteria):
        return out
    # Other rows have a reason already: they cannot be read, or nothing may be acted on.
    sought = ~worth.credible & ~question.accepted & (proposal.status != Status.NO_MORE)
    sought &= torch.from_numpy(proposal.reasons == "") & some
    # These met the criteria in the search: they have no obstacle.
    sought &= ~_unconfirmed(question, proposal, worth)
    at_fault = worth.lacks[:, OF_ACTIONS].any(1) | (proposal.status == Status.NO_ADVICE)
    for swapped in (False, True):
        start = torch.where((at_fault ^ swapped)[:, None], x, proposal.rows)
        rows = (sought & ~out.any(1)).nonzero()[:, 0]
        for at in rows.split(max(1, CELLS // out.shape[1] ** 2)) if len(rows) else ():
            out[at] = _freed(selected(question, at), start[at])
    return out


def _freed(question: Question, start: Tensor) -> Tensor:
    """(m, p) bool, the features without which m rows would have an answer.

    A trial gives a feature its value in the most usual accepted training row. The feature that
    brings the row nearest to the margin and the criteria is freed, then another one, up to the
    largest number of features that a search acts on together. None is freed if these do not
    suffice. A feature that does not move the model's score is left out.

    Args:
        question: m rows without a credible answer.
        start: (m, p) the rows of the trials: the nearest attempts, or the factuals.
    """
    trained, (m, p) = question.trained, start.shape
    usual, every = _usual(question), torch.eye(p, dtype=torch.bool)
    left = ~question.may_act & (start != usual)
    left &= torch.tensor([not feature.identifier for feature in question.encoder.schema])
    freed, found = torch.zeros(m, p, dtype=torch.bool), torch.zeros(m, dtype=torch.bool)
    criteria = RowCriteria.of(question.case, question.search, trained)
    wanted = {} if criteria is None else criteria.wanted
    for _ in range(question.search.max_features):
        rows, one = (left & ~found[:, None]).nonzero(as_tuple=True)
        if not len(rows):
            break
        trials = torch.where(freed[rows] | every[one], usual[rows], start[rows])
        near = torch.full(left.shape, -torch.inf, dtype=torch.float64)
        near[rows, one] = _nearness(question, wanted, Reached(rows, trials))
        best, at = near.max(1)
        some = (best > -torch.inf).nonzero()[:, 0]
        freed[some] |= every[at[some]]
        left[some, at[some]] = False
        found |= best == torch.inf
    freed &= found[:, None]
    rows, one = freed.nonzero(as_tuple=True)
    if len(rows):
        after = torch.where(freed, usual, start)[rows]
        trials = torch.cat([after, torch.where(every[one], start[rows], after)])
        scores = trained.classifier.scores(trials)
        own, without = question.case.goal.margin(scores, rows.repeat(2)).chunk(2)
        freed[rows, one] = ~own.isclose(without)
    return freed


def depends_most(question: Question, some: Tensor) -> Tensor:
    """(m,) the feature that the decision of each row depends on most, -1 for none.

    It is a feature that cannot be acted on. Its value in a usual accepted training row, with what
    that sets by definition, brings the score of the row nearest to the target.

    Args:
        question: m rows.
        some: (p,) bool, the features to consider.
    """
    x, goal, fixed = question.case.x, question.case.goal, ~question.may_act & some
    if not bool(fixed.any()):
        return torch.full((len(x),), -1)
    usual = _usual(question)
    rows, one = (fixed & (x != usual)).nonzero(as_tuple=True)
    own = torch.eye(len(some), dtype=torch.bool)[one]
    trials = selected(question, rows).repaired(torch.where(own, usual[rows], x[rows]), own)
    scores = question.trained.classifier.scores(torch.cat([trials, x]))
    margins = goal.margin(scores, torch.cat([rows, torch.arange(len(x))]))
    gains = torch.zeros(x.shape, dtype=margins.dtype)
    gains[rows, one] = margins[: len(rows)] - margins[len(rows) :][rows]
    most, at = gains.max(1)
    return at.where(most > 0.0, -1)


def _usual(question: Question) -> Tensor:
    """(m, p) for each row, the most usual training row that reaches its target."""
    trained, m = question.trained, len(question.case)
    rows, scores = (each[:SOUGHT] for each in trained.scored)
    order = trained.plausibility(rows).argsort(descending=True, stable=True)
    owner = torch.arange(m).repeat_interleave(len(rows))
    accepted = question.case.goal.accepts(scores[order].repeat(m, 1), owner).view(m, -1)
    return rows[order[accepted.int().argmax(1)]]


def _nearness(question: Question, wanted: Mapping[str, Criterion], found: Reached) -> Tensor:
    """(q,) double, how near trials are to the margin and the criteria; infinite if all are met.

    Each criterion that is met counts 1. Less than 1 is taken off for a margin that falls short.
    """
    case, trained = question.case, question.trained
    margin = case.goal.margin(trained.classifier.scores(found.reached), found.rows)
    least = margins(case, question.search, trained)[found.rows]
    short, met = (least - margin).double().clamp_min(0.0), scored(found, wanted)[0]
    part = met.clamp_max(1.0 + len(wanted)) - short / (1.0 + short)
    return torch.where(short > 0.0, part, met)
