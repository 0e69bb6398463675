"""Explorer: the page as a whole, for a notebook or a server on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

import panel as pn

from dear_plugin.page.by_hand import ByHand
from dear_plugin.page.cards import Cards
from dear_plugin.page.choose import Choose
from dear_plugin.page.kinds import Kinds
from dear_plugin.page.letter import Letter
from dear_plugin.page.look import SERVED, STYLE, beside, column, html
from dear_plugin.page.reach import Reach
from dear_plugin.page.session import Session

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
        return _View(Session(*self._asked)).view

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


class _View:
    """The views of one session, and what each change leads to."""

    def __init__(self, session: Session) -> None:
        self.session, self._lock = session, Lock()
        self._latest: dict[Callable[[], None], object] = {}
        self.choose = Choose(session, self._another)
        self.reach = Reach(session, self._ask)
        self.cards, self.letter = Cards(session, self._take), Letter(session)
        self.by_hand = ByHand(session, lambda: self._later(self.by_hand.work))
        self.kinds = Kinds(session, lambda work: self._later(work))
        self.busy = html("<progress></progress>")
        self.busy.visible = False
        session.ask()
        self._picture()
        self._show()
        self.view = self._view()

    def _another(self) -> None:
        """Another applicant."""
        self.session.hand.clear()
        self.by_hand.is_chosen = False
        self.choose.show()
        self.reach.show()
        self._ask()

    def _picture(self) -> None:
        """The curve, of what the first way does."""
        for way in self.session.ways[:1]:
            acted = way.changes.query("kind == 'direct'")
            self.by_hand.look_at(next(iter(acted["feature"]), ""))
        self.by_hand.work()

    def _take(self, at: int) -> None:
        """Another way is chosen for the letter."""
        self.session.chosen = at
        self._show()

    def _show(self) -> None:
        """Show what there is."""
        for view in (self.cards, self.letter, self.by_hand, self.kinds):
            view.show()

    def _ask(self) -> None:
        """The ways are shown as soon as they are known, the curve later."""
        self._later(self.session.ask, self._picture)

    def _later(self, *works: Callable[[], None]) -> None:
        """Do work while the page stays responsive, unless the same is asked for anew meanwhile."""
        first = works[0]
        self._latest[first] = mine = object()

        def _if_latest(act: Callable[[], None]) -> None:
            if self._latest[first] is mine:
                act()

        def _work(work: Callable[[], None]) -> None:
            with self._lock:
                _if_latest(work)

        async def _run() -> None:
            self.busy.visible = True
            await asyncio.sleep(0.02)
            for work in works:
                await asyncio.to_thread(_work, work)
                # In the next turn of the server, which then holds the lock of the page.
                pn.state.execute(partial(_if_latest, self._show), schedule=True)
            rest = partial(setattr, self.busy, "visible", False)
            pn.state.execute(partial(_if_latest, rest), schedule=True)

        pn.state.execute(_run)

    def _view(self) -> Any:
        """The layout: choices to the left of the answers, or above them on a narrow screen."""
        heads = map(html, (f"<h2>{text}</h2>" for text in HEADS))
        views = (self.cards.view, self.letter.view, self.by_hand.view)
        pairs = [part for pair in zip(heads, views, strict=True) for part in pair]
        left = column(self.choose.view, self.reach.view, name="narrow")
        one = beside(left, column(*pairs, name="wide"))
        tabs = pn.Tabs(("One applicant", one), ("All applicants", self.kinds.view), **STYLE)
        return column(html(f"<h1>{TITLE}</h1>"), self.busy, tabs, name="page")


HEADS = ("Ways to the wanted decision", "The letter", "Try by hand")
