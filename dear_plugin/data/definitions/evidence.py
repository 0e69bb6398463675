"""Evidence: how close rows come to a relation of columns, and whether they keep it."""

from __future__ import annotations

import numpy as np
import torch

from dear_plugin.data.kinds.cells import Array, Mask

# The share of rows that may break a definition, also among those in which a column has not its
# commonest value; the share if all have so few values that many rows keep it by chance.
ERRORS, FEW_ERRORS, FEW_VALUES = 0.03, 0.005, 12


def fitted(x: Array, t: Array) -> tuple[Array, Array, float]:
    """Weights, (m,), residuals, (n,), and the size of all residuals but errors."""
    design = torch.from_numpy(np.column_stack([np.ones(len(t)), x, t]))
    kept, most = torch.ones(len(t), dtype=torch.bool), int((1.0 - ERRORS) * (len(t) - 1))
    for _ in range(2):
        # Of torch: numpy's has all threads, which wait for each other beside busy cores.
        some = design[kept]
        weights = torch.linalg.lstsq(some[:, :-1], some[:, -1:], driver="gelsd").solution
        residual = design[:, -1] - (design[:, :-1] @ weights)[:, 0]
        size = residual.abs().kthvalue(most + 1).values
        kept = residual.abs() <= size
    return weights[:, 0].numpy(), residual.numpy(), float(size)


def is_kept(off: Mask, columns: Array) -> bool:
    """Whether rows keep a relation, also those with another than the commonest value."""
    counted = [np.unique(v, return_counts=True) for v in columns.T]
    few = all(len(distinct) <= FEW_VALUES for distinct, _ in counted)
    if off.mean() > (FEW_ERRORS if few else ERRORS):
        return False
    for v, (distinct, counts) in zip(columns.T, counted, strict=True):
        rare = off[v != distinct[counts.argmax()]]
        if len(rare) < 10 or rare.mean() > ERRORS:
            return False
    return True


def follows(row: Array, span: Array) -> bool:
    """Whether a relation is a combination of others."""
    size = np.maximum(np.abs(span).max(0, initial=0.0), np.abs(row)) + 1e-12
    again = np.linalg.lstsq((span / size).T, row / size, rcond=None)[0] @ (span / size)
    return bool(np.abs(again - row / size).max() <= 1e-3)
