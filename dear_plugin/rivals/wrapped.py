"""The explainer of another package as a method, to compare it with DEAR."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.cells import cells_of
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.problem.feasible import Case, Reason
from dear_plugin.results.proposal import Proposal


class Wrapped(RecourseMethod):
    """A fitted explainer of another package; all of its changes are direct.

    A subclass implements `_explained(case)`. Its rows are constrained, rounded and scored again by
    the user's model, and every row is in the result. Frames may have numbers or booleans instead
    of their text in the schema.

    Attributes:
        package: the name of the other package, for the reason of a row that misses the target.

    Example:
        >>> from dear_plugin import RecourseMethod, Wrapped
        >>> issubclass(Wrapped, RecourseMethod)
        True
    """

    package: ClassVar[str]
    # Explainers of other packages draw from global generators.
    in_threads = False

    @abstractmethod
    def _explained(self, case: Case) -> tuple[Tensor, Sequence[str]]:
        """(m, p) the explainer's rows, and (m,) why there is none; "" if there is one."""

    def _converted(self, frame: pd.DataFrame) -> pd.DataFrame:
        return self.schema.in_text(frame)

    def _learn(self, rows: Tensor) -> None:
        """The explainer is already fitted."""

    def _propose(self, case: Case) -> Proposal:
        moved, reasons = self._explained(case)
        moved = case.x.where(case.feasible.limits.not_actionable, moved)
        rows = case.feasible.project(case.x, moved[:, None], torch.arange(len(case)))[:, 0]
        accepted = case.goal.accepts(self.classifier.scores(rows)).tolist()
        missed = Reason.OTHER_MISSES.format(self.package)
        each = [r or ("" if a else missed) for r, a in zip(reasons, accepted, strict=True)]
        return Proposal(rows, rows != case.x, torch.zeros(len(case)), each)

    def _values(self, case: Case) -> list[dict[str, list[Any]]]:
        """(m,) the values that columns may get: the ends of a number, or levels.

        A row outside of its limits may keep its value.
        """
        limits, rows = case.feasible.limits, torch.arange(len(case))
        fixed = limits.not_actionable | (limits.floor == limits.ceiling)
        own, low, high = (
            self.encoder.frame(case.x.where(fixed, end))
            for end in (case.x, limits.floor, limits.ceiling)
        )
        out: list[dict[str, list[Any]]] = [{} for _ in rows]
        for column, j in zip(self.schema.columns, self.schema.owner, strict=True):
            name, several = column.name, bool(self.schema.features[j].dummies)
            levels = cells_of(column, np.arange(2.0)).tolist() if several else column.choices
            codes = torch.arange(len(levels), dtype=case.x.dtype).expand(len(case), -1)
            may = limits.admits(codes, rows.new_full((len(case),), j), rows) | several
            for i, values in enumerate(out):
                values[name] = [low[name].iat[i], high[name].iat[i]]
                if levels:
                    free = [c for c, valid in zip(levels, may[i].tolist(), strict=True) if valid]
                    values[name] = [] if bool(fixed[i, j]) else free
                    values[name] = [*dict.fromkeys([*values[name], own[name].iat[i]])]
        return out
