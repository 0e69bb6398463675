"""Reach: what may become of each feature, and how far it is within reach."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import panel as pn

from dear_plugin.data.feature import Feature
from dear_plugin.page.look import (
    STYLE,
    Ends,
    beside,
    column,
    ends_of,
    entry,
    html,
    select,
    text_of,
    watched,
)
from dear_plugin.page.session import ACT, Session

# More levels of a category than these are in a box that scrolls.
MANY_LEVELS = 7
AT_END = "Nothing is left to act on: the value is at the end of what is in reach, or beyond it."


class Reach:
    """A state and a reach of each feature; `choose` is called with what changes."""

    def __init__(self, session: Session, choose: Callable[..., Any]) -> None:
        self.session, self.choose = session, choose
        self.states = {
            feature.name: select("", session.states(feature), None, partial(self._state, feature))
            for feature in session.features
        }
        self.reaches = {feature.name: column(name="reach") for feature in session.features}
        self._shown: dict[str, Any] = {}
        pairs = zip(self.states.values(), self.reaches.values(), strict=True)
        self.view = column(html("<h2>What may change</h2>"), *(each for p in pairs for each in p))

    def show(self) -> None:
        """Show the values of the chosen applicant, and what is chosen."""
        row = self.session.row.iloc[0]
        for feature in self.session.features:
            name, own = feature.name, row[feature.name]
            state, reach = self.session.choices.states[name], self.session.reach(name)
            label = f"{feature.title}: now {text_of(feature, own)}"
            self.states[name].param.update(label=label, value=state)
            ends = ends_of(feature, own) if state == ACT else None
            wanted = state, reach, ends
            if self._shown.get(name) != wanted:
                self._shown[name] = wanted
                make = self._amounts if feature.is_number else self._levels
                self.reaches[name].objects = [make(feature, ends)] if state == ACT else []

    def _amounts(self, feature: Feature, ends: Ends | None) -> Any:
        """The least and the greatest value within reach."""
        if ends is None:
            return html(f'<p class="small">{AT_END}</p>')
        held, made = list(self.session.reach(feature.name) or (None, None)), []
        for at, words in enumerate(("at least", "at most")):
            value = ends[at] if held[at] is None else _inside(feature, held[at], ends)
            label = f"{feature.title}, {words}"
            act = partial(self._limit, feature, ends, at)
            made.append(column(entry(feature, label, value, ends, act), name="half"))
        return beside(*made)

    def _levels(self, feature: Feature, _: Any) -> Any:
        """A tick for each level that an action may set."""
        known = feature.answers
        allowed = self.session.reach(feature.name) or known
        more = {"css_classes": ["many"] * (len(known) > MANY_LEVELS), **STYLE}
        value, options = (
            [c for c in known if c in allowed],
            {text_of(feature, c): c for c in known},
        )
        ticks = pn.widgets.CheckBoxGroup(options=options, value=value, inline=True, **more)
        return watched(ticks, partial(self._set, feature.name))

    def _state(self, feature: Feature, state: str) -> None:
        self.choose(states={**self.session.choices.states, feature.name: state})

    def _limit(self, feature: Feature, ends: Ends, at: int, value: Any) -> None:
        """Another end of the reach; None where it is that of the schema."""
        held = list(self.session.reach(feature.name) or (None, None))
        held[at] = None if value == ends[at] else value
        self._set(feature.name, held)

    def _set(self, name: str, reach: Any) -> None:
        # Its own input shows it already.
        state, _, ends = self._shown[name]
        self._shown[name] = state, reach, ends
        self.choose(reach={**self.session.choices.reach, name: reach})


def _inside(feature: Feature, value: Any, ends: Ends) -> Any:
    """A value, moved between two ends."""
    return min(max(value, ends[0], key=feature.place), ends[1], key=feature.place)
