"""All methods with the same requirements on the same rejected rows."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from dear_plugin.benchmark import metrics
from dear_plugin.benchmark.contest_tables import tables
from dear_plugin.benchmark.fits import BASELINES, baseline, reference_rows, scored
from dear_plugin.benchmark.metrics import solved, where
from dear_plugin.benchmark.runner import Cell, Option, Spec, grid
from dear_plugin.benchmark.splits import CELLS, DataSplit, ScoredModel, case_of
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.dear import DEAR
from dear_plugin.problem.constraints import Constraints
from dear_plugin.rivals.comparison import compare
from dear_plugin.rivals.vetted import Vetted
from dear_plugin.search import Search

# The settings of `Search` that all methods get; they are the defaults of DEAR.
REQUIRED: Mapping[str, Any] = {"margin": 0.3, "min_plausibility": 0.05}
# The search of DEAR's lines, and whether pairs are action sets.
OWN: Mapping[str, tuple[Search, bool]] = {
    "DEAR": (Search(), False),
    "DEAR, pairs": (Search(), True),
    "DEAR, cheapest": (Search.cheapest(), False),
}
METHODS = (*OWN, *BASELINES)
# The cells in which enough rows have an answer of both methods for a verdict.
USUAL_CELLS = ("adult ann", "compas lr", "compas ann", "gmc ann", "adult-own ann", "loan lr")
KEPT = ["row", "success", "cost", "direct_cost", "indirect_cost", "confidence", "plausibility"]
KEPT += ["support", "seconds"]


def cells(options: Namespace) -> Iterator[Cell]:
    """Every cell and method."""
    return grid(cell=options.cells, method=options.methods, rows=[options.rows])


def measure(folder: Path, *, cell: str, method: str, rows: int) -> pd.DataFrame:
    """One line per rejected row: the answer of a method, and its measures."""
    data, model = case_of(folder, cell)
    refused, within = model.refused.iloc[:rows], Constraints(act_on=data.act_on)
    competitor = fitted(data, model, method)
    compared = compare({method: competitor}, refused, within=within, progress=False)
    answers, reference = compared.results[method], reference_rows(data, model)
    mask = solved(answers)
    measured = {
        "meets": mask & compared.table["plausible"].to_numpy(),
        "changed": where(mask, answers.changed.sum(1).numpy()),
        "zero_action": where(mask, answers.actions["direct_cost"] == 0.0),
        "still_accepted": metrics.still_accepted(answers, model.retrained),
        "alone": metrics.alone(answers, model.accepts),
        **reference.of_answers(answers),
    }
    if method == "DEAR":
        first, second = (_dear(data, model, method, half) for half in (1, 2))
        measured["replicated"] = metrics.replicated(first.generate(refused, within=within), second)
    return compared.table[KEPT].assign(**measured)


def fitted(data: DataSplit, model: ScoredModel, name: str) -> RecourseMethod:
    """A fitted method under the requirements."""
    if name in OWN:
        return _dear(data, model, name)
    return Vetted(baseline(data, model, name), Search.cheapest(**REQUIRED))


def _dear(data: DataSplit, model: ScoredModel, name: str, part: int = 0) -> DEAR:
    """A line of DEAR, fitted on all training rows or on a half."""
    search, pairs = OWN[name]
    return scored(data, model, pairs)[part].with_search(replace(search, **REQUIRED))


CONTEST = Spec(
    "contest",
    "all methods with the same requirements: cost and effort",
    {
        "cells": Option("data sets and classifiers", ("loan lr",), CELLS, USUAL_CELLS),
        "methods": Option("methods", ("DEAR", "growing spheres", "nearest accepted"), METHODS),
        "rows": Option("rejected rows of each cell", 8, preset=30),
    },
    cells,
    measure,
    tables,
)
