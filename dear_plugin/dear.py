"""DEAR: DisEntangling Algorithmic Recourse, assembled from the rooms above."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from dear_plugin import fidelity, persistence
from dear_plugin._version import __version__
from dear_plugin.actions import ActionSets, ActOn
from dear_plugin.alternatives import alternatives
from dear_plugin.classifier import Classifier, Output
from dear_plugin.decoders import Decoder, kind_of, named
from dear_plugin.diagnostics import Report, report
from dear_plugin.encoding import adopted
from dear_plugin.errors import NotFittedError
from dear_plugin.lazy import lazy
from dear_plugin.method import Case, RecourseMethod
from dear_plugin.moves import Moves
from dear_plugin.plan import Plan
from dear_plugin.possible import Possible
from dear_plugin.schema import Schema
from dear_plugin.search import Grids, Search
from dear_plugin.settings import of_kind
from dear_plugin.support import Support
from dear_plugin.wording import level

logger = logging.getLogger(__name__)

ROWS_A_CHUNK = 1024
# What `describe` says of categories that lean without flipping: the few that lean most.
MOST_SHARES = 2
RESERVE_ROWS = 10_000
LEAST_TILT = 0.05


class DEAR(RecourseMethod):
    """Which feature to act on, by how much, and what else is expected to move along with it.

    Pawelczyk, Tiyavorabun and Kasneci, "Decomposing Counterfactual Explanations for Consequential
    Decision Making", arXiv 2211.02151. A change is split into a direct action d_S on chosen
    features S and the indirect change of the rest, `x_cf = g(v, x_S + d_S)`. Indirect changes
    are associations in the data, not causal effects.

    Args:
        model: a torch module on the encoded tensor, an object with `predict_proba` on frames, or
            a callable from a frame to probabilities.
        schema: the features.
        act_on: feature names, or groups of them; None means every mutable feature, one at a time.
        decoder: "transport" (people keep their rank), "autoencoder" (the paper's), or a decoder:
            `Transport(given=())` compares people whatever they cannot change.
        output: "logits" (default for modules), "probabilities" (default for black boxes) or
            "values" (regression).
        encode: for modules on a host's encoding, a differentiable map from ours, (m, d).
        search: how to search.
    """

    def __init__(
        self,
        model: Any,
        schema: Schema,
        *,
        act_on: ActOn | None = None,
        decoder: str | Decoder = "transport",
        output: Output | None = None,
        encode: Callable[[Tensor], Tensor] | None = None,
        search: Search | None = None,
    ) -> None:
        super().__init__(model, schema, output=output, encode=encode)
        self.decoder = named(decoder)
        self.search = Search() if search is None else search
        of_kind("search", self.search, Search)
        self.sets = ActionSets.of(schema, act_on)
        self._moves: Moves | None = None

    def diagnose(self, frame: pd.DataFrame, seed: int = 0) -> Report:
        """How far the indirect changes can be believed, measured on rows not fitted on.

        Args:
            frame: held-out rows, some thousands are plenty.
            seed: of the random draws.

        Raises:
            NotFittedError: `fit` was not called.
        """
        decoder, rows = self._fitted_moves.decoder, self.encoder.rows(frame)
        samples = [
            fidelity.draw(decoder, self.encoder, self.sets, rows, seed=seed, shown=shown)
            for shown in (False, True)
        ]
        entangled = decoder.entanglement(rows).nanmean(0)
        series = pd.Series(entangled.numpy(), index=self.sets.labels, name="entanglement")
        return report(self.sets.labels, samples[0], samples[1], series, seed)

    def save(self, folder: str | Path) -> None:
        """Write a fitted DEAR to a folder of JSON and safetensors, without the model.

        Args:
            folder: made if it is not there.

        Raises:
            NotFittedError: `fit` was not called.
        """
        moves = self._fitted_moves
        settings = {
            "version": __version__,
            "schema": self.schema.to_dict(),
            "sets": [list(names) for names in self.sets.names],
            "decoder": type(self.decoder).__name__,
            "decoder_settings": self.decoder.settings(),
            "search": asdict(self.search),
            "output": self.classifier.output,
        }
        tensors = {f"decoder/{k}": v for k, v in self.decoder.tensors().items()}
        tensors |= {f"grids/{k}": v for k, v in vars(moves.grids).items()}
        persistence.write(Path(folder), settings, {**tensors, "rows": self._fitted_rows})

    @classmethod
    def load(
        cls,
        folder: str | Path,
        model: Any,
        *,
        encode: Callable[[Tensor], Tensor] | None = None,
    ) -> DEAR:
        """Read what `save` wrote; no code from the folder is run.

        Args:
            folder: where it was saved.
            model: the model, which is not saved.
            encode: as in the constructor.

        Raises:
            FileFormatError: a damaged, incomplete or newer save.
        """
        settings, tensors = persistence.read(Path(folder))
        with persistence.understood(folder):
            schema = Schema.from_dict(settings["schema"])
            kind = kind_of(settings["decoder"])
            dear = cls(
                model,
                schema,
                act_on=[tuple(names) for names in settings["sets"]],
                decoder=kind.with_settings(settings["decoder_settings"]),
                output=settings["output"],
                encode=encode,
                search=Search(**settings["search"]),
            )
            dear.decoder.adopt(_under("decoder/", tensors), dear.encoder, dear.sets)
            grids = Grids.again(_under("grids/", tensors), dear.encoder, dear.sets)
            rows = dear._rows = adopted(tensors["rows"], dear.encoder)
            possible = Possible.of(rows, dear.encoder)
            dear._moves = Moves(dear.sets, dear.decoder, grids, dear.classifier, possible)
        return dear

    def with_model(
        self,
        model: Any,
        *,
        output: Output | None = None,
        encode: Callable[[Tensor], Tensor] | None = None,
    ) -> DEAR:
        """The same fitted DEAR asking another model: what it learned is about people alone.

        Args:
            model: see `DEAR`.
            output: see `DEAR`.
            encode: see `DEAR`.
        """
        other = copy.copy(self)
        other.classifier = Classifier(model, self.encoder, output=output, encode=encode)
        for answers in ("_support", "_neighbours"):
            other.__dict__.pop(answers, None)
        for name in ("_moves", "_reserve"):
            if other.__dict__.get(name) is not None:
                other.__dict__[name] = replace(other.__dict__[name], classifier=other.classifier)
        return other

    def with_search(self, search: Search) -> DEAR:
        """The same fitted DEAR searching otherwise: nothing is learned again.

        Args:
            search: how to search.
        """
        of_kind("search", search, Search)
        other = copy.copy(self)
        other.search = search
        other.__dict__.pop("_neighbours", None)
        if other._moves is not None and search.coarse != self.search.coarse:
            grids = Grids.of(self._fitted_rows, self.encoder, self.sets, search.coarse)
            other._moves = replace(other._moves, grids=grids)
            other.__dict__.pop("_reserve", None)
        return other

    def _learn(self, rows: Tensor) -> None:
        # A decoder of our own: the one that came may serve others; an interrupt spoils nothing.
        decoder, coarse = self.decoder.blank(), self.search.coarse
        self._moves = Moves.learned(rows, self.sets, decoder, self.classifier, coarse)
        self.decoder = decoder
        for learned in ("_reserve", "_neighbours"):
            self.__dict__.pop(learned, None)

    def _propose(self, case: Case) -> Plan:
        if len(case) <= ROWS_A_CHUNK:
            return self._plan(case)
        chunks = torch.arange(len(case)).split(ROWS_A_CHUNK)
        return Plan.joined([self._plan(case.select(rows)) for rows in chunks])

    def _plan(self, case: Case) -> Plan:
        """The sets first; pairs for the rows that no set solves."""
        search = self.search.aiming(case.slack)
        support = self._neighbours if search.min_support is not None else None
        plan = self._fitted_moves.plan(case, search, support)
        failed = plan.failed.nonzero()[:, 0]
        if not len(failed) or not search.groups or self._reserve is None:
            return plan
        second = self._reserve.plan(case.select(failed), search, support)
        solved = (~second.failed).nonzero()[:, 0]
        return plan.merged(second.select(solved), failed[solved])

    def _alternatives(self, case: Case, k: int) -> Sequence[Plan]:
        search = self.search.aiming(case.slack)
        moves = self._fitted_moves, self._reserve if search.groups else None
        best = self._propose(case)
        chunks = torch.arange(len(case)).split(ROWS_A_CHUNK)
        ranked = [
            alternatives(case.select(rows), best.select(rows), k, search, moves) for rows in chunks
        ]
        plans = [Plan.joined(plans) for plans in zip(*ranked, strict=True)]
        # A row without any success keeps its best attempt in the first rank.
        failed = plans[0].failed.nonzero()[:, 0]
        plans[0] = replace(plans[0].merged(best.select(failed), failed), kinds=plans[0].kinds)
        return plans

    def _shares(self, case: Case, plan: Plan, position: int) -> Mapping[str, tuple[float, float]]:
        row, direct = plan.rows[position], plan.direct[position]
        at = (self.sets.masks == direct).all(1).nonzero()[:1, 0]
        if not len(at):
            return {}
        x = case.x[position]
        where = self.sets.positions[at]
        shares = self.decoder.leanings(x[None], torch.stack([x[where], row[where]], 1), at)
        free = case.limits.floor[position] < case.limits.ceiling[position]
        still = (row == x) & ~direct & free
        leaning = sorted(
            ((abs(b - a), j) for j, (a, b) in shares.items() if still[j]), reverse=True
        )
        return {
            level(self.schema.features[j]): shares[j]
            for tilt, j in leaning[:MOST_SHARES]
            if tilt >= LEAST_TILT
        }

    @property
    def _fitted_moves(self) -> Moves:
        if self._moves is None:
            raise NotFittedError("DEAR is not fitted; call fit(frame) first")
        return self._moves

    @lazy
    def _neighbours(self) -> Support:
        return Support(self._fitted_rows, self.classifier, self.search.k_neighbours)

    @lazy
    def _reserve(self) -> Moves | None:
        """Pairs of features, learned when the first row needs them."""
        single = [m[0] for m in self.sets.members if len(m) == 1]
        known = {frozenset(m) for m in self.sets.members}
        names = [self.schema.names[j] for j in single[: self.decoder.pair_features]]
        pairs = [p for p in combinations(names, 2) if frozenset(self.schema.index(p)) not in known]
        if not pairs:
            return None
        logger.info("learning %d pairs of features for rows that no single one solves", len(pairs))
        chance = torch.Generator().manual_seed(0)
        rows = self._fitted_rows
        some = rows[torch.randperm(len(rows), generator=chance)[:RESERVE_ROWS]]
        return Moves.learned(
            some,
            ActionSets.of(self.schema, pairs),
            self.decoder.blank(),
            self.classifier,
            self.search.coarse,
        )


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose name begins so, without the beginning."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
