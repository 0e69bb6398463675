"""The texts and plain values of an answer that `page.js` writes and draws."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
import torch

from dear_plugin.data.feature import Feature
from dear_plugin.data.names import SENSITIVE, says
from dear_plugin.page.choices import ACT, EVERYONE, STAYS, Choices
from dear_plugin.page.harm import not_worse
from dear_plugin.page.session import Answer, Session
from dear_plugin.results.changes import (
    is_amount,
    marks_of,
    number,
    one,
    unit_of,
    with_unit,
)
from dear_plugin.results.recourses import Recourses
from dear_plugin.tell.describe import evidence, in_short
from dear_plugin.tell.schemas import DOWN, UP

ACCEPTED = "This applicant has the wanted decision already."
NONE = "No way was found with what may change. Allow more, or look at another applicant."
OFFERED = {0: "", 1: "Less than now is not offered.", -1: "More than now is not offered."}
AT_END = "Nothing is left to act on: the value is at the end of its range, or beyond it."
# By the kind of what changes, or the link of what is expected to follow.
LINES = {"direct": "Do", "forced": "Implied by a rule", "effect": "Expected to follow"}
ALONG = "Usually goes with it"
VERBS = {UP: "Increase {}", DOWN: "Reduce {}"}
# The values in the search for an applicant.
MOST_SEARCHED = 3
NUMBER = re.compile(r"\d[\d.]*")
# What follows a kind of advice, see `advice`, and what it is called.
FOLLOW = re.compile(r"(.+?) (up|down|changes) in (\d+%)(?:, |$)")
HOW = {UP: "rise", DOWN: "fall", "changes": "change"}

Values = dict[str, Any]


def names(session: Session) -> list[tuple[str, str]]:
    """The applicants: a line to search in, and the name."""
    shown = [f for f in session.dear.schema if not _is_protected(f)][:MOST_SEARCHED]
    values = ([f"{f.title} {text_of(f, v)}" for v in session.rows[f.name]] for f in shown)
    lines = map(" · ".join, zip(session.labels, *values, strict=True))
    return list(zip(lines, session.labels, strict=True))


def known(session: Session) -> Values:
    """What the page knows of all applicants; whose attributes, or names, may be hidden."""
    some = filter(_is_protected, session.dear.schema)
    return {
        "names": names(session),
        "start": asdict(session.answer.choices),
        "protected": sorted({name for f in some for name in (f.title, f.called, f.name)}),
        "named": says(str(session.rows.index.name), SENSITIVE),
    }


def _is_protected(feature: Feature) -> bool:
    return says(feature.name, SENSITIVE) or says(feature.label, SENSITIVE)


def shown(session: Session, answer: Answer) -> Values:
    """All that the page shows."""
    row, one = session.row(answer.choices).iloc[0], answer.choices.applicant != EVERYONE
    fixed = [f for f in session.dear.schema if f.immutable]
    return {
        "choices": asdict(answer.choices),
        "status": _summary(answer),
        "fixed": [f"{f.title} {text_of(f, row[f.name])}" if one else f.title for f in fixed],
        "features": _features(session, answer.choices),
        "chance": session.chance,
        "error": answer.error,
        "ways": [{"why": way.why, **_result(way.result)} for way in answer.found],
        "note": _note(answer),
        "letter": answer.letter,
        "curve": None if answer.curve is None else _curve(session, answer),
        "tried": None if answer.tried is None else _tried(answer.tried),
        "kinds": None if answer.advice is None else _kinds(session, answer),
    }


def text_of(feature: Feature, value: Any) -> str:
    """A value with its unit."""
    if not is_amount(feature, value):
        return one(feature, value)
    text = one(feature, value, marks_of(feature, value))
    return f"{text} {unit_of(feature, value)}".rstrip()


def _summary(answer: Answer) -> str:
    """How many ways there are, or kinds of advice."""
    one = answer.choices.applicant != EVERYONE
    n = len(answer.found if one else answer.advice if answer.advice is not None else ())
    what = "way" if one else "kind"
    return f"{n or 'no'} {what}{'s' * (n != 1)}{'' if one else ' of advice'}"


def _note(answer: Answer) -> list[str]:
    """What stands in the place of the ways; a letter, where there is one, has the reason."""
    if answer.found or not answer.ways:
        return []
    why, is_unread = answer.ways[0].why, answer.ways[0].result.question.unreadable[0]
    return [why if is_unread else NONE if why else ACCEPTED]


def _features(session: Session, choices: Choices) -> list[Values]:
    """What may become of each feature, and how far."""
    rows, names = session.row(choices), session.dear.schema.names
    limits, one = session.limits(rows), choices.applicant != EVERYONE
    pairs = zip(limits.low.amin(0).tolist(), limits.high.amax(0).tolist(), strict=True)
    ends = dict(zip(names, pairs, strict=True))
    out = []
    for name, feature in session.features.items():
        state, reach = choices.states[name], session.reach(choices, name)
        now = text_of(feature, rows[name].iloc[0]) if one else None
        each = {"name": name, "title": feature.title, "now": now, "states": session.states[name]}
        if state == ACT or (reach and state != STAYS):
            way = session.better[name] * (state == ACT)
            kept = not_worse(feature, way * one, rows[name].iloc[0])
            shown = _ends if feature.has_order else _levels
            each |= shown(feature, reach, kept, *ends[name])
            each["offered"] = OFFERED[way]
        out.append(each)
    return out


def _levels(feature: Feature, reach: Any, kept: Any, *_: float) -> Values:
    """Which levels are within reach, of those that leave the applicant no worse off."""
    known = [level for level in feature.answers if kept is None or level in kept]
    return {"levels": [[text_of(feature, c), c, c in (reach or known)] for c in known]}


def _ends(feature: Feature, reach: Any, kept: Any, low: float, high: float) -> Values:
    """How far a feature is within reach, between the ends that are left to an action."""
    (first, last), (least, most) = feature.ends, kept or feature.ends
    low, high = max(low, first, least), min(high, last, most)
    if low >= high:
        return {"none": AT_END}
    few = [value for value in feature.few if low <= feature.place(value) <= high]
    ends = (few[0], few[-1]) if few else (low, high)
    held = [end if own is None else own for own, end in zip(reach or ends, ends, strict=True)]
    place = feature.place
    inside = [min(max(own, ends[0], key=place), ends[1], key=place) for own in held]
    limits = [[ends[0], inside[1]], [inside[0], ends[1]]]
    said = [_span(feature, *pair) for pair in limits]
    return {"ends": ends, "held": inside, "limits": limits, "said": said, **_input(feature, few)}


def _span(feature: Feature, low: Any, high: Any) -> str:
    """Two ends, the unit once."""
    if not is_amount(feature, low, high):
        return ""
    return " to ".join(with_unit(feature, low, high, marks_of(feature, low, high)))


def _input(feature: Feature, few: Sequence[Any]) -> Values:
    """An input of a value: a list of the few that there are, or the step of a number."""
    step = feature.action_step or feature.usual_step
    return {"few": [[text_of(feature, v), v] for v in few], "step": step}


def _result(result: Recourses) -> Values:
    """A result of one row: what is done, what follows, the score, and what is known of it."""
    changed = (line for line in result.lines[0] if line.old != line.new)
    lines = [
        {"kind": line.kind, "words": LINES.get(line.link or line.kind, ALONG)}
        | {"title": line.of.title, "text": in_short(line, grouped=True)}
        for line in changed
    ]
    scores = result.actions[["score_before", "score_after"]].iloc[0].tolist()
    known = evidence(result, 0)
    return {"lines": lines, "scores": scores, "wanted": _wanted(result), "known": known}


def _wanted(result: Recourses) -> list[float | None]:
    """The ends of the wanted scores, None where there is none."""
    ends = result.question.case.goal.wanted(torch.zeros(len(result)))[0].tolist()
    return [end if math.isfinite(end) else None for end in ends]


def _tried(result: Recourses) -> Values:
    """What the engine says of the values by hand."""
    acted, done, reason = result.actions[["acted_on", "success", "reason"]].iloc[0]
    if not acted:
        return {"error": reason}
    head = f"The decision is {'' if done else 'not '}the wanted one"
    return {"head": head, **_result(result)} | ({} if done else {"known": ""})


def _curve(session: Session, answer: Answer) -> Values:
    """The feature by hand: its values, the score over them, and where the applicant is."""
    choices, name = answer.choices, answer.feature
    feature, own = session.features[name], session.row(answer.choices)[name].iloc[0]
    known = answer.curve.dropna(thresh=2)
    values = (known if len(known) > 1 else answer.curve)["value"].tolist()
    score = None if answer.tried is None else answer.tried.actions["score_after"].iloc[0]
    return {
        "name": name,
        "title": f"{feature.title} ({feature.unit})" if feature.unit else feature.title,
        "score": "Score" if session.chance else "Predicted value",
        "number": name in session.dear.schema.numbers,
        "value": choices.hand.get(name, None if pd.isna(own) else own),
        "own": None if pd.isna(own) else own,
        "tried": score if name in choices.hand else None,
        "ends": [values[0], values[-1]],
        "said": _span(feature, values[0], values[-1]),
        **_input(feature, feature.few),
        "values": known["value"].tolist(),
        "texts": [text_of(feature, value) for value in known["value"]],
        "lines": [[None if pd.isna(v) else v for v in known[each]] for each in known.columns[1:]],
        "wanted": _wanted(answer.ways[0].result),
        "reach": session.reach(choices, name),
    }


def _kinds(session: Session, answer: Answer) -> list[Values]:
    """The kinds of advice, and those that are excluded."""
    lines, known = answer.advice.itertuples(index=False), {f.name: f for f in session.dear.schema}
    given = [(_kind(session, line), advice_text(session, line), True) for line in lines]
    gone = [(kind, "No applicant gets this advice.", False) for kind in answer.choices.excluded]
    out = []
    for kind, text, ticked in (*given, *gone):
        words = VERBS.get(kind[1], f"Change {{}}: {kind[1]}").format(known[kind[0]].called)
        out.append({"kind": kind, "words": words, "text": text, "ticked": ticked})
    return out


def _kind(session: Session, line: Any) -> list[Any]:
    """What says which kind of advice a line is; a level, where it is one."""
    levels = () if line.change in VERBS else session.features[line.feature].choices
    return [line.feature, line.change, line.new if line.new in levels else None]


def _share(share: float) -> str:
    """A share in percent."""
    return f"{share:.0%}" if share >= 0.01 else f"{share:.1%}"


def advice_text(session: Session, line: Any) -> str:
    """How many get it, from where to where it usually goes, and what follows."""
    feature, n = session.features[line.feature], len(session.rows)
    parts = [f"{line.rows} of {n} applicants ({_share(line.rows / n)})"]
    if line.change in VERBS and not pd.isna(line.new):
        amounts = (each for each in (line.old, line.new) if is_amount(feature, each))
        marks = marks_of(feature, 0.0, *amounts, *map(float, NUMBER.findall(line.goes)))
        old, new = with_unit(feature, line.old, line.new, marks)
        goes = NUMBER.sub(lambda each: number(float(each[0]), marks=marks), line.goes)
        unit = unit_of(feature, float(line.goes == "1"))
        by = f", by {goes} {unit}".rstrip() if goes else ""
        parts.append(f"usually from about {old} to about {new}{by}")
    texts = [f"{', '.join(parts)}."]
    if line.at_edge > 0:
        end = {UP: "highest", DOWN: "lowest"}.get(line.change, "last")
        texts.append(f"{_share(line.at_edge)} of them go to the {end} usual value.")
    for name, how, share in FOLLOW.findall(line.follows):
        texts.append(f"In {share} of these rows there is also a {HOW[how]} of {name}.")
    return " ".join(texts).replace(" 100% of", " all of")
