"""By hand: values that a person tries, and what the engine says of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn

from dear_plugin.data.feature import Feature
from dear_plugin.page.cards import card
from dear_plugin.page.curve import drawn
from dear_plugin.page.look import STYLE, beside, button, column, error, html, text_of
from dear_plugin.page.session import Session

EXPLAIN = "Choose a feature and a value. Values that were tried before stay until you start again."


class ByHand:
    """A feature, a value of it, and the score over all of its values.

    Attributes:
        at: the feature; the fields show it.
        is_chosen: whether the person chose it.
        values: its values.
    """

    def __init__(self, session: Session, changed: Callable[[], Any]) -> None:
        self.session, self.changed, self._filling = session, changed, False
        features = {feature.title: feature for feature in session.features}
        self.at: Feature = session.features[0]
        self.is_chosen = False
        self.values: list[Any] = []
        self.feature = pn.widgets.Select(label="Feature", options=features, **STYLE)
        self.value = pn.widgets.DiscreteSlider(label="Value", options=[0, 1], **STYLE)
        self.told, self.picture = html(), pn.pane.Bokeh(sizing_mode="stretch_width")
        self._shown: tuple[Any, str] = None, ""
        self._filled: Any = None
        self.feature.param.watch(lambda event: self._turn(event.new), "value")
        self.value.param.watch(lambda event: self._set(event.new), "value_throttled")
        fields = self.feature, self.value, button("Start again", self._restart)
        left = column(*fields, self.told, name="narrow")
        self.view = beside(left, column(self.picture, name="narrow"))

    def look_at(self, title: str) -> None:
        """Turn to a feature, by its title, unless the person chose one or tries values."""
        if not self.session.hand and not self.is_chosen:
            self.at = self.feature.options.get(title, self.at)

    def work(self) -> None:
        """Compute the curve, and the outcome of the values by hand."""
        session = self.session
        try:
            table = session.dear.curve(session.row, self.at.name, session.hand, **session.asked)
            self.values = table["value"].tolist()
            ends = [*session.ways[0].wanted.iloc[0]] if session.ways else []
            figure = drawn(session, table, self.at.name, ends)
            self._shown = figure, self._outcome() if session.hand else f"<p>{EXPLAIN}</p>"
        except Exception as problem:  # also of the user's model
            self._shown = None, error(str(problem))

    def show(self) -> None:
        """Show what was computed, and fill the fields."""
        self.picture.object, self.told.object = self._shown
        own = self.session.row[self.at.name].iloc[0]
        value, self._filling = self.session.hand.get(self.at.name, own), True
        self.feature.value = self.at
        if self.values:
            options = {text_of(self.at, each): each for each in self.values}
            known = value if value in self.values else self.values[0]
            self._filled = known
            self.value.param.update(options=options, value=known)
        self._filling = False

    def _outcome(self) -> str:
        """What the engine says of the values by hand."""
        session = self.session
        result = session.dear.apply(session.row, session.hand, **session.asked)
        if not result.acts.all():
            return error(result.outcome["reason"].iloc[0] or EXPLAIN)
        won = result.outcome["success"].all()
        head = "The decision is the wanted one" if won else "The decision is not the wanted one"
        return f"<h3>{head}</h3>{card(result, chance=self.session.chance, badge=False)}"

    def _restart(self) -> None:
        self.session.hand.clear()
        self.changed()

    def _turn(self, feature: Feature) -> None:
        if not self._filling:
            self.at, self.is_chosen = feature, True
            self.changed()

    def _set(self, value: Any) -> None:
        # The browser also reports values that were filled in.
        if not self._filling and value != self._filled:
            self._filled = self.session.hand[self.at.name] = value
            self.changed()
