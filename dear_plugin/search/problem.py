"""SearchProblem: rows, action sets, decoder and model; actions in, their evaluation out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin._validation.settings import (
    boolean,
    instance,
    number,
    one_of,
    optional,
    validate,
    whole,
)
from dear_plugin.decoders import Decoders
from dear_plugin.evaluation.neighbours import NEIGHBOURS
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.feasible import FeasibleSet
from dear_plugin.problem.seen_pairs import SeenPairs
from dear_plugin.problem.target import Goal
from dear_plugin.search.evaluation import Evaluation
from dear_plugin.search.schedule import DescentSchedule

# Cells of rows in one evaluation: 2 MiB, large enough for the overhead of a call; 16 MiB of
# encoded columns; and for a black box, frames long enough for their overhead per column.
CELLS_A_BATCH = 1 << 19
CELLS_EXPANDED = 1 << 22
CELLS_A_FRAME = 1 << 21
# The resolution of float32 rows: a smaller change of a value is none.
SMALLEST = 1e-6


@dataclass(frozen=True)
class Search:
    """Settings of a search.

    Attributes:
        solver: "line" scans and bisects (any model, any decoder); "paper" is the paper's Algorithm
            1 to the letter, which needs a torch module and a differentiable decoder.
        coarse: the number of values of a numeric feature that are tried first.
        deepen: for how many of a row's cheapest sets as many values in between are tried; for all
            sets where none succeeds.
        refine: halvings between the last failure and the first success.
        rescue: how many more values of each number, of up to 96, are tried where nothing succeeds,
            before groups are.
        slack: the least margin of a success, past the boundary.
        margin: how much farther past the boundary to aim, where that can be reached, as a share of
            the spread of the model's scores; answers then survive a retraining of the model.
        min_confidence: the least share of redraws of the decoder under which an answer still
            succeeds; 0 requires none.
        min_plausibility: the least plausibility of an answer, or the factual's own where that is
            less; 0 requires none.
        max_reliance: the largest share of the indirect change that an answer may need; at 0 the
            direct change alone must suffice.
        prefer_alone: how much more an answer that needs no indirect change may cost, as a share.
        min_support: the least share of accepted neighbours of an answer; None requires none.
        k_neighbours: the number of neighbours of the support.
        groups: try pairs of features for rows that no set solves, then larger sets.
        max_features: the largest number of features of these sets.
        schedule: the settings of solver="paper".

    Raises:
        SettingError: an invalid value of a setting.

    Example:
        >>> from dear_plugin import Search
        >>> near_accepted = Search(min_support=0.6)
        >>> Search.cheapest().has_criteria
        False
    """

    solver: Literal["line", "paper"] = "line"
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
    schedule: DescentSchedule = field(default_factory=DescentSchedule)

    def __post_init__(self) -> None:
        """Validate the settings."""
        validate(
            self,
            solver=one_of("line", "paper"),
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
            schedule=instance(DescentSchedule),
        )

    @classmethod
    def cheapest(cls, **options: Any) -> Search:
        """The settings of the paper: the cheapest action that succeeds, without further criteria.

        Args:
            options: any other settings.
        """
        off = dict.fromkeys(("margin", "min_confidence", "min_plausibility", "prefer_alone"), 0.0)
        return cls(**{**off, **options})

    @property
    def has_criteria(self) -> bool:
        """Whether answers must meet criteria besides success."""
        criteria = self.min_confidence, self.min_plausibility, 1.0 - self.max_reliance
        return any(criteria) or bool(self.prefer_alone) or self.min_support is not None

    @property
    def largest_set(self) -> int:
        """The largest number of features acted on together for rows that no given set solves."""
        return self.max_features if self.groups else 1

    def with_slack(self, slack: float) -> Search:
        """The search with at least this slack."""
        return self if slack <= self.slack else replace(self, slack=slack)


@dataclass(frozen=True)
class SearchProblem:
    """n rows, their action sets, the decoder and the model of a search.

    Attributes:
        x: (n, p) factual rows.
        goal: the targets of the rows.
        feasible: the feasible sets of the rows.
        sets: the s action sets.
        decoders: g(v, x_S) of every set.
        classifier: the model.
        actionable: (n, s) bool, the sets that each row may act on.
        seen_pairs: which pairs of values indirect changes may create; None allows all.
        redrawn: whether confidence is evaluated, under redraws of the decoders.
        zero_actions: whether an action of size zero may succeed, where the decoder's
            reconstruction of the row alone is accepted.
        encoded: the latents of the rows, (n, k), by set; see `latents`.
    """

    x: Tensor
    goal: Goal
    feasible: FeasibleSet
    sets: ActionSets
    decoders: Decoders
    classifier: Classifier
    actionable: Tensor
    seen_pairs: SeenPairs | None = None
    redrawn: bool = False
    zero_actions: bool = False
    encoded: dict[int, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of rows (n)."""
        return len(self.x)

    @lazy
    def numeric(self) -> Tensor:
        """(p,) bool, which features are numbers."""
        return torch.tensor([not f.categories for f in self.classifier.encoder.schema])

    @lazy
    def held(self) -> Tensor:
        """(s, p) bool, the features that do not move with each set."""
        schema, held = self.classifier.encoder.schema, torch.zeros_like(self.sets.masks)
        for row, members in zip(held, self.sets.members, strict=True):
            row[list(schema.held(members))] = True
        return held

    def select(self, rows: Tensor) -> SearchProblem:
        """The problem of the rows at positions (q,)."""
        return replace(
            self,
            x=self.x[rows],
            goal=self.goal.select(rows),
            feasible=self.feasible.select(rows),
            actionable=self.actionable[rows],
            encoded={i: v[rows] for i, v in list(self.encoded.items())},
        )

    def latents(self, i: int) -> Tensor:
        """(n, k) the latents of the rows for set i, encoded when first needed."""
        if i not in self.encoded:
            # A decoder may differentiate while it encodes.
            with torch.inference_mode(False):
                self.encoded[i] = self.decoders.of(self.sets.members[i]).encode(self.x)
        return self.encoded[i]

    def decode_actions(self, rows: Tensor, sets: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """The rows of actions before and after projection onto A_d, (m, c, p) each.

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
        return self._project(x, moved, rows, sets)

    def redraw(self, rows: Tensor, sets: Tensor, values: Tensor, draws: Tensor) -> Tensor:
        """(m, r, p) the projected rows of actions under some redraws.

        Args:
            rows: (m,) the row.
            sets: (m,) the set acted on.
            values: (m, w) the new values of the set's features.
            draws: (r,) the redraws, each in 1 ... R.
        """
        x = self.x.index_select(0, rows)
        moved = x.new_empty(len(x), len(draws), x.shape[1])
        for i, at in by_set(sets):
            members = self.sets.members[i]
            some = values[at][:, : len(members)]
            moved[at] = self.decoders.redraw(members, x[at], some, draws)
        return self._project(x, moved, rows, sets)[1]

    def _project(
        self, x: Tensor, moved: Tensor, rows: Tensor, sets: Tensor
    ) -> tuple[Tensor, Tensor]:
        feasible, acted = self.feasible, self.sets.masks[sets]
        if feasible.levels is not None:
            moved = feasible.levels.keep_unless_acted(x, moved, acted)
        reached = moved
        if self.classifier.encoder.schema.tiers:
            reached = torch.where(self.held[sets][:, None], x[:, None], moved)
        reached = feasible.project(x, reached, rows)
        if self.seen_pairs is not None:
            reached = self.seen_pairs.repair(x, reached, acted)
        return moved, feasible.repair(x, reached, acted, rows)

    def decide(self, reached: Tensor, rows: Tensor, slack: float = 0.0) -> tuple[Tensor, Tensor]:
        """(m,) margins and (m,) bool, whether the goal accepts counterfactuals.

        Args:
            reached: (m, p) the counterfactuals.
            rows: (m,) the factual row of each.
            slack: the least margin.
        """
        scores = self.classifier.scores(reached, keep_off_grid=True)
        margin, valid = self.goal.evaluate(scores, rows, slack)
        if self.feasible.rules is not None:
            satisfied = self.feasible.satisfies_rules(reached, rows)
            margin, valid = margin.masked_fill(~satisfied, -torch.inf), valid & satisfied
        return margin.float(), valid

    def evaluate(self, rows: Tensor, sets: Tensor, values: Tensor, slack: float) -> Evaluation:
        """Cost, margin and success of actions, (m, c) each.

        Args:
            rows: (m,) the row.
            sets: (m,) the set acted on.
            values: (m, c, w) the new values.
            slack: the least margin of a success.
        """
        most = CELLS_A_BATCH if self.classifier.is_module else CELLS_A_FRAME
        share = max(self.x.shape[1] / most, self.classifier.encoder.d / CELLS_EXPANDED)
        parts = round(len(rows) * values.shape[1] * share)
        if parts <= 1:
            return self._evaluate_actions(rows, sets, values, slack)
        # Allocated once: small results between large chunks would fragment memory.
        out = Evaluation.none(values.shape[:2])
        tensors = rows, sets, values, out.cost, out.margin, out.valid
        chunks = zip(*(each.tensor_split(parts) for each in tensors), strict=True)
        for r, s, chunk, cost, margin, valid in chunks:
            part = self._evaluate_actions(r, s, chunk, slack)
            cost.copy_(part.cost), margin.copy_(part.margin), valid.copy_(part.valid)
        return out

    def _evaluate_actions(
        self, rows: Tensor, sets: Tensor, values: Tensor, slack: float
    ) -> Evaluation:
        """As `evaluate`; actions of size zero fail unless `zero_actions`."""
        evaluation = self._evaluate(rows, sets, values, slack)
        if self.zero_actions or self.decoders.decoder.keeps_factual:
            return evaluation
        return evaluation.masked(self.acts(rows, sets, values))

    def acts(self, rows: Tensor, sets: Tensor, values: Tensor) -> Tensor:
        """(m, c) bool: whether actions, as in `evaluate`, change a feature."""
        own = self.x[rows[:, None], self.sets.positions[sets]]
        return ((values - own[:, None]).abs() > SMALLEST).any(2)

    def _evaluate(self, rows: Tensor, sets: Tensor, values: Tensor, slack: float) -> Evaluation:
        _, reached = self.decode_actions(rows, sets, values)
        m, c, p = reached.shape
        # Candidates first, rows second, as decoders lay them out: `reshape` makes no copy.
        reached = reached.transpose(0, 1)
        distance = self.classifier.encoder.distance(reached, self.x.index_select(0, rows))
        cost = distance.reshape(c * m, p).sum(1)
        margin, valid = self.decide(
            reached.reshape(c * m, p), rows.expand(c, m).reshape(-1), slack
        )
        return Evaluation(*(each.view(c, m).T for each in (cost, margin, valid)))


def by_set(sets: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Each set among those of m actions, (m,), and (q,) the positions of its actions."""
    for i in sets.unique().tolist():
        yield i, (sets == i).nonzero()[:, 0]
