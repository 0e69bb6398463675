"""The text and the figure of the demo."""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill, indent

import pandas as pd
import torch

from dear_plugin import DEAR, Constraints, Recourses
from dear_plugin.demo.experiment import Demo, Experiment, make_experiment
from dear_plugin.demo.hosts import through_alibi, through_dice
from dear_plugin.results.changes import join
from dear_plugin.tell.describe import as_sentence, head, note

TITLE = "What to change, and what is expected to change along with it"
WIDTH = 100
MOST_HELD_OUT = 1_000
# The number of rows that the hosts explain; each host first fits on all training rows.
HOST_ROWS = 20
# The number of printed rows, and of rows that are searched for a credible action on one given
# feature.
LENGTH, LOOKED_AT = 5, 25

# The explanation of the columns of `summary`.
LEGEND = (
    "(Success: the share of rows that the model accepts. Cost: the sum of all changes. A number"
    " that changes by the range of its central 98 % of training values counts 1, and so does a"
    " changed category. Support: the share of the 5 nearest training rows that get the wanted"
    " decision. Alibi has the network as a black box.)"
)

_print = partial(print, flush=True)


def run(demo: Demo) -> None:
    """Train a model, explain its rejected rows, print and draw the results."""
    with quiet():
        experiment = make_experiment(demo)
        _print(f"{experiment.summary}\n")
        start = time.perf_counter()
        dear = DEAR(experiment.model, experiment.schema, **experiment.how).fit(experiment.train)
        recourses = dear.generate(experiment.refused, within=experiment.within)
        seconds = time.perf_counter() - start
        _print_story(dear, recourses, experiment)
        _print(f"This took {seconds:.1f} s, fitting included.\n")
        few = replace(experiment, refused=experiment.refused.iloc[:HOST_ROWS])
        first = recourses[list(few.refused.index)]
        found = {"Python": first.counterfactuals, **_through_hosts(few)}
        _print(f"The first {len(first)} of these rows in Python and through the other libraries:")
        _print(summary(few, first, found).to_string(index=False))
        _print(fill(LEGEND, WIDTH))
        held_out = experiment.test.iloc[:MOST_HELD_OUT]
        report = dear.diagnose(held_out)
        _print(f"\nOn {len(held_out):,} held-out rows: {report.verdict}")
        _print(f"(dependence fidelity {report.fidelity:.2f}; 0: independent, 1: as in the data)\n")
        _draw(demo, recourses)
        _print(_next(demo))


@contextmanager
def quiet(name: str = "dear_plugin") -> Iterator[None]:
    """A context without log lines below errors, which each host would repeat.

    Args:
        name: the name of the logger.
    """
    log = logging.getLogger(name)
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
        f" in {actions['credible'].sum()}. {note(dear.schema)}"
    )
    _print(fill(text, WIDTH, break_on_hyphens=False))
    shown = story(dear, recourses, features, within=experiment.within)
    for number, (answer, only) in enumerate(shown, 1):
        name, _, score = head(answer, 0).partition(": ")
        _print(f"\n{number}. {name}{f', if it acts on {only} only' * bool(only)}: {score}")
        text = fill(as_sentence(answer.describe_row(0)), WIDTH, break_on_hyphens=False)
        _print(indent(text, "   "))
    _print("")


def story(
    dear: DEAR, recourses: Recourses, features: Sequence[str], *, within: Constraints
) -> list[tuple[Recourses, str]]:
    """Up to `LENGTH` credible answers, each of another row, with different actions if possible.

    The first answers have different action sets. Next are answers restricted to a feature that no
    answer acts on alone, and then further answers.

    Args:
        dear: a fitted method.
        recourses: its answers.
        features: the actionable features.
        within: the constraints of the answers.

    Returns:
        Each answer, with the feature that its action was restricted to, or "".
    """
    credible = _credible(recourses)
    first = credible.drop_duplicates("acted_on")
    shown = {label: (recourses[label], "") for label in first.index}
    for name in features:
        if name not in set(first["acted_on"]) and len(shown) < LENGTH:
            rows = recourses.factuals.drop(list(shown)).iloc[:LOOKED_AT]
            answers = dear.generate(rows, within=replace(within, act_on=[name]))
            shown |= {label: (answers[label], name) for label in _credible(answers).index[:1]}
    rest = credible.index[:LENGTH].difference(list(shown), sort=False)
    shown |= {label: (recourses[label], "") for label in rest}
    return list(shown.values())[:LENGTH]


def _credible(recourses: Recourses) -> pd.DataFrame:
    """The actions of the rows with a credible answer that changes something."""
    actions = recourses.actions
    return actions[actions["credible"] & (actions["acted_on"] != "")]


def _through_hosts(experiment: Experiment) -> dict[str, pd.DataFrame]:
    """The counterfactuals through each installed host."""
    found, routes = {}, [("DiCE", "dice_ml", through_dice), ("Alibi", "alibi", through_alibi)]
    for route, package, explain in routes:
        if find_spec(package) is None:
            _print(f"{route}: skipped, as {package} is not installed")
            continue
        # DiCE's encoder causes a FutureWarning of pandas for every frame.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            found[route] = explain(experiment)
    return found


def summary(
    experiment: Experiment, recourses: Recourses, found: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """One line per route, the first is Python. The model itself scores the rows."""
    encoder, data = recourses.encoder, experiment.data
    names = list(experiment.schema.names)
    frozen = [*{*data.protected, *data.immutable, *experiment.within.frozen}]
    first, solved = next(iter(found.values())), recourses.actions["success"].to_numpy()
    lines = []
    for route, frame in found.items():
        rows = encoder.rows(frame)
        with torch.no_grad():
            accepted = experiment.model(encoder.expand(rows))[:, 0] > 0
        at = accepted.nonzero()[:, 0]
        cost = pd.Series(encoder.distance(rows, recourses.x).sum(1)[at])
        goal, trained = recourses.question.case.goal, recourses.question.trained
        support = trained.support(rows[at], goal, at).mean() if len(at) else None
        same = (frame[names] == first[names]).all(axis=1) | ~(solved | accepted.numpy())
        changed = (frame[frozen] != experiment.refused[frozen]).to_numpy().sum()
        lines.append(
            {
                "route": route,
                "rows": len(frame),
                "success": f"{len(at) / len(frame):.3f}",
                "frozen features changed": int(changed),
                "median cost": f"{cost.median():.3f}",
                "mean support": "-" if support is None else f"{support:.2f}",
                "same rows as in Python": f"{same.sum()} of {len(frame)}",
            }
        )
    return pd.DataFrame(lines)


def _draw(demo: Demo, recourses: Recourses) -> None:
    if find_spec("matplotlib") is None:
        _print("no figure: matplotlib is not installed (pip install 'dear-plugin[plots]')")
        return
    from dear_plugin import plots

    path = demo.figure or Path(f"dear-demo-{demo.dataset}.png")
    figure, (left, right) = plots.sheet(2, width=8.0, height=6.0, shares=(1.25, 1.0))
    recourses.plot(recourses.factuals.index[plots.largest_indirect(recourses)], ax=left)
    recourses.plot(ax=right)
    figure.suptitle(TITLE, fontsize=13, fontweight="bold")
    figure.supxlabel(recourses.note, fontsize=9)
    figure.savefig(path, dpi=100)
    _print(f"figure: {path}")


def _next(demo: Demo) -> str:
    """The text of the next commands."""
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
