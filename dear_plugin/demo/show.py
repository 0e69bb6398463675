"""Show: the printed output and the figure of the demo."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill, indent

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from dear_plugin.demo.experiment import Demo, Experiment, make_experiment
from dear_plugin.demo.hosts import through_alibi, through_dice
from dear_plugin.demo.story import story
from dear_plugin.methods.dear import DEAR
from dear_plugin.results.recourses import Recourses
from dear_plugin.results.wording import claim, join

TITLE = "What to change, and what is expected to change along with it"
WIDTH = 100
MOST_HELD_OUT = 1_000
# The rows that the hosts explain as well; each of them fits on all training rows first.
HOST_ROWS = 20

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RouteResult:
    """The counterfactuals of one route.

    Attributes:
        route: Python or a host.
        counterfactuals: one row per rejected row.
    """

    route: str
    counterfactuals: pd.DataFrame


def run(demo: Demo) -> None:
    """Train a model, explain its rejected rows, print and draw the results."""
    with _quiet():
        experiment = make_experiment(demo)
        _print(f"{experiment.summary}\n")
        start = time.perf_counter()
        dear = DEAR(
            experiment.model,
            experiment.schema,
            act_on=experiment.data.act_on,
            decoder=demo.decoder,
        )
        dear.fit(experiment.train)
        recourses = dear.generate(experiment.refused, within=experiment.within)
        seconds = time.perf_counter() - start
        _print_story(dear, recourses, experiment)
        _print(f"This took {seconds:.1f} s, fitting included.\n")
        few = replace(experiment, refused=experiment.refused.iloc[:HOST_ROWS])
        first = recourses[list(few.refused.index)]
        results = [RouteResult("Python", first.counterfactuals)]
        results += list(_through_hosts(few, demo))
        _print(f"The first {len(first)} of these rows in Python and through the other libraries:")
        _print(_summary(few, first, results).to_string(index=False))
        _print("(Alibi has the network as a black box.)")
        held_out = experiment.test.iloc[:MOST_HELD_OUT]
        report = dear.diagnose(held_out)
        _print(f"\nOn {len(held_out):,} held-out rows: {report.verdict}")
        _print(f"(dependence fidelity {report.fidelity:.2f}; 0: independent, 1: as in the data)\n")
        _draw(demo, recourses)
        _print(_next(demo))


def _print(text: str) -> None:
    print(text, flush=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the log's remarks on the data, which each route would repeat."""
    log = logging.getLogger("dear_plugin")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _print_story(dear: DEAR, recourses: Recourses, experiment: Experiment) -> None:
    actions, features = recourses.actions, experiment.data.act_on
    text = (
        f"DEAR may act on {join(features)}. Of {len(recourses)} rejected rows,"
        f" {actions['success'].sum()} have recourse, which meets all criteria of a credible answer"
        f" in {actions['credible'].sum()}."
    )
    _print(fill(f"{text} {claim(dear.schema).note}", WIDTH, break_on_hyphens=False))
    episodes = story(dear, recourses, features, within=experiment.within)
    for number, episode in enumerate(episodes, 1):
        words = episode.answer.describe_row(0)
        text = f"{words[:1].upper()}{words[1:].rstrip('.')}."
        _print(f"\n{number}. {episode.head}")
        _print(indent(fill(text, WIDTH, break_on_hyphens=False), "   "))
    _print("")


def _next(demo: Demo) -> str:
    """The commands to go on with."""
    python = Path(sys.executable)
    if python.is_relative_to(Path.cwd()):
        python = python.relative_to(Path.cwd())
    other = "loan" if demo.dataset == "adult" else "adult"
    commands = {
        f"{python} -m dear_plugin demo --dataset {other}": "other data",
        f"{python} -m pydoc dear_plugin.DEAR": "the same for a frame and a model of your own",
    }
    if find_spec("dear_plugin.benchmark"):  # in a checkout
        commands[f"{python} -m dear_plugin.benchmark --help"] = "comparisons with other methods"
    width = max(map(len, commands))
    return "\n".join(["\nNext:", *(f"  {c:<{width}}  # {why}" for c, why in commands.items())])


def _through_hosts(experiment: Experiment, demo: Demo) -> Iterator[RouteResult]:
    routes: dict[str, tuple[str, Callable[[Experiment, Demo], pd.DataFrame]]] = {
        "DiCE": ("dice_ml", through_dice),
        "Alibi": ("alibi", through_alibi),
    }
    for route, (package, explain) in routes.items():
        if find_spec(package) is None:
            _print(f"{route}: {package} is not installed, skipped")
            continue
        # DiCE's encoder raises a FutureWarning of pandas for every frame.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            frame = explain(experiment, demo)
        yield RouteResult(route, frame)


def _summary(
    experiment: Experiment, recourses: Recourses, results: list[RouteResult]
) -> pd.DataFrame:
    """One line per route; the rows are scored by the model itself."""
    encoder, names = recourses.encoder, list(experiment.schema.names)
    data, within = experiment.data, experiment.within
    frozen = [*{*data.protected, *data.immutable, *within.frozen}]
    first, solved = results[0].counterfactuals[names], recourses.actions["success"].to_numpy()
    lines = []
    for result in results:
        frame = result.counterfactuals[names]
        with torch.no_grad():
            accepted = (experiment.model(encoder.encode(frame))[:, 0] > 0).numpy()
        cost = encoder.distance(encoder.rows(frame), recourses.x).sum(1).numpy()
        same = (frame == first).all(axis=1).to_numpy() | ~(solved | accepted)
        changed = (frame[frozen] != experiment.refused[frozen]).to_numpy().sum()
        lines.append(
            {
                "route": result.route,
                "rows": len(frame),
                "success": f"{accepted.mean():.3f}",
                "frozen features changed": int(changed),
                "median cost": f"{np.median(cost[accepted]) if accepted.any() else np.nan:.3f}",
                "mean support": _mean_support(recourses, frame, accepted),
                "same rows as in Python": f"{same.sum()} of {len(frame)}",
            }
        )
    return pd.DataFrame(lines)


def _mean_support(recourses: Recourses, frame: pd.DataFrame, accepted: Mask) -> str:
    """The mean support of a route's own accepted rows."""
    at = torch.from_numpy(np.flatnonzero(accepted))
    reached = recourses.encoder.rows(frame)[at]
    return f"{recourses.lazy_answers.support(reached, at).mean():.2f}" if len(at) else "-"


def _draw(demo: Demo, recourses: Recourses) -> None:
    if find_spec("matplotlib") is None:
        _print("no figure: matplotlib is not installed (pip install 'dear-plugin[plots]')")
        return
    path = demo.figure or Path(f"dear-demo-{demo.dataset}.png")
    figure = recourses.plot(title=TITLE)
    figure.savefig(path, dpi=100)
    _print(f"figure: {path}")
