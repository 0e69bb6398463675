"""Kinds: the kinds of advice that all applicants get, each with a tick that excludes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import panel as pn

from dear_plugin import _html
from dear_plugin.data.exclusion import DOWN, UP
from dear_plugin.page.look import STYLE, column, error, html, text_of, watched
from dear_plugin.page.session import Session

HEAD = (
    "<h2>What all applicants are told</h2><p>The most frequent first. Untick what nobody should be"
    " told: all answers of this page follow.</p>"
)
VERBS = {UP: "Increase {}", DOWN: "Reduce {}"}


class Kinds:
    """A tick and a text of each kind of advice; `choose` is called with what is excluded."""

    def __init__(self, session: Session, choose: Callable[..., Any]) -> None:
        self.session, self.choose = session, choose
        self.list = column()
        self.view = column(html(HEAD), self.list, name="all")

    def show(self) -> None:
        """Show the kinds of advice, and those that are excluded."""
        answer = self.session.answer
        if answer.choices.everyone and answer.advice is None:
            self.list.objects = [html(error(answer.error))]
        if answer.advice is None:
            return
        lines = [(_kind(line), self._text(line)) for line in answer.advice.itertuples()]
        kinds = [tuple(kind) for kind in answer.choices.excluded]
        gone = [(kind, "<p>Nobody is told this.</p>") for kind in kinds]
        self.list.objects = [
            column(self._tick(kind, kind not in kinds), html(text), name="card kind")
            for kind, text in [*lines, *gone]
        ] or [html("<p>There is no advice to anybody.</p>")]

    def _tick(self, kind: tuple[Any, ...], ticked: bool) -> Any:
        """A tick, which excludes a kind of advice if it is taken away."""
        name, change, _ = kind
        known = self.session.known.get(name)
        words = VERBS.get(change, f"Change {{}}: {change}").format(known.called if known else name)
        # A group of one: its label belongs to the box, for screen readers too.
        box = pn.widgets.CheckBoxGroup(options=[words], value=[words] * ticked, **STYLE)
        return watched(box, partial(self._exclude, kind))

    def _exclude(self, kind: tuple[Any, ...], ticked: list[str]) -> None:
        others = [each for each in self.session.choices.excluded if tuple(each) != kind]
        self.choose(excluded=[*others, *([] if ticked else [kind])])

    def _text(self, line: Any) -> str:
        """How many are told it, from where to where it usually goes, and what follows."""
        feature, n = self.session.known.get(line.feature), len(self.session.rows)
        parts = [f"{line.rows} of {n} applicants ({100 * line.rows / n:.2g} %)"]
        if feature and feature.is_number and not pd.isna(line.new):
            old, new = (text_of(feature, value) for value in (line.old, line.new))
            by = f", by {line.goes} {feature.unit}".rstrip() if line.goes else ""
            parts.append(f"usually from about {old} to about {new}{by}")
        if line.at_edge > 0:
            parts.append(f"{100 * line.at_edge:.2g} % of them to the end of the usual values")
        if line.follows:
            parts.append(f"with it usually {line.follows}")
        return f"<p>{_html.cell('; '.join(parts))}.</p>"


def _kind(line: Any) -> tuple[Any, ...]:
    """What says which kind of advice a line is."""
    levels = line.change not in VERBS and not pd.isna(line.new)
    return line.feature, line.change, line.new if levels else None
