"""Explained: the column `reason`: why a row has no answer, or which criteria its answer lacks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from dear_plugin.data.schema import Schema
from dear_plugin.problem.reasons import Reason, Status
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.question import Credibility, Question
from dear_plugin.results.words import join
from dear_plugin.search.settings import CRITERIA

# What an answer has that does not meet a criterion, and what is said of the required value.
WORDS = {
    "consistency": "a change that the model does not clearly favour",
    "plausibility": "values that hardly anybody has",
    "gain": "an action that does not help by itself: only what goes along, an association, does",
    "reliance": "reliance on more of what follows than is allowed",
    "support": "too few accepted neighbours",
    "agreement": "too few copies of the model that accept it",
    "confidence": "success in too few resamples",
}

Texts = npt.NDArray[Any]
# The words of an answer that is no answer of a search.
NOTES = {Status.LESS_MARGIN: Reason.LESS_MARGIN, Status.NO_ADVICE: Reason.NO_ADVICE}


def reasons(question: Question, proposal: Proposal, success: Tensor) -> Texts:
    """(n,) a reason for every failure, and what is known of successes without their criteria.

    Args:
        question: n rows.
        proposal: for them.
        success: (n,) bool, the decision of the user's model on the rows of the result.
    """
    out = np.where(proposal.accepted.numpy(), str(Reason.ACCEPTED), "").astype(object)
    said = ~success | proposal.failed | (proposal.status > Status.ACCEPTED)
    for i in (said & ~proposal.accepted).nonzero()[:, 0].tolist():
        out[i] = str(_reason(question, proposal, i, done=bool(success[i])))
    return out


def _reason(question: Question, proposal: Proposal, i: int, *, done: bool) -> str:
    """The reason of the row at position i, where it is `done` or not."""
    if not proposal.searched:
        own = str(proposal.reasons[i])
        return own if done else own or Reason.NOT_WANTED
    if done:
        status = Status(int(proposal.status[i]))
        return Reason.LESS_FAR if bool(proposal.failed[i]) else NOTES.get(status, "")
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
    names = [feature.called for feature in question.method.encoder.schema]
    label = " + ".join(compress(names, proposal.direct[i].tolist()))
    text = Reason.CLOSEST.format(
        _unreached(alone, together, question.method.search.max_features), label
    )
    return f"{text}; {_excluded(question, i)}" if excluded else text


def _excluded(question: Question, i: int) -> str:
    """Which actions of the row at position i are left out."""
    feasible = question.case.feasible
    names = [*compress(feasible.rules.names, feasible.required[i].tolist())]
    return Reason.EXCLUDED_RULES.format(names[0]) if names else Reason.EXCLUDED


def _unreached(alone: int, together: int, most: int) -> str:
    """The sets that were tried for a row whose search did not reach the target.

    Args:
        alone: the number of features that may be acted on alone.
        together: the number of given sets of several features that may be acted on.
        most: the largest number of the single features that are tried together.
    """
    most, of, tried = min(most, alone), f"of the {alone} actionable features", []
    if most > 1:
        tried.append(f"1 {'or' if most == 2 else 'to'} {most} {of}")
    elif alone:
        tried.append("the only actionable feature" if alone == 1 else f"a single one {of}")
    if together:
        tried.append(f"the {together} given groups" if together > 1 else "the given group")
    return Reason.UNREACHED.format(" or of ".join(tried))


def with_lacking(
    known: Sequence[str], worth: Credibility, success: Tensor, *, required: bool
) -> Texts:
    """(n,) the reasons `known` with the criteria that answers do not meet, where these come first.

    Args:
        known: (n,) see `reasons`.
        worth: of the answers.
        success: (n,) bool, where there are answers.
        required: whether the search asked for the criteria.
    """
    out = np.array(known, dtype=object)
    for i in (success & worth.lacks.any(1)).nonzero()[:, 0].tolist():
        if known[i] in ("", Reason.LESS_MARGIN):
            text = lacking(worth, i)
            out[i] = Reason.LACKING.format(text) if required else known[i] or text
    return out


def lacking(worth: Credibility, i: int) -> str:
    """The criteria that the answer at position i does not meet, with values; "" for none."""
    at = worth.lacks[i].nonzero()[:, 0].tolist()
    pairs = ((CRITERIA[c], float(worth.measured[i, c]), float(worth.least[i, c])) for c in at)
    return join([short_of(*each) for each in pairs])


def short_of(name: str, share: float, least: float) -> str:
    """What an answer has that does not meet a criterion, with figures where they differ as told.

    Args:
        name: of the criterion.
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


def in_the_way(known: Sequence[str], found: Tensor, schema: Schema) -> Texts:
    """(n,) the reasons `known` with the obstacles, (n, p) bool, where there are some."""
    each = in_words(found, [feature.called for feature in schema])
    texts = np.array(known, dtype=object)
    for i, names in enumerate(each):
        texts[i] = Reason.IN_THE_WAY.format(known[i], join(names)) if names else known[i]
    return texts


def in_words(found: Tensor, names: Sequence[str]) -> list[list[str]]:
    """(n,) the names, (p,), of the features in found, (n, p) bool, each once."""
    return [[*dict.fromkeys(compress(names, row))] for row in found.tolist()]
