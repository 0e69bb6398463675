"""Alternatives: several recourses a row, from different sets first, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin.methods.optimizer import Optimizer
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.case import Case
from dear_plugin.results.proposal import Proposal
from dear_plugin.search import Incumbents, Search, SearchProblem
from dear_plugin.search.candidates import snapped

KINDS = ("another set", "pair of features", "larger action")
LARGER = 2
# The largest number of alternatives per row; a larger k is clipped.
MOST = 100
# Float32 cells for the actions of a chunk of rows: 32 MiB.
CELLS = 1 << 23
# Actions of each row that are decoded and compared at a time.
AT_ONCE = 8


@dataclass(frozen=True)
class Alternatives:
    """c actions for each of n rows.

    Attributes:
        optimizer: what decodes them.
        problem: the n rows.
        sets: (n, c) the set acted on.
        values: (n, c, w) the new values.
        rank: (n, c) kind + cost / (1 + cost), so kinds in order and cheapest first; infinite for
            failures.
    """

    optimizer: Optimizer
    problem: SearchProblem
    sets: Tensor
    values: Tensor
    rank: Tensor

    @classmethod
    def of(
        cls,
        optimizer: Optimizer,
        problem: SearchProblem,
        actions: tuple[Tensor, Tensor],
        cost: Tensor,
        kind: int,
    ) -> Alternatives:
        """Actions, sets (n, c) and values (n, c, w), of one kind; failures cost infinity."""
        rank = torch.where(cost.isfinite(), kind + cost / (1.0 + cost), torch.inf)
        return cls(optimizer, problem, *actions, rank)

    def cheapest_first(self, rows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches of alternatives of some rows, (q,): columns (q, b) and ranks (q, b)."""
        rank, order = self.rank[rows].sort(dim=1, stable=True)
        for start in range(0, rank.shape[1], AT_ONCE):
            if not bool(rank[:, start].isfinite().any()):
                return
            yield order[:, start : start + AT_ONCE], rank[:, start : start + AT_ONCE]

    def proposal(self, rows: Tensor, columns: Tensor) -> Proposal:
        """The alternatives of some rows, (m,), at columns, (m,)."""
        sets, values = self.sets[rows, columns], self.values[rows, columns]
        return self.optimizer.decoded(self.problem, rows, sets, values, [""] * len(rows))


@dataclass(frozen=True)
class KeptAlternatives:
    """Up to k alternatives of n rows, pairwise different, in the order in which they were kept.

    Attributes:
        x: (n, p) the factual rows.
        rows: (n, k, p) the counterfactuals.
        direct: (n, k, p) bool, the features acted on.
        suppressed: (n, k) as in `Proposal`.
        rank: (n, k) as in `Alternatives`; infinite where there is none.
        count: (n,) the number of alternatives kept.
    """

    x: Tensor
    rows: Tensor
    direct: Tensor
    suppressed: Tensor
    rank: Tensor
    count: Tensor

    @classmethod
    def of(cls, x: Tensor, best: Proposal, k: int) -> KeptAlternatives:
        """The proposals of `generate`, which come first."""
        n, p = x.shape
        kept = cls(
            x,
            torch.zeros(n, k, p),
            torch.zeros(n, k, p, dtype=torch.bool),
            torch.zeros(n, k),
            torch.full((n, k), torch.inf),
            torch.zeros(n, dtype=torch.int64),
        )
        solved = (~best.failed).nonzero()[:, 0]
        kept._keep(solved, best.select(solved), torch.zeros(len(solved)))
        return kept

    @property
    def short(self) -> Tensor:
        """(q,) the rows with fewer than k alternatives."""
        return (self.count < self.rank.shape[1]).nonzero()[:, 0]

    def add(self, alternatives: Alternatives, rows: Tensor) -> None:
        """Keep the cheapest alternatives that differ from those kept, up to k of each row.

        Args:
            alternatives: of m rows.
            rows: (m,) the positions of these rows here.
        """
        for columns, rank in alternatives.cheapest_first(torch.arange(len(rows))):
            wanted = rank.isfinite() & (self.count[rows] < self.rank.shape[1])[:, None]
            row, column = wanted.nonzero(as_tuple=True)
            if not len(row):
                return
            proposal = alternatives.proposal(row, columns[row, column])
            for i in range(columns.shape[1]):
                at = (column == i).nonzero()[:, 0]
                self._add(rows[row[at]], proposal.select(at), rank[row[at], i])

    def _add(self, rows: Tensor, proposal: Proposal, rank: Tensor) -> None:
        """Keep one alternative of each of some rows, (q,), if it differs from those kept."""
        same_row = (self.rows[rows] == proposal.rows[:, None]).all(2)
        acted = self.direct[rows] & (self.rows[rows] != self.x[rows, None])
        acts = proposal.direct & (proposal.rows != self.x[rows])
        same_set = (acted == acts[:, None]).all(2)
        duplicate = same_row | same_set & (rank < LARGER)[:, None]
        kept = torch.arange(self.rank.shape[1]) < self.count[rows, None]
        new = ~(duplicate & kept).any(1) & (self.count[rows] < self.rank.shape[1])
        at = new.nonzero()[:, 0]
        self._keep(rows[at], proposal.select(at), rank[at])

    def _keep(self, rows: Tensor, proposal: Proposal, rank: Tensor) -> None:
        place = self.count[rows]
        self.rows[rows, place], self.direct[rows, place] = proposal.rows, proposal.direct
        self.suppressed[rows, place], self.rank[rows, place] = proposal.suppressed, rank
        self.count[rows] += 1

    def proposals(self) -> list[Proposal]:
        """One proposal per rank for all rows; rows with fewer alternatives fail in later ones."""
        return [self._proposal(i) for i in range(self.rank.shape[1])]

    def _proposal(self, i: int) -> Proposal:
        some = i < self.count
        return Proposal(
            torch.where(some[:, None], self.rows[:, i], self.x),
            self.direct[:, i],
            self.suppressed[:, i],
            ["" if ok else "no further recourse was found" for ok in some.tolist()],
            kinds=[KINDS[int(b)] if b < len(KINDS) else "" for b in self.rank[:, i].tolist()],
        )


