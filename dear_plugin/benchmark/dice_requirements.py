"""Requirements on DEAR compared with DiCE's own methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dear_plugin.benchmark.dice import METHODS, Outcome
from dear_plugin.benchmark.experiment import Requirement

FASTER = 100.0


def requirements(outcomes: Sequence[Outcome]) -> Iterator[Requirement]:
    """The requirements on DEAR; the default is the first of the outcomes."""
    dear = outcomes[0]
    solved = float(dear.solved.mean())
    yield Requirement("rows solved", "100 %", f"{solved:.1%}", solved == 1.0)
    yield Requirement("frozen features changed", "0", str(dear.changed), dear.changed == 0)
    baselines = [o for o in outcomes if o.method in METHODS and o.solved.any()]
    lines = [o for o in outcomes if o.method not in METHODS]
    for baseline in baselines:
        yield from _cost_requirements(lines, baseline)
    for gradient in (each for each in baselines if each.method == "gradient"):
        yield from _time_requirements(dear, gradient)


def _cost_requirements(lines: Sequence[Outcome], baseline: Outcome) -> Iterator[Requirement]:
    """Cost at equal or better support and plausibility, on rows that both solve."""
    matched = [line for line in lines if _matches(line, baseline)]
    dear = min(matched or lines, key=lambda line: _cost(line, baseline, np.median))
    for word, average in (("mean", np.mean), ("median", np.median)):
        own, other = _cost(dear, baseline, average), _cost(baseline, dear, average)
        yield Requirement(
            f"total cost, {word}, against {baseline.method} ({dear.method})",
            "no higher at equal or better support and plausibility",
            f"{own:.3f} at {_levels(dear)} against {other:.3f} at {_levels(baseline)}",
            bool(matched) and own <= other,
        )


def _time_requirements(dear: Outcome, gradient: Outcome) -> Iterator[Requirement]:
    warm = float(np.mean(dear.calls[1:]))
    for kind, own in (("all rows in one call", dear.together), ("one row a call", warm)):
        times = gradient.together / own
        yield Requirement(
            f"CPU seconds a query, {kind}",
            f"{FASTER:.0f} times fewer than gradient without sparsity",
            f"{own:.2g} s against {gradient.together:.2g} s: {times:.0f} times fewer",
            times >= FASTER,
        )


def _matches(line: Outcome, baseline: Outcome) -> bool:
    enough = _plausible(line) >= _plausible(baseline)
    return line.support >= baseline.support and enough


def _plausible(outcome: Outcome) -> float:
    """The share of its answers that are plausible."""
    return outcome.columns["plausible"]


def _levels(outcome: Outcome) -> str:
    return f"support {outcome.support:.3f}, {_plausible(outcome):.1%} plausible"


def _cost(outcome: Outcome, other: Outcome, average: Callable[..., Any]) -> float:
    """The average over rows that both solve; infinite if there is none."""
    both = outcome.solved & other.solved
    return float(average(outcome.cost[both])) if both.any() else float("inf")
