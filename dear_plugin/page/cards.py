"""Cards: up to four ways, each with what to do, what follows, the score and what is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from dear_plugin import _html
from dear_plugin.page.look import button, column, error, html
from dear_plugin.page.session import MOST_WAYS, Answer, Session
from dear_plugin.results.changes import Line
from dear_plugin.results.recourses import Recourses
from dear_plugin.results.words import in_short

ACCEPTED = "This applicant has the wanted decision already."
MARKS = '<i class="won"></i><i class="dot before"></i><i class="dot"></i>'
LINES = {
    "direct": ("do", "Do"),
    "forced": ("follows", "With it"),
    "indirect": ("follows", "Expected to follow"),
}
NONE = "No way was found with what may change. Allow more, or look at another applicant."
TOLD, WEAK = "can be told", "weak: not for a letter"


class Cards:
    """The ways of the chosen applicant; `choose` is called with the position of a card."""

    def __init__(self, session: Session, choose: Callable[[int], Any]) -> None:
        self.session, self.note = session, html()
        self.texts = [html() for _ in range(MOST_WAYS)]
        self.buttons = [button("", partial(choose, at)) for at in range(MOST_WAYS)]
        pairs = zip(self.texts, self.buttons, strict=True)
        self.cards = [column(*pair, name="card") for pair in pairs]
        self.view = column(self.note, column(*self.cards, name="ways"))

    def show(self) -> None:
        """Show the ways, or why there is none."""
        shown, chance = self.session.answer.found, self.session.chance
        self.note.object = "" if shown else _note(self.session.answer)
        for at, one in enumerate(self.cards):
            one.visible = at < len(shown)
            if one.visible:
                way, chosen = shown[at], at == self.session.choices.way and not shown[at].why
                kind, words = ("weak", WEAK) if way.why else ("good", TOLD)
                head = f'<h3>Way {at + 1}</h3><p><span class="badge {kind}">{words}</span></p>'
                head += f'<p class="small">{_html.cell(way.why)}</p>'
                self.texts[at].object = f"{head}{card(way.result, chance=chance)}"
                one.css_classes = ["card", *["chosen"] * chosen]
                self.buttons[at].button_type = "primary" if chosen else "default"
                self.buttons[at].label = "In the letter" if chosen else f"Take way {at + 1}"
                self.buttons[at].disabled = bool(way.why)


def card(way: Recourses, *, chance: bool) -> str:
    """A result of one row: what is done, what follows, the score, and what is known of it.

    Args:
        way: the result.
        chance: whether scores are chances.
    """
    label = way.factuals.index[0]
    lines = [_change(line) for line in way.lines[0] if line.old != line.new]
    known = f'<p class="small">{_html.cell(way.evidence(label))}</p>'
    return f"{''.join(lines)}{_bar(way, chance)}{known}"


def _change(line: Line) -> str:
    """A line of `Recourses.changes`."""
    kind, words = LINES[line.kind]
    name, values = _html.cell(line.of.title), _html.cell(in_short(line))
    return f'<div class="{kind}"><span class="label">{words}: {name}</span>{values}</div>'


def _bar(way: Recourses, chance: bool) -> str:
    """The score before and after on a line, with the side of the wanted decision."""
    ends = [float(end) for end in way.wanted.iloc[0]]
    scores = [float(score) for score in way.outcome[["score_before", "score_after"]].iloc[0]]
    known = [value for value in (*scores, *ends) if math.isfinite(value)]
    pad = 0.08 * (max(known) - min(known) or 1.0)
    low, high = (0.0, 1.0) if chance else (min(known) - pad, max(known) + pad)
    first, last = (low, low) if math.isnan(ends[0]) else (max(ends[0], low), min(ends[1], high))
    named = zip(("before", "after", "first", "last"), (*scores, first, last), strict=True)
    places = ";".join(f"--{name}:{(v - low) / (high - low):.1%}" for name, v in named)
    before, after = (f"{score:.0%}" if chance else f"{score:,.4g}" for score in scores)
    words = f"{'Score' if chance else 'Predicted value'} {before} → {after}"
    lines = [end for end in ends if low < end < high]
    told = " and ".join(f"{end:.0%}" if chance else f"{end:,.4g}" for end in lines)
    words += f" (decision at {told})" if told else ""
    return f'<p>{words}</p><div class="track" style="{places}">{MARKS}</div>'


def _note(answer: Answer) -> str:
    """What stands in the place of the cards."""
    if not answer.ways:
        return error(answer.error)
    why = answer.ways[0].why
    return f'<p>{NONE}</p><p class="small">{_html.cell(why)}</p>' if why else f"<p>{ACCEPTED}</p>"
