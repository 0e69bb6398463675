"""The base class of methods that fit a decoder for each action set and search with them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pkgutil import resolve_name
from typing import Any, cast

import torch
from torch import Tensor

from dear_plugin._threads import bar
from dear_plugin._validation import require_instance
from dear_plugin.data.schema import Schema
from dear_plugin.decoders import Decoder, Decoders, Sample, make_decoder
from dear_plugin.evaluation.trained import Trained
from dear_plugin.methods.answering import Run
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.models.classifier import Output
from dear_plugin.models.copies import as_classifiers
from dear_plugin.problem.action_sets import ActionSets, ActOn
from dear_plugin.problem.feasible import Case, Status
from dear_plugin.results.proposal import (
    ANOTHER,
    SAME,
    SEVERAL,
    Proposal,
    identity_proposal,
    joined,
    merged,
)
from dear_plugin.search import Search, SearchProblem, SearchRun
from dear_plugin.search.criteria import accepted_beyond, margins
from dear_plugin.search.table import Table

TIMES = (
    "%d action sets are fitted on %d rows in %.1f s; a row alone will take about %.2g s and six"
    " calls of the model, a row of many less"
)
logger = logging.getLogger(__name__)
# The largest number of alternatives per row; a larger k is clipped.
MOST = 100


class DecoderMethod(RecourseMethod):
    """What fits a decoder for each action set, and searches; for arguments see `DEAR`."""

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
        copies: Sequence[Any] = (),
    ) -> None:
        super().__init__(model, schema, output=output, encode=encode)
        self.decoder = make_decoder(decoder)
        self.search = Search() if search is None else search
        require_instance("search", self.search, Search)
        self.sets = ActionSets.of(schema, act_on)
        self._copies = as_classifiers(copies, self.classifier, output=output, encode=encode)
        self._params |= {"act_on": act_on, "decoder": decoder, "search": search, "copies": copies}

    @property
    def decoders(self) -> Decoders:
        """The fitted decoders, one for each set; those of other sets are fitted when needed.

        Raises:
            NotFittedError: `fit` was not called.
        """
        return cast(Decoders, self.trained.decoders)

    def _learn(self, rows: Tensor) -> Decoders:
        # A copy: the decoder passed may be in use elsewhere, and an interrupt changes nothing.
        decoder, sample = self.decoder.clone_unfitted(), Sample(rows, self.encoder)
        decoders, start = Decoders(decoder, sample, self.sets.members), time.perf_counter()
        decoders.fit(self.sets.members)
        if logger.isEnabledFor(logging.INFO):
            seconds = time.perf_counter() - start, decoders.seconds(self.sets.members)
            logger.info(TIMES, len(self.sets), len(rows), *seconds)
        self.decoder = decoder
        passed = self._params["decoder"]
        if isinstance(passed, Decoder) and hasattr(decoder, "history"):
            vars(passed)["history"] = decoder.history
        return decoders

    def _propose(self, case: Case) -> Proposal:
        return self._alternatives(case, 1)[0]

    def _alternatives(self, case: Case, k: int) -> Sequence[Proposal]:
        return self._searching(case)(k)

    def _searching(self, case: Case) -> Run:
        problem = SearchProblem.of(case, self.sets, self.trained)
        start = partial(searching, search=self.search, trained=self.trained)
        run = proposals(problem, case, start)

        def ranks(k: int) -> Sequence[Proposal]:
            first, *others = run(min(k, MOST))
            # Ranks that no row has are dropped.
            return [first, *(other for other in others if not bool(other.failed.all()))]

        return ranks

    @property
    def settings(self) -> dict[str, Any]:
        """As of every method, with the action sets and the decoder."""
        return super().settings | {
            "sets": [list(names) for names in self.sets.names],
            "decoder": type(self.decoder).__name__,
            "decoder_settings": self.decoder.settings(),
        }

    @property
    def _acts(self) -> Tensor:
        return self.sets.masks.any(0)

    @property
    def _repr_parts(self) -> Sequence[str]:
        """The parts of `repr` besides the model and the rows."""
        decoder = type(self.decoder).__name__
        return [*super()._repr_parts, f"{len(self.sets)} action sets", f"decoder {decoder}"]


# Rows per search; cells of their tried actions, 128 MiB to 256, about as many of each set.
ROWS_A_CHUNK, CELLS_A_CHUNK, TRIED = 1024, 1 << 25, 128
# Solvers, which are imported at their first use.
SOLVERS = {"line": "dear_plugin.search.values:Line", "paper": "dear_plugin.paper.descent:Descent"}


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
    solver = resolve_name(SOLVERS[search.solver])
    # Without derivatives, small operations are faster.
    with torch.inference_mode(not solver.derives):
        run = SearchRun(problem, search, evidence, case.aim, enough, solver)

    def more(k: int) -> list[Proposal]:
        with torch.inference_mode(not solver.derives):
            ranks = run.ranked(k)
            found = [_proposal(problem, run, ranks, i) for i in range(k)]
        return [proposal.clone() for proposal in found]

    return more


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
    problem: SearchProblem, answers: SearchRun, ranks: Sequence[Tensor], rank: int
) -> Proposal:
    """The proposal of one rank for all rows of a problem, given the lines of all ranks."""
    m, table, at = len(problem), answers.table, ranks[rank]
    again = torch.isin(table.pair(at), table.pair(torch.cat([at[:0], *ranks[:rank]])))
    kind = torch.where(table.size[table.set[at]] > 1, SEVERAL, ANOTHER)
    excluded = table.has((table.margin == -torch.inf).nonzero()[:, 0])
    none = torch.full((m,), int(Status.NO_MORE if rank else Status.EXCLUDED))
    least = torch.full((m,), torch.nan) if answers.own is None else answers.own.float()
    proposal = replace(
        identity_proposal(problem.x, torch.zeros(m, dtype=torch.bool)),
        status=none,
        tried=_tried(problem, excluded),
        least=least,
    )
    rows = table.row[at]
    if not rank:
        proposal = replace(proposal, reasons=_why_nothing(problem, excluded, rows))
    kept = {
        "kind": kind.masked_fill(again, SAME),
        "tried": proposal.tried[rows],
        "least": least[rows],
    }
    return merged(proposal, replace(_explained(table, at), **kept), rows)


def _why_nothing(problem: SearchProblem, excluded: Tensor, ranked: Tensor) -> list[str]:
    """(n,) the reasons of rows of which no action was tried; "" for others, `ranked` ones too."""
    acted = problem.sets.masks.any(0)
    reasons, nothing = [""] * len(problem), ~excluded
    nothing[ranked] = False
    for i in nothing.nonzero()[:, 0].tolist():
        reasons[i] = problem.feasible.limits.why_nothing(i, acted)
    return reasons


def _explained(table: Table, at: Tensor) -> Proposal:
    """The proposal of lines, (q,), with their status and what was measured."""
    row, sets, values, margin = table.row[at], table.set[at], table.values[at], table.margin[at]
    proposal = decoded(table.problem, row, sets, values)
    status = torch.zeros(len(at), dtype=torch.int64)
    status[(values == table.problem.own(row, sets)).all(1)] = Status.NO_ADVICE
    status[margin < table.aim[row]] = Status.UNREACHED
    return replace(proposal, status=status, measured=table.measured[at])


def _tried(problem: SearchProblem, excluded: Tensor) -> Tensor:
    """(n, 3) the features that may act alone, the given groups, and what is left out."""
    may_act, single = problem.actionable, problem.sets.single
    counts = (may_act & single).sum(1), (may_act & ~single).sum(1), excluded.long()
    return torch.stack(counts, 1)
