"""Figures of frames, readable in black and white; only this package uses matplotlib.

Indirect changes are associations in the data. With an order of causes they are effects, on
conditions. The line under a figure, `Recourses.note`, states which they are.
"""

from __future__ import annotations

from dear_plugin.errors import ExtraError

try:
    import matplotlib as _  # noqa: F401
except ModuleNotFoundError as error:
    raise ExtraError('figures need matplotlib: pip install "dear-plugin[plots]"') from error

from dear_plugin.plots.ink import DIRECT, INDIRECT, LINES, sheet
from dear_plugin.plots.rows import largest_indirect, row, splits
from dear_plugin.plots.tables import boxes, dots, entanglement, front, fronts, together

__all__ = [
    "DIRECT",
    "INDIRECT",
    "LINES",
    "boxes",
    "dots",
    "entanglement",
    "front",
    "fronts",
    "largest_indirect",
    "row",
    "sheet",
    "splits",
    "together",
]
