"""DEAR: DisEntangling Algorithmic Recourse, composed of a decoder, a search and criteria."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin._validation.settings import require_instance
from dear_plugin.data.schema import Rule, Schema
from dear_plugin.data.sensitive import warn_of_actions
from dear_plugin.decoders import Decoder, Decoders, Sample, make_decoder
from dear_plugin.decoders.progress import bar
from dear_plugin.errors import NotFittedError
from dear_plugin.evaluation.report import Report, diagnose
from dear_plugin.methods import saving
from dear_plugin.methods.alternatives import MOST, alternatives, rows_at_once
from dear_plugin.methods.flip_probabilities import flip_probabilities
from dear_plugin.methods.larger_sets import LargerSets
from dear_plugin.methods.optimizer import Optimizer
from dear_plugin.methods.robustness import confidence_and_reliance, spread
from dear_plugin.methods.searching import SearchingMethod
from dear_plugin.methods.what_if import WhatIf
from dear_plugin.models.classifier import Classifier, Output
from dear_plugin.problem.action_sets import ActionSets, ActOn
from dear_plugin.problem.case import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.spread import Spread
from dear_plugin.results.wording import LESS_MARGIN
from dear_plugin.search import Search

# Rows per search, and float32 cells of their latents: 128 MiB.
ROWS_A_CHUNK, CELLS_A_CHUNK = 1024, 1 << 25
# What is computed from the decoders, the model and the search settings on first access.
SEARCHED = ("_fitted_optimizer", "_larger_sets", "_evidence")


class DEAR(WhatIf, SearchingMethod):
    """Which features to act on, by how much, and which indirect changes to expect.

    Pawelczyk, Tiyavorabun and Kasneci, "Decomposing Counterfactual Explanations for Consequential
    Decision Making", arXiv 2211.02151. A change is split into a direct action d_S on chosen
    features S and the indirect change of the rest, `x_cf = g(v, x_S + d_S)`. Indirect changes
    are associations in the data, not causal effects.

    `logging.getLogger("dear_plugin").setLevel("INFO")` shows a progress bar for work that takes
    over 3 seconds.

    Args:
        model: a torch module on the encoded tensor, an object with `predict_proba` on frames, or
            a callable from a frame to probabilities.
        schema: the features.
        act_on: feature names, or groups of them; None means every mutable feature, one at a time.
        decoder: "transport" (rows keep their conditional rank), "autoencoder" (the paper's), or
            a decoder: `Transport(given=())` does not condition on immutable features.
        output: "logits" (default for modules), "probabilities" (default for black boxes) or
            "values" (regression).
        encode: for modules on a host's encoding, a differentiable map from ours, (m, d).
        search: the search settings.

    Example:
        >>> from dear_plugin import DEAR, Schema
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(1_000).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> model = lambda rows: rows["savings"] / 60  # a pipeline, a torch module, any function
        >>> DEAR(model, schema, act_on=["income", "savings"]).fit(frame).generate(frame.head(5))
        Recourses(5 of 5 rows solved, median cost 0.297)
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
        self.decoder = make_decoder(decoder)
        self.search = Search() if search is None else search
        require_instance("search", self.search, Search)
        self.sets = ActionSets.of(schema, act_on)
        if act_on is None:
            warn_of_actions(schema)
        self._decoders: Decoders | None = None
        self._params |= {"act_on": act_on, "decoder": decoder, "search": search}

    def diagnose(self, frame: pd.DataFrame, seed: int = 0) -> Report:
        """How well the indirect changes follow the data, measured on rows not fitted on.

        Args:
            frame: held-out rows, a few thousand suffice; those that cannot be read are left out,
                and the log says how many.
            seed: of the random draws.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: rows that do not fit the schema.
        """
        return diagnose(self.decoders, self.encoder, self.sets, frame, seed)

    def save(self, folder: str | Path) -> None:
        """Write a fitted DEAR to a folder of JSON and safetensors, without the model.

        Args:
            folder: created if it does not exist.

        Raises:
            NotFittedError: `fit` was not called.
        """
        saving.save(self, Path(folder))

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
            rules: those of the schema, which are not saved as they are code.

        Raises:
            FileFormatError: a damaged, incomplete or newer save, or another number of rules.
        """
        return saving.load(cls, Path(folder), model, encode, rules)

    def with_model(
        self,
        model: Any,
        *,
        output: Output | None = None,
        encode: Callable[[Tensor], Tensor] | None = None,
    ) -> DEAR:
        """The same fitted DEAR with another model; nothing is fitted again.

        Args:
            model: see `DEAR`.
            output: see `DEAR`.
            encode: see `DEAR`.
        """
        other = copy.copy(self)
        other.classifier = Classifier(model, self.encoder, output=output, encode=encode)
        other._params = {**self._params, "model": model, "output": output, "encode": encode}
        for cached in (*SEARCHED, "_support", "_cutoffs", "_training_scores"):
            other.__dict__.pop(cached, None)
        return other

    def with_search(self, search: Search) -> DEAR:
        """The same fitted DEAR with another search; nothing is fitted again.

        Args:
            search: the search settings.
        """
        require_instance("search", search, Search)
        other = copy.copy(self)
        other.search, other._params = search, {**self._params, "search": search}
        for cached in SEARCHED:
            other.__dict__.pop(cached, None)
        return other

    @property
    def decoders(self) -> Decoders:
        """The fitted decoders, one for each set; those of other sets are fitted when asked for.

        Raises:
            NotFittedError: `fit` was not called.
        """
        if self._decoders is None:
            raise NotFittedError("DEAR is not fitted; call fit(frame) first")
        return self._decoders

    def _learn(self, rows: Tensor) -> None:
        # A copy: the decoder passed may be in use elsewhere, and an interrupt changes nothing.
        decoder, sample = self.decoder.clone_unfitted(), Sample(rows, self.encoder)
        decoders = Decoders(decoder, sample, self.sets.members)
        decoders.fit(self.sets.members)
        self._decoders, self.decoder = decoders, decoder
        passed = self._params["decoder"]
        if isinstance(passed, Decoder) and hasattr(decoder, "history"):
            vars(passed)["history"] = decoder.history
        for cached in SEARCHED:
            self.__dict__.pop(cached, None)

    def _propose(self, case: Case) -> Proposal:
        cells = len(self.sets) * self.encoder.d
        size = max(1, min(ROWS_A_CHUNK, CELLS_A_CHUNK // cells))
        if len(case) <= size:
            return self._propose_chunk(case)
        chunks = torch.arange(len(case)).split(size)
        parts = bar(chunks, "searching, chunks of rows")
        return Proposal.joined([self._propose_chunk(case.select(rows)) for rows in parts])

    def _propose_chunk(self, case: Case) -> Proposal:
        """Propose for a chunk of rows, with the margin where one or two features reach it."""
        search = self.search.with_slack(case.slack)
        if not search.margin:
            return self._search_sets(case, search)
        small = replace(search, max_features=min(search.max_features, 2))
        proposal = self._search_sets(self._with_margin(case), small)
        failed = proposal.failed.nonzero()[:, 0]
        if not len(failed):
            return proposal
        rest = self._search_sets(case.select(failed), search)
        notes = [note or LESS_MARGIN for note in rest.all_notes]
        return proposal.merged(replace(rest, notes=notes), failed)

    def _with_margin(self, case: Case) -> Case:
        """The case with goals beyond the boundary by the margin."""
        if not self.search.margin:
            return case
        return replace(case, goal=case.goal.with_lead(self.search.margin, self._training_scores))

    def _search_sets(self, case: Case, search: Search) -> Proposal:
        """Search the sets, then pairs and larger sets for rows that no set solves."""
        evidence = self._evidence if search.has_criteria else None
        proposal = self._fitted_optimizer.proposal(case, search, evidence)
        if search.largest_set == 1 or not bool(proposal.incomplete.any()):
            return proposal
        return self._larger_sets.proposal(case, proposal, search, evidence)

    def _alternatives(self, case: Case, k: int) -> Sequence[Proposal]:
        search, k = self.search.with_slack(case.slack), min(k, MOST)
        sets = [self.sets]
        optimizers: list[Callable[[], Optimizer | None]] = [lambda: self._fitted_optimizer]
        if search.largest_set > 1 and (pairs := self._larger_sets.pair_sets) is not None:
            sets.append(pairs)
            optimizers.append(lambda: self._larger_sets.pairs)
        size = min(ROWS_A_CHUNK, rows_at_once(sets, self.encoder.d, k))
        return alternatives(case, self._propose(case), k, search, optimizers, size)

    def _flip_probabilities(
        self, case: Case, proposal: Proposal, position: int
    ) -> Mapping[str, tuple[float, float]]:
        return flip_probabilities(case, proposal, position, self.decoders, self.schema)

    def _certainty(self, case: Case, proposal: Proposal) -> tuple[Tensor, Tensor]:
        return confidence_and_reliance(case, proposal, self._optimizer_of)

    def _spread(self, case: Case, proposal: Proposal) -> Spread:
        return spread(case, proposal, self._optimizer_of, self._is_number)

    @property
    def _repr_parts(self) -> Sequence[str]:
        """The parts of `repr` besides the model and the rows."""
        decoder = type(self.decoder).__name__
        return [*super()._repr_parts, f"{len(self.sets)} action sets", f"decoder {decoder}"]

    @lazy
    def _fitted_optimizer(self) -> Optimizer:
        return Optimizer.of(self.sets, self.decoders, self.classifier, self.search.coarse)

    def _optimizer_of(self, members: tuple[int, ...]) -> Optimizer:
        # The decoder that `generate` uses for the set, so that `apply` gives the same answers.
        given = self._fitted_optimizer
        known = given.index_of(members) is not None
        return given if known else self._larger_sets.optimizer_of(members)

    @lazy
    def _larger_sets(self) -> LargerSets:
        return LargerSets(self._fitted_optimizer, self.search.coarse)
