"""All methods with the same requirements on the same rejected rows."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from dear_plugin.benchmark import metrics
from dear_plugin.benchmark.contest_tables import DEFAULT, PLAUSIBLE, tables
from dear_plugin.benchmark.fits import BASELINES, baseline, scored
from dear_plugin.benchmark.metrics import solved, where
from dear_plugin.benchmark.reference import reference_rows
from dear_plugin.benchmark.runner import Cell, Option, Spec, grid
from dear_plugin.benchmark.splits import CELLS, DataSplit, ScoredModel, case_of
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.dear import DEAR
from dear_plugin.problem.constraints import Constraints
from dear_plugin.rivals.comparison import compare
from dear_plugin.rivals.vetted import Vetted
from dear_plugin.search import Search

# The settings of `Search` that all methods get; `DEFAULT` is that of DEAR.
Dials = Mapping[str, Any]
DIALS: Mapping[str, Dials] = {
    PLAUSIBLE: {"margin": 0.0, "min_plausibility": 0.05},
    DEFAULT: {"margin": 0.3, "min_plausibility": 0.05},
}
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
    """Every split, cell, seed, method and requirement."""
    axes = {"split": range(options.splits), "cell": options.cells, "order": range(options.seeds)}
    names = {"method": options.methods, "dial": options.dials, "rows": [options.rows]}
    return grid(**axes, **names)


def measure(
    folder: Path, *, split: int, cell: str, order: int, method: str, dial: str, rows: int
) -> pd.DataFrame:
    """One line per rejected row: the answer of a method, and its measures."""
    data, model = case_of(folder, cell, split, order)
    refused, within = model.refused.iloc[:rows], Constraints(act_on=data.act_on)
    competitor = fitted(data, model, method, DIALS[dial])
    compared = compare({method: competitor}, refused, within=within, progress=False)
    answers, reference = compared.results[method], reference_rows(data, model)
    mask, dials = solved(answers), DIALS[dial]
    measured = {
        "meets": mask & compared.table["plausible"].to_numpy(),
        "changed": where(mask, answers.changed.sum(1).numpy()),
        "zero_action": where(mask, answers.actions["direct_cost"] == 0.0),
        "still_accepted": metrics.still_accepted(answers, model.retrained),
        "alone": metrics.alone(answers, model.accepts),
        **reference.of_answers(answers),
    }
    if method == "DEAR" and dial == DEFAULT:
        first, second = (_dear(data, model, method, dials, half) for half in (1, 2))
        measured["replicated"] = metrics.replicated(first.generate(refused, within=within), second)
    return compared.table[KEPT].assign(**measured)


def fitted(data: DataSplit, model: ScoredModel, name: str, dials: Dials) -> RecourseMethod:
    """A fitted method under requirements."""
    if name in OWN:
        return _dear(data, model, name, dials)
    return Vetted(baseline(data, model, name), Search.cheapest(**dials))


def _dear(data: DataSplit, model: ScoredModel, name: str, dials: Dials, part: int = 0) -> DEAR:
    """A line of DEAR, fitted on all training rows or on a half."""
    search, pairs = OWN[name]
    return scored(data, model, pairs)[part].with_search(replace(search, **dials))


CONTEST = Spec(
    "contest",
    "all methods with the same requirements: cost and effort",
    {
        "cells": Option("data sets and classifiers", ("loan lr",), CELLS, USUAL_CELLS),
        "methods": Option("methods", ("DEAR", "growing spheres", "nearest accepted"), METHODS),
        "dials": Option("requirements", tuple(DIALS), DIALS, (DEFAULT,)),
        "splits": Option("splits of the data", 1, preset=1),
        "seeds": Option("classifier seeds of each split", 1, preset=1),
        "rows": Option("rejected rows of each model", 8, preset=30),
    },
    cells,
    measure,
    tables,
)
