"""Moves: fitted sets, their decoder and what to try first; they turn cases into plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import torch
from torch import Tensor

from dear_plugin.actions import ActionSets
from dear_plugin.case import Case
from dear_plugin.classifier import Classifier
from dear_plugin.decoders import Decoder
from dear_plugin.encoding import Encoder
from dear_plugin.plan import Plan
from dear_plugin.schema import Schema
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
from dear_plugin.search.grids import snapped
from dear_plugin.support import Support

# Pairs are many and needed by few: so many rows are enough to learn what follows from them.
RESERVE_ROWS = 10_000


@dataclass(frozen=True)
class Moves:
    """What can be done about a refusal by acting on some sets.

    Attributes:
        sets: the s sets.
        decoder: fitted on them.
        grids: what to try first.
        classifier: the model.
    """

    sets: ActionSets
    decoder: Decoder
    grids: Grids
    classifier: Classifier

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
        return cls(sets, decoder, Grids.of(rows, classifier.encoder, sets, coarse), classifier)

    @property
    def encoder(self) -> Encoder:
        """The gate."""
        return self.classifier.encoder

    def place(self, members: tuple[int, ...]) -> int | None:
        """Where a set, by the positions of its features, lies among `sets`; None if nowhere."""
        known = [frozenset(m) for m in self.sets.members]
        wanted = frozenset(members)
        return known.index(wanted) if wanted in known else None

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
        return _outliving(plan)

    def applied(self, case: Case, at: int, values: Tensor) -> Plan:
        """What follows from given actions on one set: nothing is searched.

        Args:
            case: m people.
            at: the place of the set among `sets`.
            values: (m, p) the new values of its features, admissible or people's own.
        """
        question = self.question(case)
        with torch.inference_mode():
            sets = torch.full((len(case),), at)
            chosen = self._as_searched(question, sets, values[:, self.sets.positions[at]])
            plan = self.decoded(question, sets, chosen, [""] * len(case))
            # Decimals finer than the steps of a search are kept as they were given.
            plan = replace(plan, rows=torch.where(plan.direct, values, plan.rows))
            return _outliving(plan)

    def _as_searched(self, question: Question, sets: Tensor, wanted: Tensor) -> Tensor:
        """Wanted values, (m, w), to the bit as the search has them when it tries the same."""
        rows, where = torch.arange(len(wanted)), self.sets.positions[sets]
        own = question.x.gather(1, where)
        held = wanted == own
        inside = [
            question.limits.admits(own[:, [i]], where[:, i], rows) for i in range(where.shape[1])
        ]
        # Who does nothing stays; who holds a number that no action may reach holds it there.
        kept = held & (held.all(1, keepdim=True) | ~torch.cat(inside, 1))
        return torch.where(kept, own, snapped(question, rows, sets, wanted[:, None])[:, 0])

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


def unknown_pairs(schema: Schema, sets: ActionSets, most: int) -> list[tuple[str, str]]:
    """The pairs of a few features acted on alone that are not among the sets.

    Args:
        schema: the features.
        sets: the sets.
        most: how many features are paired.
    """
    known = {frozenset(m) for m in sets.members}
    names = [schema.names[m[0]] for m in sets.members if len(m) == 1][:most]
    return [p for p in combinations(names, 2) if frozenset(schema.index(p)) not in known]


def some(rows: Tensor) -> Tensor:
    """At most `RESERVE_ROWS` of the rows, (n, p), always the same ones."""
    chance = torch.Generator().manual_seed(0)
    return rows[torch.randperm(len(rows), generator=chance)[:RESERVE_ROWS]]


def _outliving(plan: Plan) -> Plan:
    """A plan whose tensors can be differentiated, though made in inference mode."""
    own = {name: getattr(plan, name).clone() for name in ("rows", "direct", "suppressed")}
    return replace(plan, **own)
