"""Contest: every method with the same dials on the same rejected rows; every run is stored.

python -m dear_plugin.benchmark contest --out results/contest
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dear_plugin.benchmark.answer_metrics import ReferenceRows
from dear_plugin.benchmark.contestants import (
    CONTESTANTS,
    DEFAULT,
    DIALS,
    CellFits,
    Dials,
    SplitFits,
)
from dear_plugin.benchmark.data_splits import DataSplit, ScoredModel, Setting
from dear_plugin.benchmark.metrics import alone, replicated, still_accepted
from dear_plugin.benchmark.metrics.decision import Floats, Truths, solved, where
from dear_plugin.benchmark.protocol import LEAST_REFUSED
from dear_plugin.benchmark.tables import made_with
from dear_plugin.errors import DataError
from dear_plugin.evaluation.plausibility import Plausibility
from dear_plugin.problem.constraints import Constraints
from dear_plugin.results.recourses import Recourses
from dear_plugin.search.criteria import TOLERANCE

# The files of a stored run.
RECORD, ANSWERS = "record.json", "answers.csv"
KEPT = ("success", "acted_on", "direct_cost", "indirect_cost", "cost", "confidence")


@dataclass(frozen=True)
class ContestPlan:
    """The runs of one command.

    Attributes:
        settings: data sets and protocols.
        kinds: the classifiers to include.
        methods: names of `CONTESTANTS`.
        dials: names of `DIALS`.
        splits: the number of splits.
        seeds: the number of classifier seeds of each split.
        rows: the largest number of rejected rows of a run.
        folder: where runs are stored.
    """

    settings: Sequence[Setting]
    kinds: Sequence[str]
    methods: Sequence[str]
    dials: Sequence[str]
    splits: int
    seeds: int
    rows: int
    folder: Path

    @property
    def count(self) -> int:
        """The number of runs, one per cell, split, seed and method."""
        cells = sum(len(self._kinds(setting)) for setting in self.settings)
        return cells * self.splits * self.seeds * len(self.methods)

    def answers(self) -> Iterator[pd.DataFrame]:
        """The answers of every run; stored runs are read. A split is complete before the next."""
        for split, setting in product(range(self.splits), self.settings):
            fits = SplitFits(DataSplit(setting, split, self.folder / "models"))
            for kind in self._kinds(setting):
                yield from self._cell(fits, kind)

    def _kinds(self, setting: Setting) -> list[str]:
        return [kind for kind in setting.kinds if kind in self.kinds]

    def _cell(self, fits: SplitFits, kind: str) -> Iterator[pd.DataFrame]:
        """The answers of every seed and method of one cell and split."""
        home = self.folder / "runs" / f"{fits.data.name}-{kind}-{fits.data.split}"
        for order in range(self.seeds):
            bench = Bench(fits, kind, order, self.rows)
            for name in self.methods:
                run = ContestRun(home, order, name, self.dials, self.rows)
                if not run.is_kept:
                    run.write(bench.answers(run.method, run.dials))
                yield run.read()


@dataclass(frozen=True)
class ContestRun:
    """One method on one cell, split and seed.

    Attributes:
        cell: the folder of the cell and split.
        order: the position of the classifier among those that reject enough rows.
        method: a name of `CONTESTANTS`.
        dials: names of `DIALS`.
        rows: the largest number of rejected rows.
    """

    cell: Path
    order: int
    method: str
    dials: Sequence[str]
    rows: int

    @property
    def home(self) -> Path:
        """The folder of the run."""
        name = "".join(c if c.isalnum() else "-" for c in self.method).lower()
        return self.cell / str(self.order) / name

    @property
    def is_kept(self) -> bool:
        """Whether the run is stored, with the same dials and number of rows."""
        path = self.home / RECORD
        return path.exists() and self._facts.items() <= json.loads(path.read_text("utf8")).items()

    @property
    def _facts(self) -> dict[str, Any]:
        return {"method": self.method, "rows": self.rows, "dials": list(self.dials)}

    def write(self, answers: pd.DataFrame) -> None:
        """Store the answers; the record is written last, it marks the run as complete."""
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / RECORD).unlink(missing_ok=True)
        answers.to_csv(self.home / ANSWERS, index=False)
        record = json.dumps({**self._facts, "made_with": made_with()}, indent=1)
        (self.home / RECORD).write_text(record, encoding="utf8")

    def read(self) -> pd.DataFrame:
        """The answers of a stored run."""
        return pd.read_csv(self.home / ANSWERS)


@dataclass
class Bench:
    """The rejected rows of one model, and what their answers are measured with.

    Attributes:
        split: what the methods share on the data split.
        kind: of classifier.
        order: as in `ContestRun`.
        rows: the largest number of rejected rows.
    """

    split: SplitFits
    kind: str
    order: int
    rows: int

    @cached_property
    def fits(self) -> CellFits:
        """The fits of the split with the model.

        Raises:
            DataError: too few classifiers reject enough rows.
        """
        data = self.split.data
        for model in islice(data.models(self.kind), self.order, None):
            return CellFits(self.split, model)
        raise DataError(
            f"{data.name}: --seeds needs {self.order + 1} {self.kind} classifiers that reject"
            f" {LEAST_REFUSED} test rows, got {self.order}; use fewer seeds"
        )

    @cached_property
    def reference(self) -> ReferenceRows:
        """The training rows that answers are compared with."""
        return ReferenceRows.of(self._data, self._model)

    @cached_property
    def plausibility(self) -> Plausibility:
        """The plausibility of answers, the same for all methods."""
        encoder = self._data.encoder
        return Plausibility(encoder.rows(self._data.parts[0]), encoder)

    def answers(self, name: str, dials: Sequence[str]) -> pd.DataFrame:
        """One line per dial and rejected row: the answer of a method and its metrics."""
        contestant = CONTESTANTS[name]
        dialled = contestant.make(self.fits)
        parts = []
        for dial in dials:
            method, start = dialled(DIALS[dial]), time.process_time()
            recourses = method.generate(self._refused, within=self._within)
            seconds = (time.process_time() - start) / len(recourses)
            measured = self._measures(recourses, DIALS[dial])
            if contestant.halves is not None and dial == DEFAULT:
                first, second = contestant.halves(self.fits, DIALS[dial])
                found = first.generate(self._refused, within=self._within)
                measured["replicated"] = replicated(found, second)
            kept = recourses.actions[list(KEPT)].assign(**measured, cpu_s=seconds, dial=dial)
            parts.append(kept.rename_axis(index="row").reset_index())
        data, model = self._data, self._model
        head = {"cell": f"{data.name} {model.kind}", "split": data.split, "seed": model.seed}
        return pd.concat(parts, ignore_index=True).assign(method=name, **head)

    @property
    def _refused(self) -> pd.DataFrame:
        return self._model.refused.iloc[: self.rows]

    @property
    def _data(self) -> DataSplit:
        return self.split.data

    @property
    def _model(self) -> ScoredModel:
        return self.fits.model

    @property
    def _within(self) -> Constraints:
        return Constraints(act_on=self._data.act_on)

    def _measures(self, recourses: Recourses, dials: Dials) -> dict[str, Any]:
        """Metrics of answers, (n,) each; NaN without an answer."""
        mask, reached = solved(recourses), recourses.proposal.rows
        after, before = (self.reference.measure(each) for each in (reached, recourses.x))
        plausibility, own = (
            self.plausibility.of(each).double().numpy() for each in (reached, recourses.x)
        )
        support = recourses.support.to_numpy(dtype=float)
        return {
            "plausibility": where(mask, plausibility),
            "support": where(mask, support),
            "meets": mask & _meets(dials, plausibility, own, support),
            "zero_action": where(mask, recourses.actions["direct_cost"] == 0.0),
            "changed": where(mask, recourses.changed.sum(1).numpy()),
            "still_accepted": still_accepted(recourses, self._model.retrained),
            "alone": alone(recourses, self._model.accepts),
            "outlier": where(mask, after["outlier"]),
            "outlier_before": where(mask, before["outlier"]),
            "unseen": where(mask, after["unseen"]),
        }


def _meets(dials: Dials, plausibility: Floats, own: Floats, support: Floats) -> Truths:
    """(n,) bool, answers with the required plausibility and support."""
    enough: Truths = plausibility >= np.minimum(own, dials["min_plausibility"]) - TOLERANCE
    return enough & (support >= (dials["min_support"] or 0.0) - TOLERANCE)
