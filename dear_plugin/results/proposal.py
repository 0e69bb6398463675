"""`Question`, the rows and limits of a call, and `Proposal`, what a method proposes for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import compress
from numbers import Integral
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._threads import lazy
from dear_plugin._validation import completed
from dear_plugin.data.encoder import Encoder, patch
from dear_plugin.data.numbers import Array
from dear_plugin.errors import InputError, argument, shown
from dear_plugin.evaluation.trained import Trained
from dear_plugin.problem.feasible import Case, OfRows, Status
from dear_plugin.problem.feasible import selected as selected
from dear_plugin.search.settings import CRITERIA, Search

# How an alternative differs from the first answer: codes, and their names.
ANOTHER, SEVERAL, SAME = 1, 2, 3
KINDS = ("", "another set", "pair of features", "same features")

Texts: TypeAlias = Sequence[str] | npt.NDArray[Any]
R = TypeVar("R")


def answers_per_row(k: Any) -> int:
    """The requested number of answers of a row, k, as an int.

    Raises:
        InputError: k is not a whole number from 1.
    """
    if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
        raise InputError(f"{argument('k')} must be a whole number from 1, got {shown(k)}")
    return int(k)


def joined(records: Sequence[R]) -> R:
    """The records of consecutive chunks as one; values for every row are the first record's."""
    first, *others = records
    return _changed(first, lambda *columns: np.concatenate(columns), *others)


def merged(record: R, part: R, idx: Tensor) -> R:
    """A record with the rows at positions (q,) replaced by those of another."""
    return _changed(record, lambda column, new: _put(column.copy(), idx, new), part)


def _changed(record: R, change: Callable[..., Array], *others: R) -> R:
    """A record with each column changed, given those of other records."""
    out: dict[str, Any] = {}
    for name in (each.name for each in fields(record)):  # type: ignore[arg-type]
        columns = [getattr(each, name) for each in (record, *others)]
        if isinstance(columns[0], Tensor):
            out[name] = torch.from_numpy(change(*map(_array, columns)))
        elif isinstance(columns[0], np.ndarray):
            out[name] = change(*columns)
    return replace(record, **out)  # type: ignore[type-var]


def _filled(_: type, given: dict[str, Any]) -> None:
    """Fill in what is not given; texts become arrays."""
    m, device = len(given["rows"]), given["rows"].device
    columns = {
        **{"status": (m,), "kind": (m,), "tried": (m, 3)},
        **{"measured": (m, len(CRITERIA)), "least": (m,)},
    }
    for name, shape in columns.items():
        if given[name] is None:
            blank = torch.nan if name in ("measured", "least") else 0
            given[name] = torch.full(shape, blank, device=device)
    given["reasons"] = _texts(given["reasons"])


