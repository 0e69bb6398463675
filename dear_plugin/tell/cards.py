"""A result as a table for notebooks, and as a page with one card for each row."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dear_plugin import _html
from dear_plugin.results.changes import Line, unclear_changes, with_unit
from dear_plugin.results.recourses import Recourses
from dear_plugin.tell.describe import as_sentence, describe, head, lacks, note, why

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


def table(result: Recourses) -> str:
    """The first rows of a result: changes, cost and what the answers are worth."""
    shown = min(len(result), MOST_ROWS)
    rest = len(result) - shown
    more = [_html.note(f"and {rest:,} more rows")] if rest else []
    cells = [_cells(result, at) for at in range(shown)]
    body = _html.table(COLUMNS, cells, right=NUMBERS, wide=CHANGES)
    parts = [_html.STYLE, _html.note(repr(result)), body, *more]
    return "".join([*parts, _html.note(note(result.encoder.schema))])


def page(result: Recourses, title: str, letters: Iterable[str]) -> str:
    """A self-contained page with one card for each row: its letter, and the evidence folded."""
    cards = []
    for at, letter in zip(np.flatnonzero(result.starts).tolist(), letters, strict=True):
        # The text has the note.
        cells = _html.table(COLUMNS[1:-1], [_cells(result, at)[1:-1]], right=NUMBERS, wide=CHANGES)
        name, text = f"Row {result.factuals.index[at]}", as_sentence(describe(result, at))
        cards.append(CARD.format(*map(_html.cell, (name, letter, head(result, at), text)), cells))
    return PAGE.format(
        title=_html.cell(title),
        style=_html.STYLE,
        note=_html.note(note(result.encoder.schema)),
        cards="".join(cards),
    )


def _cells(result: Recourses, position: int) -> list[object]:
    """The cells of a row, in the order of `COLUMNS`."""
    row = result.actions.iloc[position]
    moves = [line for line in result.lines[position] if line.old != line.new]
    acts = [_change(line) for line in moves if line.kind == "direct"]
    follows = [_change(line) for line in moves if line.kind != "direct"]
    badges = [] if row["credible"] or not row["success"] else [_html.span("weak answer", "no")]
    lacking = lacks(result, position) if badges else row["reason"]
    vague = [f"not clearly favoured: {name}" for name in unclear_changes(result.lines[position])]
    note = _html.joined([*badges, *[lacking] * bool(lacking), *vague])
    name, cost = result.factuals.index[position], f"{row['cost']:.2f}"
    cells: list[object] = [name, _html.joined(acts), _html.joined(follows), cost]
    if not row["success"]:
        return [*cells, _html.span("not solved", "no"), "", note]
    if not acts:
        return [*cells, "", "", row["reason"] or "nothing to change"]
    needs = f"{'depends on' if result.worth.alone[position] else 'needs'} what follows"
    words = ("is enough", "yes") if row["reliance"] == 0.0 else (needs, "no")
    return [*cells, _html.span(*words), f"{row['confidence']:.0%}", note]


def _change(line: Line) -> _html.Safe:
    """A feature, its old and its new value."""
    old, new = with_unit(line.of, line.old, line.new)
    name, kind = _html.cell(line.of.title), "direct" if line.kind == "direct" else "expected"
    return _html.Safe(f"{name}: {_html.cell(old)} → {_html.span(new, kind)}{why(line)}")
