"""Kinds: the kinds of advice that all applicants get, to read before any is handed out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dear_plugin import _html
from dear_plugin.page.look import button, column, error, html
from dear_plugin.page.session import Session

EXPLAIN = (
    "<p>What the applicants are told to do, the most frequent first. A line that nobody should be"
    " told can be excluded when the schema is made.</p>"
)


class Kinds:
    """A table of the kinds of advice, made when it is asked for."""

    def __init__(self, session: Session, later: Callable[[Callable[[], None]], Any]) -> None:
        self.session, self._text = session, ""
        self.table = html(EXPLAIN)
        ask = button(f"Look at {len(session.rows):,} applicants", lambda: later(self.work))
        self.view = column(ask, self.table)

    def work(self) -> None:
        """Find the kinds of advice of all applicants."""
        within, target = self.session.asked["within"], self.session.target
        try:
            result = self.session.dear.generate(self.session.rows, target, within=within)
            titles = {feature.name: feature.title for feature in self.session.dear.schema}
            advice = (
                result.advice().round(2).dropna(axis=1, how="all").replace({"feature": titles})
            )
            rows = advice.astype(object).where(advice.notna(), "").to_numpy().tolist()
            self._text = f'<div class="scroll">{_html.table(list(advice), rows)}</div>'
        except Exception as problem:  # also of the user's model
            self._text = error(str(problem))

    def show(self) -> None:
        """Show the table, if it was asked for."""
        self.table.object = f"{EXPLAIN}{self._text}"
