"""HTML tables and cards without scripts, for light and dark pages; all text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

STYLE = """
<style>
.dear {border-collapse: collapse; font-size: 0.9em; line-height: 1.35; margin: 0.5em 0}
.dear th, .dear td {text-align: left; vertical-align: top; padding: 0.3em 0.7em;
  border-bottom: 1px solid rgba(128, 128, 128, 0.35)}
.dear .n {text-align: right; white-space: nowrap}
.dear .direct {background: rgba(0, 114, 178, 0.22); border-radius: 3px; padding: 0 0.25em}
.dear .expected {border-bottom: 1px dashed rgba(213, 94, 0, 0.9)}
.dear .yes, .dear .no {border-radius: 3px; padding: 0 0.3em; white-space: nowrap}
.dear .yes {background: rgba(0, 158, 115, 0.25)}
.dear .no {background: rgba(213, 94, 0, 0.25)}
.dear .wide {min-width: 13em}
.dear-note {font-size: 0.85em; opacity: 0.8; margin: 0.3em 0}
</style>
"""


class Safe(str):
    """Text that is HTML already."""

    __slots__ = ()


def span(text: object, kind: str) -> Safe:
    """Text with a class of `STYLE`."""
    return Safe(f'<span class="{kind}">{cell(text)}</span>')


def cell(content: object) -> Safe:
    """Anything as HTML; what is not `Safe` is escaped."""
    return content if isinstance(content, Safe) else Safe(escape(str(content)))


def joined(parts: Iterable[object]) -> Safe:
    """Parts one below the other."""
    return Safe("<br>".join(cell(part) for part in parts))


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Iterable[str] = (),
    wide: Iterable[str] = (),
) -> str:
    """A table.

    Args:
        columns: the heads.
        rows: the cells, as many as columns.
        right: the columns that are aligned to the right.
        wide: the columns that are not made narrow.
    """
    styles = {**dict.fromkeys(right, ' class="n"'), **dict.fromkeys(wide, ' class="wide"')}
    kinds = [styles.get(column, "") for column in columns]
    head = "".join(f"<th{k}>{cell(c)}</th>" for k, c in zip(kinds, columns, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{k}>{cell(c)}</td>' for k, c in zip(kinds, row, strict=True))}</tr>"
        for row in rows
    )
    return f'<table class="dear"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def note(text: object) -> str:
    """A line in small print."""
    return f'<p class="dear-note">{cell(text)}</p>'
