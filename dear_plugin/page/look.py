"""Look: the parts that all views are made of, and values in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import panel as pn

from dear_plugin import _html
from dear_plugin.data.feature import Feature
from dear_plugin.results.changes import is_amount
from dear_plugin.results.words import unit_of

CSS, SERVED = (Path(__file__).with_name(f"{name}.css").read_text() for name in ("page", "served"))
STYLE: dict[str, Any] = {"stylesheets": [CSS], "sizing_mode": "stretch_width"}

Ends = tuple[Any, Any]


class Amount(pn.widgets.FloatInput):  # type: ignore[misc]
    """An input of a number, empty where there is none."""

    def _process_param_change(self, params: dict[str, Any]) -> dict[str, Any]:
        # Panel writes NaN for None, which browsers show.
        return {k: v for k, v in super()._process_param_change(params).items() if v == v}


def html(text: str = "") -> Any:
    """A pane of HTML."""
    return pn.pane.HTML(text, **STYLE)


def error(text: str) -> str:
    """The words of the engine, escaped."""
    return f'<p class="error" role="alert">{_html.cell(text)}</p>'


def button(label: str, act: Callable[[], Any], **more: Any) -> Any:
    """A button."""
    made = pn.widgets.Button(label=label, stylesheets=[CSS], **more)
    made.on_click(lambda _: act())
    return made


def column(*parts: Any, name: str = "") -> Any:
    """Parts one below the other, with a class of the style sheet."""
    return pn.Column(*parts, css_classes=name.split(), **STYLE)


def beside(*parts: Any) -> Any:
    """Parts side by side, as far as the screen is wide enough."""
    return pn.FlexBox(*parts, gap="8px 20px", sizing_mode="stretch_width")


def watched(widget: Any, act: Callable[[Any], Any]) -> Any:
    """A widget whose new values go to a function."""
    widget.param.watch(lambda event: act(event.new), "value")
    return widget


def select(label: str, options: Any, value: Any, act: Callable[[Any], Any]) -> Any:
    """A list with a label, of which one is chosen."""
    return watched(pn.widgets.Select(label=label, options=options, value=value, **STYLE), act)


def entry(feature: Feature, label: str, value: Any, ends: Ends, act: Callable[[Any], Any]) -> Any:
    """An input of a value of a feature between two ends, for what a new one is given to."""
    if options := between(feature, ends):
        named = {text_of(feature, each): each for each in options}
        return select(label, {text_of(feature, value): value, **named}, value, act)
    low, high = ends
    how = {"start": low, "end": high, "value": value, "step": feature.action_step}
    how["step"] = how["step"] or feature.usual_step
    if feature.precision is not None:
        how["format"] = "0[.]" * (feature.precision > 0) + "0" * max(feature.precision, 1)
    how["value"] = value if is_amount(feature, value) else None
    return watched(Amount(label=label, **how, **STYLE), act)


def between(feature: Feature, ends: Ends) -> list[Any]:
    """The few values that an action may set between two ends; empty where it may set any."""
    if feature.holds_numbers:
        return [value for value in feature.observed if ends[0] <= value <= ends[1]]
    places = {value: feature.place(value) for value in feature.answers}
    low, high = map(feature.place, ends)
    return [v for v, at in places.items() if not feature.is_number or low <= at <= high]


def ends_of(feature: Feature, own: Any) -> Ends | None:
    """The least and the greatest value that an action may set; None where there is none."""
    if not feature.is_number:
        return None, None
    low: Any = feature.answers[0] if feature.levels else feature.bounds[0]
    high: Any = feature.answers[-1] if feature.levels else feature.bounds[1]
    if feature.limits:
        low, high = max(low, feature.limits[0]), min(high, feature.limits[1])
    if is_amount(feature, own) or own in feature.levels:
        rank = feature.place
        low = max(low, own, key=rank) if feature.direction > 0 else low
        high = min(high, own, key=rank) if feature.direction < 0 else high
    return (low, high) if feature.place(low) < feature.place(high) else None


def text_of(feature: Feature, value: Any) -> str:
    """A value with its unit."""
    if not is_amount(feature, value):
        return "missing" if pd.isna(value) else feature.called_level(value) or str(value)
    return f"{value:,.10g} {unit_of(feature, value)}".rstrip()
