"""Pictures: rows of a result in, figures out; `plots`, which needs matplotlib, draws them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from dear_plugin.data.schema import Kind
from dear_plugin.data.special_values import is_special
from dear_plugin.errors import InputError
from dear_plugin.results.descriptions import Descriptions
from dear_plugin.results.values import Change, amount_of, ends
from dear_plugin.results.wording import Expected, claim

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Axes, Figure
    from dear_plugin.results.recourses import Recourses

# Letters of a value; longer ones end in an ellipsis.
MOST_LETTERS = 30
COLUMNS = ("feature", "values", "direct", "change", "low", "high")


@dataclass(frozen=True)
class Pictures:
    """The figures of a result.

    Attributes:
        result: n rows.
    """

    result: Recourses

    def one(self, position: int, title: str = "") -> Figure:
        """The row at a position."""
        from dear_plugin import plots

        return plots.one(self._panel(position), title, words=self._words)

    def every(self, title: str = "") -> Figure:
        """The row that changes most features, next to the actions of all rows.

        Raises:
            InputError: a result without rows.
        """
        from dear_plugin import plots

        if not len(self.result):
            raise InputError("got a result without rows, expected at least one to draw")
        panel = self._panel(plots.telling(self.result))
        return plots.beside(panel, self.result.actions, title, words=self._words)

    def draw(self, position: int, axes: Axes) -> None:
        """Draw the row at a position in a panel."""
        from dear_plugin import plots

        changes, title, text = self._panel(position)
        plots.row(changes, axes, title=title, text=text, follows=self._words[0])

    @property
    def _words(self) -> tuple[str, str]:
        """The heading of indirect changes, and the note on them."""
        said = claim(self.result.encoder.schema)
        return said.heading, said.short

    def _panel(self, position: int) -> tuple[pd.DataFrame, str, str]:
        """The changes, the title and the text of a row."""
        words = Descriptions(self.result)
        acts = words.acts(position)
        changes = self._changes(position) if acts else pd.DataFrame(columns=COLUMNS)
        text = words.worth(position) if acts else words.of([position])[0]
        return changes, words.head(position), text

    def _changes(self, position: int) -> pd.DataFrame:
        """The changed features of a row, those acted on first, then by size: `COLUMNS`."""
        result, words = self.result, Descriptions(self.result)
        direct, changed = result.proposal.direct[position], result.changed[position]
        spread = result.lazy_answers.spread(torch.tensor([position]))
        before, after = result.x[position], result.proposal.rows[position]
        kinds = [feature.kind is not Kind.NUMERIC for feature in result.encoder.schema]
        flips = torch.tensor(kinds) | is_special(before) | is_special(after)
        size = torch.where(flips, 1.0, after - before)
        ends = (torch.where(flips | direct, size, end[0]) for end in (spread.low, spread.high))
        expected = words.expected(changed & ~direct, spread, 0)
        changes = words.changes(position, changed)
        columns = {
            "feature": [feature.name for feature, _, _ in changes],
            "values": [values(each, expected.get(each[0].name)) for each in changes],
            **{
                name: column[changed].numpy()
                for name, column in zip(COLUMNS[2:], (direct, size, *ends), strict=True)
            },
        }
        frame = pd.DataFrame(columns)
        order = np.lexsort((-frame["change"].abs(), ~frame["direct"]))
        return frame.iloc[order].reset_index(drop=True)


def values(change: Change, expected: Expected | None) -> str:
    """The old and the new value of a feature, with what redraws of the decoder give instead.

    Args:
        change: of the feature.
        expected: its uncertain indirect change; None where the redraws agree, or there are none.
    """
    feature, old, _ = change
    text = " → ".join(_clipped(end) for end in ends(*change))
    if expected is None:
        return text
    if expected.times is not None:
        return f"{text} ({expected.times[0]} of {expected.times[1]} redraws)"
    low, high = (amount_of(feature, float(old) + by) for by in (expected.low, expected.high))
    return f"{text} ({low} to {high})" if low != high else text


def _clipped(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1].rstrip()}…"
