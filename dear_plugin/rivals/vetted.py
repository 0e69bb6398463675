"""`Vetted`: any method, with answers that meet the criteria of a search."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self, final

import torch
from torch import Tensor

from dear_plugin._threads import lazy
from dear_plugin._validation import instance
from dear_plugin.evaluation.trained import Trained
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.problem.feasible import Case
from dear_plugin.results.proposal import Proposal, merged, selected
from dear_plugin.search import Search
from dear_plugin.search.criteria import RowCriteria

# How much farther past the boundary the target is moved if an answer does not meet the criteria,
# as shares of the spread of the model's scores.
FARTHER = (0.1, 0.2, 0.4, 0.8, 1.6)


@final
class Vetted(RecourseMethod):
    """A method whose answers meet the criteria of a search, if it finds such answers.

    The criteria are `margin`, `min_plausibility` and `min_support` of a `Search`. A method with
    several candidates returns the best one that meets the criteria. Otherwise, and for a wrapped
    host, the target is moved farther past the boundary step by step until an answer meets the
    criteria. If none does, the row gets the method's own answer: `credible` is then False, and
    `reason` states the unmet criteria.

    A threshold needs no search: `Target.of_class(1, threshold=0.7)` holds for every method.

    Args:
        method: any method. `fit` fits it again only on other training rows; the passed method
            does not change.
        search: the criteria; None for those of `DEAR`.

    Raises:
        SettingError: `method` is not a method, or `search` is not a search.

    Examples:
        >>> import pandas as pd
        >>> from dear_plugin import Schema, Search, Vetted
        >>> from dear_plugin.rivals import NearestAccepted
        >>> frame = pd.DataFrame({"income": range(100), "debt": range(100, 0, -1)}) / 2
        >>> nearest = NearestAccepted(lambda f: (f["income"] > 29.75) * 1.0, Schema.infer(frame))
        >>> by_itself = nearest.fit(frame).generate(frame.head(1))
        >>> vetted = Vetted(nearest, Search.cheapest(min_support=1.0))
        >>> supported = vetted.fit(frame).generate(frame.head(1))
        >>> round(by_itself.support[0], 2), supported.support[0]
        (0.6, 1.0)
        >>> (
        ...     int(by_itself.counterfactuals["income"][0]),
        ...     int(supported.counterfactuals["income"][0]),
        ... )
        (30, 31)
    """

    def __init__(self, method: RecourseMethod, search: Search | None = None) -> None:
        instance(RecourseMethod)("method", method)
        known = method._params
        super().__init__(
            known["model"], method.schema, output=known["output"], encode=known["encode"]
        )
        self.method, self.in_threads = method, method.in_threads
        self.search = Search() if search is None else search
        instance(Search)("search", self.search)
        self.encoder, self.classifier = method.encoder, method.classifier
        self._trained = method._trained
        self._params |= {"search": search}

    def __sklearn_clone__(self) -> Self:
        """The same criteria for the same method, not fitted."""
        return type(self)(self.method.__sklearn_clone__(), self._params["search"])

    def _learn(self, rows: Tensor) -> None:
        """The method is fitted."""

    def _trained_on(self, rows: Tensor) -> Trained:
        known = self.method._trained
        if known is None or not torch.equal(known.rows, rows):
            method = copy.copy(self.method)
            method._trained = method._trained_on(rows)
            self.method = method
        # Several vetted methods share what is computed from the training rows.
        return self.method.trained

    def _propose(self, case: Case) -> Proposal:
        return _Asking(self, case).proposal()

    @property
    def _acts(self) -> Tensor:
        return self.method._acts

    @property
    def _repr_parts(self) -> Sequence[str]:
        """The parts of `repr` besides the model and the rows."""
        return [type(self.method).__name__, *super()._repr_parts]


@dataclass
class _Asking:
    """The proposals of a method for m rows, until they meet the criteria.

    Attributes:
        vetted: the method and the criteria.
        case: the m rows.
    """

    vetted: Vetted
    case: Case

    def proposal(self) -> Proposal:
        """The proposal that meets the criteria, else the method's own."""
        every, margin = torch.arange(len(self.case)), self.vetted.search.margin
        best = self._ask(every, margin, self._requirement)
        missed = self._missed(best, every, margin)
        for share, requirement in self._weaker(margin):
            rows = missed.nonzero()[:, 0]
            if len(rows):
                part = self._ask(rows, share, requirement)
                best, missed[rows] = merged(best, part, rows), self._missed(part, rows, share)
        met = self._met(best, every)
        if self.vetted.method.follows_margin:
            for rows, part in self._farther(best, met):
                best, met[rows] = merged(best, part, rows), True
        # What an answer lacks is evaluated when it is needed.
        return best

    @lazy
    def _requirement(self) -> RowCriteria | None:
        return RowCriteria.of(self.case, self.vetted.search, self.vetted.trained)

    def _weaker(self, margin: float) -> Iterator[tuple[float, RowCriteria | None]]:
        """Margins and requirements for rows without an answer to a stronger one."""
        if self._requirement is not None:
            yield margin, None
        if margin:
            yield 0.0, self._requirement
            if self._requirement is not None:
                yield 0.0, None

    def _farther(self, best: Proposal, met: Tensor) -> Iterator[tuple[Tensor, Proposal]]:
        """Rows, (q,), and their answers that meet the criteria, from farther targets.

        Args:
            best: the proposals so far.
            met: (m,) bool, which of them meet the criteria; rows without the margin are left out.
        """
        latest = best.rows.clone()
        open_rows = self._reaches(best.rows, torch.arange(len(met)), self.vetted.search.margin)
        open_rows &= ~met & ~best.failed
        for step in FARTHER:
            share, rows = self.vetted.search.margin + step, open_rows.nonzero()[:, 0]
            # An answer that lies this far already would be given again.
            rows = rows[~self._reaches(latest[rows], rows, share)]
            if not len(rows):
                continue
            part = self._ask(rows, share, self._requirement)
            found = self._met(part, rows)
            latest[rows[~part.failed]] = part.rows[~part.failed]
            open_rows[rows[found]] = False
            if bool(found.any()):
                yield rows[found], selected(part, found.nonzero()[:, 0])

    def _ask(self, rows: Tensor, share: float, requirement: RowCriteria | None) -> Proposal:
        """The method's proposal for rows, (q,), with a margin and a requirement."""
        case = replace(self.case, aim=self.case.aim + self._past(share), requirement=requirement)
        return self.vetted.method._propose(case.select(rows))

    def _met(self, proposal: Proposal, rows: Tensor) -> Tensor:
        """(q,) bool, whether proposals for rows, (q,), meet all criteria."""
        met = ~self._missed(proposal, rows, self.vetted.search.margin)
        if self._requirement is not None:
            at = met.nonzero()[:, 0]
            met[at] = self._requirement.met(proposal.rows[at], rows[at])
        return met

    def _missed(self, proposal: Proposal, rows: Tensor, share: float) -> Tensor:
        """(q,) bool, whether proposals for rows, (q,), fail or lack a margin."""
        return proposal.failed | ~self._reaches(proposal.rows, rows, share)

    def _reaches(self, reached: Tensor, rows: Tensor, share: float) -> Tensor:
        """(q,) bool, whether counterfactuals of rows, (q,), have a margin."""
        scores = self.vetted.classifier.scores(reached)
        return self.case.goal.margin(scores, rows) >= self._past(share)[rows]

    def _past(self, share: float) -> Tensor:
        """(m,) a margin, as a share of the unit of each row's margins."""
        unit = self._unit if share else torch.zeros(len(self.case))
        return (share * unit).float()

    @lazy
    def _unit(self) -> Tensor:
        return self.case.goal.unit(self.vetted.trained.scored[1])
