"""State: the fitted parts of `Transport`, and the encoding of rows with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders.transport import saved
from dear_plugin.decoders.transport.conditioning import Conditioning
from dear_plugin.decoders.transport.groups import Groups
from dear_plugin.decoders.transport.linear_copies import LinearCopies
from dear_plugin.decoders.transport.locations import Planes
from dear_plugin.decoders.transport.nodes import Nodes, nearest
from dear_plugin.decoders.transport.smooth import Smooth
from dear_plugin.decoders.transport.supports import Supports
from dear_plugin.decoders.transport.tables import Tables
from dear_plugin.decoders.transport.ties import Ties
from dear_plugin.problem.action_sets import ActionSets

# Ranks lie between it and 1 less it.
EDGE = 1e-6


@dataclass
class State:
    """The result of `Transport.fit`."""

    given: Conditioning
    supports: Supports
    nodes: Nodes
    tables: Tables
    smooth: Smooth | None
    ties: Ties | None
    copies: LinearCopies | None

    @classmethod
    def from_tensors(cls, parts: Mapping[str, Mapping[str, Tensor]], encoder: Encoder) -> Self:
        """A state from the tensors of its parts."""
        groups = Groups(**parts["groups"]) if "groups" in parts else None
        planes = Planes(**parts["planes"]) if "planes" in parts else None
        return cls(
            Conditioning(**parts["given"]),
            Supports.from_tensors(encoder, **parts["supports"]),
            Nodes(**parts["nodes"], groups=groups, encoder=encoder),
            Tables(**parts["tables"]),
            Smooth(**parts["smooth"], planes=planes) if "smooth" in parts else None,
            Ties(**parts["ties"], encoder=encoder) if "ties" in parts else None,
            LinearCopies(**parts["copies"]) if "copies" in parts else None,
        )

    def consistent(self, encoder: Encoder, sets: ActionSets) -> bool:
        """Whether the parts agree with each other, the features and the sets."""
        return (
            saved.features_match(self.given, self.supports, encoder)
            and saved.nodes_match(self.nodes, self.nodes.groups, sets)
            and saved.tables_match(self.tables, self.supports)
            and saved.smooth_matches(self.smooth, self.supports, sets)
            and saved.ties_match(self.ties, self.supports)
        )

    def parts(self) -> dict[str, Any]:
        """The parts that have tensors, by name."""
        planes = self.smooth.planes if self.smooth is not None else None
        parts = {**vars(self), "groups": self.nodes.groups, "planes": planes}
        return {name: part for name, part in parts.items() if part is not None}

    def ranks(self, rows: Tensor, generator: torch.Generator | None) -> Tensor:
        """The conditional ranks of rows, (n, p) -> (n, s, p); see `Transport.encode`."""
        cells = self.given.cells(rows)
        n, s = len(rows), len(self.nodes.positions)
        left, weight = self.nodes.of_rows(rows, torch.zeros_like(cells))
        own = rows[:, self.nodes.positions].reshape(n * s, 1, -1)
        slots = (cells[:, None] * s + torch.arange(s)).flatten()
        node = self.nodes_of_cells(nearest(left, weight).view(n * s, 1), own, slots).view(n, s)
        codes = self.supports.codes(rows)
        below, share = self.tables.ranks_of(codes, node)
        tie: Tensor | float = 0.5
        if generator is not None:
            tie = torch.rand(share.shape, generator=generator)
        elif self.ties is not None:
            tie = self.ties.ranks_of(rows, self.supports, codes, node)
        v = torch.full((*node.shape, rows.shape[1]), 0.5)
        write_columns(v, self.supports.counted, below.add_(share.mul_(tie)))
        if self.smooth is not None:
            basis = self.given.basis(rows)
            rank = self.smooth.ranks_of(rows, basis, self.nodes, left, weight)
            write_columns(v, self.smooth.features, rank)
        return v.clamp_(EDGE, 1.0 - EDGE)

    def nodes_of_cells(self, node: Tensor, values: Tensor, slots: Tensor) -> Tensor:
        """(m, c) the nearest nodes in the rows' own cells.

        Args:
            node: (m, c) the nearest nodes in cell 0.
            values: (m, c, w) the values of x_S.
            slots: (m,) the slots of the rows' own cells.
        """
        if len(self.given) == 1:
            return node
        shift = self.nodes.shift(slots)
        if shift is None:
            return nearest(*self.nodes.locate(values, slots))
        return node + shift[:, None]

    def slots(self, x: Tensor, sets: Tensor) -> Tensor:
        """(m,) the slots of rows, (m, p), and sets in the rows' own cells."""
        if len(self.given) == 1:
            return sets
        return self.given.cells(x) * len(self.nodes.positions) + sets


def write_columns(out: Tensor, columns: Tensor, values: Tensor) -> None:
    """Write columns, (f,), of out, (m, c, p)."""
    m, c, f = *out.shape[:2], len(columns)
    out.scatter_(2, columns.expand(m, c, f), values.expand(m, c, f))
