"""Transport: people keep their rank (the default decoder).

`v_j = F_j|S(x_j | x_S)` is where a person stands, in feature j, among people with the same x_S;
`g_j(v, a) = F_j|S^-1(v_j | a)` is the value at the same standing among people with x_S = a. Each
v_j is independent of x_S (their joint law given x_S need not be: the decoder's known limit), and
values stay values that people have. Nothing is trained; everything is counted into tables once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from dear_plugin.actions import ActionSets
from dear_plugin.decoders.groups import Groups
from dear_plugin.decoders.nodes import Nodes
from dear_plugin.decoders.protocol import Decoder
from dear_plugin.decoders.smooth import Smooth
from dear_plugin.decoders.supports import Supports
from dear_plugin.decoders.tables import Tables, count
from dear_plugin.encoding import Encoder
from dear_plugin.errors import NotFittedError

FEW_ROWS = 1000
TIE = 1e-3

logger = logging.getLogger(__name__)


class Transport(Decoder):
    """Conditional ranks, tabulated.

    Features with atoms are looked up in tables of observed values; between bins of x_S the
    distributions are mixed, never the quantiles. Atom-free features move by a location and keep
    the person's own remainder. A category without an order follows the maximal coupling: kept
    unless its probability more than halves, then exchanged for the one that gained most.

    Args:
        ranks: how many standings are told apart; the tables shrink them for very wide data.
    """

    def __init__(self, ranks: int = 256) -> None:
        self.ranks = ranks
        self._state: _State | None = None

    def settings(self) -> dict[str, Any]:
        """How many standings are told apart."""
        return {"ranks": self.ranks}

    @classmethod
    def with_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The inverse of `settings`."""
        return cls(**settings)

    def tensors(self) -> dict[str, Tensor]:
        """The tables and what finds a place in them."""
        state = self._fitted
        parts = {
            "supports": state.supports,
            "nodes": state.nodes,
            "groups": state.nodes.groups,
            "tables": state.tables,
            "smooth": state.smooth,
        }
        return {
            f"{name}.{key}": value
            for name, part in parts.items()
            for key, value in (vars(part) if part is not None else {}).items()
            if isinstance(value, Tensor) and (name, key) != ("nodes", "positions")
        }

    def adopt(self, tensors: Mapping[str, Tensor], encoder: Encoder, sets: ActionSets) -> None:
        """Take over the tables of another."""
        parts: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            part, key = name.split(".")
            parts.setdefault(part, {})[key] = tensor
        groups = Groups(**parts["groups"]) if "groups" in parts else None
        smooth = Smooth(**parts["smooth"]) if "smooth" in parts else None
        supports = Supports.again(encoder, **parts["supports"])
        nodes = Nodes(sets.positions, **parts["nodes"], groups=groups, encoder=encoder)
        self._state = _State(supports, nodes, Tables(**parts["tables"]), smooth, sets.positions)

    def fit(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> None:
        """Count the conditional distributions of rows, (n, p), for every set."""
        if len(rows) < FEW_ROWS:
            logger.warning(
                "fitted on %d rows: below about %d, indirect changes are rough guesses",
                len(rows),
                FEW_ROWS,
            )
        rows = rows.float().cpu()
        supports = Supports.of(rows, encoder)
        nodes, bins = Nodes.of(rows, encoder, sets, supports.smooth.nonzero()[:, 0])
        tables = count(rows, supports, bins, self.ranks)
        smooth = Smooth.of(rows, supports, nodes, tables.ranks)
        if smooth is not None:
            tables.inverse[:, smooth.features] = smooth.inverse
        self._state = _State(supports, nodes, tables, smooth, sets.positions)

    def encode(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The standings of rows, (n, p) -> (n, s, p), each in (0, 1).

        Ties take the middle of their atom, or a random place in it with a generator.
        """
        state = self._fitted
        codes = state.supports.codes(rows)
        left, weight = state.nodes.of_rows(rows)
        node = left + (weight > 0.5)
        below, own = state.tables.standing(codes, node)
        tie = 0.5 if generator is None else torch.rand(own.shape, generator=generator)
        v = below + own * tie
        if state.smooth is not None:
            v[..., state.smooth.features] = state.smooth.standing(rows, state.nodes, left, weight)
        return v.clamp_(1e-6, 1.0 - 1e-6)

    def decode(self, x: Tensor, v: Tensor, values: Tensor, sets: Tensor) -> Tensor:
        """Where people end up, (m, c, p); see `Decoder.decode`."""
        state = self._fitted
        positions = state.positions[sets]
        here = x.gather(1, positions)[:, None]
        places = torch.cat([here, values], 1)
        left, weight = state.nodes.locate(places, sets)
        node = left + (weight > 0.5)
        reached = state.tables.reached(v, node, sets)
        start, out = reached[:, :1], reached[:, 1:]
        out = torch.where(out == start, x[:, None], out)
        if state.smooth is not None:
            columns = state.smooth.features
            level = state.tables.between(v, left, weight, sets, columns)
            level = state.nodes.located(level, places, sets)
            out[..., columns] = x[:, None, columns] + (level[:, 1:] - level[:, :1])
        for j in state.supports.blocks:
            out[..., j] = self._category(j, x, v, node, sets)
        return out.scatter(2, positions[:, None].expand(values.shape), values)

    def leanings(self, values: Tensor, sets: Tensor) -> dict[int, tuple[float, float]]:
        """P(second value | x_S = a) of each binary feature at two values; see `Decoder`."""
        state = self._fitted
        left, weight = state.nodes.locate(values, sets)
        shares = state.tables.share[sets[:, None], left + (weight > 0.5)][0]
        pairs = [(j, int(state.supports.starts[j]) + 1) for j in state.supports.binaries]
        return {j: (float(shares[0, at]), float(shares[1, at])) for j, at in pairs}

    @property
    def _fitted(self) -> _State:
        if self._state is None:
            raise NotFittedError("the decoder has not seen any rows; call fit first")
        return self._state

    def _category(self, j: int, x: Tensor, v: Tensor, node: Tensor, sets: Tensor) -> Tensor:
        """(m, c) the category of feature j by maximal coupling between x_S and a."""
        state = self._fitted
        segment = state.supports.segment(j)
        shares = state.tables.share[sets[:, None], node, segment]
        start, there = shares[:, :1], shares[:, 1:]
        own = x[:, j].long()[:, None, None]
        before = start.gather(2, own)
        after = there.gather(2, own.expand(-1, there.shape[1], 1))
        kept = (after / before.clamp_min(1e-9))[..., 0]
        below = (start.cumsum(2) - start).gather(2, own)
        tie = ((v[:, j, None, None] - below) / before.clamp_min(1e-9))[..., 0].clamp(0.0, 1.0)
        gain = (there - start).clamp_min(0.0)
        drawn = (tie - kept) / (1.0 - kept).clamp_min(1e-9)
        heap = gain.cumsum(2) / gain.sum(2, keepdim=True).clamp_min(1e-9)
        random = (heap < drawn[..., None]).sum(2).clamp_max(gain.shape[2] - 1)
        other = torch.where((tie - 0.5).abs() < TIE, gain.argmax(2), random)
        return torch.where(kept >= tie, x[:, j, None], other.to(x.dtype))


@dataclass
class _State:
    """What `fit` counted."""

    supports: Supports
    nodes: Nodes
    tables: Tables
    smooth: Smooth | None
    positions: Tensor
