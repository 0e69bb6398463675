"""By hand: values that a person tries, and what the engine says of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import panel as pn

from dear_plugin.page.cards import card
from dear_plugin.page.curve import drawn
from dear_plugin.page.look import beside, button, column, entry, error, html, select
from dear_plugin.page.session import Session
from dear_plugin.results.recourses import Recourses

EXPLAIN = "Choose a feature and a value. Values that were tried before stay until you start again."


class ByHand:
    """A feature, a value of it, and the score over all of its values."""

    def __init__(self, session: Session, choose: Callable[..., Any]) -> None:
        self.session, self.choose = session, choose
        features = {feature.title: feature.name for feature in session.features}
        turn = lambda name: name == session.answer.feature or choose(feature=name)  # noqa: E731
        self.feature = select("Feature", features, session.features[0].name, turn)
        self.value, self.told = column(), html()
        self.picture = pn.pane.Bokeh(sizing_mode="stretch_width")
        self._shown: Any = None
        again = button("Start again", lambda: choose(hand={}))
        left = column(self.feature, self.value, again, self.told, name="narrow")
        self.view = beside(left, column(self.picture, name="narrow"))

    def show(self) -> None:
        """Show what was computed, and fill the fields."""
        answer, session = self.session.answer, self.session
        self.told.object = f"<p>{EXPLAIN}</p>"
        if answer.curve is None:
            self.told.object, self.picture.object = error(answer.error), None
            return
        name, values = answer.feature, answer.curve["value"].tolist()
        feature, self.feature.value = session.known[name], name
        value = session.choices.hand.get(name, session.row[name].iloc[0])
        if self._shown != (name, repr(value)):
            self._shown = name, repr(value)
            ends = values[0], values[-1]
            act = partial(self._try, name)
            self.value.objects = [entry(feature, f"Value of {feature.title}", value, ends, act)]
        self.picture.object = drawn(session, answer, answer.curve)
        if answer.tried is not None:
            self.told.object = _outcome(answer.tried, session.chance)

    def _try(self, name: str, value: Any) -> None:
        if isinstance(value, float) and (places := self.session.known[name].precision) is not None:
            value = round(value, places)
        self._shown = name, repr(value)
        self.choose(hand={**self.session.choices.hand, name: value})


def _outcome(result: Recourses, chance: bool) -> str:
    """What the engine says of the values by hand."""
    if not result.acts.all():
        return error(result.outcome["reason"].iloc[0] or EXPLAIN)
    won = "" if result.outcome["success"].all() else "not "
    return f"<h3>The decision is {won}the wanted one</h3>{card(result, chance=chance)}"
