"""Independence: is every latent v_j independent of x_S? Bias-corrected distance correlation.

G. Székely and M. Rizzo, "The distance correlation t-test of independence in high dimension",
Journal of Multivariate Analysis, 2013. It is zero on average for independent variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from dear_plugin.benchmark.protocol import Cell
from dear_plugin.dear import DEAR
from dear_plugin.encoding import Encoder

ROWS = 5000

Row = Mapping[str, Any]


def independence_rows(cell: Cell, seed: int = 0) -> Iterator[Row]:
    """One row per set S: the largest and mean distance correlation of x_S with any v_j.

    Ties are broken at random within their atom; `noise` is the value for independent uniforms.
    """
    encoder = Encoder(cell.schema)
    dear = DEAR(cell.model, cell.schema).fit(cell.train)
    rows = encoder.rows(cell.test)[:ROWS]
    chance = torch.Generator().manual_seed(seed)
    v = dear.decoder.encode(rows, chance)
    noise = _centred(torch.rand(len(rows), generator=chance))
    for i, (j,) in enumerate(dear.sets.members):
        own = _centred(rows[:, j])
        others = [k for k in range(encoder.p) if k != j]
        found = torch.tensor([float(correlation(own, _centred(v[:, i, k]))) for k in others])
        yield {
            "dataset": cell.dataset,
            "set": cell.schema.names[j],
            "rows": len(rows),
            "largest": float(found.max()),
            "mean": float(found.mean()),
            "noise": float(correlation(own, noise)),
        }


def correlation(a: Tensor, b: Tensor) -> Tensor:
    """The bias-corrected distance correlation of two U-centred distance matrices, (n, n)."""
    size = (a.square().sum() * b.square().sum()).sqrt()
    return (a * b).sum() / size.clamp_min(1e-12)


def _centred(x: Tensor) -> Tensor:
    """(n, n) U-centred distances of a column, (n,)."""
    n = len(x)
    gap = (x[:, None] - x).abs()
    rows = gap.sum(1) / (n - 2)
    gap += gap.sum() / ((n - 1) * (n - 2)) - rows[:, None] - rows
    gap.fill_diagonal_(0.0)
    return gap
