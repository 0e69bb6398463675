"""DEAR beside DiCE's own methods: the same model, the same refused people, the same ruler.

python -m dear_plugin.benchmark dice --rows 200 --out results/dice

Every method answers through `wrap_dice`, one row a call as DiCE does it: its answers are held to
the constraints, scored again by the model, and measured by the engine. Its time is that of its own
`generate_counterfactuals` alone, and a held feature counts as changed where its own answer, before
it is held, changes it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dear_plugin.benchmark.hosts import Mark, Scene, silent
from dear_plugin.benchmark.tables import Row
from dear_plugin.benchmark.watched import Watched
from dear_plugin.benchmark.wrappings import OnDice
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.target import Target
from dear_plugin.results.recourses import Recourses
from dear_plugin.search import Search

if TYPE_CHECKING:
    from dear_dice import DiceDEAR

METHODS = ("random", "genetic", "kdtree", "gradient")
HELD = {"adult": ("sex", "race", "native-country"), "loan": ("gender",)}
SUPPORTS = (0.2, 0.4, 0.6, 0.8, 1.0)
FASTER = 100.0
# Each with the cheapest sparsity that it has; `gradient` without, as the mark says: with it a row
# takes 20 seconds. Two columns of probabilities where a method misreads one.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "random": {"posthoc_sparsity_algorithm": "binary"},
    "genetic": {"posthoc_sparsity_algorithm": "binary"},
    "kdtree": {"posthoc_sparsity_algorithm": "binary"},
    "gradient": {"posthoc_sparsity_param": None},
}
COLUMNS = {"random": 1, "genetic": 2, "kdtree": 2, "gradient": 1}


@dataclass(frozen=True)
class Outcome:
    """What came of one method.

    Attributes:
        method: its name in the table.
        recourses: its answers, measured by the engine.
        changed: how many held cells it changed by itself.
        build: CPU seconds to build the explainer; there DEAR learns.
        calls: CPU seconds of each call with one row.
        together: CPU seconds a row where all rows come in one call.
    """

    method: str
    recourses: Recourses
    changed: int
    build: float
    calls: Sequence[float]
    together: float

    @property
    def solved(self) -> npt.NDArray[np.bool_]:
        """(n,) which rows are solved."""
        solved: npt.NDArray[np.bool_] = self.recourses.actions["success"].to_numpy(dtype=bool)
        return solved

    @property
    def cost(self) -> npt.NDArray[np.float64]:
        """(n,) total cost."""
        cost: npt.NDArray[np.float64] = self.recourses.actions["cost"].to_numpy(dtype=float)
        return cost

    @property
    def support(self) -> float:
        """The mean support of what it solved."""
        return _or_nan(np.mean, self.recourses.support.to_numpy()[self.solved])


@dataclass(frozen=True)
class Contest:
    """Who competes, over what.

    Attributes:
        scene: the model and the refused rows.
        held: the features that are not to change.
    """

    scene: Scene
    held: tuple[str, ...]

    def incumbent(self, method: str) -> Outcome:
        """One of DiCE's own methods."""
        import dice_ml

        data, model = self._interfaces(COLUMNS[method])
        with silent():
            start = time.process_time()
            explainer = dice_ml.Dice(data, model, method=method)
            build = time.process_time() - start
            watched, found = self._ask(explainer, ARGUMENTS[method])
        calls = watched.seconds
        return Outcome(method, found, watched.changed, build, calls, _or_nan(np.mean, calls))

    def dear(self, name: str, **options: Any) -> Outcome:
        """DEAR with options of `DiceDEAR`."""
        import dear_dice

        data, model = self._interfaces(1)
        with silent():
            start = time.process_time()
            explainer = dear_dice.DiceDEAR(data, model, **options)
            build = time.process_time() - start
            together = self._together(explainer)
            watched, found = self._ask(explainer, {})
        return Outcome(name, found, watched.changed, build, watched.seconds, together)

    def supported(self, least: float, pairs: bool = False) -> Outcome:
        """DEAR at the smallest `min_support` whose mean support is no lower than that.

        Args:
            least: the mean support to reach.
            pairs: act on pairs of features as well as on one at a time.
        """
        names = [n for n in self.scene.schema.names if n not in self.held]
        act_on = [*names, *combinations(names, 2)] if pairs else None
        name = "DEAR, pairs too" if pairs else "DEAR"
        for share in SUPPORTS:
            search = Search(min_support=share)
            outcome = self.dear(f"{name}, min_support={share:g}", search=search, act_on=act_on)
            if outcome.support >= least:
                break
        return outcome

    def _interfaces(self, columns: int) -> tuple[Any, Any]:
        """DiCE's data and model interface; fresh, for its methods write into them."""
        import dice_ml

        scene = self.scene
        with silent():
            data = dice_ml.Data(
                dataframe=scene.train, continuous_features=scene.numbers, outcome_name=scene.target
            )
            module = OnDice(scene.model, scene.schema, columns)
            return data, dice_ml.Model(model=module, backend="PYT", func="ohe-min-max")

    def _ask(self, explainer: Any, arguments: dict[str, Any]) -> tuple[Watched, Recourses]:
        """All refused rows, one a call."""
        import dear_dice

        watched = Watched(explainer, self.held)
        method = dear_dice.wrap_dice(watched, **arguments).fit(self.scene.train)
        within = Constraints(frozen=self.held)
        return watched, method.generate(self.scene.refused, Target.of_class(1), within=within)

    def _together(self, explainer: DiceDEAR) -> float:
        """CPU seconds a row with all rows in one call, the first such call not counted."""
        query = self.scene.refused
        vary = [name for name in query.columns if name not in self.held]
        for _ in range(2):
            start = time.process_time()
            explainer.generate_counterfactuals(
                query, total_CFs=1, desired_class=1, features_to_vary=vary
            )
            seconds = time.process_time() - start
        return seconds / len(query)


