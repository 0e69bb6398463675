"""An answer in words, for an analyst: what changes, whether it is enough, how certain it is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from dear_plugin.data.feature import Feature
from dear_plugin.data.schema import Schema
from dear_plugin.problem.feasible import Reason
from dear_plugin.results.changes import (
    PLAIN,
    Line,
    amount_of,
    ends,
    followers,
    frame,
    is_amount,
    join,
    marks_of,
    needed_changes,
    number,
    rises,
    unclear_changes,
    unit_of,
    with_unit,
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
# One row's range that is at most so many times as wide as that of a mean is no other one: the
# quantiles alone make it 1.4 times as wide.
WIDER = 2.0
# What is said of a range that is wider than the usual range of the column.
UNKNOWN = "how far is not known"
# Letters of a value in a figure; longer ones end in an ellipsis.
MOST_LETTERS = 30

ASSOCIATION = (
    "Indirect changes are associations in the data, not causal effects: they say what usually"
    " goes along with the action, not what the action brings about."
)
EFFECT = (
    "What is then expected is an effect, if the stated order is right and nothing unobserved"
    " causes both; what is expected along with the action, within a tier, is an association."
)
# Above what follows, without any effect and with one.
FOLLOWS = ("Expected to follow (association)", "Expected to follow")


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
    if action["success"] and reason in ("", Reason.ACCEPTED) and not moves:
        return "nothing to change: the decision is already the wanted one"
    return f"{'no action' if moves else 'nothing changes'}: {reason or Reason.ROUNDED_AWAY}"


def _answer(result: Recourses, at: int) -> str:
    """The text of an answer: the action, the indirect changes, and how certain they are."""
    action, text = result.actions.iloc[at], sentence(result.lines[at], _chances(result, at))
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
    times = round(action["confidence"] * worth.count)
    alone = bool(worth.alone[at]) if worth.possible[at] else None
    how = {"relies": action["reliance"] > 0.0, "sure": times >= SURE * worth.count}
    whole = enough(lines, alone=alone, gain=bool(worth.gain[at]), **how)
    succeeded = succeeds(times, worth.count, len(trained.rows))
    return [whole, succeeded, *known, *_contradicted(result, at)]


def _chances(result: Recourses, at: int) -> list[str]:
    """Texts of the unchanged categories that change in most resamples."""
    schema, moved = result.encoder.schema, result.worth.moved[at].tolist()
    known = {*schema.numbers, *(line.feature for line in result.lines[at])}
    each = zip(moved, schema, strict=True)
    some = [(n, f.called) for n, f in each if n >= LEAST_FLIPS and f.name not in known]
    most = sorted(some, key=lambda each: -each[0])[:MOST_FLIPS]
    return [f"{name} changes in {n} of {result.worth.count} resamples" for n, name in most]


def _contradicted(result: Recourses, at: int) -> list[str]:
    """The indirect changes that held-out rows contradict, after `diagnose`."""
    known = result.question.trained.contradicted.get(result.actions["acted_on"].iloc[at], {})
    names = [line.feature for line in result.lines[at] if line.kind == "indirect"]
    return [f"Held-out rows contradict {known[f]}." for f in names if f in known]


def sentence(lines: Sequence[Line], chances: Sequence[str]) -> str:
    """The first clause of a description: the action, and the indirect changes then expected.

    Args:
        lines: what changes.
        chances: texts of features that change in some resamples only.
    """
    indirect, forced = followers(lines), [line for line in lines if line.is_forced]
    few, onward = indirect[:MOST_EXPECTED], [line for line in forced if line.goes_on]
    sure = [(e.link, f"{e.label} {infinitive(e)}") for e in few if not e.is_uncertain]
    each = [(words, [text for own, text in sure if own == link]) for link, words in EXPECT.items()]
    then = (f"{words} expect {join(some)}" for words, some in each if some)
    others = join([possible(line) for line in few if line.is_uncertain])
    follows = "; ".join(filter(None, [*then, others]))
    follows += f" (and {len(indirect) - len(few)} more)" * (len(indirect) > len(few))
    if chances:
        follows = f"{follows or 'no other change is likely'} ({', '.join(chances)})"
    so_then = join([f"{e.label} {infinitive(e)}" for e in onward if e.kind == "forced"])
    follows = ", and ".join(filter(None, [follows, so_then and f"by definition {so_then}"]))
    is_so = join([definition(line) for line in forced if line.exact])
    bounds = join([definition(line) for line in forced if not line.exact])
    implied = ", and ".join(filter(None, [is_so and f"{is_so} by definition", bounds]))
    acts = join([imperative(line) for line in lines if line.kind == "direct"])
    with_it = implied and f"with it{' alone' * bool(onward)}, {implied}"
    return "; ".join(filter(None, [acts, with_it, follows]))


def enough(lines: list[Line], *, relies: bool, alone: bool | None, gain: bool, sure: bool) -> str:
    """The sentence on whether the action is enough, or which changes it needs.

    Args:
        lines: what changes.
        relies: whether some of what follows is needed.
        alone: whether the action alone is accepted; None if it is, but its row is not feasible.
        gain: whether the action itself raises the score.
        sure: whether it succeeds under nearly all resamples.
    """
    if not relies:
        forced = [line.exact for line in lines if line.is_forced]
        text = (ENOUGH_FORCED if all(forced) else ENOUGH_BOUND) if forced else ENOUGH
        return text if sure else text.replace(".", UNDONE)
    if alone:
        return DEPENDS
    changes = join([needed(line) for line in needed_changes(lines)])
    text = f"{TOGETHER if alone is None else WITH}{f': {changes}' if changes else ''}."
    return text if gain else f"{text} {CHAIN}"


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


def note(schema: Schema) -> str:
    """What indirect changes are by a schema: associations, or effects on conditions."""
    return EFFECT if schema.causal_order.is_stated else ASSOCIATION


def heading(lines: Iterable[Line]) -> str:
    """What stands above what follows in a row."""
    return FOLLOWS[any(line.link == "effect" for line in lines)]


def imperative(line: Line) -> str:
    """The action: "raise hours from 35 to 41"."""
    verb = {None: "change", True: "raise", False: "lower"}[rises(line.of, line.old, line.new)]
    return f"{verb} {line.label} {_change(line)}"


def infinitive(line: Line) -> str:
    """What is expected: "to rise from 0 to 307", "to rise by 200 to 400"."""
    if line.is_unknown:
        return f"to change ({UNKNOWN})"
    verb = {None: "change", True: "rise", False: "fall"}[rises(line.of, line.old, line.new)]
    text = _range(line) or f"to {verb} {_change(line)}"
    return f"{text}{_for_one(line, text)}"


def possible(line: Line) -> str:
    """What may happen: "town may change from A to B (5 of 16 resamples)"."""
    return f"{line.label} may change {_change(line)}"


def needed(line: Line) -> str:
    """What has to follow: "duration at 58 to 61 months", "rate at 3", "town being B"."""
    if not is_amount(line.of, line.old, line.least, line.new):
        return f"{line.label} being {with_unit(line.of, line.old, line.least)[1]}"
    low, high = sorted((line.least, line.new), key=float)
    first, last = (ends(line.of, line.old, each)[1] for each in (low, high))
    text = with_unit(line.of, line.old, high)[1]
    return f"{line.label} at {text if first == last else f'{first} to {text}'}"


def definition(line: Line) -> str:
    """What is forced: "area is 80 acres", or by an order "area cannot be more than 80 acres"."""
    verb = "is" if line.exact else "can only be"
    if not line.exact and is_amount(line.of, line.old, line.alone):
        verb = f"cannot be {'less' if rises(line.of, line.old, line.alone) else 'more'} than"
    return f"{line.label} {verb} {with_unit(line.of, line.old, line.alone)[1]}"


def why(line: Line) -> str:
    """Why what is not acted on changes, for tables; "" for an effect."""
    if line.kind == "forced":
        return " (by definition)" if line.exact else " (by an order)"
    return " (association)" if line.link == "association" else ""


def in_short(line: Line, *, grouped: bool = False) -> str:
    """Both values, and the ends for such rows, for a figure: "0 → 307 (200 to 400)".

    Args:
        line: what changes.
        grouped: whether long amounts have separators between thousands.
    """
    feature, old, marks = line.of, line.old, PLAIN
    if grouped and line.is_amount:
        far = (float(old) + end for end in (line.low, line.high))
        marks = marks_of(feature, float(old), float(line.new), *far)
    text = " → ".join(map(_clipped, with_unit(feature, old, line.new, marks)))
    if line.kind == "forced":
        return f"{text}{why(line)}"
    if line.kind == "direct" or not line.is_amount:
        return text + _count(line)
    if line.is_unknown:
        return f"{text} ({UNKNOWN})"
    low, high = (amount_of(feature, e, float(old), marks) for e in (line.low, line.high))
    return f"{text} ({low} to {high})" if low != high else text


def capital(text: str) -> str:
    """A text with a capital letter."""
    return f"{text[:1].upper()}{text[1:]}"


def as_sentence(text: str) -> str:
    """A text with a capital letter and a full stop."""
    return f"{capital(text).rstrip('.')}."


def _change(line: Line) -> str:
    """Both values, and the number of redraws: "from no to yes (7 of 16 resamples)"."""
    old, new = with_unit(line.of, line.old, line.new)
    return f"from {old} to {new}{_count(line)}"


def _count(line: Line) -> str:
    """How many redraws agree, where not all do, of what has no range."""
    some = not line.is_amount and line.agree < line.redraws
    return f" ({line.agree} of {line.redraws} resamples)" if some else ""


def _range(line: Line) -> str:
    """The range of a number's mean change; "" where both ends have the same text."""
    text, last = _steps(line.of, line.low, line.high) if line.is_amount else ("", "")
    return f"to {text} {unit_of(line.of, last)}".rstrip() if text else ""


