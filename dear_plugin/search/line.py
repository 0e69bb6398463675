"""Line search: the smallest change of one feature that succeeds, for all rows and sets at once.

For one feature the problem is one-dimensional: scan its admissible values, then close in on the
smallest change that succeeds. It needs no gradient, finds non-monotone solutions, and cannot
stall on a plateau.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from torch import Tensor

from dear_plugin.search.bisect import Bracket, close_in
from dear_plugin.search.candidates import Grids, others, special_levels
from dear_plugin.search.incumbent import Found
from dear_plugin.search.problem import Question, Search
from dear_plugin.search.scan import Scan, few, foretold
from dear_plugin.search.surrogate import likeliest


def line_search(
    question: Question, grids: Grids, search: Search, found: Found, prune: bool = True
) -> None:
    """Note the cheapest success of every row and singleton.

    Args:
        question: who asks what.
        grids: the values to try first.
        search: how finely.
        found: where to note it.
        prune: ask only about what may still become a row's cheapest.
    """
    asked = question.may & grids.numeric
    coarse, between = _coarse_and_between(question, asked, grids, search.slack)
    look = Scan.search if prune else Scan.note
    # What the nearer half finds leaves little to ask of the other.
    missed = [look(half, question, found) for half in coarse.halves()]
    deeper = between(asked & _promising(found, search.deepen))
    missed.append(look(deeper, question, found))
    scans = [coarse, deeper]
    if not question.classifier.is_module:
        # Trees have steps anywhere: right beside the factual, and around values that many have.
        steps = [Scan.near(question, asked, search.slack)]
        steps += Scan.over(question, asked, [grids.common], search.slack)
        missed += [look(scan, question, found) for scan in steps]
        scans += steps
    # To be of another category costs one: many rows have something cheaper by now.
    willing = question.may & (found.known > 1.0)[:, None] if prune else question.may
    discrete = chain(others(question, willing, grids), special_levels(question))
    for rows, sets, values in discrete:
        found.note(rows, sets, values, question.ask(rows, sets, values, search.slack))
    close_in(question, Bracket.of(question, scans, found), search, found, prune)
    lost = asked & ~found.solved[:, None]
    if search.rescue and bool(lost.any()):
        # Before the row is given up, it is tried where there is most hope. What succeeds stands as
        # it is: closing in on it would take more evaluations than anybody else gets.
        (dense,) = Scan.over(question, lost, [grids.dense], search.slack)
        look(likeliest(question, dense, [m for m in missed if m], search.rescue), question, found)


def _promising(found: Found, count: int) -> Tensor:
    """(n, s) bool: every set of unsolved rows, the cheapest few of solved ones.

    Successes need not be monotone: a window nearer to the factual may lie between coarse values.
    """
    if not count:
        return ~found.solved[:, None].expand(found.cost.shape)
    last = found.cost.kthvalue(min(count, found.cost.shape[1]), dim=1, keepdim=True).values
    return (found.cost <= last) & (found.cost.isfinite() | ~found.solved[:, None])


def _coarse_and_between(
    question: Question, asked: Tensor, grids: Grids, slack: float
) -> tuple[Scan, Callable[[Tensor], Scan]]:
    """The scan of the coarse values, and what gives that of those between for pairs, (n, s).

    A module is asked about few values all at once and in advance: a call costs as much as they do.
    """
    coarse, between = grids.values
    if few(question, int(asked.sum()) * (coarse.shape[1] + between.shape[1])):
        both = Scan.over(question, asked, [coarse, between], slack, coarse.shape[1])
        first, second = foretold(question, both)
        return first, second.among
    (first,) = Scan.over(question, asked, [coarse], slack, coarse.shape[1])
    return first, lambda some: Scan.over(question, some, [between], slack)[0]
