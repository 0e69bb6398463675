"""Curve: the score over the values of one feature, as a figure for light and dark pages."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bokeh import models, plotting

from dear_plugin.data.feature import Feature
from dear_plugin.page.look import text_of
from dear_plugin.page.session import Answer, Session

LOOKS = json.loads(Path(__file__).with_name("figure.json").read_text())
DO, FOLLOWS = "#2b8fd0", "#e2731f"
WORDS = {
    "with_what_follows": "with what follows",
    "all_else_frozen": "with nothing else changed",
}
LINES: dict[str, dict[str, Any]] = {
    "with_what_follows": {"color": FOLLOWS, "line_width": 3, "size": 16},
    "all_else_frozen": {"color": DO, "line_width": 3, "size": 11, "line_dash": "dashed"},
}


def drawn(session: Session, answer: Answer, table: pd.DataFrame) -> Any:
    """A figure with the own value, the tried one, the reach and the lines of the decision.

    Args:
        session: with the applicant, and the values by hand.
        answer: with the feature.
        table: its curve.
    """
    name = answer.feature
    feature, known = session.known[name], table.dropna(thresh=2)
    shown = known["value"]
    named = partial(text_of, feature)
    if not feature.holds_numbers:
        shown = shown.map(named)
    score = "Score" if session.chance else "Predicted value"
    tips = [("value", "@value"), *((words, f"@{each}{{0.000}}") for each, words in WORDS.items())]
    more = {} if feature.holds_numbers else {"x_range": shown.tolist() or [""]}
    titles = {"x_axis_label": _title(feature), "y_axis_label": score}
    figure = plotting.figure(tools="hover", tooltips=tips, **titles, **more)
    for each, look in LINES.items():
        number = feature.holds_numbers
        draw, leave = (figure.line, "size") if number else (figure.scatter, "line_dash")
        own = {key: value for key, value in look.items() if key != leave}
        draw("value", each, source=known.assign(value=shown), legend_label=WORDS[each], **own)
    for end in answer.ways[0].result.wanted.iloc[0] if answer.ways else ():
        if np.isfinite(end) and (end < 1.0 or not session.chance):
            figure.add_layout(models.Span(location=end, dimension="width"))
    if feature.holds_numbers and (reach := session.reach(name)):
        left, right = reach
        figure.add_layout(models.BoxAnnotation(left=left, right=right, fill_alpha=0.12))
    points = known[known["value"] == session.row[name].iloc[0]].assign(fill="white")
    if answer.tried is not None and (tried := answer.choices.hand.get(name)) is not None:
        score = answer.tried.outcome["score_after"].iloc[0]
        points.loc[len(known)] = {"value": tried, "with_what_follows": score, "fill": DO}
    where = points["value"] if feature.holds_numbers else points["value"].map(named)
    look = {"size": 12, "line_width": 3, "line_color": DO, "fill_color": points["fill"]}
    figure.scatter(where, points["with_what_follows"], **look)
    if session.chance:
        figure.y_range = models.Range1d(0, 1.02)
        figure.yaxis.formatter = models.NumeralTickFormatter(format="0%")
    figure.add_layout(figure.legend[0], "above")
    for model in figure.references():
        for kind, look in LOOKS.items():
            if isinstance(model, getattr(models, kind)):
                model.update(**look)
    return figure


def _title(feature: Feature) -> str:
    """The title of an axis, with the unit."""
    return f"{feature.title} ({feature.unit})" if feature.unit else feature.title
