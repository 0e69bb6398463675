"""Reach: a tick for each feature that may change, and how far it is within reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn

from dear_plugin.data.feature import Feature
from dear_plugin.page.look import STYLE, column, html, text_of
from dear_plugin.page.session import Session

# More levels of a category than these are in a box that scrolls.
MANY_LEVELS = 7
# The steps of a slider.
STEPS = 200
INDENT = (0, 12, 4, 32)


class Reach:
    """The ticks and reaches of one session; `changed` is called after each change."""

    def __init__(self, session: Session, changed: Callable[[], Any]) -> None:
        self.session, self.changed = session, changed
        self.ticks: dict[str, Any] = {}
        acts: list[Any] = []
        follows: list[Any] = []
        for feature in session.features:
            (acts if feature.name in session.acts else follows).append(self._control(feature))
        more = [html("<h2>May change along</h2>"), *follows] if follows else []
        self.view = column(html("<h2>May change</h2>"), *acts, *more)
        self.show()

    def show(self) -> None:
        """Show the values of the chosen applicant."""
        row = self.session.row.iloc[0]
        for feature in self.session.features:
            now = text_of(feature, row[feature.name])
            self.ticks[feature.name].options = {f"{feature.title}: now {now}": feature.name}

    def _control(self, feature: Feature) -> Any:
        """A tick, and a reach below it while it is ticked, if it may be acted on."""
        name, ticked = feature.name, feature.name not in self.session.frozen
        # A group of one: its label belongs to the box, for screen readers too.
        tick = pn.widgets.CheckBoxGroup(options=[name], value=[name] * ticked, **STYLE)
        self.ticks[name], parts = tick, [tick]
        if name in self.session.acts:
            number = feature.holds_numbers
            reach = (_slider if number else _levels)(self.session, feature)
            reach.visible = ticked
            event = "value_throttled" if number else "value"
            reach.param.watch(lambda event: self._limit(name, event.new), event)
            parts.append(reach)
        tick.param.watch(lambda event: self._freeze(name, parts[1:], bool(event.new)), "value")
        return column(*parts)

    def _freeze(self, name: str, reaches: list[Any], ticked: bool) -> None:
        (self.session.frozen.discard if ticked else self.session.frozen.add)(name)
        for reach in reaches:
            reach.visible = ticked
        self.changed()

    def _limit(self, name: str, value: Any) -> None:
        self.session.reach[name] = value
        self.changed()


def _slider(session: Session, feature: Feature) -> Any:
    """The reach of a number, between its least and greatest value."""
    ends = tuple(zip(feature.bounds, feature.limits or feature.bounds, strict=True))
    low, high = max(ends[0]), min(ends[1])
    first, last = session.reach.get(feature.name, (None, None))
    value = (low if first is None else max(low, first), high if last is None else min(high, last))
    grain = 0.0 if feature.precision is None else 10.0**-feature.precision
    step = max(grain, float(f"{(high - low) / STEPS:.0e}"))
    more = {"start": low, "end": high, "value": value, "step": step, "margin": INDENT}
    return pn.widgets.RangeSlider(label="Within reach", **more, **STYLE)


def _levels(session: Session, feature: Feature) -> Any:
    """A tick for each level that an action may set."""
    known = feature.answers
    allowed = session.reach.get(feature.name, known)
    more = {"css_classes": ["many"] * (len(known) > MANY_LEVELS), "margin": INDENT, **STYLE}
    value, options = [c for c in known if c in allowed], {str(c): c for c in known}
    return pn.widgets.CheckBoxGroup(options=options, value=value, inline=True, **more)
