"""Complete answers from proposals: the frames, lines and reasons of `Recourses`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.cells import cells_of
from dear_plugin.data.feature import Feature
from dear_plugin.data.schema import Schema
from dear_plugin.results.changes import KINDS as CHANGES
from dear_plugin.results.changes import Line, Link, is_amount, same
from dear_plugin.results.proposal import Question, Scored
from dear_plugin.results.reasons import complete, obstacles, reasons
from dear_plugin.results.recourses import Recourses
from dear_plugin.results.statements import determined, needed_ranges, statements
from dear_plugin.results.worth import Worth
from dear_plugin.search.settings import CRITERIA

Ranks: TypeAlias = npt.NDArray[np.int64]
# What an indirect change is, and is within a tier.
LINKS: tuple[Link, Link] = ("effect", "association")


class Facts(NamedTuple):
    """The facts of n answers without their changes; for attributes see `Recourses`."""

    worth: Worth
    in_the_way: Tensor
    reasons: npt.NDArray[np.object_]
    actions: pd.DataFrame

    @classmethod
    def of(cls, question: Question, written: Scored, rank: Ranks) -> Facts:
        """Evaluate answers; for arguments see `completed`. `actions` has no ranks and kinds."""
        worth, proposal = Worth.of(question, written), written.proposal
        in_the_way = obstacles(question, proposal, worth, torch.from_numpy(rank == 0))
        why = reasons(question, written)
        per_unit, x = question.case.feasible.limits.costs, question.case.x
        direct, indirect = proposal.costs(x, question.encoder, per_unit)
        columns: dict[str, Any] = {
            "success": written.success.numpy(),
            "reason": complete(question, written, worth, why, in_the_way),
            "acted_on": proposal.acted_on(x, question.encoder.schema.names),
            "direct_cost": direct.double().numpy(),
            "indirect_cost": indirect.double().numpy(),
            "cost": (direct + indirect).double().numpy(),
            "suppressed_cost": proposal.suppressed.double().numpy(),
            "score_before": question.score(question.scores),
            "score_after": question.score(written.scores),
        }
        for name in ("confidence", "reliance", "plausibility", "consistency", "agreement"):
            columns[name] = worth.measured[:, CRITERIA.index(name)].numpy().copy()
        columns["reliance"] = 1.0 - columns["reliance"]
        columns["credible"] = worth.credible.numpy()
        frame = pd.DataFrame(columns, index=question.frame.index)
        # pandas 3 infers another dtype from no rows.
        return cls(worth, in_the_way, why, frame.astype({"reason": str, "acted_on": str}))


def completed(
    question: Question, written: Scored, rank: Ranks, *, k: int, search: Any
) -> Recourses:
    """The complete answers.

    The model is called once for the measures of all answers. It is called a few times more for the
    changes that are needed and for the amounts of letters.

    Args:
        question: the call, with a row for each of m answers.
        written: the answers.
        rank: see `Recourses`, also for k and search.
        k: the requested number of answers of a row.
        search: the search, which further ranks continue.
    """
    proposal, x = written.proposal, question.case.x
    direct = proposal.direct
    facts = Facts.of(question, written, rank)
    if k > 1:
        actions = facts.actions
        actions.insert(0, "rank", rank)
        actions.insert(1, "kind", pd.Series(proposal.kinds, actions.index, dtype=str))
    alone = question.repaired(torch.where(direct, proposal.rows, x), direct)
    least = needed_ranges(question, proposal, facts.worth)
    lines = _lines(question, written, facts.worth, rank, (alone, least))
    lines, hindrances = statements(question, written, facts.worth, facts.in_the_way, lines)
    known = {**vars(written), **facts._asdict(), "lines": lines, "hindrances": hindrances}
    return Recourses(question=question, **known, rank=rank, alone=alone, k=k, search=search)


def _lines(
    question: Question, written: Scored, worth: Worth, rank: Ranks, rows: tuple[Tensor, Tensor]
) -> list[list[Line]]:
    """(m,) the lines of each answer: direct changes first, then by the size of the change.

    Args:
        question: m rows.
        written: the answers.
        worth: their measures.
        rank: (m,) their ranks.
        rows: (m, p) the rows after the action alone, and the values from which on indirect changes
            are needed, see `needed_ranges`.
    """
    encoder, proposal, (alone, least) = question.encoder, written.proposal, rows
    schema, x, new, direct = encoder.schema, question.case.x, proposal.rows, proposal.direct
    frames = [schema.labelled(each) for each in (question.frame, written.counterfactuals)]
    # The features whose indirect change is an association.
    mates = torch.from_numpy(schema.causal_order.mates(direct.numpy()))
    out: list[list[Line]] = [[] for _ in range(len(x))]
    codes, touched = _kinds(schema, (x, new, alone), direct), (new != x) | (alone != x)
    exact = determined(schema, alone != x, direct)
    four = torch.stack([worth.low, worth.high, worth.low_one, worth.high_one], 2)
    one_sd = question.trained.deviations.clamp_min(1e-9).tolist()
    for j in touched.any(0).nonzero()[:, 0].tolist():
        at, feature = touched[:, j].nonzero()[:, 0], schema.features[j]
        idx = at.numpy()
        columns = (frame[feature.name].iloc[idx] for frame in frames)
        before, after = (column.astype(object).tolist() for column in columns)
        cells = _cells(feature, (x[at, j], before), (new[at, j], after))
        table = zip(
            *(at.tolist(), frames[0].index[idx], rank[idx].tolist(), before, after),
            *(cells(alone[at, j]), cells(least[at, j]), four[at, j].tolist()),
            *(codes[at, j].tolist(), worth.moved[idx, j].tolist()),
            *(exact[at, j].tolist(), mates[at, j].tolist()),
            ((new - x)[at, j] / encoder.unit[j]).tolist(),
            worth.consistency[at, j].tolist(),
            strict=True,
        )
        for i, row, place, old, now, only, start, found, code, moved, *known in table:
            is_so, is_mate, step, clear = known
            kind, amount = CHANGES[code], is_amount(feature, old, now)
            # An indirect change may add to an implied one.
            sure = kind == "direct" or (kind == "forced" and same(only, now))
            ends = found if amount else [math.nan] * 4
            if amount and sure:
                ends = [float(now) - float(old)] * 4
            size, in_sd = (step, abs(step) / one_sd[j]) if amount else (1.0, 1.0)
            first, link = (start, LINKS[is_mate]) if kind == "indirect" else (now, "")
            head = row, place, feature.name, feature.called, kind, old, now, only, first
            sizes = size, in_sd, clear if kind == "direct" else math.nan
            rest = worth.count if sure else moved, worth.count, *sizes, feature.unit, is_so, link
            out[i].append(Line._make([*head, *ends, *rest, *[None] * 4, feature, ""]))
    return [sorted(own, key=lambda line: (line.kind != "direct", -abs(line.size))) for own in out]


def _kinds(schema: Schema, rows: tuple[Tensor, Tensor, Tensor], direct: Tensor) -> Tensor:
    """(n, p) the positions of the kinds of changes in `KINDS`.

    Args:
        schema: the features.
        rows: (n, p) the factuals, the counterfactuals, and the factuals after the action alone.
        direct: (n, p) bool, the features acted on.
    """
    x, new, alone = rows
    changed = new != x
    # Changes that the action alone makes, or would make.
    forced = (new == alone) | ~changed
    for each in schema.definitions:
        own, *others = schema.index(each.members)
        # A definition changes with any of its members.
        forced[:, own] |= changed[:, others].any(1)
    return torch.where(direct & changed, 0, torch.where(forced, 1, 2))


def _cells(
    feature: Feature, *known: tuple[Tensor, Sequence[Any]]
) -> Callable[[Tensor], list[Any]]:
    """A function from row values, (m,), to cells; known values have the cells of their frame."""

    def _made(values: Tensor) -> list[Any]:
        own: list[Any] = cells_of(feature, values.numpy()).tolist()
        for rows, frame in known[::-1]:
            pairs = zip(own, frame, (values == rows).tolist(), strict=True)
            own = [there if same else here for here, there, same in pairs]
        return own

    return _made
