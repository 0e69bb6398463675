"""Measures of DEAR's answers that no search optimises."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from dear_plugin.benchmark import metrics
from dear_plugin.benchmark.credible_tables import tables
from dear_plugin.benchmark.fits import NOISE_ROWS, Fits, fits_of, reference_rows
from dear_plugin.benchmark.metrics import Floats, solved, where
from dear_plugin.benchmark.runner import Cell, Option, Spec, grid
from dear_plugin.benchmark.splits import CELLS, SETTINGS, DataSplit, ScoredModel, case_of
from dear_plugin.methods.dear import DEAR
from dear_plugin.results.recourses import Recourses
from dear_plugin.search import Search

KEPT = (
    "success",
    "acted_on",
    "direct_cost",
    "indirect_cost",
    "cost",
    "confidence",
    "plausibility",
    "consistency",
    "agreement",
    "credible",
)


@dataclass(frozen=True)
class Line:
    """A configuration of DEAR.

    Attributes:
        search: the search settings.
        tiers: whether the data set's own protocol has its tiers.
        noise: whether reported noise is measured.
        copies: whether the search gets copies of the model. Other copies measure the answers.
    """

    search: Search
    tiers: bool = True
    noise: bool = True
    copies: bool = False


LINES: Mapping[str, Line] = {
    "default": Line(Search()),
    "without tiers": Line(Search(), tiers=False, noise=False),
    "max_reliance=0": Line(Search(max_reliance=0.0), noise=False),
    "copies": Line(Search(), noise=False, copies=True),
    "cheapest": Line(Search.cheapest()),
}
# The networks of the paper's protocol, and all cells of the data sets' own.
USUAL_CELLS = tuple(c for c, (name, kind) in CELLS.items() if SETTINGS[name].own or kind == "ann")


def cells(options: Namespace) -> Iterator[Cell]:
    """Every cell and line. Only data sets' own protocols have a line without tiers."""
    for cell in grid(cell=options.cells, line=options.lines, rows=[options.rows]):
        if LINES[cell["line"]].tiers or SETTINGS[CELLS[cell["cell"]][0]].own:
            yield cell


def measure(folder: Path, *, cell: str, line: str, rows: int) -> pd.DataFrame:
    """The measures of answers and of held-out rows; `group` names which."""
    data, model = case_of(folder, cell)
    settings = LINES[line]
    fits = fits_of(data, tiers=settings.tiers)
    answers = _answers(fits, settings, model, rows)
    return pd.concat([answers.assign(group="answers", **fits.fidelity), _real(data, model, rows)])


def _answers(fits: Fits, line: Line, model: ScoredModel, rows: int) -> pd.DataFrame:
    """One line per rejected row: the answer and its measures; NaN without an answer."""
    refused = model.refused.iloc[:rows]
    whole, first, second = (_with(d, model, line) for d in (fits.whole, *fits.halves))
    answers, of_half = whole.generate(refused), first.generate(refused)
    succeeds, mask = metrics.replicated(of_half, second), solved(of_half)
    needs_indirect = metrics.alone(of_half, model.accepts) == 0.0
    measured = {
        "replicated": succeeds,
        "replicated_indirect": np.where(needs_indirect, succeeds, np.nan),
        "promised_confidence": where(mask, of_half.actions["confidence"]),
        "alone": metrics.alone(answers, model.accepts),
        "reliance": metrics.reliance(answers, model.accepts),
        "still_accepted": metrics.still_accepted(answers, model.retrained),
        "invalidated": metrics.invalidated(answers, first.classifier),
        **reference_rows(fits.data, model).of_answers(answers),
    }
    measured |= {f"noise_{n}": np.full(len(answers), np.nan) for n in NOISE_ROWS}
    if line.noise:
        measured |= {f"noise_{n}": _noise(dear, answers) for n, dear in fits.noisy.items()}
    kept = answers.actions[list(KEPT)]
    return kept.assign(**measured).rename_axis(index="row").reset_index()


def _with(dear: DEAR, model: ScoredModel, line: Line) -> DEAR:
    """A fitted DEAR with another model, its copies and a search."""
    copies = model.copies if line.copies else ()
    return dear.with_model(model.model, copies=copies).with_search(line.search)


@lru_cache(maxsize=2)
def _real(data: DataSplit, model: ScoredModel, rows: int) -> pd.DataFrame:
    """The measures of held-out rows, and of accepted held-out rows."""
    test = data.parts[1].sample(frac=1.0, random_state=0)
    reference = reference_rows(data, model)
    groups = {"anybody": test.iloc[:rows], "accepted": test[model.accepts(test)].iloc[:rows]}
    return pd.concat(
        [
            pd.DataFrame(reference.measure(data.encoder.rows(part))).assign(group=name)
            for name, part in groups.items()
        ]
    )


def _noise(dear: DEAR, answers: Recourses) -> Floats:
    """(n,) 1 if a method that was fitted with noise columns reports their change, else 0."""
    # Answers on pairs are left out: they need a fit on all pairs.
    single = (solved(answers) & answers.actions["acted_on"].isin(dear.sets.labels)).to_numpy()
    found = np.full(len(single), np.nan)
    if single.any():
        noisy = metrics.with_noise(answers.factuals[single], seed=1)
        found[single] = metrics.noise_reported(dear.apply(noisy, answers.direct[single]))
    return found


CREDIBLE = Spec(
    "credible",
    "metrics of answers that no search optimises",
    {
        "cells": Option("data sets and classifiers", ("loan lr",), CELLS, USUAL_CELLS),
        "lines": Option("configurations", ("default", "cheapest"), LINES),
        "rows": Option("rejected rows of each cell", 12, preset=100),
    },
    cells,
    measure,
    tables,
)
