"""Commands: the commands of `python -m dear_plugin.benchmark`; each yields its output text."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from tqdm.auto import tqdm

from dear_plugin.benchmark import (
    alibi,
    contest_tables,
    credible_tables,
    dice,
    dice_requirements,
    effect_figures,
    reproduce_tables,
    summary,
)
from dear_plugin.benchmark import effects as known_effects
from dear_plugin.benchmark import speed as timing
from dear_plugin.benchmark import trees as optimum
from dear_plugin.benchmark.contest import ContestPlan
from dear_plugin.benchmark.contest_figures import fronts
from dear_plugin.benchmark.credible import RunPlan, measured
from dear_plugin.benchmark.data_splits import NETWORKS, SETTINGS, Setting
from dear_plugin.benchmark.engine import fidelity_rows, reliability_rows
from dear_plugin.benchmark.experiment import lines, make_experiment
from dear_plugin.benchmark.figures import entanglement, figures, qualitative
from dear_plugin.benchmark.frugality import frugality
from dear_plugin.benchmark.independence import independence_rows
from dear_plugin.benchmark.matched import by_support, differences
from dear_plugin.benchmark.paper import ROWS, runs
from dear_plugin.benchmark.protocol import Cell, cells
from dear_plugin.benchmark.reproduce import LINE_SEARCH, PRESET, VARIANTS, Fits
from dear_plugin.benchmark.reproduce import runs as runs_of_variants
from dear_plugin.benchmark.systems import SYSTEMS
from dear_plugin.benchmark.tables import Row, write
from dear_plugin.datasets import Dataset, load_adult, load_loan
from dear_plugin.errors import DataError

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Figure

# The data sets of the hosts' tables; Alibi's Adult has all categories and no survey weight.
ON_DICE: Mapping[str, Callable[[], Dataset]] = {"adult": load_adult, "loan": load_loan}
ON_ALIBI: Mapping[str, Callable[[], Dataset]] = {
    "adult": lambda: load_adult("full"),
    "loan": load_loan,
}
DROPPED: Mapping[str, tuple[str, ...]] = {"adult": ("fnlwgt",), "loan": ()}
QUICK = {"rows": 20, "seeds": 1, "datasets": ("compas",), "models": ("lr",)}
QUICK_REPRODUCE = {
    "rows": 20,
    "seeds": 1,
    "datasets": ("compas",),
    "models": ("lr",),
    "settings": ("step 0.05, s 0.5", "lambda 0.5"),
}
QUICK_CREDIBLE = {"rows": 60, "splits": 1, "cells": ("loan lr",), "lines": ("cheapest", "paper")}
QUICK_CONTEST = {
    "rows": 20,
    "splits": 1,
    "seeds": 1,
    "settings": ("loan",),
    "methods": ("DEAR", "DEAR, pairs", "Wachter", "nearest accepted"),
}
QUICK_CREDIBLE_HELP = "the loan data, 60 rows, one split, two lines"
FAMILIES = ("DEAR", "DEAR, pairs too")
# Of a stored figure.
COLOURS = 48


def engine(options: Namespace) -> Iterator[str]:
    """Fidelity, independence and reliability of the engine."""
    fidelity: dict[str, list[Row]] = {}
    independence: dict[str, list[Row]] = {}
    reliability: list[Row] = []
    for cell in _cells(options):
        if cell.dataset not in fidelity:
            fidelity[cell.dataset] = list(fidelity_rows(cell))
            independence[cell.dataset] = list(independence_rows(cell))
        reliability += reliability_rows(cell, options.rows)
    yield _table("fidelity", chain(*fidelity.values()), options.out)
    yield _table("independence", chain(*independence.values()), options.out)
    yield _table("reliability", reliability, options.out)


def paper(options: Namespace) -> Iterator[str]:
    """The paper's tables and figures; runs stored in `options.out` are read."""
    if options.quick:
        vars(options).update(QUICK)
    found = [
        (cell, _rows(cell, options.methods, options.rows, options.out))
        for dataset in options.datasets
        for kind in options.models
        for cell in cells(dataset, kind, options.seeds, options.out / "models")
    ]
    rows = pd.concat([part for _, part in found], ignore_index=True)
    rows.to_csv(options.out / ROWS, index=False, na_rep="nan")
    yield _table("classifiers", summary.classifiers(rows), options.out)
    yield _table("reliability", summary.reliability(rows), options.out)
    yield _table("measures", summary.measures(rows), options.out)
    for family in FAMILIES:
        name = f"comparison-{family.partition(',')[2].strip().replace(' ', '-') or 'single'}"
        yield _table(name, summary.comparison(rows, family), options.out)
    yield from _figures(found, rows, options.out)


