"""Texts of answers for an analyst."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd
import torch

from dear_plugin.data.feature import Feature
from dear_plugin.evaluation.trained import CLEAR
from dear_plugin.problem.feasible import Reason
from dear_plugin.results.changes import (
    Line,
    as_sentence,
    definition,
    frame,
    imperative,
    in_short,
    infinitive,
    join,
    needed,
    one,
    possible,
)
from dear_plugin.results.proposal import flip_probabilities
from dear_plugin.results.result import Result

# The expected changes that a description names; how those of each link begin.
MOST_EXPECTED, EXPECT = 3, {"effect": "then", "association": "along with it"}
ENOUGH = "The action is enough by itself."
# Where a rule between columns changes more: a definition, or an order.
ENOUGH_FORCED = "The action is enough, with what it changes by definition."
ENOUGH_BOUND = "The action is enough, with what has to change with it."
# Of an action that is accepted alone, and refused with some part of what follows.
DEPENDS = (
    "The action alone is accepted, but not with every part of what is expected to follow: it"
    " depends on how much of that happens."
)
# Of an action that is refused alone.
WITH = "The action alone is not enough; it is with what is expected to follow"
# Of an action that makes values that no training row has together, or breaks a rule.
TOGETHER = "The action alone cannot be; it is enough together with what is expected to follow"
# Of an action that does not help by itself.
CHAIN = "The action works through what follows, not by itself."
# Where more than a tenth of resamples fail.
UNDONE = ", but what is expected to follow may undo it."
SURE = 0.9
# Resamples of fewer training rows do not tell how certain an answer is.
FEWEST = 30
# Shares below one in two hundred would be written as 0%.
LEAST_SHARE = 0.005
# Levels of what somebody has not, or has.
FLAGS = {("0", "1"), ("no", "yes"), ("false", "true")}


def describe(result: Result, positions: Sequence[int]) -> list[str]:
    """The texts of the rows at m positions; what they share is computed once."""
    every = list(positions) == list(range(len(result)))
    part = result if every else result.select(torch.tensor(positions, dtype=torch.int64))
    return [_without_action(part, at) or _answer(part, at) for at in range(len(part))]


def evidence(result: Result, at: int) -> str:
    """What is known of a row's answer besides its changes, or why there is none."""
    if not result.acts[at]:
        return describe(result, [at])[0]
    if not bool(result.success[at]):
        return f"Not solved: {result.actions['reason'].iloc[at]}."
    weak = [] if bool(result.credibility.credible[at]) else [f"Weak answer: {lacks(result, at)}."]
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


def followers(result: Result, at: int) -> list[tuple[float, Line]]:
    """The indirect changes of a row with their sizes in standard deviations, the largest first.

    A changed category, and a change from or to a special value, counts 1.
    """
    names, deviations = result.encoder.schema.names, result.question.method.trained.deviations
    known = dict(zip(names, deviations.clamp_min(1e-9).tolist(), strict=True))
    sizes = [
        (abs(line.size) / known[line.feature] if line.is_amount else 1.0, line)
        for line in result.lines[at]
        if line.kind == "indirect"
    ]
    return sorted(sizes, key=lambda each: -each[0])


def needs(result: Result, at: int) -> list[Line]:
    """The changes that must follow, the largest first."""
    relies = bool(result.spread.reliance[at] > 0.0)
    return [line for _, line in followers(result, at) if relies and line.is_needed]


def unclear_changes(result: Result, at: int) -> dict[str, float]:
    """What a row acts on that the model does not clearly favour, with the consistency."""
    if not result.proposal.searched or not bool(result.success[at]):
        return {}
    shares = result.question.consistency(result.proposal, torch.tensor([at]))[0].tolist()
    each = zip(result.encoder.schema, shares, strict=True)
    return {feature.called: share for feature, share in each if share < CLEAR}


def drawn(lines: Sequence[Line]) -> pd.DataFrame:
    """Lines for a figure: ranges in units of cost, and `values` as text."""
    table, units = frame(lines), [line.of.unit_of_cost for line in lines]
    return table.assign(
        title=[line.of.title for line in lines],
        values=[in_short(line) for line in lines],
        low=table["low"].fillna(0.0) / units,
        high=table["high"].fillna(0.0) / units,
    )


def lacks(result: Result, at: int) -> str:
    """What the answer lacks."""
    return str(result.actions["reason"].iloc[at]).removeprefix(Reason.LACKING.start)


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


def outcome_of(feature: Feature) -> str:
    """The second of two levels: "married = yes", or "a guarantor", the label of a flag."""
    levels = [one(feature, each) for each in feature.categories]
    # As letters read labels: "the ..." names a column, not what somebody has.
    is_had = feature.label and not feature.label.startswith("the ")
    if is_had and tuple(map(str.lower, levels)) in FLAGS:
        return feature.label
    return f"{feature.called} = {levels[-1]}"


def _answer(result: Result, at: int) -> str:
    """The action, what is expected to follow, and what is known of it."""
    lines, schema, question = result.lines[at], result.encoder.schema, result.question
    flips = flip_probabilities(question.case, result.proposal, at, question.method.trained)
    binary = {schema.features[j]: each for j, each in flips.items()}
    largest = [line for _, line in followers(result, at)]
    text = sentence(
        [line for line in lines if line.kind == "direct"],
        largest[:MOST_EXPECTED],
        {outcome_of(feature): each for feature, each in binary.items()},
        len(largest[MOST_EXPECTED:]),
        forced=[line for line in lines if line.is_forced],
    )
    if not bool(result.success[at]):
        text, more = f"{text}; {result.outcome['reason'].iloc[at]}", _contradicted(result, at)
    else:
        more = _certainty(result, at)
        if not bool(result.credibility.credible[at]):
            return " ".join([f"Weak answer: {lacks(result, at)}.", as_sentence(text), *more])
    return " ".join([f"{text}.", *more]) if more else text


