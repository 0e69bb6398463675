"""Independence: the bias-corrected distance correlation of the latents v_j and x_S.

G. Székely and M. Rizzo, "The distance correlation t-test of independence in high dimension",
Journal of Multivariate Analysis, 2013. It is zero on average for independent variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from dear_plugin.benchmark.protocol import Cell
from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders import Decoders, Sample
from dear_plugin.methods.dear import DEAR

ROWS = 5000
FOLDS = 5

Row = Mapping[str, Any]


def independence_rows(cell: Cell, seed: int = 0) -> Iterator[Row]:
    """One row per set S: the largest and mean distance correlation of x_S with any v_j.

    Every row is held out once, from a decoder fitted on the other folds. Ties are broken at random
    within their atom; `noise` is the value for independent uniforms.
    """
    encoder = Encoder(cell.schema)
    rng = torch.Generator().manual_seed(seed)
    all_rows = torch.cat([encoder.rows(cell.train), encoder.rows(cell.test)])
    dear = DEAR(cell.model, cell.schema)
    rows, v = _held_out(dear, all_rows, rng)
    noise = _centred(torch.rand(len(rows), generator=rng))
    for i, (j,) in enumerate(dear.sets.members):
        own = _centred(rows[:, j])
        others = [k for k in range(encoder.p) if k != j]
        found = torch.tensor([float(correlation(own, _centred(v[i][:, k]))) for k in others])
        yield {
            "dataset": cell.dataset,
            "set": cell.schema.names[j],
            "rows": len(rows),
            "largest": float(found.max()),
            "mean": float(found.mean()),
            "noise": float(correlation(own, noise)),
        }


def _held_out(dear: DEAR, rows: Tensor, rng: torch.Generator) -> tuple[Tensor, list[Tensor]]:
    """(m, p) rows, m >= `ROWS`, and s times (m, k) their latents by decoders of other rows."""
    folds = torch.randperm(len(rows), generator=rng).tensor_split(FOLDS)
    parts = []
    for i, fold in enumerate(folds):
        rest = torch.cat([other for j, other in enumerate(folds) if j != i])
        sample, sets = Sample(rows[rest], dear.encoder), dear.sets.members
        decoders = Decoders(dear.decoder.clone_unfitted(), sample, sets)
        decoders.fit(sets)
        held_out = rows[fold[: -(-ROWS // FOLDS)]]
        parts.append((held_out, [decoders.of(each).encode(held_out, rng) for each in sets]))
    latents = [torch.cat(each) for each in zip(*(v for _, v in parts), strict=True)]
    return torch.cat([part for part, _ in parts]), latents


def correlation(a: Tensor, b: Tensor) -> Tensor:
    """The bias-corrected distance correlation of two U-centred distance matrices, (n, n)."""
    size = (a.square().sum() * b.square().sum()).sqrt()
    return (a * b).sum() / size.clamp_min(1e-12)


def _centred(x: Tensor) -> Tensor:
    """(n, n) U-centred distances of a column, (n,)."""
    n = len(x)
    distance = (x[:, None] - x).abs()
    rows = distance.sum(1) / (n - 2)
    distance += distance.sum() / ((n - 1) * (n - 2)) - rows[:, None] - rows
    distance.fill_diagonal_(0.0)
    return distance
