"""The answers of a call: proposals of a search, written into frames and scored, and completed.

Rows whose first answer fails as it is written are searched again, farther.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._threads import bar, in_threads, progress
from dear_plugin.data.encoder import patch
from dear_plugin.data.numbers import Array
from dear_plugin.evaluation.trained import Trained
from dear_plugin.problem.feasible import Case, Reason, Status
from dear_plugin.results.complete import Facts, completed
from dear_plugin.results.proposal import (
    ANOTHER,
    SAME,
    SEVERAL,
    Proposal,
    Question,
    Scored,
    identity_proposal,
    joined,
    merged,
    selected,
)
from dear_plugin.results.recourses import Recourses, table_of
from dear_plugin.search import Search, SearchProblem, SearchRun
from dear_plugin.search.criteria import accepted_beyond, margins
from dear_plugin.search.problem import tensors
from dear_plugin.search.sums import Solver
from dear_plugin.search.table import Table
from dear_plugin.search.values import Line

# How far past the decision boundary a proposal aims; each retry aims farther, see `Goal.aim`.
PAST = (1e-4, 1e-3, 1e-1)
# Fewer rows a thread make more calls of the model than they are worth.
FEWEST_ROWS = 8
# Rows of several ranks that are written at once.
ROWS_WRITTEN = 1024
# Rows per search; cells of their tried actions, 128 MiB to 256, about as many of each set.
ROWS_A_CHUNK, CELLS_A_CHUNK, TRIED = 1024, 1 << 25, 128
# A search of the rows of a case: the first k answers of each, one proposal per rank.
Run: TypeAlias = Callable[[int], Sequence[Proposal]]


class Answering:
    """The search for the answers of some rows, which further ranks continue.

    Args:
        method: a fitted one.
        question: n rows; those that are accepted are not searched.
        n_jobs: the number of threads that search the rows, as in joblib.
    """

    def __init__(self, method: Any, question: Question, n_jobs: int = 1) -> None:
        self._method, self._question, self._n_jobs = method, question, n_jobs
        # By how far past the boundary: the searches, and the first answers that were written.
        self._runs: list[Run] = []
        self._firsts: list[Scored] = []
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """What was searched is no part of a pickle."""
        return Answering, (self._method, self._question, self._n_jobs)

    def anew(self, question: Question) -> Answering:
        """A search of other rows."""
        return Answering(self._method, question, self._n_jobs)

    def recourses(self, k: int = 1) -> Recourses:
        """Up to k answers of every row."""
        _, rank, question, whole = self._row_by_row(self._searched(k), 0)
        return completed(question, whole, rank, k=k, search=self)

    def table(self, k: int) -> tuple[Tensor, pd.DataFrame]:
        """(m,) the positions of the rows of answers of ranks 1 to k - 1, and these as a table."""
        owner, rank, question, whole = self._row_by_row(self._searched(k)[1:], 1)
        actions = Facts.of(question, whole, rank).actions
        kinds = whole.proposal.kinds
        return owner, table_of(rank, kinds, actions, whole.counterfactuals)

    def _row_by_row(
        self, written: Sequence[Scored], start: int
    ) -> tuple[Tensor, npt.NDArray[np.int64], Question, Scored]:
        """Answers from rank `start` on, row by row: positions of rows, ranks, rows, answers."""
        question, x = self._question, self._question.case.x
        every, none = torch.arange(len(x)), torch.zeros(0, dtype=torch.int64)
        if not start and len(written) == 1:
            return every, np.zeros(len(x), dtype=np.int64), question, written[0]
        # Failures and rows without a change are no alternatives; rank 0 keeps every row.
        valid = [
            (each.success & each.acts(x)).nonzero()[:, 0] if rank else every
            for rank, each in enumerate(written, start)
        ]
        ranks = [torch.full_like(at, rank) for rank, at in enumerate(valid, start)]
        owner, rank = torch.cat([none, *valid]), torch.cat([none, *ranks])
        order = owner.argsort(stable=True)
        parts = [selected(each, at) for each, at in zip(written, valid, strict=True)]
        whole = _joined(parts) if parts else selected(_unchanged(question), none)
        owner = owner[order]
        return owner, rank[order].numpy(), selected(question, owner), selected(whole, order)

    def _searched(self, k: int) -> list[Scored]:
        """The answers of up to k ranks; after an error, rows are searched anew."""
        with self._lock:
            try:
                return self._written(k)
            except BaseException:
                self._runs.clear()
                raise

    def _written(self, k: int) -> list[Scored]:
        """The answers of up to k ranks, all rows of each."""
        question, written = self._question, [_unchanged(self._question)]
        none = written[0].proposal
        ranks = [none]
        open_rows = ~(question.accepted | none.failed)
        searched = open_rows.nonzero()[:, 0]
        no_more = replace(none, status=none.status.masked_fill(open_rows, int(Status.NO_MORE)))
        for i, past in enumerate(PAST):
            todo = open_rows.nonzero()[:, 0]
            if not len(todo):
                break
            if i == len(self._runs):
                self._runs.append(self._run(todo, past))
            found = self._runs[i](k)
            ranks = [
                merged(rank or no_more, new or selected(no_more, todo), todo)
                for rank, new in zip_longest(ranks, found)
            ]
            if i == len(self._firsts):
                # With one call of the model; rows that fail are written again with the others.
                first, *others = write(question, ranks[: 1 if i else None], todo, written[0])
                self._firsts.append(first)
                written = [first, *others]
            else:
                written = [self._firsts[i]]
            # Rows without a proposal are not tried again.
            open_rows = open_rows & ~(written[0].success | ranks[0].failed)
            written = written if not bool(open_rows.any()) else written[:1]
        return [*written, *write(question, ranks[len(written) :], searched)]

    def _run(self, todo: Tensor, past: float) -> Run:
        """The search of rows at positions, that aims so far past the boundary."""
        case = self._question.case
        # A copy: a method may change the rows of its case.
        part = replace(case, x=case.x.clone()) if len(todo) == len(case) else case.select(todo)
        part = replace(part, aim=part.goal.aim(past, surely=past == PAST[-1]))
        if self._n_jobs == 1 or not self._method.in_threads or len(part) < 2 * FEWEST_ROWS:
            run: Run = self._method._searching(part)
            return run
        return lambda k: _in_parts(self._method, part, k, self._n_jobs)


def write(
    question: Question, ranks: Sequence[Proposal], rows: Tensor, before: Scored | None = None
) -> list[Scored]:
    """Proposals written into the user's frame, of which the user's model scores rows.

    Args:
        question: n rows.
        ranks: proposals for them, which are written and scored at once.
        rows: (m,) the positions of the rows that they changed.
        before: the scores and successes of the others; None: those of the factuals.
    """
    n, out = len(question.case), []
    if not ranks:
        return []
    before = _unchanged(question) if before is None else before
    if len(ranks) == 1:
        return [_write(question, ranks[0], rows, before)]
    some = max(1, ROWS_WRITTEN // max(n, 1))
    for start in range(0, len(ranks), some):
        part = ranks[start : start + some]
        every, starts = torch.arange(n).repeat(len(part)), n * torch.arange(len(part))[:, None]
        whole = _write(
            *(selected(question, every), joined(part), (starts + rows).flatten()),
            selected(before, every),
        )
        out += [selected(whole, at) for at in starts + torch.arange(n)]
    return out


def _write(question: Question, proposal: Proposal, rows: Tensor, before: Scored) -> Scored:
    """One proposal as the frame holds it; arguments as of `write`."""
    case = question.case
    after, seen = patch(question.encoder, question.frame, case.x, rows=proposal.rows)
    every = len(rows) == len(case)
    scored = (after, seen) if every else (after.iloc[rows.numpy()], seen[rows])
    new, success = question.decided(*scored, rows)
    lawful = case.feasible.keeps_rules(seen[rows], rows)
    proposal = replace(proposal, rows=seen)
    if not bool(lawful.all()):
        reasons = np.array(proposal.reasons)
        broken = case.feasible.broken_text(seen, rows[~lawful])
        reasons[rows[~lawful].numpy()] = [Reason.BREAKS_RULES.format(names) for names in broken]
        proposal = replace(proposal, reasons=reasons)
    scores = before.scores.index_copy(0, rows, new) if len(rows) else before.scores
    done = before.success.index_copy(0, rows, success & lawful)
    return Scored(proposal, after, scores, done)


def _unchanged(question: Question) -> Scored:
    """Nothing changed."""
    frame = question.frame.copy()
    return Scored(question.unchanged, frame, question.scores, question.accepted)


def _joined(parts: Sequence[Scored]) -> Scored:
    """The rows of several proposals, one after another."""
    return Scored(
        joined([each.proposal for each in parts]),
        pd.concat([each.counterfactuals for each in parts]),
        torch.cat([each.scores for each in parts]),
        torch.cat([each.success for each in parts]),
    )


def _in_parts(method: Any, case: Case, k: int, n_jobs: int) -> Sequence[Proposal]:
    """The proposals for m rows, one per rank, of which threads search parts.

    They share the method, its model and its decoders: one that a thread fits the others need not.
    Processes would fit it again, each in every call.

    Args:
        method: fitted.
        case: the rows.
        k: the number of ranks.
        n_jobs: the number of threads; -1 for all cores, as in joblib.
    """
    import joblib

    every = torch.arange(len(case))
    parts = every.tensor_split(min(joblib.effective_n_jobs(n_jobs), len(case) // FEWEST_ROWS))
    cases = [case.select(at) for at in parts]
    found = in_threads(_searched, ((method, each, k) for each in cases), len(parts))
    return [
        joined([one or _no_more(each.x) for one, each in zip(rank, cases, strict=True)])
        for rank in zip_longest(*found)
    ]


def _searched(method: Any, case: Case, k: int) -> Sequence[Proposal]:
    """The proposals for the rows of a case, one per rank; without a bar each."""
    with progress(False):
        found: Sequence[Proposal] = method._searching(case)(k)
        return found


def _no_more(x: Tensor) -> Proposal:
    """The proposal of a rank that rows, (m, p), do not have."""
    none = identity_proposal(x, torch.zeros(len(x), dtype=torch.bool))
    return replace(none, status=torch.full((len(x),), int(Status.NO_MORE)))


def proposals(
    problem: SearchProblem, case: Case, start: Callable[[SearchProblem, Case], Run]
) -> Run:
    """What gives the first k answers of every row, one proposal per rank.

    A row without an answer has the nearest miss in the first rank, with the reason; rows with
    fewer than k answers fail in later ones. A search of few rows is continued; of many it begins
    anew, chunk by chunk.

    Args:
        problem: the rows, the sets and the model.
        case: the same rows.
        start: `searching` with its settings.
    """
    width = problem.sets.positions.shape[1] + 16
    size = max(1, min(ROWS_A_CHUNK, CELLS_A_CHUNK // (len(problem.sets) * TRIED * width)))
    if len(case) <= size:
        return start(problem, case)

    def ranks(k: int) -> list[Proposal]:
        chunks = bar(torch.arange(len(case)).split(size), "searching, chunks of rows")
        parts = [start(problem.select(rows), case.select(rows))(k) for rows in chunks]
        return [joined(rank) for rank in zip(*parts, strict=True)]

    return ranks


def searching(problem: SearchProblem, case: Case, *, search: Search, trained: Trained) -> Run:
    """What gives the first k answers of every row, one proposal per rank; it can be continued.

    Args:
        problem: the rows, the sets and the model.
        case: the same rows.
        search: the settings.
        trained: what answers are compared with.
    """
    limits = problem.feasible.limits
    if search.in_steps:
        limits = replace(limits, ranged=limits.ranged | accepted_beyond(case, trained))
    problem = replace(
        problem,
        feasible=replace(problem.feasible, limits=limits),
        in_steps=search.in_steps,
        indirect_weight=search.indirect_weight,
    )
    evidence, enough = trained if search.has_criteria else None, margins(case, search, trained)
    solver = _paper_solver() if search.solver == "paper" else Line
    # Without derivatives, small operations are faster.
    with torch.inference_mode(not solver.derives):
        run = SearchRun(problem, search, evidence, case.aim.numpy(), enough.numpy(), solver)

    def more(k: int) -> list[Proposal]:
        with torch.inference_mode(not solver.derives):
            ranks = run.ranked(k)
            found = [_proposal(problem, run, ranks, i) for i in range(k)]
        return [proposal.clone() for proposal in found]

    return more


def _paper_solver() -> type[Solver]:
    """The paper's solver, which is imported when it is used."""
    from dear_plugin.paper.descent import Descent

    return Descent


