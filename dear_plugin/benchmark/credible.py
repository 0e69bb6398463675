"""Credible: what DEAR's answers are worth by rulers that no search optimises, kept as it comes.

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

from dear_plugin.benchmark.grounds import SETTINGS, Ground, Judge
from dear_plugin.benchmark.tables import made_with
from dear_plugin.benchmark.worth import LINES, Crowd, Fits, Learner, people, real

RECORD = "record.json"


@dataclass(frozen=True)
class Plan:
    """What is to be measured.

    Attributes:
        cells: names of `CELLS`, data set, protocol and classifier.
        lines: names of `LINES`.
        splits: how many.
        trained: on how many of them decoders are measured that are trained, the slow ones.
        rows: how many refused people of each, at most.
        folder: where every run is kept.
        kept: whether only what lies there already is told, and nothing is run.
    """

    cells: Sequence[str]
    lines: Sequence[str]
    splits: int
    trained: int
    rows: int
    folder: Path
    kept: bool = False

    def runs(self) -> list[Run]:
        """All runs, those that share a fit one after another."""
        grounds = [
            Ground(name, split, self.folder / "models")
            for name, split in product(SETTINGS, range(self.splits))
        ]
        runs = [
            Run(ground, kind, line, self.rows, self.folder / "runs")
            for ground in grounds
            for line in self.lines
            if ground.split < self.trained or not LINES[line].trained
            for kind in ground.setting.kinds
            if f"{ground.name} {kind}" in self.cells
        ]
        return [run for run in runs if run.is_kept] if self.kept else runs


@dataclass(frozen=True)
class Run:
    """One line on one cell and split.

    Attributes:
        ground: the split of a data set.
        kind: of classifier.
        line: a name of `LINES`.
        rows: how many refused people, at most.
        folder: where runs are kept.
    """

    ground: Ground
    kind: str
    line: str
    rows: int
    folder: Path

    @property
    def facts(self) -> Mapping[str, Any]:
        """What a run is known by."""
        cell = f"{self.ground.name} {self.kind}"
        return {"cell": cell, "line": self.line, "split": self.ground.split, "rows": self.rows}

    @property
    def home(self) -> Path:
        """Where it is kept."""
        return self.folder / f"{self.ground.name}-{self.kind}-{self.ground.split}" / self.line

    @property
    def is_kept(self) -> bool:
        """Whether a whole run of the same size lies there."""
        path = self.home / RECORD
        if not path.exists():
            return False
        record = json.loads(path.read_text(encoding="utf8"))
        return all(record.get(name) == value for name, value in self.facts.items())

    def kept(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The people of the run and the real rows beside them."""
        record = json.loads((self.home / RECORD).read_text(encoding="utf8"))
        tables = [pd.read_csv(self.home / f"{name}.csv") for name in ("people", "real")]
        ours = tables[0].assign(joint=record["joint"], independent=record["independent"])
        return ours.assign(**self.facts), tables[1].assign(**self.facts)


@dataclass
class Workshop:
    """What several runs share, one ground at a time: fits, judges, crowds."""

    fits: dict[tuple[Ground, Learner], Fits] = field(default_factory=dict)
    judges: dict[tuple[Ground, str], tuple[Judge, Crowd, pd.DataFrame]] = field(
        default_factory=dict
    )

    def do(self, run: Run) -> None:
        """Measure a run and write it down."""
        ground = run.ground
        if any(known is not ground for known, _ in self.judges):
            self.judges.clear()
        line = LINES[run.line]
        if (ground, line.learner) not in self.fits:
            self.fits = {(ground, line.learner): Fits(ground, line.learner)}
        if (ground, run.kind) not in self.judges:
            judge = ground.judge(run.kind)
            crowd = Crowd.of(ground, judge)
            table = real(ground, judge, crowd, run.rows)
            self.judges[ground, run.kind] = judge, crowd, table
        fits = self.fits[ground, line.learner]
        judge, crowd, beside = self.judges[ground, run.kind]
        noise = line.noise and (ground.split == 0 or not line.trained)
        ours = people(fits, line.search, judge, crowd, run.rows, noise=noise)
        _write(run, ours, beside, fits.joint)


def measured(plan: Plan) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """People and real rows of every run; what the folder holds already is read from there."""
    shop = Workshop()
    for run in plan.runs():
        if not run.is_kept:
            shop.do(run)
        yield run.kept()


def _write(run: Run, ours: pd.DataFrame, beside: pd.DataFrame, joint: tuple[float, float]) -> None:
    run.home.mkdir(parents=True, exist_ok=True)
    (run.home / RECORD).unlink(missing_ok=True)
    ours.to_csv(run.home / "people.csv", index=False)
    beside.to_csv(run.home / "real.csv", index=False)
    scores = dict(zip(("joint", "independent"), joint, strict=True))
    record = {**run.facts, **scores, "made_with": made_with()}
    # The record comes last: it says that the rest is whole.
    (run.home / RECORD).write_text(json.dumps(record, indent=1), encoding="utf8")
