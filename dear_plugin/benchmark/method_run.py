"""Method run: the answers of one method for the rejected rows of a cell, as a table."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from dear_plugin.benchmark.protocol import Cell
from dear_plugin.evaluation.metrics import costs, neighbours, redundancy
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.results.recourses import Recourses


@dataclass(frozen=True)
class MethodRun:
    """The answers of a method.

    Attributes:
        recourses: its answers for the rejected rows of a cell.
        fit_cpu_s: CPU seconds to fit it.
        cpu_s: CPU seconds for all rows in one call.
    """

    recourses: Recourses
    fit_cpu_s: float
    cpu_s: float

    @classmethod
    def of(cls, method: RecourseMethod, refused: pd.DataFrame, fit_cpu_s: float) -> MethodRun:
        """Run a fitted method."""
        start = time.process_time()
        recourses = method.generate(refused)
        return cls(recourses, fit_cpu_s, time.process_time() - start)

    def rows(self, cell: Cell) -> pd.DataFrame:
        """One line per row: the action, its size, all costs, support, violations and times.

        `ynn`, `redundancy` and `support` are NaN for unsolved rows.
        """
        recourses, classifier = self.recourses, cell.classifier
        solved = recourses.outcome["success"].to_numpy(dtype=bool)
        distances = costs(cell.encoder, recourses.x, recourses.proposal.rows)
        measured: dict[str, Any] = {
            name: values.numpy() for name, values in distances.items() if name != "l1"
        }
        measured |= {
            "redundancy": redundancy(recourses, classifier),
            "support": np.where(solved, recourses.support, np.nan),
            "ynn": neighbours(recourses, cell.all_rows, classifier),
            "violations": _violations(recourses, cell.protected),
            "moves_along": _moves_along(recourses),
            "zero": solved & ~recourses.acts.numpy(),
            "fit_cpu_s": self.fit_cpu_s,
            "cpu_s": self.cpu_s / len(recourses),
        }
        lines = recourses.outcome.assign(**measured)
        return lines.rename_axis(index="row").reset_index()


def _violations(recourses: Recourses, protected: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """(n,) the number of changed protected features."""
    at = list(recourses.encoder.schema.index(protected))
    changed: npt.NDArray[np.int64] = recourses.changed[:, at].sum(1).numpy()
    return changed


def _moves_along(recourses: Recourses) -> list[str]:
    """(n,) the indirectly changed feature with the largest change, "" if none changes."""
    moved = recourses.encoder.distance(recourses.proposal.rows, recourses.x)
    most, at = torch.where(recourses.proposal.direct, 0.0, moved).max(1)
    names = recourses.encoder.schema.names
    return [names[j] if m > 0.0 else "" for m, j in zip(most.tolist(), at.tolist(), strict=True)]