def reproduce(options: Namespace) -> Iterator[str]:
    """The paper's method to the letter, and a sweep; runs stored in `options.out` are read."""
    if options.quick:
        vars(options).update(QUICK_REPRODUCE)
    out, fits = options.out, Fits(options.out / "fits")
    settings = [VARIANTS[name] for name in options.settings]
    found: list[pd.DataFrame] = []
    for dataset, kind in product(options.datasets, options.models):
        each = cells(dataset, kind, options.seeds, out / "models", split=0)
        for i, cell in enumerate(tqdm(each, desc=f"{dataset} {kind}", total=options.seeds)):
            variants = (PRESET, LINE_SEARCH, *(() if i else settings))
            found += runs_of_variants(cell, variants, options.rows, fits, out / "runs")
    rows = pd.concat(found, ignore_index=True)
    first = rows[rows["seed"] == rows.groupby(summary.CELL)["seed"].transform("min")]
    yield _table("literal", reproduce_tables.preset(rows), out)
    yield _table("literal-sweep", reproduce_tables.sweep(first), out)
    yield _table("literal-requirement", lines(reproduce_tables.requirement(rows)), out)
    yield _table("literal-training", fits.records(), out)


def credible(options: Namespace) -> Iterator[str]:
    """Metrics of answers that no search optimises; runs stored in `options.out` are read."""
    if options.quick:
        vars(options).update(QUICK_CREDIBLE)
    splits = options.splits, options.trained_splits
    plan = RunPlan(options.cells, options.lines, *splits, options.rows, options.out, options.kept)
    if not plan.runs():
        raise DataError(
            f"got --kept, but {options.out} has no stored run of this size: omit --kept"
        )
    found = list(tqdm(measured(plan), desc="credible", total=len(plan.runs())))
    answers, real = (pd.concat(parts, ignore_index=True) for parts in zip(*found, strict=True))
    options.out.mkdir(parents=True, exist_ok=True)
    values = pd.DataFrame(credible_tables.values(answers, real))
    values.round(4).to_csv(options.out / "credible-values.csv", index=False)
    yield _table("credible", credible_tables.table(answers, real), options.out)
    yield _table("credible-paired", credible_tables.differences(answers), options.out)
    yield _table("credible-tiers", credible_tables.tiers(answers), options.out)


def contest(options: Namespace) -> Iterator[str]:
    """All methods with the same dials; runs stored in `options.out` are read."""
    if options.quick:
        vars(options).update(QUICK_CONTEST)
    settings = [SETTINGS[name] for name in options.settings]
    if options.data:
        load = _loader(options.data)
        settings = [Setting(load().name, load, NETWORKS, True, load().name)]
    counts = options.splits, options.seeds, options.rows
    names = options.models, options.methods, options.dials
    plan = ContestPlan(settings, *names, *counts, options.out)
    parts = list(tqdm(plan.answers(), desc="contest", total=plan.count))
    answers = pd.concat(parts, ignore_index=True)
    yield _table("contest", contest_tables.table(answers, contest_tables.COMPARED), options.out)
    yield _table("differences", contest_tables.differences(answers), options.out)
    yield _table("summary", contest_tables.summary(answers), options.out)
    found = dict(contest_tables.fronts(answers))
    for name, points in found.items():
        points.round(4).to_csv(options.out / f"front-{name}.csv", index=False)
    drawn = [(f"front-{name}", fronts(name, points)) for name, points in found.items()]
    yield _save(drawn, options.out)


def _loader(path: str) -> Callable[[], Dataset]:
    """The function that `module:function` names; it returns a `Dataset`.

    Raises:
        DataError: another text.
    """
    module, colon, name = path.partition(":")
    if not colon or not hasattr(found := import_module(module), name):
        raise DataError(
            f"--data: expected module:function, a function that returns a Dataset; got {path!r}"
        )
    load: Callable[[], Dataset] = getattr(found, name)
    return load


def speed(options: Namespace) -> Iterator[str]:
    """CPU seconds and memory of fit and generate."""
    cell = next(cells("adult", "ann", 1, options.cache))
    yield _table("speed", tqdm(timing.methods(cell), desc="methods"), options.out)
    counts = [10**i for i in range(1, 7) if 10**i <= options.most]
    yield _table("sizes", tqdm(timing.sizes(cell, counts), desc="sizes"), options.out)
    yield _table("on-hosts", tqdm(timing.on_hosts(), desc="hosts"), options.out)
    yield _table("frugality", frugality(cell), options.out)
    yield _table("wide", timing.wide(), options.out)


def trees(options: Namespace) -> Iterator[str]:
    """DEAR's costs compared with the optimum, on tree ensembles."""
    found = optimum.trees(options.datasets, options.models, options.rows)
    installed = [name for name in ("xgboost", "lightgbm") if find_spec(name)]
    yield _table("trees", tqdm(found, desc="trees"), options.out, ["scikit-learn", *installed])