def _steps(feature: Feature, least: float, most: float) -> tuple[str, str]:
    """How far a number rises or falls, and the last amount; "" where both ends have one text."""
    low, high = amount_of(feature, least), amount_of(feature, most)
    fall, rise = low.removeprefix("-"), high.removeprefix("-")
    if low == high:
        return "", ""
    if "0" not in (low, high) and least > 0.0:
        return f"rise by {fall} to {rise}", rise
    if "0" not in (low, high) and most < 0.0:
        return f"fall by {rise} to {fall}", fall
    falls = [f"fall by up to {fall}"] if low.startswith("-") else []
    grows = [f"rise by up to {rise}"] if high != "0" else []
    return " or ".join(falls + grows), rise if grows else fall


def _for_one(line: Line, mean: str) -> str:
    """The range of one row's change, in the form of the text of the mean; "" if similar."""
    if not line.high_one - line.low_one > WIDER * (line.high - line.low):
        return ""
    wide = line.high_one - line.low_one > line.of.unit_of_cost
    steps = UNKNOWN if wide else _steps(line.of, line.low_one, line.high_one)[0]
    same = "" if " or " in steps + mean else f"{mean.removeprefix('to ').partition(' ')[0]} "
    return f" for people like this (one person: {steps.removeprefix(same)})" if steps else ""


def _clipped(text: str) -> str:
    """A text of at most `MOST_LETTERS` letters."""
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1].rstrip()}…"
