"""Show: the printed output and the figure of the demo."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from dear_plugin.demo.experiment import Demo, Experiment, make_experiment
from dear_plugin.demo.hosts import through_alibi, through_dice
from dear_plugin.methods.dear import DEAR
from dear_plugin.results.recourses import Recourses
from dear_plugin.results.wording import ASSOCIATION

ROWS_SHOWN = 5

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RouteResult:
    """The counterfactuals of one route.

    Attributes:
        route: the engine or a host.
        counterfactuals: one row per rejected row.
        seconds: wall time, fitting included.
    """

    route: str
    counterfactuals: pd.DataFrame
    seconds: float


def run(demo: Demo) -> None:
    """Train a model, explain its rejected rows, print and draw the results."""
    experiment = make_experiment(demo)
    _print(experiment.summary)
    start = time.perf_counter()
    dear = DEAR(
        experiment.model, experiment.schema, act_on=experiment.data.act_on, decoder=demo.decoder
    )
    recourses = dear.fit(experiment.train).generate(experiment.refused)
    seconds = time.perf_counter() - start
    _print(f"DEAR ({demo.decoder}): {recourses!r} in {seconds:.1f} s, fitting included.\n")
    _print_rows(recourses)
    results = [RouteResult("engine", recourses.counterfactuals, seconds)]
    results += list(_through_hosts(experiment, demo))
    _print(_summary(experiment, recourses, results).to_string(index=False))
    report = dear.diagnose(experiment.test)
    _print(f"\nFidelity of the indirect changes, on {len(experiment.test):,} held-out rows:")
    _print(f"{report}\n")
    _draw(demo, recourses)


def _print(text: str) -> None:
    print(text, flush=True)


def _print_rows(recourses: Recourses) -> None:
    _print(f"The first {ROWS_SHOWN} rows. {ASSOCIATION}")
    support = recourses.support
    for i in range(min(ROWS_SHOWN, len(recourses))):
        row = recourses.actions.iloc[i]
        _print(f"  row {recourses.factuals.index[i]}: {recourses.describe_row(i).rstrip('.')}.")
        if not row["acted_on"] or not row["success"]:
            continue
        _print(
            f"      cost {row['cost']:.2f} = direct {row['direct_cost']:.2f} + expected indirect"
            f" {row['indirect_cost']:.2f}; support {support.iloc[i]:.1f}; probability"
            f" {row['score_before']:.0%} -> {row['score_after']:.0%}"
        )
    _print("")


def _through_hosts(experiment: Experiment, demo: Demo) -> Iterator[RouteResult]:
    routes: dict[str, tuple[str, Callable[[Experiment, Demo], pd.DataFrame]]] = {
        "DiCE": ("dice_ml", through_dice),
        "Alibi": ("alibi", through_alibi),
    }
    for route, (package, explain) in routes.items():
        if find_spec(package) is None:
            _print(f"{route}: {package} is not installed, skipped")
            continue
        start = time.perf_counter()
        # DiCE's encoder raises a FutureWarning of pandas for every frame.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            frame = explain(experiment, demo)
        yield RouteResult(route, frame, time.perf_counter() - start)


def _summary(
    experiment: Experiment, recourses: Recourses, results: list[RouteResult]
) -> pd.DataFrame:
    """One line per route; the rows are scored by the model itself."""
    encoder, names = recourses.encoder, list(experiment.schema.names)
    frozen = [*experiment.data.protected, *experiment.data.immutable]
    first = results[0].counterfactuals[names]
    lines = []
    for result in results:
        frame = result.counterfactuals[names]
        with torch.no_grad():
            accepted = (experiment.model(encoder.encode(frame))[:, 0] > 0).numpy()
        cost = encoder.distance(encoder.rows(frame), recourses.x).sum(1).numpy()
        changed = (frame[frozen] != experiment.refused[frozen]).to_numpy().sum()
        lines.append(
            {
                "route": result.route,
                "rows": len(frame),
                "success": f"{accepted.mean():.3f}",
                "frozen features changed": int(changed),
                "median cost": f"{np.median(cost[accepted]) if accepted.any() else np.nan:.3f}",
                "mean support": _mean_support(recourses, frame, accepted),
                "same rows as engine": f"{(frame == first).all(axis=1).mean():.3f}",
                "seconds": f"{result.seconds:.1f}",
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
    from dear_plugin.plots import overview

    path = demo.figure or Path(f"dear-demo-{demo.dataset}.png")
    overview(recourses, f"DEAR on {demo.dataset}").savefig(path, dpi=130)
    _print(f"figure: {path}")
