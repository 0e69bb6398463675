"""Marks: what DEAR is to meet beside DiCE's own methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dear_plugin.benchmark.dice import METHODS, Outcome
from dear_plugin.benchmark.hosts import Mark

FASTER = 100.0


def marks(outcomes: Sequence[Outcome]) -> Iterator[Mark]:
    """The marks that DEAR is to meet here, the default first among the outcomes."""
    dear = outcomes[0]
    solved = float(dear.solved.mean())
    yield Mark("rows solved", "100 %", f"{solved:.1%}", solved == 1.0)
    yield Mark("held features changed", "0", str(dear.changed), dear.changed == 0)
    rivals = [o for o in outcomes if o.method in METHODS and o.solved.any()]
    ours = [o for o in outcomes if o.method not in METHODS]
    for rival in rivals:
        yield from _cost_marks(ours, rival)
    for gradient in (rival for rival in rivals if rival.method == "gradient"):
        yield from _time_marks(dear, gradient)


def _cost_marks(ours: Sequence[Outcome], rival: Outcome) -> Iterator[Mark]:
    """Cost where DEAR is at least as well supported and as plausible, on rows that both solve."""
    fair = [line for line in ours if _fair(line, rival)]
    dear = min(fair or ours, key=lambda line: _cost(line, rival, np.median))
    for word, middle in (("mean", np.mean), ("median", np.median)):
        own, other = _cost(dear, rival, middle), _cost(rival, dear, middle)
        yield Mark(
            f"total cost, {word}, against {rival.method} ({dear.method})",
            "no higher at equal or better support and plausibility",
            f"{own:.3f} at {_standing(dear)} against {other:.3f} at {_standing(rival)}",
            bool(fair) and own <= other,
        )


def _time_marks(dear: Outcome, gradient: Outcome) -> Iterator[Mark]:
    warm = float(np.mean(dear.calls[1:]))
    for way, own in (("all rows in one call", dear.together), ("one row a call", warm)):
        times = gradient.together / own
        yield Mark(
            f"CPU seconds a query, {way}",
            f"{FASTER:.0f} times fewer than gradient without sparsity",
            f"{own:.2g} s against {gradient.together:.2g} s: {times:.0f} times fewer",
            times >= FASTER,
        )


def _fair(line: Outcome, rival: Outcome) -> bool:
    return line.support >= rival.support and _plausible(line) >= _plausible(rival)


def _plausible(outcome: Outcome) -> float:
    """The share of its answers that are plausible."""
    return outcome.columns["plausible"]


def _standing(outcome: Outcome) -> str:
    return f"support {outcome.support:.3f}, {_plausible(outcome):.1%} plausible"


def _cost(outcome: Outcome, other: Outcome, middle: Callable[..., Any]) -> float:
    """Over rows that both solve; infinite where there is none."""
    both = outcome.solved & other.solved
    return float(middle(outcome.cost[both])) if both.any() else float("inf")
