"""Choose: an applicant, by a search in the names and some values of the rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import panel as pn

from dear_plugin import _html
from dear_plugin.page.look import STYLE, button, column, error, html, text_of, watched
from dear_plugin.page.session import Session

# The values in the search.
MOST_SHOWN = 3


class Choose:
    """Who is chosen, a search field, and two buttons; `chosen` is called with a name."""

    def __init__(self, session: Session, chosen: Callable[[str], Any]) -> None:
        self.session, self.chosen = session, chosen
        self.who, self.none = html(), html()
        shown = list(session.dear.schema)[:MOST_SHOWN]
        values = ([f"{f.title} {text_of(f, v)}" for v in session.rows[f.name]] for f in shown)
        lines = map(" · ".join, zip(session.labels, *values, strict=True))
        self.names = dict(zip(lines, session.labels, strict=True))
        self.search = pn.widgets.AutocompleteInput(
            label="Search for an applicant",
            placeholder="A case, or values",
            options=list(self.names),
            case_sensitive=False,
            search_strategy="includes",
            min_characters=1,
            **STYLE,
        )
        watched(self.search, self._found)
        self.search.param.watch(lambda event: self._typed(event.new or ""), "value_input")
        steps = (button(name, partial(self._step, by)) for name, by in STEPS.items())
        self.view = column(self.who, self.search, self.none, pn.Row(*steps))

    def show(self) -> None:
        """Show who is chosen, with what cannot change about the applicant."""
        row = self.session.row.iloc[0]
        fixed = (f for f in self.session.dear.schema if f.immutable)
        words = " · ".join(f"{f.title} {text_of(f, row[f.name])}" for f in fixed)
        name = _html.cell(self.session.choices.applicant)
        self.who.object = (
            f"<h2>Applicant {name}</h2>"
            f'<p class="small">Cannot change: {_html.cell(words or "nothing")}</p>'
        )

    def _found(self, line: str | None) -> None:
        """A line was chosen: the field is emptied for the next one."""
        if line in self.names:
            self.search.param.update(value="", value_input="")
            self.chosen(self.names[line])

    def _typed(self, text: str) -> None:
        """Say so if nobody has what was typed."""
        known = any(text.lower() in line.lower() for line in self.names)
        self.none.object = "" if known else error(f"No applicant has '{text}'")

    def _step(self, by: int) -> None:
        names = list(self.session.labels)
        self.chosen(names[(names.index(self.session.choices.applicant) + by) % len(names)])


STEPS = {"Previous": -1, "Next": 1}
