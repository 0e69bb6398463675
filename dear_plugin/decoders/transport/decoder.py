"""Transport: the default decoder; rows keep their conditional ranks.

In: training rows and action sets; out: v, the ranks of rows, and g(v, a), the rows that follow
from x_S = a. `v_j = F_j|S(x_j | x_S)` is the rank of x_j among rows with the same x_S;
`g_j(v, a) = F_j|S^-1(v_j | a)` is the value at the same rank among rows with x_S = a. Each v_j is
independent of x_S; their joint distribution given x_S need not be, which is a known limit of the
decoder. Decoded values are observed ones. There is no training: rows are counted into tables once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Literal, Self

import torch
from torch import Tensor

from dear_plugin._validation.settings import whole
from dear_plugin.data.batches import chunks
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Schema
from dear_plugin.decoders.protocol import Decoder
from dear_plugin.decoders.redraws import Redraws
from dear_plugin.decoders.registry import register
from dear_plugin.decoders.transport import saved
from dear_plugin.decoders.transport.conditioning import Conditioning
from dear_plugin.decoders.transport.linear_copies import LinearCopies
from dear_plugin.decoders.transport.nodes import Nodes, nearest
from dear_plugin.decoders.transport.redraws import TableRedraws
from dear_plugin.decoders.transport.relevance import linked_features
from dear_plugin.decoders.transport.smooth import Smooth
from dear_plugin.decoders.transport.state import State, write_columns
from dear_plugin.decoders.transport.supports import MAX_VALUES, Supports
from dear_plugin.decoders.transport.tables import TINY, Tables, detail, max_cells
from dear_plugin.decoders.transport.ties import Ties
from dear_plugin.errors import ConstraintError, DearError, NotFittedError, unknown
from dear_plugin.problem.action_sets import ActionSets

FEW_ROWS = 1000
# `fit` warns if more than this share of the rows is in cells cut by only some given features.
COARSE_SHARE = 0.1
RANKS_A_CHUNK = 1 << 22

logger = logging.getLogger(__name__)


@register
class Transport(Decoder):
    """Tabulated conditional ranks.

    Features with atoms are looked up in tables of observed values; between bins of x_S the
    distributions are mixed, never the quantiles. Atom-free features change by the difference of
    locations and keep their residual. A category without an order follows the maximal coupling: it
    is kept unless its probability more than halves, and otherwise replaced by the one whose
    probability increases most.

    Args:
        ranks: the number of rank levels in the tables, which are finer towards both ends; very
            wide data get fewer.
        given: features that are conditioned on besides x_S: "immutable" for all immutable ones,
            or a list of names, () for none. They are never acted on and do not change.
        ties: the ranks of rows with the same x_j: "middle" gives all of them the middle of their
            range, which leads to the more likely outcome; "score" orders them by a regression on
            their other mutable features, which leads to as many changes as the data show.

    Example:
        >>> from dear_plugin import DEAR, Schema, Transport
        >>> from dear_plugin.datasets import load_loan
        >>> schema = Schema.infer(load_loan(200).frame, target="approved", immutable=["gender"])
        >>> model, unconditional = lambda rows: rows["savings"] / 60, Transport(given=())
        >>> dear = DEAR(model, schema, act_on=["savings"], decoder=unconditional)
    """

    def __init__(
        self,
        ranks: int = 1024,
        *,
        given: Iterable[str] | Literal["immutable"] = "immutable",
        ties: Literal["middle", "score"] = "middle",
    ) -> None:
        if ties not in ("middle", "score"):
            raise DearError(unknown("ties", [ties], ["middle", "score"]))
        if isinstance(given, str) and given != "immutable":
            raise ConstraintError(
                f"given must be a list of features or 'immutable', got {given!r}"
            )
        self.ranks: int = whole(1)("Transport: ranks", ranks)
        self.ties = ties
        self.given = given if isinstance(given, str) else tuple(given)
        self._state: State | None = None

    @property
    def given_features(self) -> Tensor:
        """(h,) int64, the given features; see `Decoder`."""
        return self._fitted.given.features

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"ranks": self.ranks, "given": self.given, "ties": self.ties}

    @classmethod
    def with_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The inverse of `settings`."""
        return cls(**settings)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of all fitted parts, named "part.field"."""
        return {
            f"{name}.{field.name}": getattr(part, field.name)
            for name, part in self._fitted.parts().items()
            for field in fields(part)
            if isinstance(getattr(part, field.name), Tensor)
        }

    def load_state(
        self, tensors: Mapping[str, Tensor], encoder: Encoder, sets: ActionSets
    ) -> None:
        """Load the tensors of another decoder.

        Raises:
            ValueError: tensors that do not belong to these features and sets.
        """
        tensors = saved.upgraded(tensors, self.ranks)
        saved.check_shapes(tensors, encoder, sets)
        parts: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            part, key = name.split(".")
            parts.setdefault(part, {})[key] = tensor
        state = State.from_tensors(parts, encoder)
        if not state.consistent(encoder, sets):
            raise ValueError("the tensors contradict each other, the features or the sets")
        self._state = state

    def fit(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> None:
        """Estimate the conditional distributions of rows, (n, p), for every set.

        Raises:
            ConstraintError: a set that acts on a given feature.
            SchemaError: an unknown given feature.
        """
        rows = rows.float().cpu()
        features = _given_features(self.given, encoder.schema, sets)
        given = Conditioning.of(rows, encoder, features, max_cells(len(sets), encoder.p))
        _warn_of_few_rows(rows, given, [encoder.schema.names[j] for j in features])
        sample = given.training_sample(rows, encoder, sets)
        max_nodes, levels = detail(len(given) * len(sets), encoder.p)
        supports = Supports.of(rows, encoder, given.features, min(MAX_VALUES, levels))
        nodes, parts = Nodes.of(sample, max_nodes)
        ranks = min(self.ranks, levels)
        linked = linked_features(sample, supports)
        tables = Tables.of(sample, supports, parts, ranks, linked)
        smooth = Smooth.of(sample, supports, parts[: len(sets)], ranks, linked)
        ties = Ties.of(sample, supports, parts) if self.ties == "score" else None
        copies = LinearCopies.of(sample, given.features)
        self._state = State(given, supports, nodes, tables, smooth, ties, copies)

    def encode(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The conditional ranks of rows, (n, p) -> (n, s, p), each in (0, 1).

        Ties have the middle rank of their atom or are ordered by a score, see `Transport`; with a
        generator they have a random rank in it.
        """
        s, p = len(self._fitted.nodes.positions), rows.shape[1]
        v, size = torch.empty(len(rows), s, p), max(1, RANKS_A_CHUNK // (s * p))
        # Ranks have no derivatives, and small operations are faster in inference mode.
        with torch.inference_mode():
            for part, out in zip(chunks(rows, size), chunks(v, size), strict=True):
                out.copy_(self._fitted.ranks(part, generator))
        return v

    def decode(self, x: Tensor, v: Tensor, values: Tensor, sets: Tensor) -> Tensor:
        """The rows that follow from new values of x_S, (m, c, p); see `Decoder.decode`."""
        state = self._fitted
        positions = state.nodes.positions[sets]
        own = x.gather(1, positions)[None]
        points = torch.cat([own, values.transpose(0, 1)]).transpose(0, 1)
        slots = state.slots(x, sets)
        left, weight = state.nodes.locate(points, sets)
        node = state.nodes_of_cells(nearest(left, weight), points, slots)
        out = state.tables.quantiles(x, v, node)
        if len(state.given.features):
            write_columns(out, state.given.features, x[:, None, state.given.features])
        if state.smooth is not None:
            columns = state.smooth.features
            level = state.smooth.quantiles(v, left, weight)
            level = state.smooth.add_planes(level, points, sets, state.nodes)
            write_columns(out, columns, x[:, None, columns] + (level[:, 1:] - level[:, :1]))
        for j in state.supports.blocks:
            segment = state.supports.segment(j)
            out[..., j] = state.tables.maximal_coupling(x[:, j], v[:, j], node, segment)
        if state.copies is not None:
            out = state.copies.follow(out, x, points, sets)
        return out.scatter_(2, positions[:, None].expand(values.shape), values)

    def redraws(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> Redraws:
        """Redraws of the tables; see `Decoder.redraws`."""
        return TableRedraws(self._fitted, rows.float().cpu(), encoder, sets=sets)

    def flip_probabilities(
        self, x: Tensor, values: Tensor, sets: Tensor
    ) -> dict[int, tuple[float, float]]:
        """The probability of the second value of each binary feature; see `Decoder`.

        It is that of random ties: by the maximal coupling, a row keeps its value with the ratio of
        the value's probabilities after and before, at most 1.
        """
        state = self._fitted
        node = nearest(*state.nodes.locate(values, state.slots(x, sets)))[0].long()
        before, after = state.tables.share[node]
        probabilities = {}
        for j in state.supports.binaries:
            own, at = float(x[0, j] > 0.5), int(state.supports.starts[j]) + int(x[0, j] > 0.5)
            left = max(0.0, 1.0 - float(after[at] / before[at].clamp_min(TINY)))
            probabilities[j] = (own, abs(own - left))
        return probabilities

    @property
    def _fitted(self) -> State:
        if self._state is None:
            raise NotFittedError("the decoder is not fitted; call fit first")
        return self._state


def _warn_of_few_rows(rows: Tensor, given: Conditioning, names: list[str]) -> None:
    """Warn of a small sample, or of one that is small within cells of the given features."""
    if len(rows) < FEW_ROWS:
        logger.warning(
            "fitted on %d rows: below about %d, indirect changes are rough guesses",
            len(rows),
            FEW_ROWS,
        )
    share = given.coarse_share(rows)
    if share > COARSE_SHARE:
        logger.warning(
            "too few training rows agree in all of %s: %.0f %% of them are compared with rows that"
            " agree in some of these features only; Transport(given=[...]) names fewer",
            names,
            100.0 * share,
        )


def _given_features(given: Iterable[str], schema: Schema, sets: ActionSets) -> tuple[int, ...]:
    """The indices of the given features.

    Raises:
        ConstraintError: a set that acts on a given feature.
    """
    if given == "immutable":
        given = [f.name for f in schema if f.immutable]
    names = tuple(dict.fromkeys(given))
    both = sorted({name for group in sets.names for name in group} & set(names))
    if both:
        raise ConstraintError(
            f"{both} are given, so they cannot be acted on: leave them out of act_on or of given"
        )
    return schema.index(names)