def _certainty(result: Result, at: int) -> list[str]:
    """Whether the action alone is enough, and the confidence; empty without redraws.

    The confidence is left out where no redraw changes anything besides the action.
    """
    spread, trained, lines = result.spread, result.question.method.trained, result.lines[at]
    share, count = float(result.actions["agreement"].iloc[at]), len(trained.copies)
    known = []
    if not math.isnan(share):
        known = [f"{round(share * count)} of {count} copies of the model accept it, too."]
    known += filter(None, [unclear(unclear_changes(result, at))])
    moved = (spread.moved[at] > 0) & ~result.proposal.direct[at]
    if not bool(moved.any()) and all(line.kind == "direct" for line in lines):
        return [*[ENOUGH] * bool(spread.count), *known]
    times = round(float(spread.confidence[at]) * spread.count)
    alone = enough(
        needs(result, at) if bool(spread.reliance[at] > 0.0) else None,
        forced=[line for line in lines if line.is_forced],
        alone=bool(spread.alone[at]) if bool(spread.possible[at]) else None,
        gain=bool(spread.gain[at]),
        sure=times >= SURE * spread.count,
    )
    succeeded = succeeds(times, spread.count, len(trained.rows))
    return [alone, succeeded, *known, *_contradicted(result, at)]


def _contradicted(result: Result, at: int) -> list[str]:
    """What held-out rows contradict of the indirect changes, where they were diagnosed."""
    acted_on = result.outcome["acted_on"].iloc[at]
    known = result.question.method.trained.contradicted.get(acted_on, {})
    names = [line.feature for line in result.lines[at] if line.kind == "indirect"]
    return [f"Held-out rows contradict {known[f]}." for f in names if f in known]


def sentence(
    direct: Sequence[Line],
    indirect: Sequence[Line],
    shares: Mapping[str, tuple[float, float]],
    more: int = 0,
    *,
    forced: Sequence[Line] = (),
) -> str:
    """The first clause of a description: the action, and the indirect changes then expected.

    Args:
        direct: what is acted on.
        indirect: what changes indirectly.
        shares: categories that do not flip, with their expected probability before and after.
        more: the number of indirect changes besides these.
        forced: what rules between columns set with the action.
    """
    others = join([possible(line) for line in indirect if line.is_uncertain])
    sure = [(e.link, f"{e.label} {infinitive(e)}") for e in indirect if not e.is_uncertain]
    each = [(words, [text for own, text in sure if own == link]) for link, words in EXPECT.items()]
    then = (f"{words} expect {join(some)}" for words, some in each if some)
    follows = "; ".join(filter(None, [*then, others]))
    follows += f" (and {more} more)" if more else ""
    if shares:
        chances = ", ".join(f"{k}: {a:.0%} -> {b:.0%}" for k, (a, b) in shares.items())
        follows = f"{follows or 'no other change is likely'} (chance of {chances})"
    is_so = join([definition(line) for line in forced if line.exact])
    bounds = join([definition(line) for line in forced if not line.exact])
    onward = [line for line in forced if line.goes_on]
    so_then = join([f"{e.label} {infinitive(e)}" for e in onward if e.kind == "forced"])
    follows = ", and ".join(filter(None, [follows, so_then and f"by definition {so_then}"]))
    acts, alone = join([imperative(line) for line in direct]), " alone" if onward else ""
    told = ", and ".join(filter(None, [is_so and f"{is_so} by definition", bounds]))
    return "; ".join(filter(None, [acts, told and f"with it{alone}, {told}", follows]))


def enough(
    musts: Sequence[Line] | None,
    *,
    forced: Sequence[Line],
    alone: bool | None,
    gain: bool,
    sure: bool,
) -> str:
    """Whether the action is enough, or what it needs.

    Args:
        musts: the changes that must follow; None where the answer does not count on any.
        forced: what the action forces.
        alone: whether the action alone is accepted; None where it is, and the row cannot be.
        gain: whether the action itself raises the score.
        sure: whether it succeeds under nearly all resamples.
    """
    if musts is None:
        with_it = ENOUGH_FORCED if all(line.exact for line in forced) else ENOUGH_BOUND
        text = with_it if forced else ENOUGH
        return text if sure else text.replace(".", UNDONE)
    if alone:
        return DEPENDS
    changes = join([needed(line) for line in musts])
    needs = f"{TOGETHER if alone is None else WITH}{f': {changes}' if changes else ''}."
    return needs if gain else f"{needs} {CHAIN}"


def succeeds(times: int, count: int, rows: int) -> str:
    """A sentence on the confidence, given the resamples and the number of training rows."""
    text = f"It succeeds in {times} of {count} resamples of the training rows"
    few = f", of which there are too few ({rows}) to tell" if rows < FEWEST else ""
    return f"{text}{few}."


def unclear(moves: Mapping[str, float]) -> str:
    """A sentence on features, with their consistency, whose change often does not help."""
    if not moves:
        return ""
    few = {False: "less than 1%", True: "none"}
    each = (few[s == 0.0] if s < LEAST_SHARE else f"{s:.0%}" for s in moves.values())
    what = f"The model does not clearly favour such a change of {join(list(moves))}"
    return f"{what}: of the training rows that it moves, {join([*each])} gain."
