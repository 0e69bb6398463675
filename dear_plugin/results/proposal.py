"""Proposal: what a method proposes for rows, before the user's model has scored it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, starmap
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.case import Case
from dear_plugin.problem.reasons import Reason

Texts = npt.NDArray[Any]

# The attributes of a proposal with a value for each row.
TENSORS = ("rows", "direct", "suppressed", "measured", "accepted")
TEXTS = ("reasons", "notes", "kinds")


@dataclass(frozen=True)
class Proposal:
    """What a method proposes for m rows, in row units.

    Attributes:
        rows: (m, p) the counterfactuals; the factual itself where there is no proposal.
        direct: (m, p) bool, the features acted on.
        suppressed: (m,) l1 indirect change that the decoder expects and the constraints exclude.
        reasons: (m,) why a row has no recourse; "" where it has one.
        notes: (m,) what is missing from the recourse of a row; "" for nothing.
        kinds: (m,) how an alternative differs from the first; () outside alternatives.
        searched: whether the actions come from a search; False where the user gave them.
        measured: (m, 2) the confidence and the plausibility of answers as the search evaluated
            them, NaN where it did not.
        accepted: (m,) bool, rows that are accepted already, and are proposed as they are.

    Example:
        >>> from dear_plugin import Proposal
        >>> rows = torch.tensor([[0.2, 0.5], [0.4, 0.1]])  # of a case of two rows
        >>> acted_on = torch.tensor([[True, False], [False, False]])
        >>> proposal = Proposal(rows, acted_on, torch.zeros(2), ["", "no row is accepted"])
        >>> proposal.failed
        tensor([False,  True])
    """

    rows: Tensor
    direct: Tensor
    suppressed: Tensor
    reasons: Sequence[str]
    notes: Sequence[str] = ()
    kinds: Sequence[str] = ()
    searched: bool = True
    measured: Tensor = field(default_factory=lambda: torch.empty(0, 2))
    accepted: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.bool))

    def __post_init__(self) -> None:
        """Fill in what is not given for each row."""
        m = len(self.rows)
        if not len(self.accepted):
            none = torch.zeros(m, dtype=torch.bool, device=self.rows.device)
            object.__setattr__(self, "accepted", none)
        if not self.notes:
            object.__setattr__(self, "notes", [""] * m)
        if not len(self.measured):
            nothing = torch.full((m, 2), torch.nan, device=self.rows.device)
            object.__setattr__(self, "measured", nothing)

    @lazy
    def failed(self) -> Tensor:
        """(m,) bool, rows with a reason for having no recourse."""
        return torch.from_numpy(np.fromiter(map(bool, self.reasons), bool, len(self.reasons)))

    @property
    def has_remark(self) -> Tensor:
        """(m,) bool, rows with a note, or with a reason."""
        rows = zip(self.notes, self.reasons, strict=True)
        return torch.tensor([bool(note or reason) for note, reason in rows]).bool()

    @classmethod
    def of_others(
        cls,
        case: Case,
        classifier: Classifier,
        moved: Tensor,
        *,
        reasons: Sequence[str],
        package: str,
    ) -> Proposal:
        """What an explainer of another package proposes, once constraints are applied.

        All of its changes are direct.

        Args:
            case: m rows.
            classifier: the model.
            moved: (m, p) the explainer's rows.
            reasons: (m,) why it has none; "" where it has one.
            package: the name of the other package, for the reason of a row that misses the target.
        """
        moved = case.x.where(case.feasible.not_actionable, moved)
        rows = case.feasible.project(case.x, moved[:, None], torch.arange(len(case)))[:, 0]
        accepted = case.goal.accepts(classifier.scores(rows)).tolist()
        missed = Reason.OTHER_MISSES.format(package)
        each = [r or ("" if a else missed) for r, a in zip(reasons, accepted, strict=True)]
        return cls(rows, rows != case.x, torch.zeros(len(case)), each)

    @classmethod
    def joined(cls, proposals: Sequence[Proposal]) -> Proposal:
        """The proposals of consecutive chunks as one."""
        columns: dict[str, Any] = {
            n: torch.cat([getattr(p, n) for p in proposals]) for n in TENSORS
        }
        columns |= {n: [t for p in proposals for t in getattr(p, n)] for n in TEXTS}
        return replace(proposals[0], **columns)

    def clone(self) -> Proposal:
        """The same with copies of its tensors: those made in inference mode have no gradient."""
        return replace(self, **{name: getattr(self, name).clone() for name in TENSORS})

    def select(self, idx: Tensor) -> Proposal:
        """The proposal of the rows at positions (q,)."""
        columns: dict[str, Any] = {name: getattr(self, name)[idx] for name in TENSORS}
        columns |= {name: _at(getattr(self, name), idx.tolist()) for name in TEXTS}
        return replace(self, **columns)

    def merged(self, part: Proposal, idx: Tensor) -> Proposal:
        """This proposal with some rows, (m,) ascending, replaced by those of another."""
        if len(idx) == len(self.rows):
            return part
        columns: dict[str, Any] = {
            n: getattr(self, n).index_copy(0, idx, getattr(part, n)) for n in TENSORS
        }
        columns |= {n: _put(getattr(self, n), idx.tolist(), getattr(part, n)) for n in TEXTS}
        return replace(part, **columns)

    def refused(self, idx: Tensor, broken: Sequence[str]) -> Proposal:
        """This proposal with a reason for rows, (m,), that break the rules named in `broken`."""
        reasons = list(self.reasons)
        for i, names in zip(idx.tolist(), broken, strict=True):
            reasons[i] = Reason.BREAKS_RULES.format(names)
        return replace(self, reasons=reasons)

    def keep_accepted(self, x: Tensor, accepted: Tensor) -> Proposal:
        """This proposal with accepted rows, (m,) bool, of x, (m, p), unchanged."""
        done, kept = accepted.tolist(), accepted[:, None]
        return replace(
            self,
            rows=torch.where(kept, x, self.rows),
            direct=self.direct & ~kept,
            suppressed=torch.where(accepted, 0.0, self.suppressed),
            reasons=["" if a else r for a, r in zip(done, self.reasons, strict=True)],
            accepted=accepted,
            kinds=["" if a else kind for a, kind in zip(done, self.kinds, strict=False)],
            measured=torch.where(kept, torch.nan, self.measured),
        )

    def acted_on(self, x: Tensor, names: Sequence[str]) -> Texts:
        """(m,) the names of the features acted on and changed of x, (m, p), joined by " + "."""
        # Few of these rows differ: each label is made once, with the row's bytes as its key.
        cells, p = (self.direct & (self.rows != x)).numpy().tobytes(), x.shape[1]
        rows = [cells[at : at + p] for at in range(0, len(cells), p)]
        labels = {row: " + ".join(compress(names, row)) for row in set(rows)}
        return _texts(labels[row] for row in rows)

    def texts(self, success: Tensor) -> Texts:
        """(m,) a reason for every failure, and the notes on successes.

        Args:
            success: (m,) bool, the decision of the user's model on the rows of the result.
        """
        rows = zip(self.reasons, self.notes, success.tolist(), self.accepted.tolist(), strict=True)
        refused = Reason.REFUSED_ROUNDED if self.searched else Reason.NOT_WANTED

        def text(reason: str, note: str, done: bool, accepted: bool) -> str:
            if accepted:
                return Reason.ACCEPTED
            if done and self.searched:
                return Reason.LESS_FAR if reason else note
            return reason or ("" if done else refused)

        return _texts(starmap(text, rows))


@dataclass(frozen=True)
class WrittenProposal:
    """A proposal written into the user's frame, and scored by the user's model.

    Attributes:
        proposal: (n, p) the rows as the frame can hold them.
        frame: the n rows of the result.
        scores: (m, c) the model's scores of the m rows that were scored, or of all n.
        success: (m,) bool, whether the model's decision on the same rows is the wanted one.
    """

    proposal: Proposal
    frame: pd.DataFrame
    scores: Tensor
    success: Tensor


def identity_proposal(x: Tensor, accepted: Tensor) -> Proposal:
    """The proposal that changes nothing of x, (m, p), accepted or not, (m,) bool."""
    none = torch.zeros(x.shape, dtype=torch.bool)
    return Proposal(x.clone(), none, torch.zeros(len(x)), [""] * len(x), accepted=accepted)


def _texts(texts: Iterable[str]) -> Texts:
    """Texts as an object array, from which pandas makes a column faster than from a list."""
    return np.array(list(map(str, texts)), dtype=object)


def _put(texts: Sequence[str], idx: list[int], part: Sequence[str]) -> list[str]:
    """The texts of all rows with those of some rows replaced."""
    new = dict(zip(idx, part, strict=False))
    return [new.get(i, text) for i, text in enumerate(texts)]


def _at(texts: Sequence[str], idx: list[int]) -> list[str]:
    """Some of the texts of all rows, or none where there are none."""
    return [texts[i] for i in idx] if texts else []
