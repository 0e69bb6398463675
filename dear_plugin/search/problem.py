"""SearchProblem: rows, action sets, decoder and model; actions in, the rows they reach out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import cast

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.grid import in_steps
from dear_plugin.decoders import Decoders, Sample
from dear_plugin.evaluation.trained import Trained
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.admissible import Admissible
from dear_plugin.problem.case import Case
from dear_plugin.problem.limits import Limits
from dear_plugin.problem.seen_pairs import SeenPairs
from dear_plugin.problem.target import Goal

# Cells of rows in one evaluation: 4 MiB, large enough for the overhead of a call; 16 MiB of
# encoded columns; and for a black box, frames long enough for their overhead per column.
CELLS_A_BATCH = 1 << 19
CELLS_EXPANDED = 1 << 22
CELLS_A_FRAME = 1 << 21


@dataclass(frozen=True)
class SearchProblem:
    """n rows, their action sets, the decoder and the model of a search.

    Attributes:
        x: (n, p) factual rows.
        goal: the targets of the rows.
        feasible: what is admissible of the rows.
        sets: the s action sets.
        decoders: g(v, x_S) of every set.
        classifier: the model.
        actionable: (n, s) bool, the sets that each row may act on.
        in_steps: whether actions set multiples of steps, and no extreme values.
        indirect_weight: what a unit of indirect change counts for in costs.
        latents_by_set: the latents of the rows, (n, k), by set; see `latents`.
    """

    x: Tensor
    goal: Goal
    feasible: Admissible
    sets: ActionSets
    decoders: Decoders
    classifier: Classifier
    actionable: Tensor
    in_steps: bool = False
    indirect_weight: float = 1.0
    latents_by_set: dict[int, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, case: Case, sets: ActionSets, trained: Trained) -> SearchProblem:
        """The problem of the rows of a case on some sets, with the model and its decoders."""
        decoders, classifier = cast(Decoders, trained.decoders), trained.classifier
        seen = replace(case.feasible, seen_pairs=decoders.sample.shared(_seen_pairs))
        may_act = case.feasible.limits.may_act(sets)
        return cls(case.x, case.goal, seen, sets, decoders, classifier, may_act)

    def __len__(self) -> int:
        """The number of rows (n)."""
        return len(self.x)

    @property
    def has_order(self) -> bool:
        """Whether the schema states an order of causes."""
        return self.classifier.encoder.schema.causal_order.is_stated

    @lazy
    def acting(self) -> Limits:
        """What actions may set."""
        limits = self.feasible.limits
        return limits.without_extremes(self.x) if self.in_steps else limits

    @lazy
    def held(self) -> Tensor:
        """(s, p) bool, the features that do not move with each set."""
        order = self.classifier.encoder.schema.causal_order
        held = torch.zeros_like(self.sets.masks)
        for row, members in zip(held, self.sets.members, strict=True):
            row[list(order.held(members))] = True
        return held

    def select(self, rows: Tensor) -> SearchProblem:
        """The problem of the rows at positions (q,)."""
        return replace(
            self,
            x=self.x[rows],
            goal=self.goal.select(rows),
            feasible=self.feasible.select(rows),
            actionable=self.actionable[rows],
            latents_by_set={i: v[rows] for i, v in list(self.latents_by_set.items())},
        )

    def latents(self, i: int) -> Tensor:
        """(n, k) the latents of the rows for set i, encoded when first needed."""
        if i not in self.latents_by_set:
            # A decoder may differentiate while it encodes.
            with torch.inference_mode(False):
                self.latents_by_set[i] = self.decoders.of(self.sets.members[i]).encode(self.x)
        return self.latents_by_set[i]

    def decode(self, rows: Tensor, sets: Tensor, values: Tensor) -> Tensor:
        """(m, c, p) the decoders' rows of actions, which need not be admissible.

        Args:
            rows: (m,) the row.
            sets: (m,) the set acted on.
            values: (m, c, w) the new values of the set's features, or (m, c, 1) for singletons.
        """
        x = self.x.index_select(0, rows)
        moved = x.new_empty(*values.shape[:2], x.shape[1])
        for i, at in by_set(sets):
            members, v = self.sets.members[i], self.latents(i)
            some = values[at][..., : len(members)]
            moved[at] = self.decoders.of(members).decode(x[at], v[rows[at]], some)
        return moved

    def decode_actions(self, rows: Tensor, sets: Tensor, values: Tensor) -> Tensor:
        """(m, c, p) the rows of actions; arguments as of `decode`."""
        return self.project(self.decode(rows, sets, values), rows, sets)

    def resample(self, rows: Tensor, sets: Tensor, values: Tensor, draws: Tensor) -> Tensor:
        """(m, r, p) the projected rows of actions under some resamples.

        Args:
            rows: (m,) the row.
            sets: (m,) the set acted on.
            values: (m, w) the new values of the set's features.
            draws: (r,) the resamples, each in 1 ... R.
        """
        x = self.x.index_select(0, rows)
        moved = x.new_empty(len(x), len(draws), x.shape[1])
        for i, at in by_set(sets):
            members = self.sets.members[i]
            some = values[at][:, : len(members)]
            moved[at] = self.decoders.resample(members, x[at], some, draws)
        return self.project(moved, rows, sets)

    def project(self, moved: Tensor, rows: Tensor, sets: Tensor) -> Tensor:
        """(m, c, p) decoded rows, projected onto A_d; arguments as of `Admissible.project`."""
        held = self.held[sets] if self.has_order else None
        x = self.x.index_select(0, rows)
        return self.feasible.project(x, moved, rows, self.sets.masks[sets], held)

    def repair(self, reached: Tensor, rows: Tensor, sets: Tensor) -> Tensor:
        """(m, c, p) projected rows, of which what is not acted on keeps relations of columns."""
        return self.feasible.repair(self.x.index_select(0, rows), reached, self.still(sets), rows)

    def scores(self, rows: Tensor) -> Tensor:
        """(m, c) the model's scores of rows, (m, p), in parts that fit into memory."""
        most = CELLS_A_BATCH if self.classifier.is_module else CELLS_A_FRAME
        share = max(rows.shape[1] / most, self.classifier.encoder.d / CELLS_EXPANDED)
        parts = rows.split(max(1, int(1.0 / share)))
        return torch.cat([self.classifier.scores(part) for part in parts])

    def with_sets(self, sets: ActionSets) -> SearchProblem:
        """The same rows with other action sets."""
        may_act = self.feasible.limits.may_act(sets)
        return replace(self, sets=sets, actionable=may_act, latents_by_set={})

    def extended(self, sets: ActionSets) -> SearchProblem:
        """The same rows with more action sets; those of before keep their positions."""
        return replace(self.with_sets(sets), latents_by_set=self.latents_by_set)

    def own(self, rows: Tensor, sets: Tensor) -> Tensor:
        """(m, w) the factual values of the sets' features; rows and sets are (m,)."""
        return self.x[rows[:, None], self.sets.positions[sets]]

    def still(self, sets: Tensor) -> Tensor:
        """(m, p) bool, what is acted on, and what does not move with it."""
        acted = self.sets.masks[sets]
        return acted | self.held[sets] if self.has_order else acted

    def snapped(self, rows: Tensor, sets: Tensor, values: Tensor) -> Tensor:
        """(m, c, w) values that actions may set: each snapped, or the factual where none is near.

        With steps no value is less than one from the factual.

        Args:
            rows: (m,) the row.
            sets: (m,) the set acted on.
            values: (m, c, w) the wanted values.
        """
        positions, out = self.sets.positions[sets], values.clone()
        step = self.classifier.encoder.step * self.in_steps
        for i in range(values.shape[2]):
            feature = positions[:, i]
            own, size = self.x[rows, feature][:, None], step[feature][:, None]
            wanted = in_steps(values[..., i].contiguous(), size)
            near = self.acting.snap(wanted, feature, rows)
            admitted = self.acting.admits(near, feature, rows)
            # Rounding errors of a step are far below a thousandth of it.
            admitted &= (near - own).abs() >= 0.999 * size
            out[..., i] = torch.where(admitted, near, own)
            # The first feature, which shorter sets repeat, has one value.
            repeated = (feature == positions[:, 0])[:, None]
            out[..., i] = torch.where(repeated, out[..., 0], out[..., i])
        return out


def by_set(sets: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Each set among those of m actions, (m,), and (q,) the positions of its actions."""
    for i in sets.unique().tolist():
        yield i, (sets == i).nonzero()[:, 0]


def _seen_pairs(sample: Sample) -> SeenPairs | None:
    return SeenPairs.of(sample.rows, sample.encoder)
