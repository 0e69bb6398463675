"""The texts of answers for an analyst."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from dear_plugin.problem.feasible import Reason
from dear_plugin.results.changes import (
    Line,
    as_sentence,
    definition,
    followers,
    frame,
    imperative,
    in_short,
    infinitive,
    join,
    needed,
    needed_changes,
    number,
    possible,
    unclear_changes,
)
from dear_plugin.results.recourses import Recourses

# The largest number of expected changes in a text; the words before those of each link.
MOST_EXPECTED, EXPECT = 3, {"effect": "then", "association": "along with it"}
ENOUGH = "The action is enough by itself."
# If a rule between columns implies more changes: a definition, or an order.
ENOUGH_FORCED = "The action is enough, with what it changes by definition."
ENOUGH_BOUND = "The action is enough, with what has to change with it."
# An action that is accepted alone, and refused with some part of what follows.
DEPENDS = (
    "The action alone is accepted, but not with every part of what is expected to follow: it"
    " depends on how much of that happens."
)
# An action that is refused alone.
WITH = "The action alone is not enough; it is with what is expected to follow"
# An action whose values never occur together in training rows, or that breaks a rule.
TOGETHER = "The action alone is not feasible; it is enough with what is expected to follow"
# An action without own gain.
CHAIN = "The action works through what follows, not by itself."
# An action that fails in more than a tenth of resamples.
UNDONE = ", but what is expected to follow may undo it."
SURE = 0.9
# Resamples of fewer training rows do not tell how certain an answer is.
FEWEST = 30
# Shares below one in two hundred would be written as 0%.
LEAST_SHARE = 0.005
# Significant digits of predicted values.
SCORE_DIGITS = 4
# The text names at most this many unchanged categories that change in at least so many resamples.
MOST_FLIPS, LEAST_FLIPS = 2, 2


def describe(result: Recourses, at: int) -> str:
    """The text of the answer at a position."""
    return _without_action(result, at) or _answer(result, at)


def evidence(result: Recourses, at: int) -> str:
    """The text of an answer besides its changes, or why there is none."""
    if not _acts(result, at):
        return describe(result, at)
    action = result.actions.iloc[at]
    if not action["success"]:
        return f"Not solved: {action['reason']}."
    weak = [] if action["credible"] else [f"Weak answer: {lacks(result, at)}."]
    return " ".join([*_certainty(result, at), *weak])


def head(result: Recourses, at: int) -> str:
    """The row and its score, before and after if it has an action.

    A row that cannot be read has no score.
    """
    row, acts = result.actions.iloc[at], _acts(result, at)
    name = f"Row {result.factuals.index[at]}"
    if pd.isna(row["score_before"]):
        return name
    is_probability = result.question.case.goal.scores_are_probabilities
    before, after = (
        f"{row[column]:.0%}" if is_probability else number(row[column], digits=SCORE_DIGITS)
        for column in ("score_before", "score_after")
    )
    what = "probability of the wanted decision" if is_probability else "predicted value"
    attempt = "not solved; nearest attempt, " if acts and not row["success"] else ""
    return f"{name}: {attempt}{what} {f'{before} → {after}' if acts else before}"


def _acts(result: Recourses, at: int) -> bool:
    """Whether an answer has a direct change."""
    return any(line.kind == "direct" for line in result.lines[at])


def drawn(lines: Sequence[Line]) -> pd.DataFrame:
    """The lines as a frame for a figure: ranges in units of cost, and `values` as text."""
    table, units = frame(lines), [line.of.unit_of_cost for line in lines]
    return table.assign(
        title=[line.of.title for line in lines],
        values=[in_short(line) for line in lines],
        low=table["low"].fillna(0.0) / units,
        high=table["high"].fillna(0.0) / units,
    )


def lacks(result: Recourses, at: int) -> str:
    """Why the answer is not credible."""
    return str(result.actions["reason"].iloc[at]).removeprefix(Reason.LACKING.start)


def _without_action(result: Recourses, at: int) -> str:
    """The text of a row without an action; "" if it has one."""
    action, reason = result.actions.iloc[at], result.reasons[at]
    if not action["success"] and result.proposal.searched:
        return f"no recourse found: {action['reason']}"
    if _acts(result, at):
        return ""
    moves = bool(result.lines[at])
    explained = bool(reason) and reason != Reason.ACCEPTED
    if action["success"] and not explained and not moves:
        return "nothing to change: the decision is already the wanted one"
    return f"{'no action' if moves else 'nothing changes'}: {reason or Reason.ROUNDED_AWAY}"


def _answer(result: Recourses, at: int) -> str:
    """The text of an answer: the action, the indirect changes, and how certain they are."""
    lines, action = result.lines[at], result.actions.iloc[at]
    largest = followers(lines)
    text = sentence(
        [line for line in lines if line.kind == "direct"],
        largest[:MOST_EXPECTED],
        _chances(result, at),
        len(largest[MOST_EXPECTED:]),
        forced=[line for line in lines if line.is_forced],
    )
    if not action["success"]:
        text, more = f"{text}; {result.reasons[at]}", _contradicted(result, at)
    else:
        more = _certainty(result, at)
        if not action["credible"]:
            return " ".join([f"Weak answer: {lacks(result, at)}.", as_sentence(text), *more])
    return " ".join([f"{text}.", *more]) if more else text


def _certainty(result: Recourses, at: int) -> list[str]:
    """Whether the action alone is enough, and the confidence; empty without resamples.

    The confidence is left out if no resample changes anything besides the action.
    """
    worth, trained, lines = result.worth, result.question.trained, result.lines[at]
    action, copies = result.actions.iloc[at], len(trained.copies)
    known = []
    if not math.isnan(action["agreement"]):
        accepted = round(action["agreement"] * copies)
        known = [f"{accepted} of {copies} copies of the model accept it, too."]
    if result.proposal.searched:
        known += filter(None, [unclear(unclear_changes(lines))])
    if not worth.moved[at].any() and all(line.kind == "direct" for line in lines):
        return [*[ENOUGH] * bool(worth.count), *known]
    times, relies = round(action["confidence"] * worth.count), action["reliance"] > 0.0
    alone = bool(worth.alone[at]) if worth.possible[at] else None
    whole = enough(
        needed_changes(lines) if relies else None,
        forced=[line for line in lines if line.is_forced],
        alone=alone,
        gain=bool(worth.gain[at]),
        sure=times >= SURE * worth.count,
    )
    succeeded = succeeds(times, worth.count, len(trained.rows))
    return [whole, succeeded, *known, *_contradicted(result, at)]


def _chances(result: Recourses, at: int) -> list[str]:
    """Texts of the unchanged categories that change in most resamples."""
    changed, schema = {line.feature for line in result.lines[at]}, result.encoder.schema
    each = zip(result.worth.moved[at].tolist(), schema, strict=True)
    some = [
        (n, f.called)
        for n, f in each
        if n >= LEAST_FLIPS and f.name not in {*changed, *schema.numbers}
    ]
    most = sorted(some, key=lambda each: -each[0])[:MOST_FLIPS]
    return [f"{name} changes in {n} of {result.worth.count} resamples" for n, name in most]


def _contradicted(result: Recourses, at: int) -> list[str]:
    """The indirect changes that held-out rows contradict, after `diagnose`."""
    known = result.question.trained.contradicted.get(result.actions["acted_on"].iloc[at], {})
    names = [line.feature for line in result.lines[at] if line.kind == "indirect"]
    return [f"Held-out rows contradict {known[f]}." for f in names if f in known]


def sentence(
    direct: Sequence[Line],
    indirect: Sequence[Line],
    chances: Sequence[str],
    more: int = 0,
    *,
    forced: Sequence[Line] = (),
) -> str:
    """The first clause of a description: the action, and the indirect changes then expected.

    Args:
        direct: the direct changes.
        indirect: the indirect changes.
        chances: texts of features that change in some resamples only.
        more: the number of further indirect changes.
        forced: the changes that rules between columns imply.
    """
    others = join([possible(line) for line in indirect if line.is_uncertain])
    sure = [(e.link, f"{e.label} {infinitive(e)}") for e in indirect if not e.is_uncertain]
    each = [(words, [text for own, text in sure if own == link]) for link, words in EXPECT.items()]
    then = (f"{words} expect {join(some)}" for words, some in each if some)
    follows = "; ".join(filter(None, [*then, others]))
    follows += f" (and {more} more)" if more else ""
    if chances:
        follows = f"{follows or 'no other change is likely'} ({', '.join(chances)})"
    is_so = join([definition(line) for line in forced if line.exact])
    bounds = join([definition(line) for line in forced if not line.exact])
    onward = [line for line in forced if line.goes_on]
    so_then = join([f"{e.label} {infinitive(e)}" for e in onward if e.kind == "forced"])
    follows = ", and ".join(filter(None, [follows, so_then and f"by definition {so_then}"]))
    acts, alone = join([*map(imperative, direct)]), " alone" if onward else ""
    implied = ", and ".join(filter(None, [is_so and f"{is_so} by definition", bounds]))
    return "; ".join(filter(None, [acts, implied and f"with it{alone}, {implied}", follows]))


def enough(
    others: Sequence[Line] | None,
    *,
    forced: Sequence[Line],
    alone: bool | None,
    gain: bool,
    sure: bool,
) -> str:
    """The sentence on whether the action is enough, or which changes it needs.

    Args:
        others: the changes that are needed; None if the answer needs none.
        forced: the implied changes.
        alone: whether the action alone is accepted; None if it is, but its row is not feasible.
        gain: whether the action itself raises the score.
        sure: whether it succeeds under nearly all resamples.
    """
    if others is None:
        with_it = ENOUGH_FORCED if all(line.exact for line in forced) else ENOUGH_BOUND
        text = with_it if forced else ENOUGH
        return text if sure else text.replace(".", UNDONE)
    if alone:
        return DEPENDS
    changes = join([needed(line) for line in others])
    needs = f"{TOGETHER if alone is None else WITH}{f': {changes}' if changes else ''}."
    return needs if gain else f"{needs} {CHAIN}"


def succeeds(times: int, count: int, rows: int) -> str:
    """The sentence on confidence, given successful and all resamples, and training rows."""
    text = f"It succeeds in {times} of {count} resamples of the training rows"
    few = f"; so few rows ({rows}) show little" if rows < FEWEST else ""
    return f"{text}{few}."


def unclear(moves: Mapping[str, float]) -> str:
    """The sentence on changes with low consistency, given the features and their consistency."""
    if not moves:
        return ""
    few = {False: "less than 1%", True: "none"}
    each = (few[s == 0.0] if s < LEAST_SHARE else f"{s:.0%}" for s in moves.values())
    what = f"The model does not clearly favour such a change of {join(list(moves))}"
    return f"{what}: of the training rows that it moves, {join([*each])} gain."
