"""Plots: results in, figures out, readable in black and white; only this package uses matplotlib.

Indirect changes are associations in the data, not causal effects; every figure of them says so.
"""

from __future__ import annotations

from dear_plugin.plots.ink import NOTE, sheet
from dear_plugin.plots.rows import overview, person, splits, telling
from dear_plugin.plots.tables import boxes, entanglement, front, frontier, together

__all__ = [
    "NOTE",
    "boxes",
    "entanglement",
    "front",
    "frontier",
    "overview",
    "person",
    "sheet",
    "splits",
    "telling",
    "together",
]
