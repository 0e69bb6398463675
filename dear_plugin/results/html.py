"""HTML: a result as a table for notebooks, and as a page with one card for each row."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from dear_plugin import _html
from dear_plugin.data.feature import Feature
from dear_plugin.problem.reasons import Reason
from dear_plugin.results.changes import Line
from dear_plugin.results.describe import describe, head, told, unclear_changes
from dear_plugin.results.result import Result
from dear_plugin.results.values import ends
from dear_plugin.results.words import as_sentence, note, with_unit

MOST_ROWS = 20
COLUMNS = ("row", "action", "expected to follow", "cost", "action alone", "confidence", "note")
CHANGES, NUMBERS = ("action", "expected to follow"), ("cost", "confidence")

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root {{color-scheme: light dark}}
body {{font-family: system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em}}
article {{border: 1px solid rgba(128, 128, 128, 0.4); border-radius: 6px; padding: 0.8em 1.2em;
  margin: 1em 0; break-inside: avoid}}
p.letter {{white-space: pre-line}}
summary {{cursor: pointer; opacity: 0.8}}
article h2 {{font-size: 1.05em; margin: 0 0 0.5em}}
</style>{style}</head><body><h1>{title}</h1>{note}{cards}</body></html>
"""

CARD = (
    '<article><h2>{}</h2><p class="letter">{}</p><details><summary>Evidence</summary>'
    "<p>{}</p><p>{}</p>{}</details></article>"
)


def table(result: Result) -> str:
    """The first rows of a result: changes, cost and what the answers are worth."""
    shown = result.select(torch.arange(min(len(result), MOST_ROWS)))
    rest = len(result) - len(shown)
    more = [_html.note(f"and {rest:,} more rows")] if rest else []
    cells = [_cells(shown, at) for at in range(len(shown))]
    body = _html.table(COLUMNS, cells, right=NUMBERS, wide=CHANGES)
    parts = [_html.STYLE, _html.note(repr(result)), body, *more]
    return "".join([*parts, _html.note(note(result.encoder.schema))])


def page(result: Result, title: str, letters: Iterable[str]) -> str:
    """A self-contained page with one card for each row: its letter, and the evidence folded."""
    texts = zip(letters, describe(result, range(len(result))), strict=True)
    cards = []
    for at, (letter, text) in enumerate(texts):
        name, scores = f"Row {result.factuals.index[at]}", head(result, at)
        # The text has the note.
        cells = _html.table(COLUMNS[1:-1], [_cells(result, at)[1:-1]], right=NUMBERS, wide=CHANGES)
        words = map(_html.cell, (name, letter, scores, as_sentence(text)))
        cards.append(CARD.format(*words, cells))
    return PAGE.format(
        title=_html.cell(title),
        style=_html.STYLE,
        note=_html.note(note(result.encoder.schema)),
        cards="".join(cards),
    )


def _cells(result: Result, position: int) -> list[object]:
    """The cells of a row, in the order of `COLUMNS`."""
    row = result.actions.iloc[position]
    moves = [each for each in told(result, result.lines[position]) if each[1].old != each[1].new]
    acts, follows = (
        [_change(*each) for each in moves if (each[1].kind == "direct") is kind]
        for kind in (True, False)
    )
    badges = [] if row["credible"] or not row["success"] else [_html.span("weak answer", "no")]
    lacking = row["reason"].removeprefix(Reason.LACKING.start) if badges else row["reason"]
    vague = [f"not clearly favoured: {name}" for name in unclear_changes(result, position)]
    note = _html.joined([*badges, *[lacking] * bool(lacking), *vague])
    cells: list[object] = [
        result.factuals.index[position],
        _html.joined(acts),
        _html.joined(follows),
        f"{row['cost']:.2f}",
    ]
    if not row["success"]:
        return [*cells, _html.span("not solved", "no"), "", note]
    if not acts:
        return [*cells, "", "", row["reason"] or "nothing to change"]
    if row["reliance"] == 0.0:
        alone = _html.span("is enough", "yes")
    else:
        depends = bool(result.spread.alone[position])
        alone = _html.span(f"{'depends on' if depends else 'needs'} what follows", "no")
    return [*cells, alone, f"{row['confidence']:.0%}", note]


def _change(feature: Feature, line: Line) -> _html.Safe:
    """A feature, its old and its new value."""
    old, new = ends(feature, line.old, line.new)[0], with_unit(feature, line.old, line.new)
    name, kind = _html.cell(feature.title), "direct" if line.kind == "direct" else "expected"
    why = " (by definition)" if line.kind == "forced" else ""
    return _html.Safe(f"{name}: {_html.cell(old)} → {_html.span(new, kind)}{why}")