def rows_at_once(sets: Sequence[ActionSets], d: int, k: int) -> int:
    """The number of rows whose actions on some sets are in memory at a time."""
    cells = max(len(each) * max(d, 2 * k * each.positions.shape[1]) for each in sets)
    return max(1, CELLS // cells)


def alternatives(
    case: Case,
    best: Proposal,
    k: int,
    search: Search,
    optimizers: Sequence[Callable[[], Optimizer | None]],
    size: int,
) -> list[Proposal]:
    """Up to k proposals for n rows, one per rank; rows that have fewer fail in the later ones.

    Args:
        case: the rows.
        best: the proposal of `generate`, which comes first.
        k: the largest number of each row.
        search: the search settings.
        optimizers: of the given sets, then of pairs for rows whose sets are exhausted, or None;
            each is computed only when it is needed.
        size: the rows of a chunk, at most `rows_at_once`.
    """
    chunks = torch.arange(len(case)).split(size)
    ranked = [_of_chunk(case.select(at), best.select(at), k, search, optimizers) for at in chunks]
    first, *others = (Proposal.joined(proposals) for proposals in zip(*ranked, strict=True))
    # A row without any success keeps its best attempt in the first rank.
    failed = first.failed.nonzero()[:, 0]
    kept = first.merged(best.select(failed), failed)
    first = replace(kept, kinds=first.kinds, notes=best.all_notes)
    # Ranks that no row has are dropped.
    return [first, *(other for other in others if not bool(other.failed.all()))]


def _of_chunk(
    case: Case,
    best: Proposal,
    k: int,
    search: Search,
    optimizers: Sequence[Callable[[], Optimizer | None]],
) -> list[Proposal]:
    """As `alternatives`, k proposals for the rows of one chunk."""
    kept = KeptAlternatives.of(case.x, best, k)
    tried: list[tuple[Tensor, Optimizer, SearchProblem, Incumbents]] = []
    for kind, compute in enumerate(optimizers):
        # Decided for each row, so that its answer does not depend on the other rows.
        rows = kept.short if kind else torch.arange(len(case))
        if not len(rows):
            break
        if (each := compute()) is None:
            break
        problem = each.problem(case.select(rows))
        found = each.find(problem, search, prune=False)
        tried.append((rows, each, problem, found))
        kept.add(_sets(each, problem, found, kind), rows)
    for rows, each, problem, found in tried:
        some = torch.isin(rows, kept.short).nonzero()[:, 0]
        if len(some):
            larger = _larger(each, problem.select(some), found.select(some), search, k)
            kept.add(larger, rows[some])
    return kept.proposals()


def _sets(
    optimizer: Optimizer, problem: SearchProblem, found: Incumbents, kind: int
) -> Alternatives:
    """The cheapest success of every set."""
    n, s = found.cost.shape
    sets = torch.arange(s).expand(n, s)
    return Alternatives.of(optimizer, problem, (sets, found.values), found.cost, kind)


def _larger(
    optimizer: Optimizer, problem: SearchProblem, found: Incumbents, search: Search, k: int
) -> Alternatives:
    """Larger actions on the same sets than needed, in k steps to the end of the range."""
    n, s, w = found.values.shape
    cost, wide = torch.full((n, s, k), torch.inf), torch.zeros(n, s, k, w)
    rows, sets = found.solved_pairs.nonzero(as_tuple=True)
    values = _further(optimizer, problem, rows, sets, found.values[rows, sets], k)
    evaluation = problem.evaluate(rows, sets, values, search.slack)
    # Steps below the resolution of a feature repeat a value.
    repeated = torch.zeros_like(evaluation.valid)
    repeated[:, 1:] = (values[:, 1:] == values[:, :-1]).all(2)
    wide[rows, sets] = values
    cost[rows, sets] = torch.where(evaluation.valid & ~repeated, evaluation.cost, torch.inf)
    which = torch.arange(s).repeat_interleave(k).expand(n, s * k)
    actions = which, wide.view(n, s * k, w)
    return Alternatives.of(optimizer, problem, actions, cost.view(n, s * k), LARGER)


def _further(
    optimizer: Optimizer, problem: SearchProblem, rows: Tensor, sets: Tensor, start: Tensor, k: int
) -> Tensor:
    """(m, k, w) steps from values, (m, w), to the end of each range, or all categories."""
    own = problem.x[rows[:, None], optimizer.sets.positions[sets]]
    far = torch.where(start > own, 1.0, torch.where(start < own, 0.0, own))
    steps = torch.arange(1, k + 1).view(1, k, 1) / k
    numbers = snapped(problem, rows, sets, start[:, None] + (far - start)[:, None] * steps)
    counts = optimizer.grids.counts[sets].view(-1, 1, 1)
    levels = torch.arange(k).view(1, k, 1).expand(numbers.shape).float()
    level = snapped(problem, rows, sets, torch.minimum(levels, counts - 1.0))
    return torch.where(counts > 0, level, numbers)