def decoded(problem: SearchProblem, rows: Tensor, sets: Tensor, values: Tensor) -> Proposal:
    """The proposal of m actions.

    Args:
        problem: the search problem of n rows.
        rows: (m,) the row of each action.
        sets: (m,) the set acted on.
        values: (m, w) the new values of its features.
    """
    x, direct = problem.x[rows], problem.sets.masks[sets]
    moved, limits = problem.decode(rows, sets, values[:, None]), problem.feasible.limits
    reached = problem.project(moved, rows, sets)
    expected = problem.classifier.encoder.keep_special(x, moved, limits.rounded(x, moved), direct)
    distance, factual = problem.classifier.encoder.distance, x[:, None]
    lost = distance(expected, factual) - distance(reached, factual)
    indirect = torch.where(direct, 0.0, lost[:, 0].clamp_min(0.0)).float()
    return Proposal(reached[:, 0], direct, indirect.sum(1), [""] * len(rows))


def _proposal(
    problem: SearchProblem, answers: SearchRun, ranks: Sequence[Array], rank: int
) -> Proposal:
    """The proposal of one rank for all rows of a problem, given the lines of all ranks."""
    m, table, at = len(problem), answers.table, ranks[rank]
    before = [table.pair[lines] for lines in ranks[:rank]]
    kind = np.where(table.size[table.set[at]] > 1, SEVERAL, ANOTHER)
    kind[np.isin(table.pair[at], np.concatenate([table.pair[:0], *before]))] = SAME
    excluded, rows = table.has(np.flatnonzero(table.margin == -np.inf)), table.row[at]
    none = torch.full((m,), int(Status.NO_MORE if rank else Status.EXCLUDED))
    least = torch.full((m,), torch.nan) if answers.own is None else answers.own.float()
    # The features that may act alone, the given groups, and what is left out.
    may_act, single = problem.may_act, problem.single
    counts = np.stack([(may_act & single).sum(1), (may_act & ~single).sum(1), excluded], 1)
    tried, owner, kinds = tensors(counts, rows, kind)
    proposal = identity_proposal(problem.x, torch.zeros(m, dtype=torch.bool))
    reasons = proposal.reasons if rank else _why_nothing(problem, excluded, rows)
    proposal = replace(proposal, reasons=reasons, status=none, tried=tried, least=least)
    found = replace(_explained(table, at), kind=kinds, tried=tried[owner], least=least[owner])
    return merged(proposal, found, owner)


def _why_nothing(problem: SearchProblem, excluded: Array, ranked: Array) -> list[str]:
    """(n,) the reasons of rows of which no action was tried; "" for others, `ranked` ones too."""
    reasons, nothing = [""] * len(problem), ~excluded
    nothing[ranked] = False
    for i in np.flatnonzero(nothing).tolist():
        reasons[i] = problem.feasible.limits.why_nothing(i, problem.sets.masks.any(0))
    return reasons


def _explained(table: Table, at: Array) -> Proposal:
    """The proposal of lines, (q,), with their status and what was measured."""
    row, sets, values = table.row[at], table.set[at], table.values[at]
    status = np.zeros(len(at), dtype=np.int64)
    status[(values == table.problem.own(row, sets)).all(1)] = Status.NO_ADVICE
    status[table.margin[at] < table.aim[row]] = Status.UNREACHED
    proposal = decoded(table.problem, *tensors(row, sets, values))
    new, measured = tensors(status, table.measured[at])
    return replace(proposal, status=new, measured=measured)
