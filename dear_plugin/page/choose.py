"""Choose: an applicant, by index or by a search in some values of the rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import panel as pn

from dear_plugin import _html
from dear_plugin.page.look import STYLE, button, column, html, text_of
from dear_plugin.page.session import Session

# The values in the search.
MOST_SHOWN = 3


class Choose:
    """A search field, two buttons, and what cannot change about the applicant."""

    def __init__(self, session: Session, changed: Callable[[], Any]) -> None:
        self.session, self.facts = session, html()
        shown = list(session.dear.schema)[:MOST_SHOWN]
        values = ([text_of(f, v) for v in session.rows[f.name]] for f in shown)
        lines = map(" · ".join, zip(map(str, session.rows.index), *values, strict=True))
        self.names: dict[str, int] = {}
        for at, line in enumerate(lines):
            self.names[f"{line} · row {at + 1}" if line in self.names else line] = at
        self.search = pn.widgets.AutocompleteInput(
            label="Applicant: search by index or values",
            options=list(self.names),
            value=next(iter(self.names)),
            case_sensitive=False,
            search_strategy="includes",
            min_characters=1,
            **STYLE,
        )
        self.search.param.watch(lambda _: changed(), "value")
        back, forth = (partial(self._step, by) for by in (-1, 1))
        steps = pn.Row(button("Previous", back), button("Next", forth))
        self.view = column(self.search, steps, self.facts)
        self.show()

    def show(self) -> None:
        """Show the applicant in the field."""
        self.session.at = self.names.get(self.search.value, self.session.at)
        row = self.session.row.iloc[0]
        fixed = (f for f in self.session.dear.schema if f.immutable)
        words = ", ".join(f"{f.title} {text_of(f, row[f.name])}" for f in fixed)
        self.facts.object = f'<p class="small">Cannot change: {_html.cell(words or "nothing")}</p>'

    def _step(self, by: int) -> None:
        names = list(self.names)
        self.search.value = names[(self.session.at + by) % len(names)]
