"""Look: the parts that all views are made of, and values in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import panel as pn

from dear_plugin import _html
from dear_plugin.data.feature import Feature
from dear_plugin.results.values import is_amount

CSS, SERVED = (Path(__file__).with_name(f"{name}.css").read_text() for name in ("page", "served"))
STYLE: dict[str, Any] = {"stylesheets": [CSS], "sizing_mode": "stretch_width"}


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
    return pn.FlexBox(*parts, gap="20px", sizing_mode="stretch_width")


def text_of(feature: Feature, value: Any) -> str:
    """A value with its unit."""
    if not is_amount(feature, value):
        return "missing" if pd.isna(value) else str(value)
    return f"{value:,.10g} {feature.unit}".rstrip()
