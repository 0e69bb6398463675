"""Plan: what a method proposes, before anybody has scored it for the user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._lazy import lazy

ACCEPTED = "already accepted"
NOT_ENOUGH = "the decision is not the wanted one"

Texts = npt.NDArray[Any]


@dataclass(frozen=True)
class Proposal:
    """What a method proposes for m rows, in row units.

    Attributes:
        rows: (m, p) where they end up; the factual itself where there is no proposal.
        direct: (m, p) bool, the features acted on.
        suppressed: (m,) l1 movement that the decoder expected and the constraints forbade.
        reasons: (m,) why a row has no recourse; "" where it has one.
        notes: (m,) what else there is to say of a row that has one; () for nothing.
        kinds: (m,) how an alternative differs from the first; () outside alternatives.
        searched: whether the actions were searched for; False where the user gave them.
    """

    rows: Tensor
    direct: Tensor
    suppressed: Tensor
    reasons: Sequence[str]
    notes: Sequence[str] = ()
    kinds: Sequence[str] = ()
    searched: bool = True

    @lazy
    def failed(self) -> Tensor:
        """(m,) bool, rows that have a reason for not having a recourse."""
        return torch.from_numpy(np.fromiter(map(bool, self.reasons), bool, len(self.reasons)))

    @property
    def noted(self) -> list[str]:
        """(m,) a note for every row, "" for none."""
        return _all(self.notes, self.reasons)

    @property
    def lacking(self) -> Tensor:
        """(m,) bool, rows whose answer lacks something, as notes and reasons say it."""
        said = zip(self.noted, self.reasons, strict=True)
        return torch.tensor([bool(n) or r not in ("", ACCEPTED) for n, r in said]).bool()

    @lazy
    def wanting(self) -> Tensor:
        """(m,) bool, rows without a recourse, or with one that lacks something."""
        return self.failed | torch.tensor([bool(note) for note in self.noted], dtype=torch.bool)

    @classmethod
    def joined(cls, plans: Sequence[Proposal]) -> Proposal:
        """The plans of consecutive chunks as one."""
        return cls(
            torch.cat([p.rows for p in plans]),
            torch.cat([p.direct for p in plans]),
            torch.cat([p.suppressed for p in plans]),
            [r for p in plans for r in p.reasons],
            [n for p in plans for n in _all(p.notes, p.reasons)],
            [k for p in plans for k in p.kinds],
        )

    def select(self, rows: Tensor) -> Proposal:
        """Some of the rows."""
        at = rows.tolist()
        reasons, notes = [self.reasons[i] for i in at], [self.notes[i] for i in at if self.notes]
        return Proposal(self.rows[rows], self.direct[rows], self.suppressed[rows], reasons, notes)

    def merged(self, part: Proposal, rows: Tensor) -> Proposal:
        """This plan with some rows, (m,) ascending, replaced by those of another."""
        if len(rows) == len(self.rows):
            return part
        reasons, notes = list(self.reasons), _all(self.notes, self.reasons)
        renewed = zip(rows.tolist(), part.reasons, _all(part.notes, part.reasons), strict=True)
        for i, reason, note in renewed:
            reasons[i], notes[i] = reason, note
        return Proposal(
            self.rows.index_copy(0, rows, part.rows),
            self.direct.index_copy(0, rows, part.direct),
            self.suppressed.index_copy(0, rows, part.suppressed),
            reasons,
            notes,
        )

    def refused(self, rows: Tensor, broken: Sequence[str]) -> Proposal:
        """This plan where some rows, (m,), break rules of the schema, which are named."""
        reasons = list(self.reasons)
        for i, names in zip(rows.tolist(), broken, strict=True):
            reasons[i] = f"the row would break what holds between columns: {names}"
        return replace(self, reasons=reasons)

    def keep_accepted(self, x: Tensor, accepted: Tensor) -> Proposal:
        """This plan with accepted rows, (m,) bool, of x, (m, p), left alone."""
        done, spared = accepted.tolist(), accepted[:, None]
        return Proposal(
            torch.where(spared, x, self.rows),
            self.direct & ~spared,
            torch.where(accepted, 0.0, self.suppressed),
            [ACCEPTED if a else r for a, r in zip(done, self.reasons, strict=True)],
            self.notes,
            ["" if a else kind for a, kind in zip(done, self.kinds, strict=False)],
        )

    def acted_on(self, x: Tensor, names: Sequence[str]) -> Texts:
        """(m,) the names of the features acted on and changed of x, (m, p), joined by " + "."""
        # There are few different rows of such cells: each is the key of its own label.
        cells, p = (self.direct & (self.rows != x)).numpy().tobytes(), x.shape[1]
        rows = [cells[at : at + p] for at in range(0, len(cells), p)]
        labels = {row: " + ".join(compress(names, row)) for row in set(rows)}
        return _texts(labels[row] for row in rows)

    def said(self, success: Tensor) -> Texts:
        """(m,) a reason for every failure, also where a success was believed in; notes besides.

        Args:
            success: (m,) bool, what the user's model says of the rows that the user sees.
        """
        if not self.searched:
            pairs = zip(self.reasons, success.tolist(), strict=True)
            return _texts(r or ("" if done else NOT_ENOUGH) for r, done in pairs)
        told = zip(self.reasons, _all(self.notes, self.reasons), success.tolist(), strict=True)
        return _texts(
            note if done and not reason else _corrected(reason, done)
            for reason, note, done in told
        )


@dataclass(frozen=True)
class WrittenProposal:
    """A plan in the user's own frame, and what the user's own model says of it.

    Attributes:
        proposal: (n, p) the rows as the frame can hold them.
        frame: the n rows that the user sees.
        scores: (m, c) the model's scores of the m rows that were asked about, or of all n.
        success: (m,) bool, what the model decides of the same rows is what was wanted.
    """

    proposal: Proposal
    frame: pd.DataFrame
    scores: Tensor
    success: Tensor


def identity_proposal(x: Tensor, accepted: Tensor) -> Proposal:
    """The plan that changes nothing of x, (m, p), accepted or not, (m,) bool."""
    none = torch.zeros(x.shape, dtype=torch.bool)
    reasons = [ACCEPTED if done else "" for done in accepted.tolist()]
    return Proposal(x.clone(), none, torch.zeros(len(x)), reasons)


def _texts(texts: Iterable[str]) -> Texts:
    """Texts as frames hold them: from a list pandas takes three times as long."""
    return np.array(list(texts), dtype=object)


def _all(notes: Sequence[str], reasons: Sequence[str]) -> list[str]:
    """A note for every row."""
    return list(notes or [""] * len(reasons))


def _corrected(reason: str, done: bool) -> str:
    """What the search believed of one row, corrected by what the model says."""
    if not done:
        return reason or "the model refused the rounded row"
    if reason != ACCEPTED:
        return "accepted, though less far past the boundary than the search aimed"
    return reason