@completed(_filled)
@dataclass(frozen=True)
class Proposal(OfRows):
    """The counterfactuals that a method proposes for m rows, in user units.

    An attribute that is not given gets its default for every row.

    Attributes:
        rows: (m, p) the counterfactuals; a row without a proposal is its factual.
        direct: (m, p) bool, the features acted on.
        suppressed: (m,) l1 indirect change that the decoder expects and the constraints exclude.
        reasons: (m,) why a row has no recourse, stated by the method; "" if it states nothing.
        searched: whether a search found the actions; False if the user gave them.
        status: (m,) int64, see `Status`.
        kind: (m,) int64, how an alternative differs from the first answer, see `KINDS`.
        tried: (m, 3) int64, the number of features that may be acted on alone, the number of given
            groups, and 1 if actions were left out.
        measured: (m, c) the measures of the search, in the order of its criteria, or NaN.
        least: (m,) the plausibility that the search required, or NaN.

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
    searched: bool = True
    status: Any = None
    kind: Any = None
    tried: Any = None
    measured: Any = None
    least: Any = None

    @lazy
    def failed(self) -> Tensor:
        """(m,) bool, rows that have no recourse."""
        own = torch.from_numpy(np.asarray(self.reasons) != "")
        failed: Tensor = own | (self.status.cpu() >= Status.UNREACHED)
        return failed

    @property
    def accepted(self) -> Tensor:
        """(m,) bool, rows that are accepted already, so that the proposal is the factual."""
        accepted: Tensor = self.status == Status.ACCEPTED
        return accepted

    def clone(self) -> Proposal:
        """A copy; its tensors allow gradients, unlike those made in inference mode."""
        return self.select(torch.arange(len(self.rows)))

    def costs(self, x: Tensor, encoder: Encoder, per_unit: Tensor | None) -> tuple[Tensor, Tensor]:
        """Direct cost `sum c_j |d_j|` over S and indirect cost, (m,) each, in units of cost.

        The costs per unit c, (m, p), or None for 1, count in the direct cost only. Without an
        order of causes, indirect costs are costs of associations.
        """
        moved = encoder.distance(self.rows, x)
        acted = moved * self.direct
        direct = acted.sum(1)
        indirect = (moved.sum(1) - direct).clamp_min(0.0)
        return direct if per_unit is None else (acted * per_unit).sum(1), indirect

    @property
    def kinds(self) -> list[str]:
        """(m,) how each answer differs from the first answer of its row; "" for the first."""
        return [KINDS[kind] for kind in self.kind.tolist()]

    def acted_on(self, x: Tensor, names: Sequence[str]) -> npt.NDArray[Any]:
        """(m,) the names of the features that an action changes in x, (m, p), joined by " + "."""
        # Many rows are equal: each label is made once, with the row's bytes as its key.
        cells, p = (self.direct & (self.rows != x)).numpy().tobytes(), x.shape[1]
        rows = [cells[at : at + p] for at in range(0, len(cells), p)]
        labels = {row: " + ".join(dict.fromkeys(compress(names, row))) for row in set(rows)}
        return _texts(labels[row] for row in rows)


@dataclass(frozen=True)
class Scored:
    """A proposal for n rows as the frame holds it; for attributes see `Recourses`."""

    proposal: Proposal
    counterfactuals: pd.DataFrame
    scores: Tensor
    success: Tensor

    def acts(self, x: Tensor) -> Tensor:
        """(n,) bool: whether what is acted on differs from the factuals, (n, p)."""
        return ((self.proposal.rows != x) & self.proposal.direct).any(1)


def identity_proposal(x: Tensor, accepted: Tensor) -> Proposal:
    """The proposal without changes of x, (m, p), given which rows are accepted, (m,) bool."""
    none, status = torch.zeros(x.shape, dtype=torch.bool), int(Status.ACCEPTED) * accepted.long()
    return Proposal(x.clone(), none, torch.zeros(len(x)), [""] * len(x), status=status)


def _texts(texts: Iterable[str]) -> npt.NDArray[Any]:
    """Texts as an object array; pandas makes a column faster from it than from a list."""
    made = texts if isinstance(texts, np.ndarray) else list(map(str, texts))
    return np.array(made, dtype=object)


def _put(column: Array, idx: Tensor, new: Array) -> Array:
    """A column, some rows of which are replaced in place."""
    column[idx.numpy()] = new
    return column


def _array(column: Tensor) -> Array:
    """A tensor as an array; a method may propose rows on a GPU, or with a gradient."""
    array: Array = column.detach().cpu().numpy()
    return array


@dataclass(frozen=True)
class Question:
    """The n rows of a call, their scores, and the training rows that answers are compared with.

    Attributes:
        encoder: the encoder of the method, which writes frames.
        trained: the training rows, with the decoders and the model.
        search: the search, with the criteria of the answers.
        settings: the arguments of the method as plain values.
        case: the n rows. Rows that cannot be read are zero, and no method gets them.
        frame: the same rows in user units.
        scores: (n, c) their scores, NaN for rows that cannot be read.
        accepted: (n,) bool, whether the model's decision is the wanted one.
        may_act: (n, p) bool, the features that an action may change, by the method and the limits.
        unreadable: (n,) why a row cannot be read; "" if it can.
    """

    encoder: Encoder
    trained: Trained
    search: Search
    settings: Mapping[str, Any]
    case: Case
    frame: pd.DataFrame
    scores: Tensor
    accepted: Tensor
    may_act: Tensor
    unreadable: npt.NDArray[np.object_]

    @property
    def readable(self) -> Tensor:
        """(q,) the positions of the rows that can be read."""
        return torch.from_numpy(np.flatnonzero(self.unreadable == ""))

    @property
    def unchanged(self) -> Proposal:
        """The proposal without changes; rows that cannot be read have failed."""
        return replace(identity_proposal(self.case.x, self.accepted), reasons=self.unreadable)

    def over_all(self, part: Proposal) -> Proposal:
        """The proposal for all rows, given that for the rows that can be read."""
        whole = replace(self.unchanged, searched=part.searched)
        return part if len(self.readable) == len(self.case) else merged(whole, part, self.readable)

    def score(self, scores: Tensor) -> npt.NDArray[np.float64]:
        """(n,) the reported score of each row, given all scores, (n, c); NaN if unreadable."""
        out, at = np.full(len(self.case), np.nan), self.readable
        out[at.numpy()] = self.case.goal.select(at).score(scores[at]).double().numpy()
        return out

    def accepts_part(self, rows: Tensor, reached: Tensor) -> Tensor:
        """(n,) bool, whether the user's model accepts rows and the constraints allow them.

        Args:
            rows: (n, p) the factuals after the action and a part of the indirect changes.
            reached: (n, p) the whole answers.
        """
        every = torch.arange(len(self.case))
        after, seen = patch(self.encoder, self.frame, self.case.x, rows=rows)
        possible = self.case.feasible.is_possible(self.case.x, seen, reached, every)
        return self.decided(after, seen, every)[1] & possible

    def repaired(
        self, rows: Tensor, direct: Tensor, fixed: Tensor | bool = False, *, forced: bool = True
    ) -> Tensor:
        """(n, p) the rows after the changes that rules imply.

        Args:
            rows: (n, p) the rows after the actions.
            direct: (n, p) bool, the features acted on.
            fixed: (n, p) bool, other features that keep their values.
            forced: whether only rules that hold in all rows imply changes.
        """
        kept, order = direct.clone(), self.encoder.schema.causal_order
        for acted in kept.unique(dim=0) if order.is_stated else ():
            held = list(order.held(acted.nonzero()[:, 0].tolist()))
            kept[:, held] |= (direct == acted).all(1)[:, None]
        every, kept = torch.arange(len(self.case)), kept | torch.as_tensor(fixed)
        feasible, x = self.case.feasible, self.case.x
        return feasible.repair(x, rows[:, None], kept, every, alone=int(forced))[:, 0]

    def decided(self, frame: pd.DataFrame, seen: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """(m, c) scores of the frame of rows at positions, and (m,) bool, which are accepted."""
        classifier = self.trained.classifier
        scores, goal = classifier.frame_scores(frame, seen), self.case.goal.select(rows)
        return scores, goal.succeeds(scores, lambda: classifier.decisions(frame))
