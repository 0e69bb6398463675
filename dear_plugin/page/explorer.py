"""Explorer: the page as a whole, for a notebook or a server on this machine."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any

import panel as pn
import param

from dear_plugin.page.by_hand import ByHand
from dear_plugin.page.cards import Cards
from dear_plugin.page.case import Case
from dear_plugin.page.choose import Choose
from dear_plugin.page.kinds import Kinds
from dear_plugin.page.letter import Letter
from dear_plugin.page.look import SERVED, STYLE, beside, column, html, watched
from dear_plugin.page.reach import Reach
from dear_plugin.page.session import Answer, Choices, Session

TITLE = "What could be changed?"
# No other machine reaches the page.
LOCAL = "localhost"


class Explorer(pn.viewable.Viewer):  # type: ignore[misc]
    """The page of some applicants; every display of it, and every visitor, has its own choices.

    Args:
        asked: the arguments of a `Session`.
    """

    def __init__(self, *asked: Any) -> None:
        super().__init__()
        pn.extension()  # which a notebook needs to display it
        Session(*asked)  # so that errors are raised here
        self._asked = asked

    def __repr__(self) -> str:
        """One line."""
        return f"Explorer({len(self._asked[1]):,} applicants)"

    def __panel__(self) -> Any:
        """The page with choices of its own."""
        return _View(Session(*self._asked)).main

    def show(self, port: int = 0, *, open_browser: bool = True, threaded: bool = False) -> Any:
        """Serve the page on this machine; no other one reaches it.

        Args:
            port: 0 takes a free one.
            open_browser: whether a browser opens it.
            threaded: whether the call returns at once.
        """
        how: dict[str, Any] = {"show": open_browser, "threaded": threaded, "title": TITLE}
        return pn.serve(self._served, port=port, address=LOCAL, **how)

    def _served(self) -> Any:
        pn.config.raw_css = [SERVED]
        return self.__panel__()


class Main(pn.reactive.ReactiveHTML):  # type: ignore[misc]
    """The page below its title, with a line that screen readers read when it changes."""

    status = param.String("")
    parts = param.List([])
    _child_config = {"status": "literal"}  # noqa: RUF012
    _template = (
        f'<main id="main"><h1>{TITLE}</h1><div id="line" role="status" aria-live="polite">'
        "${status}</div>"
        '<div id="parts">${parts}</div></main>'
    )


class _View:
    """The views of one session: what is chosen is asked, and shown when all of it is answered."""

    def __init__(self, session: Session) -> None:
        self.session, self._lock = session, Lock()
        self.choose = Choose(session, self._another)
        self.reach = Reach(session, self._choose)
        self.cards, self.letter = Cards(session, self._take), Letter(session)
        self.by_hand, self.kinds = ByHand(session, self._choose), Kinds(session, self._choose)
        self.case = Case(session, self._open)
        self.main = Main(css_classes=["page"], **STYLE)
        self.answers = column(*self._parts(), name="wide")
        self._show(session.choices, session.answered(session.choices))
        self.main.parts = self._layout()

    def _another(self, applicant: str) -> None:
        """Another applicant."""
        self._choose(applicant=applicant, hand={}, feature="")

    def _open(self, choices: Choices) -> None:
        """A saved case."""
        self._choose(**{**vars(choices), "everyone": self.session.choices.everyone})

    def _take(self, at: int) -> None:
        """Another way is chosen for the letter."""
        choices = replace(self.session.choices, way=at)
        self.session.choices = choices
        self._show(choices, replace(self.session.answer, choices=choices))

    def _choose(self, **more: Any) -> None:
        """Ask anew, unless nothing changes; until it is answered, no letter can be taken."""
        last = self.session.choices
        choices = replace(last, **more)
        if choices == last:
            return
        if "way" not in more and not choices.asks_as(last):
            choices = replace(choices, way=0)
        self.session.choices = choices
        with pn.io.hold():
            self.main.status = "Computing"
            for view in (self.answers, self.kinds.view):
                view.css_classes = [*view.css_classes[:1], "old"]
            for each in (*self.cards.buttons, *self.letter.buttons, *self.case.buttons):
                each.disabled = True
            self.choose.show()
            self.reach.show()
        self._later(choices)

    def _later(self, choices: Choices) -> None:
        """Answer while the page stays responsive, unless something else is asked meanwhile."""

        def _work() -> Answer | None:
            with self._lock:
                latest = choices is self.session.choices
                return self.session.answered(choices) if latest else None

        async def _run() -> None:
            await asyncio.sleep(0.02)
            if answer := await asyncio.to_thread(_work):
                # In the next turn of the server, which then holds the lock of the page.
                pn.state.execute(partial(self._show, choices, answer), schedule=True)

        pn.state.execute(_run)

    def _show(self, choices: Choices, answer: Answer) -> None:
        """Show an answer in one update, if it is to what is chosen."""
        if choices is not self.session.choices:
            return
        self.session.answer = answer
        with pn.io.hold():
            for each in (*self.letter.buttons, *self.case.buttons):
                each.disabled = False
            views = self.choose, self.reach, self.cards, self.letter, self.by_hand, self.kinds
            for view in views:
                view.show()
            for part in (self.answers, self.kinds.view):
                part.css_classes = part.css_classes[:1]
            self.main.status = answer.summary

    def _parts(self) -> list[Any]:
        """The answers to one applicant, with their heads."""
        heads = map(html, (f"<h2>{text}</h2>" for text in HEADS))
        views = (self.cards.view, self.letter.view, self.by_hand.view)
        return [part for pair in zip(heads, views, strict=True) for part in pair]

    def _layout(self) -> list[Any]:
        """The layout: choices to the left of the answers, or above them on a narrow screen."""
        left = column(self.choose.view, self.reach.view, self.case.view, name="narrow")
        self.one = beside(left, self.answers)
        self.kinds.view.visible = False
        tabs = pn.widgets.RadioBoxGroup(options=TABS, inline=True, css_classes=["tabs"], **STYLE)
        watched(tabs, self._turn)
        return [tabs, self.one, self.kinds.view]

    def _turn(self, tab: str) -> None:
        """Turn to one applicant or to all of them."""
        self.kinds.view.visible = tab == TABS[1]
        self.one.visible = not self.kinds.view.visible
        self._choose(everyone=self.kinds.view.visible)


TABS = ["One applicant", "All applicants"]
HEADS = ("Ways to the wanted decision", "The letter", "Try by hand")
