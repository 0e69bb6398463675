"""Costs: factual and counterfactual rows in; direct and indirect costs, in units of cost, out.

Without an order of causes, indirect costs are of associations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from dear_plugin.data.encoder import Encoder


def split(
    encoder: Encoder, x: Tensor, reached: Tensor, direct: Tensor, costs: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Direct cost `sum c_j |d_j|` over S and indirect cost of rows, (n,) each.

    What a unit of a feature costs counts in the direct cost alone, not in that of what
    follows.

    Args:
        encoder: measures distances; a changed category counts 1.
        x: (n, p) factual rows.
        reached: (n, p) counterfactual rows.
        direct: (n, p) bool, the features acted on.
        costs: (n, p) what a unit of each feature costs; None for 1.
    """
    moved = encoder.distance(reached, x)
    acted = moved * direct
    direct_cost = acted.sum(1)
    indirect_cost = (moved.sum(1) - direct_cost).clamp_min(0.0)
    return direct_cost if costs is None else (acted * costs).sum(1), indirect_cost
