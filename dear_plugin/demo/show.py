"""The show: what the demo prints and draws."""

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

from dear_plugin.demo.hosts import through_alibi, through_dice
from dear_plugin.demo.stage import Demo, Stage, stage
from dear_plugin.methods.dear import DEAR
from dear_plugin.results.describe import ASSOCIATION
from dear_plugin.results.recourses import Recourses

PEOPLE_SHOWN = 5

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Answer:
    """One route's answer.

    Attributes:
        route: the engine or a host.
        counterfactuals: one row per refused person.
        seconds: wall time, fitting included.
    """

    route: str
    counterfactuals: pd.DataFrame
    seconds: float


def run(plan: Demo) -> None:
    """Train, refuse, explain, print and draw."""
    scene = stage(plan)
    _say(scene.story)
    start = time.perf_counter()
    dear = DEAR(scene.model, scene.schema, act_on=scene.data.act_on, decoder=plan.decoder)
    recourses = dear.fit(scene.train).generate(scene.refused)
    seconds = time.perf_counter() - start
    _say(f"DEAR ({plan.decoder}): {recourses!r} in {seconds:.1f} s, fitting included.\n")
    _people(recourses)
    answers = [Answer("engine", recourses.counterfactuals, seconds)]
    answers += list(_through_hosts(scene, plan))
    _say(_summary(scene, recourses, answers).to_string(index=False))
    report = dear.diagnose(scene.test)
    _say(f"\nHow far to believe the indirect changes, on {len(scene.test):,} held-out rows:")
    _say(f"{report}\n")
    _draw(plan, recourses)


def _say(text: str) -> None:
    print(text, flush=True)


def _people(recourses: Recourses) -> None:
    _say(f"{PEOPLE_SHOWN} of them. {ASSOCIATION}")
    support = recourses.support
    for i in range(min(PEOPLE_SHOWN, len(recourses))):
        row = recourses.actions.iloc[i]
        _say(f"  row {recourses.factuals.index[i]}: {recourses.describe_row(i).rstrip('.')}.")
        if not row["acted_on"] or not row["success"]:
            continue
        _say(
            f"      cost {row['cost']:.2f} = direct {row['direct_cost']:.2f} + expected indirect"
            f" {row['indirect_cost']:.2f}; support {support.iloc[i]:.1f}; probability"
            f" {row['score_before']:.0%} -> {row['score_after']:.0%}"
        )
    _say("")


def _through_hosts(stage: Stage, plan: Demo) -> Iterator[Answer]:
    routes: dict[str, tuple[str, Callable[[Stage, Demo], pd.DataFrame]]] = {
        "DiCE": ("dice_ml", through_dice),
        "Alibi": ("alibi", through_alibi),
    }
    for route, (package, explain) in routes.items():
        if find_spec(package) is None:
            _say(f"{route}: {package} is not installed, left out")
            continue
        start = time.perf_counter()
        # DiCE's own encoder warns about pandas' future for every frame it sees.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            frame = explain(stage, plan)
        yield Answer(route, frame, time.perf_counter() - start)


def _summary(stage: Stage, recourses: Recourses, answers: list[Answer]) -> pd.DataFrame:
    """One line per route; the rows are scored again by the user's own model."""
    encoder, names = recourses.encoder, list(stage.schema.names)
    held = [*stage.data.protected, *stage.data.immutable]
    first = answers[0].counterfactuals[names]
    lines = []
    for answer in answers:
        frame = answer.counterfactuals[names]
        with torch.no_grad():
            accepted = (stage.model(encoder.encode(frame))[:, 0] > 0).numpy()
        cost = encoder.distance(encoder.rows(frame), recourses.x).sum(1).numpy()
        changed = (frame[held] != stage.refused[held]).to_numpy().sum()
        lines.append(
            {
                "route": answer.route,
                "people": len(frame),
                "success": f"{accepted.mean():.3f}",
                "held features changed": int(changed),
                "median cost": f"{np.median(cost[accepted]) if accepted.any() else np.nan:.3f}",
                "mean support": _mean_support(recourses, frame, accepted),
                "same rows as engine": f"{(frame == first).all(axis=1).mean():.3f}",
                "seconds": f"{answer.seconds:.1f}",
            }
        )
    return pd.DataFrame(lines)


def _mean_support(recourses: Recourses, frame: pd.DataFrame, accepted: Mask) -> str:
    """The mean support of a route's own accepted rows."""
    at = torch.from_numpy(np.flatnonzero(accepted))
    reached = recourses.encoder.rows(frame)[at]
    return f"{recourses.hooks.support(reached, at).mean():.2f}" if len(at) else "-"


def _draw(plan: Demo, recourses: Recourses) -> None:
    if find_spec("matplotlib") is None:
        _say("no picture: matplotlib is not installed (pip install 'dear-plugin[plots]')")
        return
    from dear_plugin.plots import overview

    where = plan.figure or Path(f"dear-demo-{plan.dataset}.png")
    overview(recourses, f"DEAR on {plan.dataset}").savefig(where, dpi=130)
    _say(f"picture: {where}")