def contest(scene: Scene, methods: Sequence[str]) -> Iterator[Outcome]:
    """DEAR, then DiCE's methods, then DEAR where it is as well supported as `gradient`."""
    run = Contest(scene, HELD[scene.name])
    yield run.dear("DEAR")
    yield run.dear("DEAR, on what people can act on", act_on=scene.act_on)
    for method in methods:
        outcome = run.incumbent(method)
        yield outcome
        if method == "gradient" and outcome.solved.any():
            yield run.supported(outcome.support)
            yield run.supported(outcome.support, pairs=True)


def row_of(outcome: Outcome, dear: Outcome) -> Row:
    """One method's line; `both` are the rows that DEAR and the method solve.

    Args:
        outcome: the method.
        dear: DEAR as it comes.
    """
    own, both = outcome.cost[outcome.solved], outcome.solved & dear.solved
    return {
        "method": outcome.method,
        "rows": len(outcome.solved),
        "solved": float(outcome.solved.mean()),
        "cost_median": _or_nan(np.median, own),
        "cost_mean": _or_nan(np.mean, own),
        "both": int(both.sum()),
        "both_median": _or_nan(np.median, outcome.cost[both]),
        "both_mean": _or_nan(np.mean, outcome.cost[both]),
        "both_median_dear": _or_nan(np.median, dear.cost[both]),
        "both_mean_dear": _or_nan(np.mean, dear.cost[both]),
        "support": outcome.support,
        "held_changed": outcome.changed,
        "build_cpu_s": outcome.build,
        "first_call_cpu_s": outcome.calls[0],
        "one_row_cpu_s": _or_nan(np.mean, outcome.calls[1:]),
        "all_rows_cpu_s": outcome.together,
    }


def marks(outcomes: Sequence[Outcome]) -> Iterator[Mark]:
    """The marks that DEAR is to meet here."""
    dear = outcomes[0]
    solved = float(dear.solved.mean())
    yield Mark("rows solved", "100 %", f"{solved:.1%}", solved == 1.0)
    yield Mark("held features changed", "0", str(dear.changed), dear.changed == 0)
    gradient = next((o for o in outcomes if o.method == "gradient"), None)
    if gradient is None or not gradient.solved.any():
        return
    yield from _cost_marks(outcomes[-1], gradient)
    for way, own in (("all rows in one call", dear.together), ("one row a call", _warm(dear))):
        times = gradient.together / own
        yield Mark(
            f"CPU seconds a query, {way}",
            f"{FASTER:.0f} times fewer than gradient without sparsity",
            f"{own:.2g} s against {gradient.together:.2g} s: {times:.0f} times fewer",
            times >= FASTER,
        )


def _cost_marks(dear: Outcome, gradient: Outcome) -> Iterator[Mark]:
    """Cost at equal or better support, on the rows that both solve."""
    both = dear.solved & gradient.solved
    fair = dear.support >= gradient.support
    for word, middle in (("mean", np.mean), ("median", np.median)):
        own, other = _or_nan(middle, dear.cost[both]), _or_nan(middle, gradient.cost[both])
        yield Mark(
            f"total cost, {word} ({dear.method})",
            "no higher than gradient's at equal or better support",
            f"{own:.3f} at support {dear.support:.3f} against {other:.3f} at"
            f" {gradient.support:.3f}",
            fair and own <= other,
        )


def _warm(outcome: Outcome) -> float:
    return _or_nan(np.mean, outcome.calls[1:])


def _or_nan(middle: Any, values: Any) -> float:
    """A mean or median, NaN of nothing."""
    return float(middle(values)) if len(values) else float("nan")
