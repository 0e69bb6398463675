"""Proposal: what a method proposes for m rows; batches of rows are selected, joined and merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import compress
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.problem.case import Case
from dear_plugin.problem.reasons import Status
from dear_plugin.search.settings import CRITERIA

# How an alternative differs from the first answer, and the names of that.
ANOTHER, SEVERAL, SAME = 1, 2, 3
KINDS = ("", "another set", "pair of features", "same features")

Texts: TypeAlias = Sequence[str] | npt.NDArray[Any]
Column = npt.NDArray[Any]


@dataclass(frozen=True)
class Batch:
    """An entry for each of m rows: tensors, arrays, frames, cases, batches; all else is of all."""

    def select(self, idx: Tensor) -> Self:
        """The rows at positions (q,)."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: _selected(each, idx) for name, each in values.items()})


@dataclass(frozen=True)
class Joinable(Batch):
    """A batch whose entries for each row are tensors and arrays alone."""

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The records of consecutive chunks as one; what holds for every row is the first's."""
        first, *others = parts
        return first._changed(lambda *columns: np.concatenate(columns), *others)

    def merged(self, part: Self, idx: Tensor) -> Self:
        """This record with the rows at positions (q,) replaced by those of another."""
        return self._changed(lambda column, new: _put(column.copy(), idx, new), part)

    def _changed(self, change: Callable[..., Column], *others: Self) -> Self:
        """This record with each column changed, given those of other records."""
        out: dict[str, Any] = {}
        for name in (field.name for field in fields(self)):
            columns = [getattr(each, name) for each in (self, *others)]
            if isinstance(columns[0], Tensor):
                out[name] = torch.from_numpy(change(*map(_array, columns)))
            elif isinstance(columns[0], np.ndarray):
                out[name] = change(*columns)
        return replace(self, **out)


@dataclass(frozen=True)
class Proposal(Joinable):
    """What a method proposes for m rows, in user units.

    What is not given has its default for every row.

    Attributes:
        rows: (m, p) the counterfactuals; the factual itself where there is no proposal.
        direct: (m, p) bool, the features acted on.
        suppressed: (m,) l1 indirect change that the decoder expects and the constraints exclude.
        reasons: (m,) the method's own words on why a row has no recourse; "" for none.
        searched: whether the actions come from a search; False where the user gave them.
        status: (m,) int64, see `Status`.
        kind: (m,) int64, how an alternative differs from the first, see `KINDS`.
        tried: (m, 3) int64, the features that may be acted on alone, the given groups, and 1 where
            actions are left out.
        measured: (m, c) what the search measured, in the order of its criteria, NaN for nothing.
        least: (m,) the plausibility that the search required, NaN for none.

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

    def __post_init__(self) -> None:
        """Fill in what is not given; texts become arrays."""
        m, device = len(self.rows), self.rows.device
        columns = {
            "status": (m,),
            "kind": (m,),
            "tried": (m, 3),
            "measured": (m, len(CRITERIA)),
            "least": (m,),
        }
        for name, shape in columns.items():
            if getattr(self, name) is None:
                blank = torch.nan if name in ("measured", "least") else 0
                object.__setattr__(self, name, torch.full(shape, blank, device=device))
        object.__setattr__(self, "reasons", _texts(self.reasons))

    @lazy
    def failed(self) -> Tensor:
        """(m,) bool, rows that have no recourse."""
        own = torch.from_numpy(np.asarray(self.reasons) != "")
        failed: Tensor = own | (self.status.cpu() >= Status.UNREACHED)
        return failed

    @property
    def accepted(self) -> Tensor:
        """(m,) bool, rows that are accepted already, and are proposed as they are."""
        accepted: Tensor = self.status == Status.ACCEPTED
        return accepted

    def clone(self) -> Proposal:
        """The same with copies of its tensors: those made in inference mode have no gradient."""
        return self.select(torch.arange(len(self.rows)))

    def costs(self, x: Tensor, encoder: Encoder, per_unit: Tensor | None) -> tuple[Tensor, Tensor]:
        """Direct cost `sum c_j |d_j|` over S and indirect cost, (m,) each, in units of cost.

        What a unit of a feature costs, (m, p), or None for 1, counts in the direct cost alone, not
        in that of what follows. Without an order of causes, indirect costs are of associations.
        """
        moved = encoder.distance(self.rows, x)
        acted = moved * self.direct
        direct = acted.sum(1)
        indirect = (moved.sum(1) - direct).clamp_min(0.0)
        return direct if per_unit is None else (acted * per_unit).sum(1), indirect

    def acted_on(self, x: Tensor, names: Sequence[str]) -> npt.NDArray[Any]:
        """(m,) the names, (p,), of what is acted on and changed of x, (m, p), joined by " + "."""
        # Few of these rows differ: each label is made once, with the row's bytes as its key.
        cells, p = (self.direct & (self.rows != x)).numpy().tobytes(), x.shape[1]
        rows = [cells[at : at + p] for at in range(0, len(cells), p)]
        labels = {row: " + ".join(dict.fromkeys(compress(names, row))) for row in set(rows)}
        return _texts(labels[row] for row in rows)


def identity_proposal(x: Tensor, accepted: Tensor) -> Proposal:
    """The proposal that changes nothing of x, (m, p), accepted or not, (m,) bool."""
    none, status = torch.zeros(x.shape, dtype=torch.bool), int(Status.ACCEPTED) * accepted.long()
    return Proposal(x.clone(), none, torch.zeros(len(x)), [""] * len(x), status=status)


def _texts(texts: Iterable[str]) -> npt.NDArray[Any]:
    """Texts as an object array, from which pandas makes a column faster than from a list."""
    made = texts if isinstance(texts, np.ndarray) else list(map(str, texts))
    return np.array(made, dtype=object)


def _selected(value: Any, idx: Tensor) -> Any:
    """What the rows at positions (q,) have of a value of m rows; what holds for all is kept."""
    if isinstance(value, Tensor):
        return torch.from_numpy(_array(value)[idx.numpy()])
    if isinstance(value, pd.DataFrame):
        return value.iloc[idx.numpy()]
    if isinstance(value, np.ndarray):
        return value[idx.numpy()]
    return value.select(idx) if isinstance(value, Batch | Case) else value


def _put(column: Column, idx: Tensor, new: Column) -> Column:
    """A column, some rows of which are replaced in place."""
    column[idx.numpy()] = new
    return column


def _array(column: Tensor) -> Column:
    """A tensor as an array; a method may propose rows on a GPU, or with a gradient."""
    array: Column = column.detach().cpu().numpy()
    return array
