"""Writing: proposals in; results with rows in user units, scored by the user's model, out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from torch import Tensor

from dear_plugin.evaluation.costs import split
from dear_plugin.methods.answers import MethodAnswers
from dear_plugin.problem.case import Case
from dear_plugin.problem.goals import with_strict_cutoffs
from dear_plugin.results.proposal import Proposal, WrittenProposal, identity_proposal
from dear_plugin.results.recourses import Recourses

if TYPE_CHECKING:
    from dear_plugin.methods.base import RecourseMethod

# How far past the decision boundary a proposal aims; each retry aims farther.
SLACKS = (1e-4, 1e-3, 1e-1)
TEXT_COLUMNS = ("reason", "acted_on", "kind")


def settle(
    method: RecourseMethod, case: Case, frame: pd.DataFrame, before: Tensor, done: Tensor
) -> WrittenProposal:
    """Propose, write and score rows; retry failed rows with a larger slack.

    Args:
        method: the recourse method.
        case: n rows.
        frame: the same in user units.
        before: (n, c) their scores.
        done: (n,) bool, rows that are accepted already.
    """
    proposal, scores, success = identity_proposal(case.x, done), before, done
    if bool(done.all()):
        return WrittenProposal(proposal, frame.copy(), before, done)
    for slack in SLACKS:
        todo = (~done).nonzero()[:, 0]
        # A copy: a method may change the rows of its case.
        part = replace(case, x=case.x.clone()) if len(todo) == len(case) else case.select(todo)
        if slack == SLACKS[-1]:
            part = replace(part, goal=with_strict_cutoffs(part.goal))
        proposal = proposal.merged(method._propose(replace(part, slack=slack)), todo)
        written = write(method, case, frame, proposal, todo)
        # Rows without a proposal are not tried again.
        done = done.index_copy(0, todo, written.success | proposal.failed[todo])
        scores = scores.index_copy(0, todo, written.scores)
        success = success.index_copy(0, todo, written.success)
        if bool(done.all()):
            break
    return WrittenProposal(written.proposal, written.frame, scores, success)


def result_of(
    method: RecourseMethod,
    case: Case,
    frame: pd.DataFrame,
    before: Tensor,
    written: WrittenProposal,
) -> Recourses:
    """The result of a written proposal, (n, c) scores before; arguments as in `settle`."""
    proposal, success = written.proposal, written.success
    direct, indirect = split(method.encoder, case.x, proposal.rows, proposal.direct)
    columns: dict[str, Any] = {
        "success": success.numpy(),
        "reason": proposal.texts(success),
        "acted_on": proposal.acted_on(case.x, method.schema.names),
        "direct_cost": direct.double().numpy(),
        "indirect_cost": indirect.double().numpy(),
        "cost": (direct + indirect).double().numpy(),
        "suppressed_cost": proposal.suppressed.double().numpy(),
        "score_before": case.goal.score(before).double().numpy(),
        "score_after": case.goal.score(written.scores).double().numpy(),
    }
    if len(proposal.kinds):
        columns["kind"] = list(proposal.kinds)
    actions = pd.DataFrame(columns, index=frame.index)
    # Of no rows, pandas 3 would infer another dtype.
    actions = actions.astype({name: str for name in TEXT_COLUMNS if name in columns})
    return Recourses(
        frame,
        written.frame,
        actions,
        method.encoder,
        case.x,
        proposal,
        MethodAnswers(method, case, frame, proposal, success),
        torch.arange(len(case)),
    )


def write(
    method: RecourseMethod, case: Case, frame: pd.DataFrame, proposal: Proposal, rows: Tensor
) -> WrittenProposal:
    """Write a proposal into the user's frame, and score some rows, (m,)."""
    after, seen = method.encoder.patch(frame, case.x, proposal.rows, case.feasible.user_bounds)
    # Unchanged rows are not scored again.
    scored = (after, seen) if len(rows) == len(case) else (after.iloc[rows.numpy()], seen[rows])
    scores = method.classifier.frame_scores(*scored)
    success = case.goal.select(rows).succeeds(
        scores, lambda: method.classifier.decisions(scored[0])
    )
    lawful = case.feasible.satisfies_rules(seen[rows], rows)
    proposal = replace(proposal, rows=seen)
    if not bool(lawful.all()):
        proposal = proposal.refused(rows[~lawful], case.feasible.broken_text(seen, rows[~lawful]))
    return WrittenProposal(proposal, after, scores, success & lawful)
