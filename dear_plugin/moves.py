"""Moves: fitted sets, their decoder and what to try first; they turn cases into plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin.actions import ActionSets
from dear_plugin.classifier import Classifier
from dear_plugin.decoders import Decoder
from dear_plugin.encoding import Encoder
from dear_plugin.method import Case
from dear_plugin.plan import Plan
from dear_plugin.possible import Possible
from dear_plugin.search import (
    Found,
    Grids,
    Question,
    Search,
    gradient_search,
    group_search,
    line_search,
    supported_search,
)
from dear_plugin.support import Support


@dataclass(frozen=True)
class Moves:
    """What can be done about a refusal by acting on some sets.

    Attributes:
        sets: the s sets.
        decoder: fitted on them.
        grids: what to try first.
        classifier: the model.
        possible: which pairs of values indirect changes may make; None where all were met.
    """

    sets: ActionSets
    decoder: Decoder
    grids: Grids
    classifier: Classifier
    possible: Possible | None = None

    @classmethod
    def learned(
        cls,
        rows: Tensor,
        sets: ActionSets,
        decoder: Decoder,
        classifier: Classifier,
        coarse: int,
    ) -> Moves:
        """Fit a decoder for some sets on training rows, (n, p)."""
        decoder.fit(rows, classifier.encoder, sets)
        encoder = classifier.encoder
        grids, possible = Grids.of(rows, encoder, sets, coarse), Possible.of(rows, encoder)
        return cls(sets, decoder, grids, classifier, possible)

    @property
    def encoder(self) -> Encoder:
        """The gate."""
        return self.classifier.encoder

    def question(self, case: Case) -> Question:
        """A case as the searches see it."""
        return Question(
            case.x,
            self.decoder.encode(case.x),
            case.goal,
            case.limits,
            self.sets,
            self.decoder,
            self.classifier,
            case.limits.may_act(self.sets),
            self.possible,
        )

    def find(self, question: Question, search: Search, prune: bool = True) -> Found:
        """The cheapest success of every row and set."""
        found = Found.none(question)
        if search.solver == "gradient":
            gradient_search(question, search, found)
            return found
        # Also where alternatives are looked for, which is not a part of a plan.
        with torch.inference_mode():
            line_search(question, self.grids, search, found, prune)
            group_search(question, self.grids, search, found)
        return found

    def plan(self, case: Case, search: Search, support: Support | None = None) -> Plan:
        """The cheapest success of every row; with a support to reach, the cheapest that has it."""
        question = self.question(case)
        # No derivative is asked for on the way, and small operations are quicker for it.
        with torch.inference_mode(search.solver == "line"):
            plan = self._plan(question, search, support)
        # Results outlive the call, and a tensor made in that mode could not be differentiated.
        own = {name: getattr(plan, name).clone() for name in ("rows", "direct", "suppressed")}
        return replace(plan, **own)

    def _plan(self, question: Question, search: Search, support: Support | None) -> Plan:
        found = self.find(question, search)
        if support is None:
            least, at = found.cost.min(1)
            sets = torch.where(least.isfinite(), at, -1)
            values = found.values[torch.arange(len(question)), at]
            return self._completed(question, found, sets, values)
        choice = supported_search(question, self.grids, search, found, support)
        plan = self._completed(question, found, choice.sets, choice.values)
        wanted = float(search.min_support or 0.0)
        short = (choice.support < wanted - 1e-6).tolist()
        notes = [
            f"no success has support {wanted:g}; the best supported one has {float(share):g}"
            if lacks
            else ""
            for lacks, share in zip(short, choice.support, strict=True)
        ]
        return Plan(plan.rows, plan.direct, plan.suppressed, plan.reasons, notes)

    def decoded(
        self, question: Question, sets: Tensor, values: Tensor, reasons: Sequence[str]
    ) -> Plan:
        """The plan of one action per row.

        Args:
            question: the n people.
            sets: (n,) the set acted on, -1 where nothing is done.
            values: (n, w) the new values of its features.
            reasons: (n,) why there is nothing better.
        """
        acting, x = sets >= 0, question.x
        which = sets.clamp_min(0)
        everyone = torch.arange(len(sets))
        moved, reached = question.reach(everyone, which, values[:, None])
        wanted = question.limits.rounded(x, moved, everyone)
        here = x[:, None]
        lost = self.encoder.distance(wanted, here) - self.encoder.distance(reached, here)
        direct = self.sets.masks[which] & acting[:, None]
        indirect = torch.where(direct, 0.0, lost[:, 0].clamp_min(0.0))
        return Plan(
            torch.where(acting[:, None], reached[:, 0], x),
            direct,
            torch.where(acting, indirect.sum(1), 0.0),
            reasons,
        )

    def _completed(self, question: Question, found: Found, sets: Tensor, values: Tensor) -> Plan:
        """Rows without a success get their nearest miss, and say why."""
        failed = sets < 0
        values = torch.where(failed[:, None], found.tried_values, values)
        labels = self.sets.labels
        reasons = [""] * len(sets)
        for i in failed.nonzero()[:, 0].tolist():
            which = int(found.tried_set[i])
            reasons[i] = (
                "nothing admissible to act on"
                if which < 0
                else "no admissible action reaches the target; acting on"
                f" {labels[which]} comes closest"
            )
        return self.decoded(question, torch.where(failed, found.tried_set, sets), values, reasons)