def effects(options: Namespace) -> Iterator[str]:
    """Expected indirect changes compared with true effects, with and without tiers."""
    found = {
        name: known_effects.changes(SYSTEMS[name], options.seeds)
        for name in tqdm(options.systems, desc="effects")
    }
    rows = chain.from_iterable(known_effects.table(*each) for each in found.items())
    yield _table("effects", rows, options.out)
    drawn = [
        (name.replace(" ", "-"), effect_figures.effects(SYSTEMS[name], part))
        for name, part in found.items()
        if name in effect_figures.DRAWN
    ]
    yield _save(drawn, options.out)


def on_dice(options: Namespace) -> Iterator[str]:
    """DEAR compared with DiCE's own methods."""
    experiment = make_experiment(ON_DICE[options.dataset](), options.rows)
    outcomes = list(tqdm(dice.compare(experiment, options.methods), desc="DiCE"))
    rows = [dice.row_of(outcome, outcomes[0]) for outcome in outcomes]
    answers = [outcome.answers for outcome in outcomes]
    baselines = [each for each in answers if each.method in options.methods]
    own = [each for each in answers if each.method in dice.COMPARED]
    yield _table("dice", rows, options.out, ["dice-ml"])
    families = [by_support(answers, name, dice.SUPPORTS) for name in (dice.DEFAULT, dice.PAIRS)]
    yield _table("dice-matched", differences(own, baselines, families), options.out, ["dice-ml"])
    yield _table(
        "dice-requirements",
        lines(dice_requirements.requirements(outcomes)),
        options.out,
        ["dice-ml"],
    )


def on_alibi(options: Namespace) -> Iterator[str]:
    """DEAR compared with Alibi's CounterfactualRLTabular."""
    dropped = DROPPED[options.dataset]
    experiment = make_experiment(ON_ALIBI[options.dataset](), options.rows, without=dropped)
    found = alibi.compare(experiment, options.steps, options.many, options.epochs)
    count = len(options.steps) + 3 + len(alibi.SUPPORTS) + bool(options.many)
    table = list(tqdm(found, desc="Alibi", total=count))
    rows, answers = [line.row for line in table], [line.answers for line in table if line.answers]
    own = [each for each in answers if each.method in (alibi.DEFAULT, alibi.CHEAPEST)]
    families = [by_support(answers, alibi.DEFAULT, alibi.SUPPORTS)]
    baselines = [each for each in answers if each.method.startswith(alibi.BASELINE)]
    yield _table("alibi", rows, options.out, ["alibi"])
    yield _table("alibi-matched", differences(own, baselines, families), options.out, ["alibi"])
    yield _table("alibi-requirements", lines(alibi.requirements(rows)), options.out, ["alibi"])


def _cells(options: Namespace) -> Iterator[Cell]:
    """The selected cells, with a progress bar for each data set and classifier."""
    for dataset, kind in product(options.datasets, options.models):
        found = cells(dataset, kind, options.seeds, options.cache, split=options.split)
        yield from tqdm(found, desc=f"{dataset} {kind}", total=options.seeds)


def _rows(cell: Cell, methods: Sequence[str], rows: int, out: Path) -> pd.DataFrame:
    """The rows of every method on a cell, with a progress bar."""
    found = runs(cell, methods, rows, out / "runs")
    return pd.concat(list(tqdm(found, desc=cell.key, total=len(methods))), ignore_index=True)


def _figures(
    found: Sequence[tuple[Cell, pd.DataFrame]], rows: pd.DataFrame, out: Path
) -> Iterator[str]:
    """The figures and their tables."""
    drawn, fits = list(figures(rows)), Fits(out / "fits")
    first = {cell.dataset: (cell, part) for cell, part in reversed(found)}
    for dataset, (cell, part) in first.items():
        table, figure = entanglement(cell, fits.dear(cell, PRESET))
        table.to_csv(out / f"entanglement-{dataset}.csv", index=False)
        drawn.append((f"entanglement-{dataset}", figure))
        if dataset == "adult":
            example = qualitative(cell, out / "runs", part)
            yield _table("qualitative", example.to_dict("records"), out)
    yield _save(drawn, out)


def _save(drawn: Sequence[tuple[str, Figure]], out: Path) -> str:
    """Store figures, small enough for a repository; a text that says where."""
    from PIL import Image  # comes with matplotlib

    home = out / "figures"
    home.mkdir(parents=True, exist_ok=True)
    for name, figure in drawn:
        path = home / f"{name}.png"
        figure.savefig(path, dpi=90)
        with Image.open(path) as image:
            image.convert("RGB").quantize(COLOURS).save(path, optimize=True)
    return f"\n{len(drawn)} figures in {home}\n"


def _table(name: str, rows: Iterable[Row], folder: Path, packages: Sequence[str] = ()) -> str:
    return f"\n{name}\n\n{write(name, rows, folder, packages)}"
