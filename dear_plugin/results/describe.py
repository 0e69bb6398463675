"""Describe: rows of a result in; what an analyst is told of each of them out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import torch

from dear_plugin.data.feature import Feature
from dear_plugin.evaluation.consistency import CLEAR
from dear_plugin.problem.reasons import Reason
from dear_plugin.results import words
from dear_plugin.results.changes import Line, is_forced, is_needed
from dear_plugin.results.result import Result
from dear_plugin.results.words import Told

# The expected changes that a description names.
MOST_EXPECTED = 3


def describe(result: Result, positions: Sequence[int]) -> list[str]:
    """The texts of the rows at m positions; what they share is computed once."""
    every = list(positions) == list(range(len(result)))
    part = result if every else result.select(torch.tensor(positions, dtype=torch.int64))
    return [_without_action(part, at) or _answer(part, at) for at in range(len(part))]


def evidence(result: Result, at: int) -> str:
    """What is known of a row's answer besides its changes, or why there is none."""
    row = result.actions.iloc[at]
    if not result.acts[at]:
        return describe(result, [at])[0]
    if not row["success"]:
        return f"Not solved: {row['reason']}."
    weak = [] if _is_credible(result, at) else [f"Weak answer: {_lacks(result, at)}."]
    return " ".join([*_certainty(result, at), *weak])


def head(result: Result, at: int) -> str:
    """The row and its score, before and after where it has an action.

    A row that cannot be read has no score.
    """
    row, acts = result.outcome.iloc[at], bool(result.acts[at])
    name = f"Row {result.factuals.index[at]}"
    if pd.isna(row["score_before"]):
        return name
    is_probability = result.question.case.goal.scores_are_probabilities
    before, after = (
        f"{row[column]:.0%}" if is_probability else f"{row[column]:.4g}"
        for column in ("score_before", "score_after")
    )
    what = "probability of the wanted decision" if is_probability else "predicted value"
    attempt = "not solved; nearest attempt, " if acts and not row["success"] else ""
    return f"{name}: {attempt}{what} {f'{before} → {after}' if acts else before}"


def told(result: Result, lines: Sequence[Line]) -> list[tuple[Feature, Line]]:
    """Lines with their features."""
    known = {feature.name: feature for feature in result.encoder.schema}
    return [(known[line.feature], line) for line in lines]


def followers(result: Result, at: int) -> dict[Line, float]:
    """The indirect changes of a row in standard deviations, the largest first.

    A changed category, and a change from or to a special value, counts 1.
    """
    names, deviations = result.encoder.schema.names, result.question.method.trained.deviations
    known = dict(zip(names, deviations.clamp_min(1e-9).tolist(), strict=True))
    sizes = {
        line: 1.0 if math.isnan(line.low) else abs(line.size) / known[line.feature]
        for line in result.lines[at]
        if line.kind == "indirect"
    }
    return dict(sorted(sizes.items(), key=lambda each: -each[1]))


def needs(result: Result, at: int) -> list[Line]:
    """The changes that must follow, the largest first."""
    relies = bool(result.spread.reliance[at] > 0.0)
    return [line for line in followers(result, at) if relies and is_needed(line)]


def unclear_changes(result: Result, at: int) -> dict[str, float]:
    """What a row acts on that the model does not clearly favour, with the consistency."""
    if not result.proposal.searched or not bool(result.success[at]):
        return {}
    names = result.encoder.schema.names
    shares = result.question.consistency(result.proposal, torch.tensor([at]))[0].tolist()
    each = dict(zip(names, shares, strict=True))
    acted = [line for line in result.lines[at] if line.kind == "direct"]
    return {line.label: each[line.feature] for line in acted if each[line.feature] < CLEAR}


def _without_action(result: Result, at: int) -> str:
    """The text of a row without an action; "" where it has one."""
    success, reason = bool(result.success[at]), result.outcome["reason"].iloc[at]
    if not success and result.proposal.searched:
        return f"no recourse found: {result.actions['reason'].iloc[at]}"
    if result.acts[at]:
        return ""
    moves = bool(result.changed[at].any())
    explained = bool(reason) and not bool(result.proposal.accepted[at])
    if success and not explained and not moves:
        return "nothing to change: the decision is already the wanted one"
    return f"{'no action' if moves else 'nothing changes'}: {reason or Reason.ROUNDED_AWAY}"


def _answer(result: Result, at: int) -> str:
    """The action, what is expected to follow, and what is known of it."""
    lines, largest = result.lines[at], list(followers(result, at))
    flips = result.question.method._flip_probabilities(result.question.case, result.proposal, at)
    schema = result.encoder.schema
    text = words.sentence(
        told(result, [line for line in lines if line.kind == "direct"]),
        told(result, largest[:MOST_EXPECTED]),
        {words.level(schema.features[j]): each for j, each in flips.items()},
        max(0, len(largest) - MOST_EXPECTED),
        forced=_forced(result, at),
    )
    if not bool(result.success[at]):
        text, against = f"{text}; {result.outcome['reason'].iloc[at]}", _contradicted(result, at)
        return " ".join([f"{text}.", *against]) if against else text
    more = _certainty(result, at)
    if _is_credible(result, at):
        return " ".join([f"{text}.", *more]) if more else text
    return words.weak(text, more, _lacks(result, at))


def _forced(result: Result, at: int) -> list[Told]:
    """What the action alone changes by definition."""
    return told(result, [line for line in result.lines[at] if is_forced(line)])


def _is_credible(result: Result, at: int) -> bool:
    """Whether nothing is said against the answer; as with actions that the user gave."""
    return bool(result.credibility.credible[at]) or not result.proposal.searched


def _certainty(result: Result, at: int) -> list[str]:
    """Whether the action alone is enough, and the confidence; empty without redraws.

    The confidence is left out where no redraw changes anything besides the action.
    """
    spread, trained = result.spread, result.question.method.trained
    moved = (spread.moved[at] > 0) & ~result.proposal.direct[at]
    known = [*_agreed(result, at), *filter(None, [words.unclear(unclear_changes(result, at))])]
    if not bool(moved.any()) and all(line.kind == "direct" for line in result.lines[at]):
        return [*[words.ENOUGH] * bool(spread.count), *known]
    times = round(float(spread.confidence[at]) * spread.count)
    enough = words.enough(
        told(result, needs(result, at)) if bool(spread.reliance[at] > 0.0) else None,
        forced=bool(_forced(result, at)),
        alone=bool(spread.alone[at]),
        gain=bool(spread.gain[at]),
        sure=times >= words.SURE * spread.count,
    )
    succeeds = words.succeeds(times, spread.count, len(trained.rows))
    return [enough, succeeds, *known, *_contradicted(result, at)]


def _agreed(result: Result, at: int) -> list[str]:
    """How many copies of the model accept the answer."""
    share = float(result.actions["agreement"].iloc[at])
    copies = result.question.method.trained.copies
    return [] if math.isnan(share) else [words.agreed(share, len(copies))]


def _contradicted(result: Result, at: int) -> list[str]:
    """What held-out rows contradict of the indirect changes, where they were diagnosed."""
    known = result.question.method._contradicted(result.outcome["acted_on"].iloc[at])
    names = [line.feature for line in result.lines[at] if line.kind == "indirect"]
    return [f"Held-out rows contradict {known[f]}." for f in names if f in known]


def _lacks(result: Result, at: int) -> str:
    """What the answer lacks."""
    return str(result.actions["reason"].iloc[at]).removeprefix(Reason.LACKING.start)
