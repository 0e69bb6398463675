"""The question of a search, and what comes of asking it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin._validation.settings import boolean, number, one_of, optional, validate, whole
from dear_plugin.decoders import Decoder
from dear_plugin.decoders.redraws import Redraws
from dear_plugin.evaluation.neighbours import NEIGHBOURS
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.feasible import FeasibleSet
from dear_plugin.problem.seen_pairs import SeenPairs
from dear_plugin.problem.target import Goal

# Tensors of 2 MiB, of which a call's own cost is little, or of 16 MiB where categories lie side by
# side; frames that are long enough to be worth their columns.
CELLS_A_BATCH = 1 << 19
CELLS_EXPANDED = 1 << 22
CELLS_A_FRAME = 1 << 21


@dataclass(frozen=True)
class Search:
    """How to search.

    Attributes:
        solver: "line" scans and bisects (any model, any decoder); "gradient" is Algorithm 1.
        coarse: values of a numeric feature tried first.
        deepen: for how many of a row's cheapest sets as many values again are tried in between;
            for all of them where none succeeds.
        refine: halvings between the last failure and the first success.
        rescue: how many more values of each number are tried, of up to 96, where nothing succeeds:
            those that look most likely to, going by what the model said; before groups are.
        slack: how far past the boundary to aim, in units of the margin.
        margin: how much farther past the boundary to aim, where that can be reached: a share of
            the spread of the model's scores, so that an answer outlives a retraining.
        min_confidence: the least share of redraws of the decoder under which an answer still
            succeeds; 0 does not look.
        min_plausibility: the least plausibility of an answer, or the factual's own where that is
            less; 0 does not look.
        max_reliance: the largest share of the indirect change that an answer may need; at 0 the
            action alone suffices.
        prefer_alone: how much more an answer may cost, as a share, that needs no indirect change.
        min_support: the least share of accepted neighbours of an answer; None does not look.
        k_neighbours: how many neighbours support looks at.
        groups: try pairs of features for rows that no set solves, then larger sets.
        max_features: how many features a set may have that is tried for such a row.

    Raises:
        SettingError: a value that a setting cannot have.
    """

    solver: Literal["line", "gradient"] = "line"
    coarse: int = 16
    deepen: int = 1
    refine: int = 5
    rescue: int = 6
    slack: float = 1e-4
    margin: float = 0.3
    min_confidence: float = 0.9
    min_plausibility: float = 0.05
    max_reliance: float = 1.0
    prefer_alone: float = 0.25
    min_support: float | None = None
    k_neighbours: int = NEIGHBOURS
    groups: bool = True
    max_features: int = 5

    def __post_init__(self) -> None:
        """Refuse what is no setting."""
        validate(
            self,
            solver=one_of("line", "gradient"),
            coarse=whole(1),
            deepen=whole(0),
            refine=whole(0),
            rescue=whole(0),
            slack=number(),
            margin=number(),
            min_confidence=number(1.0),
            min_plausibility=number(1.0),
            max_reliance=number(1.0),
            prefer_alone=number(),
            min_support=optional(number(1.0)),
            k_neighbours=whole(1),
            groups=boolean,
            max_features=whole(1),
        )

    @classmethod
    def cheapest(cls, **options: Any) -> Search:
        """The cheapest action that succeeds, whatever it is worth: the question of the paper.

        Args:
            options: any other settings.
        """
        nothing = {
            "margin": 0.0,
            "min_confidence": 0.0,
            "min_plausibility": 0.0,
            "prefer_alone": 0.0,
        }
        return cls(**{**nothing, **options})

    @property
    def has_criteria(self) -> bool:
        """Whether more is asked of an answer than that it succeeds."""
        asked = self.min_confidence, self.min_plausibility, 1.0 - self.max_reliance
        return any(asked) or bool(self.prefer_alone) or self.min_support is not None

    @property
    def largest_set(self) -> int:
        """How many features are acted on together for a row that no given set solves."""
        return self.max_features if self.groups else 1

    def with_slack(self, slack: float) -> Search:
        """The same search, aiming farther past the boundary."""
        return self if slack <= self.slack else replace(self, slack=slack)


@dataclass(frozen=True)
class SearchProblem:
    """What the search asks: n people, their sets, the decoder and the model.

    Attributes:
        x: (n, p) factual rows.
        v: (n, s, k) their latents.
        goal: the target of each.
        feasible: their admissible changes.
        sets: the s action sets.
        decoder: g(v, x_S).
        classifier: the model.
        actionable: (n, s) bool, who may act on what.
        seen_pairs: which pairs of values indirect changes may make; None does not look.
        redraws: the decoder as other rows might have made it; None where nobody asks.
    """

    x: Tensor
    v: Tensor
    goal: Goal
    feasible: FeasibleSet
    sets: ActionSets
    decoder: Decoder
    classifier: Classifier
    actionable: Tensor
    seen_pairs: SeenPairs | None = None
    redraws: Redraws | None = None

    def __len__(self) -> int:
        """How many people (n)."""
        return len(self.x)

    @lazy
    def numbers(self) -> Tensor:
        """(p,) bool, which features are numbers."""
        return torch.tensor([not f.categories for f in self.classifier.encoder.schema])

    def select(self, rows: Tensor) -> SearchProblem:
        """The question of some of the people."""
        return replace(
            self,
            x=self.x[rows],
            v=self.v[rows],
            goal=self.goal.select(rows),
            feasible=self.feasible.select(rows),
            actionable=self.actionable[rows],
        )

    def decode_actions(self, rows: Tensor, sets: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Where actions lead, before and after A_d, (m, c, p) each.

        Args:
            rows: (m,) who acts.
            sets: (m,) on which set.
            values: (m, c, w) the new values of the set's features, or (m, c, 1) for singletons.
        """
        x = self.x.index_select(0, rows)
        v = self.v.flatten(0, 1).index_select(0, rows * self.v.shape[1] + sets)
        wide = values.expand(-1, -1, self.sets.positions.shape[1])
        moved = self.decoder.decode(x, v, wide, sets)
        return self._admitted(x, moved, rows, sets)

    def admitted(self, rows: Tensor, sets: Tensor, moved: Tensor) -> Tensor:
        """The nearest admissible rows to those where a decoder takes actions, (m, c, p).

        Args:
            rows: (m,) who acts.
            sets: (m,) on which set.
            moved: (m, c, p) where the decoder would take them.
        """
        return self._admitted(self.x.index_select(0, rows), moved, rows, sets)[1]

    def _admitted(
        self, x: Tensor, moved: Tensor, rows: Tensor, sets: Tensor
    ) -> tuple[Tensor, Tensor]:
        feasible, acted = self.feasible, self.sets.masks[sets]
        if feasible.levels is not None:
            moved = feasible.levels.keep_unless_acted(x, moved, acted)
        reached = feasible.project(x, moved, rows)
        if self.seen_pairs is not None:
            reached = self.seen_pairs.repair(x, reached, acted)
        return moved, feasible.repair(x, reached, acted, rows)

    def decide(self, reached: Tensor, rows: Tensor, slack: float = 0.0) -> tuple[Tensor, Tensor]:
        """(m,) margins and (m,) bool, what the model says of rows, (m, p), each of a row (m,)."""
        scores = self.classifier.scores(reached, keep_off_grid=True)
        margin, valid = self.goal.evaluate(scores, rows, slack)
        if self.feasible.rules is not None:
            lawful = self.feasible.satisfies_rules(reached, rows)
            margin, valid = margin.masked_fill(~lawful, -torch.inf), valid & lawful
        return margin.float(), valid

    def evaluate(self, rows: Tensor, sets: Tensor, values: Tensor, slack: float) -> Evaluation:
        """Cost, margin and success of actions, (m, c) each; arguments as in `decode_actions`.

        Args:
            rows: (m,) who acts.
            sets: (m,) on which set.
            values: (m, c, w) the new values.
            slack: how far past the boundary.
        """
        most = CELLS_A_BATCH if self.classifier.is_module else CELLS_A_FRAME
        share = max(self.x.shape[1] / most, self.classifier.encoder.d / CELLS_EXPANDED)
        parts = round(len(rows) * values.shape[1] * share)
        if parts <= 1:
            return self._evaluate(rows, sets, values, slack)
        # Small answers kept between large chunks would break memory into pieces: one is filled.
        evaluation = Evaluation.none(values.shape[:2])
        asked = (each.tensor_split(parts) for each in (rows, sets, values))
        told = (
            each.tensor_split(parts)
            for each in (evaluation.cost, evaluation.margin, evaluation.valid)
        )
        for (r, s, a), (cost, margin, valid) in zip(
            zip(*asked, strict=True), zip(*told, strict=True), strict=True
        ):
            part = self._evaluate(r, s, a, slack)
            cost.copy_(part.cost), margin.copy_(part.margin), valid.copy_(part.valid)
        return evaluation

    def _evaluate(self, rows: Tensor, sets: Tensor, values: Tensor, slack: float) -> Evaluation:
        _, reached = self.decode_actions(rows, sets, values)
        m, c, p = reached.shape
        # Values first, people second, as decoders lay them out: flat without a copy.
        reached = reached.transpose(0, 1)
        moved = self.classifier.encoder.distance(reached, self.x.index_select(0, rows))
        cost = moved.reshape(c * m, p).sum(1)
        margin, valid = self.decide(
            reached.reshape(c * m, p), rows.expand(c, m).reshape(-1), slack
        )
        return Evaluation(*(each.view(c, m).T for each in (cost, margin, valid)))


@dataclass(frozen=True)
class Evaluation:
    """What came of actions, (m, c) each.

    Attributes:
        cost: l1 in scaled units, direct and indirect; of failures it may be anything.
        margin: the target's margin.
        valid: whether the decision is the wanted one.
    """

    cost: Tensor
    margin: Tensor
    valid: Tensor

    @classmethod
    def none(cls, shape: Sequence[int]) -> Evaluation:
        """Of nothing asked: failures that cost infinity."""
        nothing = torch.full(shape, torch.inf)
        return cls(nothing, -nothing, torch.zeros(shape, dtype=torch.bool))

    def part(self, rows: Tensor) -> Evaluation:
        """What came of the actions of some rows, (q,)."""
        return Evaluation(*(each[rows] for each in self._parts()))

    def only(self, wanted: Tensor) -> Evaluation:
        """This answer where it is wanted, (m, c) bool, elsewhere failures without a margin."""
        margin = self.margin.masked_fill(~wanted, -torch.inf)
        return Evaluation(self.cost, margin, self.valid & wanted)

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.cost, self.margin, self.valid
