"""DEAR: DisEntangling Algorithmic Recourse, assembled from the rooms above."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from dear_plugin import fidelity
from dear_plugin.actions import ActionSets, ActOn
from dear_plugin.classifier import Output
from dear_plugin.decoders import Decoder, named
from dear_plugin.diagnostics import Report, report
from dear_plugin.errors import NotFittedError
from dear_plugin.method import Case, RecourseMethod
from dear_plugin.recourses import Plan
from dear_plugin.schema import Schema
from dear_plugin.search import Found, Grids, Question, Search, line_search

ROWS_A_CHUNK = 1024


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
        decoder: "transport" (people keep their rank), "autoencoder" (the paper's), or a decoder.
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
        self.search = search or Search()
        self.sets = ActionSets.of(schema, act_on)
        self._grids: Grids | None = None

    def diagnose(self, frame: pd.DataFrame, seed: int = 0) -> Report:
        """How far the indirect changes can be believed, measured on rows not fitted on.

        Args:
            frame: held-out rows, some thousands are plenty.
            seed: of the random draws.

        Raises:
            NotFittedError: `fit` was not called.
        """
        rows = self.encoder.rows(frame)
        samples = [
            fidelity.draw(self.decoder, self.encoder, self.sets, rows, seed=seed, shown=shown)
            for shown in (False, True)
        ]
        entangled = self.decoder.entanglement(rows).nanmean(0)
        series = pd.Series(entangled.numpy(), index=self.sets.labels, name="entanglement")
        return report(self.sets.labels, samples[0], samples[1], series, seed)

    @property
    def _sets(self) -> ActionSets:
        return self.sets

    def _learn(self, rows: Tensor) -> None:
        self.decoder.fit(rows, self.encoder, self.sets)
        self._grids = Grids.of(rows, self.encoder, self.sets, self.search.coarse)

    def _propose(self, case: Case) -> Plan:
        chunks = torch.arange(len(case)).split(ROWS_A_CHUNK)
        plans = [self._plan(case.select(rows)) for rows in chunks]
        return plans[0] if len(plans) == 1 else _joined(plans)

    def _plan(self, case: Case) -> Plan:
        question = self._question(case)
        found = self._found(question, case.slack)
        least, at = found.cost.min(1)
        solved = least.isfinite()
        rows = torch.arange(len(case))
        values = torch.where(solved[:, None], found.values[rows, at], found.tried_values)
        sets = torch.where(solved, at, found.tried_set)
        return self._decoded(question, sets, values, _why(solved, found, question))

    def _decoded(
        self, question: Question, sets: Tensor, values: Tensor, reasons: Sequence[str]
    ) -> Plan:
        """The plan of one action per row: set (m,), -1 where there is none, and values (m, w)."""
        acting = sets >= 0
        rows = torch.arange(len(sets))
        moved, reached = question.reach(rows, sets.clamp_min(0), values[:, None])
        wanted = question.limits.rounded(question.x, moved)
        encoder = self.encoder
        lost = encoder.distance(wanted, question.x[:, None]) - encoder.distance(
            reached, question.x[:, None]
        )
        direct = self.sets.masks[sets.clamp_min(0)] & acting[:, None]
        lost = torch.where(direct[:, None], 0.0, lost).clamp_min(0.0).sum((1, 2))
        return Plan(
            torch.where(acting[:, None], reached[:, 0], question.x),
            direct,
            torch.where(acting, lost, 0.0),
            reasons,
        )

    def _alternatives(self, case: Case, k: int) -> Sequence[Plan]:
        question = self._question(case)
        found = self._found(question, case.slack, prune=False)
        cost, order = found.cost.sort(dim=1, stable=True)
        first = self._plan(case)
        plans = []
        rows = torch.arange(len(case))
        for rank in range(min(k, len(self.sets))):
            sets, solved = order[:, rank], cost[:, rank].isfinite()
            reasons = ["" if s else "no further set reaches the target" for s in solved.tolist()]
            chosen = torch.where(solved, sets, -1)
            plan = self._decoded(question, chosen, found.values[rows, sets], reasons)
            plans.append(_filled(plan, first, solved) if rank == 0 else plan)
        return plans

    def _shares(self, case: Case, plan: Plan, position: int) -> Mapping[str, tuple[float, float]]:
        row, direct = plan.rows[position], plan.direct[position]
        at = (self.sets.masks == direct).all(1).nonzero()[:, 0]
        if not len(at):
            return {}
        x = case.x[position]
        where = self.sets.positions[at[:1]]
        values = torch.stack([x[where], row[where]], 1)
        shares = self.decoder.leanings(values, at[:1])
        still = (row == x) & ~direct & ~torch.tensor([f.immutable for f in self.schema])
        names = self.schema.names
        return {names[j]: s for j, s in shares.items() if still[j] and abs(s[1] - s[0]) >= 0.01}

    def _question(self, case: Case) -> Question:
        return Question(
            case.x,
            self.decoder.encode(case.x),
            case.goal,
            case.limits,
            self.sets,
            self.decoder,
            self.classifier,
        )

    def _found(self, question: Question, slack: float, prune: bool = True) -> Found:
        if self._grids is None:
            raise NotFittedError("DEAR is not fitted; call fit(frame) first")
        return line_search(question, self._grids, self.search.aiming(slack), prune)


def _why(solved: Tensor, found: Found, question: Question) -> list[str]:
    """A reason for every row without a success."""
    reasons = [""] * len(solved)
    for i in (~solved).nonzero()[:, 0].tolist():
        which = int(found.tried_set[i])
        reasons[i] = (
            "nothing admissible to act on"
            if which < 0
            else f"no admissible change of one set reaches the target; acting on"
            f" {question.sets.labels[which]} comes closest"
        )
    return reasons


def _joined(plans: Sequence[Plan]) -> Plan:
    """The plans of consecutive chunks as one."""
    return Plan(
        torch.cat([p.rows for p in plans]),
        torch.cat([p.direct for p in plans]),
        torch.cat([p.suppressed for p in plans]),
        [r for p in plans for r in p.reasons],
    )


def _filled(plan: Plan, other: Plan, solved: Tensor) -> Plan:
    """A plan whose unsolved rows are taken from another."""
    return Plan(
        torch.where(solved[:, None], plan.rows, other.rows),
        torch.where(solved[:, None], plan.direct, other.direct),
        torch.where(solved, plan.suppressed, other.suppressed),
        [
            a if s else b
            for a, b, s in zip(plan.reasons, other.reasons, solved.tolist(), strict=True)
        ],
    )
