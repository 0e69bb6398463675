"""Saved: checks of the tensors of a save before they are used as the tables of `Transport`."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from dear_plugin._validation.tensors import Shape, check_tensors
from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders.transport.conditioning import FEW_VALUES, QUINTILES, Conditioning
from dear_plugin.decoders.transport.groups import Groups
from dear_plugin.decoders.transport.locations import KINKS
from dear_plugin.decoders.transport.nodes import Nodes
from dear_plugin.decoders.transport.smooth import Smooth
from dear_plugin.decoders.transport.supports import Supports
from dear_plugin.decoders.transport.tables import Tables, first_lines
from dear_plugin.decoders.transport.ties import Ties
from dear_plugin.problem.action_sets import ActionSets

INT64, BOOL, DOUBLE = torch.int64, torch.bool, torch.float64
SHAPES = {
    "given.features": Shape("h", INT64, 0, "p"),
    "given.few": Shape("h", BOOL),
    "given.cuts": Shape(f"h {FEW_VALUES - 1}", below=None),
    "given.rank": Shape("h l+", least=None),
    "given.known": Shape("k+", INT64, 0),
    "supports.values": Shape("t"),
    "supports.starts": Shape("p", INT64),
    "supports.sizes": Shape("p", INT64, 0),
    "supports.smooth": Shape("p", BOOL),
    "nodes.positions": Shape("s w", INT64),
    "nodes.grid": Shape("g"),
    "nodes.sizes": Shape("slots", INT64, 1),
    "groups.column": Shape("trees e+", INT64, 0, "d"),
    "groups.cut": Shape("trees e"),
    "groups.child": Shape("trees e 2", INT64, 0, "e"),
    "groups.leaf": Shape("trees e", INT64, -1, "e"),
    "groups.depth": Shape("", INT64, 0, "e"),
    "groups.tree": Shape("slots", INT64, -1, "trees"),
    "tables.below": Shape("g t", least=-1, below=2),  # slightly below 0, by rounding
    "tables.share": Shape("g t", least=-1, below=2),
    "tables.inverse": Shape("lines+ g"),
    "tables.line": Shape("p", torch.int32),
    "tables.edges": Shape("cuts", least=0, below=1),
    "smooth.features": Shape("f+", INT64),
    "smooth.centre": Shape("f nodes"),
    "smooth.spread": Shape("f q+ nodes"),
    "smooth.beside": Shape("s basis f", DOUBLE),
    "smooth.weights": Shape("fitted terms smooth"),
    "copies.slope": Shape("s w p"),
    "planes.bent": Shape("z", INT64, 0, "d"),
    "planes.straight": Shape("y", INT64, 0, "d"),
    "planes.kinks": Shape(f"z {KINKS}", below=None),
    "ties.weights": Shape("d d", DOUBLE),
    "ties.offset": Shape("d", DOUBLE),
    "ties.bin_of": Shape("g", torch.int32, 0),
    "ties.spread": Shape("cells r+", least=-math.inf, below=None),
}


def upgraded(tensors: Mapping[str, Tensor], ranks: int) -> dict[str, Tensor]:
    """The tensors of a save of version 0.1, whose rank levels were even, as those of a later one.

    Args:
        tensors: by name.
        ranks: the decoder's maximum number of rank levels.
    """
    if "tables.edges" in tensors:
        return dict(tensors)
    ranked = int((tensors["tables.line"] > 0).sum())
    count = (len(tensors["tables.inverse"]) - 1) // ranked if ranked else ranks
    return {**tensors, "tables.edges": torch.arange(1, count).float() / max(count, 1)}


def check_shapes(tensors: Mapping[str, Tensor], encoder: Encoder, sets: ActionSets) -> None:
    """Check size, dtype and range of every tensor against these features and sets.

    Raises:
        ValueError: a tensor that does not fit.
    """
    s, w = sets.positions.shape
    few = tensors["given.few"]
    strata, others = int(few.sum()), int((~few).sum())
    known = {
        "p": encoder.p,
        "d": encoder.d,
        "s": s,
        "w": w,
        "slots": s * len(tensors["given.known"]),
        "nodes": int(tensors["nodes.sizes"][:s].sum()),
        "basis": strata * FEW_VALUES + others * QUINTILES,
    }
    check_tensors(tensors, SHAPES, known)


def features_match(given: Conditioning, supports: Supports, encoder: Encoder) -> bool:
    """Whether every feature is given, counted or smooth, with the schema's categories."""
    levels = torch.tensor([len(f.categories) for f in encoder.schema])
    counted = supports.sizes > 0
    others = (~counted & ~supports.smooth).nonzero()[:, 0]
    discrete = counted & (levels > 0)
    return (
        torch.equal(supports.starts, supports.sizes.cumsum(0) - supports.sizes)
        and int(supports.sizes.sum()) == len(supports.values)
        and torch.equal(others, given.features.sort().values)
        and torch.equal(supports.sizes[discrete], levels[discrete])
    )


def nodes_match(nodes: Nodes, groups: Groups | None, sets: ActionSets) -> bool:
    """Whether the nodes are those of the sets, and sets of several features have trees."""
    cells = len(nodes.sizes) // len(sets)
    several = groups.tree >= 0 if groups is not None else torch.zeros(len(nodes.sizes)) > 0
    return (
        torch.equal(nodes.positions, sets.positions)
        and int(nodes.sizes.sum()) == len(nodes.grid)
        and torch.equal(several, (~sets.single).repeat(cells))
    )


def tables_match(tables: Tables, supports: Supports) -> bool:
    """Whether the inverse has the lines of the ranked features."""
    ranks = len(tables.edges) + 1
    complete = len(tables.inverse) == 1 + len(supports.ranked) * ranks
    increasing = bool((tables.edges.diff() >= 0).all())
    return complete and increasing and torch.equal(tables.line, first_lines(supports, ranks))


def smooth_matches(smooth: Smooth | None, supports: Supports, sets: ActionSets) -> bool:
    """Whether the smooth features are those of the supports, with planes for every group."""
    features = supports.smooth.nonzero()[:, 0]
    if smooth is None:
        return not len(features)
    planes, groups = smooth.planes, int((~sets.single).sum())
    size = 0 if planes is None else 1 + (1 + KINKS) * len(planes.bent) + len(planes.straight)
    expected = (groups, size, len(features)) if planes is not None else (0, 0, 0)
    return (
        torch.equal(smooth.features, features)
        and (planes is not None) == (groups > 0)
        and tuple(smooth.weights.shape) == expected
    )


def ties_match(ties: Ties | None, supports: Supports) -> bool:
    """Whether there are scores for every bin and value."""
    if ties is None:
        return True
    return (int(ties.bin_of.max()) + 1) * len(supports.values) <= len(ties.spread)
