"""Transport: people keep their rank (the default decoder).

`v_j = F_j|S(x_j | x_S)` is where a person stands, in feature j, among people with the same x_S;
`g_j(v, a) = F_j|S^-1(v_j | a)` is the value at the same standing among people with x_S = a. Each
v_j is independent of x_S (their joint law given x_S need not be: the decoder's known limit), and
values stay values that people have. Nothing is trained; everything is counted into tables once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, Literal, Self

import torch
from torch import Tensor

from dear_plugin._batches import chunks
from dear_plugin._validation.settings import whole
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Schema
from dear_plugin.decoders.protocol import Decoder
from dear_plugin.decoders.redraws import Redraws
from dear_plugin.decoders.transport import saved
from dear_plugin.decoders.transport.conditioning import Conditioning
from dear_plugin.decoders.transport.linear_copies import Copies
from dear_plugin.decoders.transport.nodes import Nodes, nearest
from dear_plugin.decoders.transport.redraws import PoissonRedraws
from dear_plugin.decoders.transport.relevance import links
from dear_plugin.decoders.transport.smooth import Smooth
from dear_plugin.decoders.transport.state import State, put
from dear_plugin.decoders.transport.supports import MAX_VALUES, Supports
from dear_plugin.decoders.transport.tables import NOBODY, Tables, detail, most_cells
from dear_plugin.decoders.transport.ties import Ties
from dear_plugin.errors import ConstraintError, DearError, NotFittedError, unknown
from dear_plugin.problem.action_sets import ActionSets

FEW_ROWS = 1000
# Where a smaller share of the rows is compared with people alike in some of the given only, it is
# not worth a word.
LEAST_LACKING = 0.1
STANDINGS_A_CHUNK = 1 << 22

logger = logging.getLogger(__name__)


class Transport(Decoder):
    """Conditional ranks, tabulated.

    Features with atoms are looked up in tables of observed values; between bins of x_S the
    distributions are mixed, never the quantiles. Atom-free features move by a location and keep
    the person's own remainder. A category without an order follows the maximal coupling: kept
    unless its probability more than halves, then exchanged for the one that gained most.

    Args:
        ranks: how many standings are told apart, finer ones towards both ends; the tables shrink
            them for very wide data.
        given: features that people are compared at equal values of, besides x_S; "immutable"
            names all that cannot change, () none. They are never acted on and do not move.
        ties: people with the same x_j stand in the "middle" of each other, which shows the
            likelier outcome, or are told apart by a "score" of their other mutable features, which
            shows as many moves as the data have.
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
                f"given must be a list of features or 'immutable': {given!r} came"
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
        """The tables and what finds a place in them."""
        return {
            f"{name}.{field.name}": getattr(part, field.name)
            for name, part in self._fitted.parts().items()
            for field in fields(part)
            if isinstance(getattr(part, field.name), Tensor)
        }

    def load_state(
        self, tensors: Mapping[str, Tensor], encoder: Encoder, sets: ActionSets
    ) -> None:
        """Take over the tables of another.

        Raises:
            ValueError: tables that are not those of these features and sets.
        """
        tensors = saved.completed(tensors, self.ranks)
        saved.measured(tensors, encoder, sets)
        parts: dict[str, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            part, key = name.split(".")
            parts.setdefault(part, {})[key] = tensor
        state = State.again(parts, encoder)
        if not state.sound(encoder, sets):
            raise ValueError("the tables contradict each other, the features or the sets")
        self._state = state

    def fit(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> None:
        """Count the conditional distributions of rows, (n, p), for every set.

        Raises:
            ConstraintError: a set that acts on a given feature.
            SchemaError: an unknown given feature.
        """
        if len(rows) < FEW_ROWS:
            logger.warning(
                "fitted on %d rows: below about %d, indirect changes are rough guesses",
                len(rows),
                FEW_ROWS,
            )
        rows = rows.float().cpu()
        names = _given(self.given, encoder.schema, sets)
        given = Conditioning.of(rows, encoder, names, most_cells(len(sets), encoder.p))
        rest = given.lacking(rows)
        if rest > LEAST_LACKING:
            logger.warning(
                "too few rows are alike in all of %s: %.0f %% of them are compared with people"
                " alike in some of these only",
                [encoder.schema.names[j] for j in names],
                100.0 * rest,
            )
        crowd = given.crowd(rows, encoder, sets)
        most, fine = detail(len(given) * len(sets), encoder.p)
        supports = Supports.of(rows, encoder, given.features, min(MAX_VALUES, fine))
        nodes, parts = Nodes.of(crowd, most)
        ranks = min(self.ranks, fine)
        told = links(crowd, supports)
        tables = Tables.of(crowd, supports, parts, ranks, told)
        smooth = Smooth.of(crowd, supports, parts[: len(sets)], ranks, told)
        ties = Ties.of(crowd, supports, parts) if self.ties == "score" else None
        copies = Copies.of(crowd, given.features)
        self._state = State(given, supports, nodes, tables, smooth, ties, copies)

    def encode(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The standings of rows, (n, p) -> (n, s, p), each in (0, 1).

        Ties take the middle of their atom or are broken by a score, see `Transport`; with a
        generator they take a random place in it.
        """
        s, p = len(self._fitted.nodes.positions), rows.shape[1]
        v, size = torch.empty(len(rows), s, p), max(1, STANDINGS_A_CHUNK // (s * p))
        # Ranks have no derivatives, and small operations are quicker for it.
        with torch.inference_mode():
            for part, out in zip(chunks(rows, size), chunks(v, size), strict=True):
                out.copy_(self._fitted.standings(part, generator))
        return v

    def decode(self, x: Tensor, v: Tensor, values: Tensor, sets: Tensor) -> Tensor:
        """Where people end up, (m, c, p); see `Decoder.decode`."""
        state = self._fitted
        positions = state.nodes.positions[sets]
        own = x.gather(1, positions)[None]
        places = torch.cat([own, values.transpose(0, 1)]).transpose(0, 1)
        slots = state.slots(x, sets)
        left, weight = state.nodes.locate(places, sets)
        node = state.cells_nodes(nearest(left, weight), places, slots)
        out = state.tables.reached(x, v, node)
        if len(state.given.features):
            put(out, state.given.features, x[:, None, state.given.features])
        if state.smooth is not None:
            columns = state.smooth.features
            level = state.smooth.reached(v, left, weight)
            level = state.smooth.located(level, places, sets, state.nodes)
            put(out, columns, x[:, None, columns] + (level[:, 1:] - level[:, :1]))
        for j in state.supports.blocks:
            segment = state.supports.segment(j)
            out[..., j] = state.tables.coupled(x[:, j], v[:, j], node, segment)
        if state.copies is not None:
            out = state.copies.follow(out, x, places, sets)
        return out.scatter_(2, positions[:, None].expand(values.shape), values)

    def redraws(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> Redraws:
        """The tables as other rows might have made them; see `Decoder.redraws`."""
        return PoissonRedraws(self._fitted, rows.float().cpu(), encoder, sets=sets)

    def flip_probabilities(
        self, x: Tensor, values: Tensor, sets: Tensor
    ) -> dict[int, tuple[float, float]]:
        """The chance that a person has the second value of each binary feature; see `Decoder`.

        As with ties at random: they keep their own with the chance that the maximal coupling
        leaves them, the share of it at the second value over that at the first.
        """
        state = self._fitted
        node = nearest(*state.nodes.locate(values, state.slots(x, sets)))[0].long()
        before, after = state.tables.share[node]
        told = {}
        for j in state.supports.binaries:
            own, at = float(x[0, j] > 0.5), int(state.supports.starts[j]) + int(x[0, j] > 0.5)
            left = max(0.0, 1.0 - float(after[at] / before[at].clamp_min(NOBODY)))
            told[j] = (own, abs(own - left))
        return told

    @property
    def _fitted(self) -> State:
        if self._state is None:
            raise NotFittedError("the decoder has not seen any rows; call fit first")
        return self._state


def _given(given: Iterable[str], schema: Schema, sets: ActionSets) -> tuple[int, ...]:
    """The places of what is given.

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
