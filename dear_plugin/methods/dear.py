"""DEAR: DisEntangling Algorithmic Recourse, assembled from the rooms above."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin._validation.settings import require_instance
from dear_plugin._version import __version__
from dear_plugin.data.encoder import validate_saved_rows
from dear_plugin.data.schema import Rule, Schema
from dear_plugin.data.sensitive import warn_of_actions
from dear_plugin.decoders import Decoder, decoder_class, named
from dear_plugin.errors import FileFormatError, NotFittedError
from dear_plugin.evaluation import fidelity
from dear_plugin.evaluation.report import Report, readable_rows, report
from dear_plugin.evaluation.support import Support
from dear_plugin.methods import persistence
from dear_plugin.methods.alternatives import MOST, alternatives, rows_at_once
from dear_plugin.methods.flip_probabilities import shares_of
from dear_plugin.methods.larger_sets import LargerSets
from dear_plugin.methods.optimizer import Optimizer
from dear_plugin.methods.redrawn import redrawn
from dear_plugin.methods.what_if import WhatIf
from dear_plugin.models.classifier import Classifier, Output
from dear_plugin.problem.action_sets import ActionSets, ActOn
from dear_plugin.problem.case import Case
from dear_plugin.problem.seen_pairs import SeenPairs
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.spread import Spread
from dear_plugin.search import CandidateGrids, Evidence, Search

# Rows that are searched at a time, and float32 cells of their latents: 128 MiB.
ROWS_A_CHUNK, CELLS_A_CHUNK = 1024, 1 << 25
# Training rows whose scores say what a margin is.
SCORED_ROWS = 2_000


class DEAR(WhatIf):
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
        require_instance("search", self.search, Search)
        self.sets = ActionSets.of(schema, act_on)
        if act_on is None:
            warn_of_actions(schema)
        self._moves: Optimizer | None = None

    def diagnose(self, frame: pd.DataFrame, seed: int = 0) -> Report:
        """How far the indirect changes can be believed, measured on rows not fitted on.

        Args:
            frame: held-out rows, some thousands are plenty; those that cannot be read are left
                out, and the log says how many.
            seed: of the random draws.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: rows that do not fit the schema.
        """
        decoder, rows = self._fitted_optimizer.decoder, readable_rows(frame, self.encoder)
        samples = [
            fidelity.draw(decoder, self.encoder, self.sets, rows, seed=seed, as_displayed=shown)
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
        optimizer = self._fitted_optimizer
        settings = {
            "version": __version__,
            "schema": self.schema.to_dict(),
            "rules": len(self.schema.rules),
            "sets": [list(names) for names in self.sets.names],
            "decoder": type(self.decoder).__name__,
            "decoder_settings": self.decoder.settings(),
            "search": asdict(self.search),
            "output": self.classifier.output,
        }
        tensors = {f"decoder/{k}": v for k, v in self.decoder.tensors().items()}
        tensors |= {f"grids/{k}": v for k, v in vars(optimizer.grids).items()}
        persistence.write(Path(folder), settings, {**tensors, "rows": self._fitted_rows})

    @classmethod
    def load(
        cls,
        folder: str | Path,
        model: Any,
        *,
        encode: Callable[[Tensor], Tensor] | None = None,
        rules: Sequence[Rule] = (),
    ) -> DEAR:
        """Read what `save` wrote; no code from the folder is run.

        Args:
            folder: where it was saved.
            model: the model, which is not saved.
            encode: as in the constructor.
            rules: those of the schema, which are code and not saved.

        Raises:
            FileFormatError: a damaged, incomplete or newer save, or another number of rules.
        """
        settings, tensors = persistence.read(Path(folder))
        count = settings.get("rules", 0)
        if count != len(rules):
            raise FileFormatError(
                f"{folder} was saved with {count} rule(s) of the schema, got"
                f" {len(rules)}: give the same callables as rules=[...]"
            )
        with persistence.understood(folder):
            schema = Schema.from_dict(settings["schema"], rules)
            kind = decoder_class(settings["decoder"])
            dear = cls(
                model,
                schema,
                act_on=[tuple(names) for names in settings["sets"]],
                decoder=kind.with_settings(settings["decoder_settings"]),
                output=settings["output"],
                encode=encode,
                search=Search(**settings["search"]),
            )
            dear.decoder.load_state(_under("decoder/", tensors), dear.encoder, dear.sets)
            rows = dear._rows = validate_saved_rows(tensors["rows"], dear.encoder)
            grids = _grids(_under("grids/", tensors), dear)
            possible = SeenPairs.of(rows, dear.encoder)
            dear._moves = Optimizer(
                dear.sets, dear.decoder, grids, dear.classifier, rows, possible
            )
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
        for answers in ("_support", "_evidence", "_cutoffs", "_spread"):
            other.__dict__.pop(answers, None)
        if self._moves is not None:
            other._moves = self._moves.asking(other.classifier)
            if "_wider" in self.__dict__:
                other.__dict__["_wider"] = self._wider.asking(other._moves)
        return other

    def with_search(self, search: Search) -> DEAR:
        """The same fitted DEAR searching otherwise: nothing is learned again.

        Args:
            search: how to search.
        """
        require_instance("search", search, Search)
        other = copy.copy(self)
        other.search = search
        other.__dict__.pop("_evidence", None)
        if other._moves is not None and search.coarse != self.search.coarse:
            grids = CandidateGrids.of(self._fitted_rows, self.encoder, self.sets, search.coarse)
            other._moves = replace(other._moves, grids=grids)
            other.__dict__.pop("_wider", None)
        return other

    def _learn(self, rows: Tensor) -> None:
        # A decoder of our own: the one that came may serve others; an interrupt spoils nothing.
        decoder, coarse = self.decoder.clone_unfitted(), self.search.coarse
        self._moves = Optimizer.learned(rows, self.sets, decoder, self.classifier, coarse)
        self.decoder = decoder
        for learned in ("_wider", "_evidence", "_spread"):
            self.__dict__.pop(learned, None)

    def _propose(self, case: Case) -> Proposal:
        cells = len(self.sets) * self.encoder.d
        size = max(1, min(ROWS_A_CHUNK, CELLS_A_CHUNK // cells))
        if len(case) <= size:
            return self._plan(case)
        chunks = torch.arange(len(case)).split(size)
        return Proposal.joined([self._plan(case.select(rows)) for rows in chunks])

    def _plan(self, case: Case) -> Proposal:
        """What is proposed for some rows; with the margin where one or two features reach it."""
        search = self.search.with_slack(case.slack)
        if not search.margin:
            return self._searched(case, search)
        small = replace(search, max_features=min(search.max_features, 2))
        proposal = self._searched(self._ahead(case), small)
        failed = proposal.failed.nonzero()[:, 0]
        if not len(failed):
            return proposal
        rest = self._searched(case.select(failed), search)
        notes = [n or "accepted, but by less than the margin asked for" for n in rest.noted]
        return proposal.merged(replace(rest, notes=notes), failed)

    def _ahead(self, case: Case) -> Case:
        """A case whose search aims past the boundary by the margin."""
        if not self.search.margin:
            return case
        return replace(case, goal=case.goal.with_lead(self.search.margin, self._spread))

    def _searched(self, case: Case, search: Search) -> Proposal:
        """The sets first; pairs and larger sets for the rows that no set solves."""
        evidence = self._evidence if search.has_criteria else None
        proposal = self._fitted_optimizer.proposal(case, search, evidence)
        if search.largest_set == 1 or not bool(proposal.wanting.any()):
            return proposal
        return self._wider.proposal(case, proposal, search, evidence)

    def _alternatives(self, case: Case, k: int) -> Sequence[Proposal]:
        search, k = self.search.with_slack(case.slack), min(k, MOST)
        sets = [self.sets]
        optimizer: list[Callable[[], Optimizer | None]] = [lambda: self._fitted_optimizer]
        if search.largest_set > 1 and (pairs := self._wider.pair_sets) is not None:
            sets.append(pairs)
            optimizer.append(lambda: self._reserve)
        best = self._propose(case)
        size = min(ROWS_A_CHUNK, rows_at_once(sets, self.encoder.d, k))
        chunks = torch.arange(len(case)).split(size)
        ranked = [
            alternatives(case.select(rows), best.select(rows), k, search, optimizer)
            for rows in chunks
        ]
        proposals = [Proposal.joined(proposals) for proposals in zip(*ranked, strict=True)]
        # Ranks that nobody has are not looked at any further.
        proposals = proposals[:1] + [
            proposal for proposal in proposals[1:] if not bool(proposal.failed.all())
        ]
        # A row without any success keeps its best attempt in the first rank.
        failed = proposals[0].failed.nonzero()[:, 0]
        first = proposals[0].merged(best.select(failed), failed)
        proposals[0] = replace(first, kinds=proposals[0].kinds, notes=best.noted)
        return proposals

    def _shares(
        self, case: Case, proposal: Proposal, position: int
    ) -> Mapping[str, tuple[float, float]]:
        return shares_of(case, proposal, position, self.sets, self.decoder, self.schema)

    def _certainty(self, case: Case, proposal: Proposal) -> tuple[Tensor, Tensor]:
        """(m,) the confidence and (m,) the reliance of answers; where nothing is done, 1 and 0."""
        sure, needed = super()._certainty(case, proposal)
        for rows, pattern, optimizer in self._acting(case, proposal):
            part = proposal.select(rows)
            sure[rows], needed[rows] = optimizer.certainty(case.select(rows), part.rows, pattern)
        return sure, needed

    def _redrawn(self, case: Case, proposal: Proposal) -> Spread:
        """How far redraws of the decoder agree on answers."""
        out = super()._redrawn(case, proposal)
        for rows, _, optimizer in self._acting(case, proposal):
            some, reached = case.select(rows), proposal.rows[rows]
            there = redrawn(optimizer, some, reached, proposal.direct[rows[0]])
            out = out.put(rows, Spread.of(some.x, reached, there, self._numbers))
        return out

    def _acting(
        self, case: Case, proposal: Proposal
    ) -> Iterator[tuple[Tensor, Tensor, Optimizer]]:
        """Rows, (q,), that act on the same features, (p,) bool, and the moves that know these."""
        acts = proposal.direct & (proposal.rows != case.x).any(1, keepdim=True)
        for pattern in acts.unique(dim=0):
            if bool(pattern.any()):
                rows = (acts == pattern).all(1).nonzero()[:, 0]
                yield rows, pattern, self._optimizer_of(tuple(pattern.nonzero()[:, 0].tolist()))

    @property
    def _asked(self) -> Search:
        """What makes an answer credible: what the search asks, or a search by default."""
        return self.search if self.search.has_criteria else super()._asked

    @property
    def _support_asked(self) -> Support:
        """What the support of a credible answer is read from."""
        return self._evidence.support

    @property
    def _fitted_optimizer(self) -> Optimizer:
        if self._moves is None:
            raise NotFittedError("DEAR is not fitted; call fit(frame) first")
        return self._moves

    @lazy
    def _evidence(self) -> Evidence:
        support = Support(self._neighbours, self.classifier, self.search.k_neighbours)
        return Evidence(self._plausibility, support)

    @lazy
    def _spread(self) -> Tensor:
        """(m, c) the scores of training rows: how they are spread says what a margin is."""
        rng = torch.Generator().manual_seed(0)
        rows = self._fitted_rows
        some = rows[torch.randperm(len(rows), generator=rng)[:SCORED_ROWS]]
        return self.classifier.score_training_rows(some)[1]

    @property
    def _reserve(self) -> Optimizer | None:
        """The pairs of features."""
        return self._wider.pairs

    def _optimizer_of(self, members: tuple[int, ...]) -> Optimizer:
        # The decoder that `generate` would use, so that its answers come out again.
        if self._fitted_optimizer.place(members) is not None:
            return self._fitted_optimizer
        pairs = self._wider.pairs if self._wider.is_pair(members) else None
        return self._wider.larger(members) if pairs is None else pairs

    @lazy
    def _wider(self) -> LargerSets:
        return LargerSets(
            self._fitted_rows, self._fitted_optimizer, self.decoder, self.search.coarse
        )


def _grids(tensors: Mapping[str, Tensor], dear: DEAR) -> CandidateGrids:
    """The values that were tried first; version 0.1.0 did not save all that are tried now."""
    if "common" in tensors:
        return CandidateGrids.from_tensors(tensors, dear.encoder, dear.sets)
    return CandidateGrids.of(dear._fitted_rows, dear.encoder, dear.sets, dear.search.coarse)


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose name begins so, without the beginning."""
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
