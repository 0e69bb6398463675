"""Curve: the score over the values of one feature, as a figure for light and dark pages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bokeh import models, plotting

from dear_plugin.page.session import Session

LOOKS = json.loads(Path(__file__).with_name("figure.json").read_text())
DO, FOLLOWS = "#2b8fd0", "#e2731f"
LINES: dict[str, dict[str, Any]] = {
    "with_what_follows": {"color": FOLLOWS, "line_width": 3, "size": 16},
    "all_else_frozen": {"color": DO, "line_width": 3, "size": 11, "line_dash": "dashed"},
}


def drawn(session: Session, table: pd.DataFrame, name: str, ends: Sequence[float]) -> Any:
    """A figure with the own value, the tried one, the reach and the lines of the decision.

    Args:
        session: with the applicant, and the values by hand.
        table: see `DEAR.curve`.
        name: of the feature.
        ends: the least and the greatest score of the wanted decision.
    """
    known = table.dropna(thresh=2)
    number = pd.api.types.is_numeric_dtype(table["value"])
    shown = known["value"] if number else known["value"].astype(str)
    tips = [
        ("value", "@value"),
        *((each.replace("_", " "), f"@{each}{{0.000}}") for each in LINES),
    ]
    more = {} if number else {"x_range": shown.tolist() or [""]}
    figure = plotting.figure(tools="hover", tooltips=tips, **more)
    for each, look in LINES.items():
        draw, leave = (figure.line, "size") if number else (figure.scatter, "line_dash")
        own = {key: value for key, value in look.items() if key != leave}
        words, source = each.replace("_", " "), known.assign(value=shown)
        draw("value", each, source=source, legend_label=words, **own)
    for end in ends:
        if np.isfinite(end) and (end < 1.0 or not session.chance):
            figure.add_layout(models.Span(location=end, dimension="width"))
    if number and name in session.reach:
        left, right = session.reach[name]
        figure.add_layout(models.BoxAnnotation(left=left, right=right, fill_alpha=0.12))
    for value, fill in ((session.row[name].iloc[0], "white"), (session.hand.get(name), DO)):
        at = known["value"] == value
        look = {"size": 12, "line_width": 3, "line_color": DO, "fill_color": fill}
        figure.scatter(shown[at], known["with_what_follows"][at], **look)
    if session.chance:
        figure.y_range = models.Range1d(0, 1.02)
        figure.yaxis.formatter = models.NumeralTickFormatter(format="0%")
    figure.add_layout(figure.legend[0], "above")
    for model in figure.references():
        for kind, look in LOOKS.items():
            if isinstance(model, getattr(models, kind)):
                model.update(**look)
    return figure
