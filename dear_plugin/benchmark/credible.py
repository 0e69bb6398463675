"""Credible: metrics of DEAR's answers that no search optimises; every run is stored.

python -m dear_plugin.benchmark credible --out results/credible
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from dear_plugin.benchmark.answer_metrics import (
    CONFIGURATIONS,
    DecoderSpec,
    Fits,
    ReferenceRows,
    answer_rows,
    real_rows,
)
from dear_plugin.benchmark.data_splits import SETTINGS, DataSplit, ScoredModel
from dear_plugin.benchmark.tables import made_with

# The files of a stored run, and the keys of both joint AUCs in its record.
RECORD, ANSWERS, REAL = "record.json", "people.csv", "real.csv"
JOINT = "joint", "independent"


@dataclass(frozen=True)
class RunPlan:
    """The runs of one command.

    Attributes:
        cells: names of `CELLS`: data set, protocol and classifier.
        lines: names of `CONFIGURATIONS`.
        splits: the number of splits.
        trained: the number of splits for configurations with a trained decoder.
        rows: the largest number of rejected rows of a run.
        folder: where runs are stored.
        kept: whether to use stored runs only.
    """

    cells: Sequence[str]
    lines: Sequence[str]
    splits: int
    trained: int
    rows: int
    folder: Path
    kept: bool = False

    def runs(self) -> list[Run]:
        """All runs; those that share a fit follow each other."""
        splits = [
            DataSplit(setting, split, self.folder / "models")
            for setting, split in product(SETTINGS.values(), range(self.splits))
        ]
        runs = [
            Run(data, kind, line, self.rows, self.folder / "runs")
            for data in splits
            for line in self.lines
            if data.split < self.trained or not CONFIGURATIONS[line].trained
            # The paper's protocol has no tiers to leave out.
            if data.setting.own or CONFIGURATIONS[line].spec.tiers
            for kind in data.setting.kinds
            if f"{data.name} {kind}" in self.cells
        ]
        return [run for run in runs if run.is_kept] if self.kept else runs


@dataclass(frozen=True)
class Run:
    """One configuration on one cell and split.

    Attributes:
        data: the data split.
        kind: of classifier.
        line: a name of `CONFIGURATIONS`.
        rows: the largest number of rejected rows.
        folder: where runs are stored.
    """

    data: DataSplit
    kind: str
    line: str
    rows: int
    folder: Path

    @property
    def key(self) -> Mapping[str, Any]:
        """What identifies the run."""
        cell = f"{self.data.name} {self.kind}"
        return {"cell": cell, "line": self.line, "split": self.data.split, "rows": self.rows}

    @property
    def home(self) -> Path:
        """The folder of the run."""
        return self.folder / f"{self.data.name}-{self.kind}-{self.data.split}" / self.line

    @property
    def is_kept(self) -> bool:
        """Whether the run is stored."""
        path = self.home / RECORD
        if not path.exists():
            return False
        record = json.loads(path.read_text(encoding="utf8"))
        return all(record.get(name) == value for name, value in self.key.items())

    def read(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The answer rows and the real rows of a stored run."""
        record = json.loads((self.home / RECORD).read_text(encoding="utf8"))
        answers, real = (pd.read_csv(self.home / name) for name in (ANSWERS, REAL))
        joint = {name: record[name] for name in JOINT}
        return answers.assign(**joint, **self.key), real.assign(**self.key)


@dataclass
class Runner:
    """Runs, and what consecutive runs share: fits, models and reference rows."""

    fits: dict[tuple[DataSplit, DecoderSpec], Fits] = field(default_factory=dict)
    models: dict[tuple[DataSplit, str], tuple[ScoredModel, ReferenceRows, pd.DataFrame]] = field(
        default_factory=dict
    )

    def measure(self, run: Run) -> None:
        """Measure a run and store it."""
        data = run.data
        if any(known is not data for known, _ in self.models):
            self.models.clear()
        line = CONFIGURATIONS[run.line]
        if (data, line.spec) not in self.fits:
            self.fits = {(data, line.spec): Fits(data, line.spec)}
        if (data, run.kind) not in self.models:
            model = data.model(run.kind)
            reference = ReferenceRows.of(data, model)
            real = real_rows(data, model, reference, run.rows)
            self.models[data, run.kind] = model, reference, real
        fits = self.fits[data, line.spec]
        model, reference, real = self.models[data, run.kind]
        noise = line.noise and (data.split == 0 or not line.trained)
        answers = answer_rows(fits, line.search, model, reference, run.rows, noise=noise)
        _write(run, answers, real, fits.joint)


def measured(plan: RunPlan) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """The answer rows and real rows of every run; stored runs are read."""
    runner = Runner()
    for run in plan.runs():
        if not run.is_kept:
            runner.measure(run)
        yield run.read()


def _write(
    run: Run, answers: pd.DataFrame, real: pd.DataFrame, joint: tuple[float, float]
) -> None:
    run.home.mkdir(parents=True, exist_ok=True)
    (run.home / RECORD).unlink(missing_ok=True)
    answers.to_csv(run.home / ANSWERS, index=False)
    real.to_csv(run.home / REAL, index=False)
    scores = dict(zip(JOINT, joint, strict=True))
    record = {**run.key, **scores, "made_with": made_with()}
    # Written last: it marks the run as complete.
    (run.home / RECORD).write_text(json.dumps(record, indent=1), encoding="utf8")
