"""The page for a notebook or for a server on this machine; `page.js` draws it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Any

import panel as pn
import param

from dear_plugin._threads import stopped_by
from dear_plugin.errors import InputError
from dear_plugin.page.choices import Choices
from dear_plugin.page.session import Answer, Session
from dear_plugin.page.shown import known, shown

TITLE = "What could be changed?"
# No other machine reaches the page.
LOCAL = "localhost"
CODE, LOOK, SERVED = (
    Path(__file__).with_name(each).read_text(encoding="utf8")
    for each in ("page.js", "page.css", "served.css")
)


class Explorer(pn.viewable.Viewer):  # type: ignore[misc]
    """The page of some applicants; every display of it, and every visitor, has its own choices.

    Args:
        given: the arguments of a `Session`.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__()
        pn.extension()  # which a notebook needs to display it
        Session(*given)  # so that errors are raised here
        self._given = given

    def __repr__(self) -> str:
        """One line."""
        return f"Explorer({len(self._given[1]):,} applicants)"

    def __panel__(self) -> Any:
        """The page with choices of its own."""
        return Page(Session(*self._given))

    def show(self, port: int = 0, *, open_browser: bool = True, threaded: bool = False) -> Any:
        """Serve the page on this machine; no other one reaches it.

        Args:
            port: 0 takes a free one.
            open_browser: whether a browser opens it.
            threaded: whether the call returns at once.
        """
        how: dict[str, Any] = {"show": open_browser, "threaded": threaded, "title": TITLE}
        ctrl_c = signal.getsignal(signal.SIGINT)
        try:
            return pn.serve(self._served, port=port, address=LOCAL, **how)
        finally:
            # A server that this call waits for sets a handler, and leaves it. `getsignal` has None
            # for one that was not set by Python, which cannot be set again.
            if ctrl_c not in (None, signal.getsignal(signal.SIGINT)):
                signal.signal(signal.SIGINT, ctrl_c)

    def _served(self) -> Any:
        pn.config.raw_css = [SERVED]
        return self.__panel__()


class Page(pn.custom.JSComponent):  # type: ignore[misc]
    """One session: each question is numbered, and shown when all of it is answered.

    Another question, or the Stop button, ends the work on the one before.

    Args:
        session: with the first question.
    """

    title = param.String(TITLE)
    known = param.Dict({})
    shown = param.Dict({})
    _esm, _stylesheets = CODE, [LOOK]

    def __init__(self, session: Session) -> None:
        super().__init__(known=known(session), sizing_mode="stretch_width")
        self.session, self._turn, self._lock, self._stop = session, 0, Lock(), Event()
        self._show(0, session.answered(session.answer.choices))

    def _handle_msg(self, message: Mapping[str, Any]) -> None:
        """A question, `case` as JSON, "" to stop; it ends the work on the one before."""
        self._stop.set()
        self._turn, self._stop = message["turn"], Event()
        try:
            if message["case"]:
                self._later(self._turn, self._stop, self.session.opened(message["case"]))
            else:
                self.shown = {**self.shown, "turn": self._turn}
        except InputError as problem:
            self.shown = {**self.shown, "turn": self._turn, "wrong": str(problem)}

    def _later(self, turn: int, stop: Event, choices: Choices) -> None:
        """Answer while the page stays responsive."""

        async def _run() -> None:
            if answer := await asyncio.to_thread(self._answered, stop, choices):
                # In the next turn of the server, which then holds the lock of the page.
                pn.state.execute(partial(self._show, turn, answer), schedule=True)

        pn.state.execute(_run)

    def _answered(self, stop: Event, choices: Choices) -> Answer | None:
        """The answer, unless there is another question meanwhile."""
        try:
            with self._lock, stopped_by(stop):
                return self.session.answered(choices)
        except KeyboardInterrupt:
            return None

    def _show(self, turn: int, answer: Answer) -> None:
        """Show an answer in one update, if it is to the present question."""
        if turn == self._turn:
            self.session.answer = answer
            self.shown = {**shown(self.session, answer), "turn": turn}
