"""Proposal: what a method proposes for rows, before the user's model has scored it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.case import Case
from dear_plugin.problem.reasons import Reason
from dear_plugin.results.rows import Rows

Texts: TypeAlias = Sequence[str] | npt.NDArray[Any]


@dataclass(frozen=True)
class Proposal(Rows):
    """What a method proposes for m rows, in row units.

    Attributes:
        rows: (m, p) the counterfactuals; the factual itself where there is no proposal.
        direct: (m, p) bool, the features acted on.
        suppressed: (m,) l1 indirect change that the decoder expects and the constraints exclude.
        reasons: (m,) why a row has no recourse; "" where it has one.
        notes: (m,) what is missing from the recourse of a row; "" for nothing.
        kinds: (m,) how an alternative differs from the first; () outside alternatives.
        searched: whether the actions come from a search; False where the user gave them.
        measured: (m, 4) what the search measured of answers, in the order of its criteria; NaN
            where it measured nothing.
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
    reasons: Texts
    notes: Texts = ()
    kinds: Texts = ()
    searched: bool = True
    measured: Tensor = field(default_factory=lambda: torch.empty(0, 4))
    accepted: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.bool))

    def __post_init__(self) -> None:
        """Fill in what is not given for each row; texts become arrays."""
        m, device = len(self.rows), self.rows.device
        given: dict[str, Any] = {
            "reasons": _texts(self.reasons),
            "notes": _texts(self.notes if len(self.notes) else [""] * m),
            "kinds": _texts(self.kinds) if len(self.kinds) else (),
        }
        if not len(self.accepted):
            given["accepted"] = torch.zeros(m, dtype=torch.bool, device=device)
        if not len(self.measured):
            given["measured"] = torch.full((m, 4), torch.nan, device=device)
        for name, column in given.items():
            object.__setattr__(self, name, column)

    @lazy
    def failed(self) -> Tensor:
        """(m,) bool, rows with a reason for having no recourse."""
        return torch.from_numpy(np.asarray(self.reasons) != "")

    @property
    def has_remark(self) -> Tensor:
        """(m,) bool, rows with a note, or with a reason."""
        return self.failed | torch.from_numpy(np.asarray(self.notes) != "")

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

    def clone(self) -> Proposal:
        """The same with copies of its tensors: those made in inference mode have no gradient."""
        return self.select(torch.arange(len(self.rows)))

    def refused(self, idx: Tensor, broken: Sequence[str]) -> Proposal:
        """This proposal with a reason for rows, (m,), that break the rules named in `broken`."""
        reasons = np.array(self.reasons)
        reasons[idx.numpy()] = [Reason.BREAKS_RULES.format(names) for names in broken]
        return replace(self, reasons=reasons)

    def keep_accepted(self, x: Tensor, accepted: Tensor) -> Proposal:
        """This proposal with accepted rows, (m,) bool, of x, (m, p), unchanged."""
        idx = accepted.nonzero()[:, 0]
        same = identity_proposal(x, accepted).select(idx)
        return self.merged(replace(same, kinds=[""] * len(idx)), idx)

    def acted_on(self, x: Tensor, names: Sequence[str]) -> npt.NDArray[Any]:
        """(m,) the names of the features acted on and changed of x, (m, p), joined by " + "."""
        # Few of these rows differ: each label is made once, with the row's bytes as its key.
        cells, p = (self.direct & (self.rows != x)).numpy().tobytes(), x.shape[1]
        rows = [cells[at : at + p] for at in range(0, len(cells), p)]
        labels = {row: " + ".join(compress(names, row)) for row in set(rows)}
        return _texts(labels[row] for row in rows)

    def texts(self, success: Tensor) -> npt.NDArray[Any]:
        """(m,) a reason for every failure, and the notes on successes.

        Args:
            success: (m,) bool, the decision of the user's model on the rows of the result.
        """
        failed, reasons = self.failed.numpy(), self.reasons
        note = np.where(failed, Reason.LESS_FAR, self.notes) if self.searched else reasons
        refused = Reason.REFUSED_ROUNDED if self.searched else Reason.NOT_WANTED
        text = np.where(success.numpy(), note, np.where(failed, reasons, refused))
        return np.where(self.accepted.numpy(), Reason.ACCEPTED, text)


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


def _texts(texts: Iterable[str]) -> npt.NDArray[Any]:
    """Texts as an object array, from which pandas makes a column faster than from a list."""
    made = texts if isinstance(texts, np.ndarray) else list(map(str, texts))
    return np.array(made, dtype=object)
