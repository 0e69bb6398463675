"""DEAR beside DiCE's own methods: the same model, the same refused people, the same ruler.

python -m dear_plugin.benchmark dice --rows 200 --out results/dice

Every method answers through `wrap_dice`, one row a call as DiCE does it: its answers are held to
the constraints, scored again by the model, and measured by the engine. Its time is that of its own
`generate_counterfactuals` alone, and a held feature counts as changed where its own answer, before
it is held, changes it. Of a rival's answer nothing is expected to follow: its confidence is 1, its
reliance 0; plausibility is measured alike for all.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dear_plugin.benchmark.hosts import Scene, silent
from dear_plugin.benchmark.matched import Answers, Oddness
from dear_plugin.benchmark.rulers.decision import Floats, Truths
from dear_plugin.benchmark.tables import Row
from dear_plugin.benchmark.watched import Watched
from dear_plugin.benchmark.wrappings import OnDice
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.target import Target
from dear_plugin.results.recourses import Recourses
from dear_plugin.search import Search

if TYPE_CHECKING:
    from dear_dice import DiceDEAR

DEFAULT, PAIRS, CHEAPEST = "DEAR, default", "DEAR, default, pairs too", "DEAR, cheapest"
# The lines of DEAR whose costs are set against those of a rival where both are plausible.
COMPARED = (DEFAULT, PAIRS, CHEAPEST)
METHODS = ("random", "genetic", "kdtree", "gradient")
HELD = {"adult": ("sex", "race", "native-country"), "loan": ("gender",)}
SUPPORTS = (0.2, 0.4, 0.6, 0.8, 1.0)
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
        train: the training rows.
        worth: what its answers are worth, by its own account: `confidence` and `reliance`, (n,)
            each; None where nothing is expected to follow.
    """

    method: str
    recourses: Recourses
    changed: int
    build: float
    calls: Sequence[float]
    together: float
    train: pd.DataFrame
    worth: pd.DataFrame | None = None

    @property
    def solved(self) -> Truths:
        """(n,) which rows are solved."""
        solved: Truths = self.recourses.actions["success"].to_numpy(dtype=bool)
        return solved

    @property
    def cost(self) -> Floats:
        """(n,) total cost."""
        cost: Floats = self.recourses.actions["cost"].to_numpy(dtype=float)
        return cost

    @cached_property
    def answers(self) -> Answers:
        """Its answers, and whether they are plausible."""
        found = self.recourses
        oddness = Oddness(self.train, found.encoder, found.x)
        return oddness.answers(self.method, found.proposal.rows, self.cost, self.solved)

    @property
    def columns(self) -> dict[str, float]:
        """What its answers are worth."""
        worth = self.recourses.actions if self.worth is None else self.worth
        confidence, reliance = (worth[name].to_numpy() for name in ("confidence", "reliance"))
        return self.answers.columns(confidence, reliance)

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
        known: DEAR at some `min_support`, pairs too or not.
    """

    scene: Scene
    held: tuple[str, ...]
    known: dict[tuple[bool, float], Outcome] = field(default_factory=dict)

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
        together = _or_nan(np.mean, calls)
        train = self.scene.train
        return Outcome(method, found, watched.changed, build, calls, together, train)

    def dear(self, name: str, **options: Any) -> Outcome:
        """DEAR with options of `DiceDEAR`."""
        import dear_dice

        data, model = self._interfaces(1)
        with silent():
            start = time.process_time()
            explainer = dear_dice.DiceDEAR(data, model, **options)
            build = time.process_time() - start
            together, worth = self._together(explainer)
            watched, found = self._ask(explainer, {})
        return Outcome(
            name,
            found,
            watched.changed,
            build,
            watched.seconds,
            together,
            self.scene.train,
            worth,
        )

    def supported(self, least: float, pairs: bool = False) -> Outcome:
        """DEAR at the smallest `min_support` whose mean support is no lower than that.

        Args:
            least: the mean support to reach.
            pairs: act on pairs of features as well as on one at a time.
        """
        for share in SUPPORTS:
            if (pairs, share) not in self.known:
                self.known[pairs, share] = self._at_support(share, pairs)
            if self.known[pairs, share].support >= least:
                break
        return self.known[pairs, share]

    def _at_support(self, share: float, pairs: bool) -> Outcome:
        name, search = PAIRS if pairs else DEFAULT, Search(min_support=share)
        act_on = self.pairs if pairs else None
        return self.dear(f"{name}, min_support={share:g}", search=search, act_on=act_on)

    @property
    def pairs(self) -> list[str | tuple[str, ...]]:
        """What may change, one at a time and in pairs."""
        names = [n for n in self.scene.schema.names if n not in self.held]
        return [*names, *combinations(names, 2)]

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

    def _together(self, explainer: DiceDEAR) -> tuple[float, pd.DataFrame]:
        """CPU seconds a row with all rows in one call, the first such call not counted.

        And what the answers are worth, (n, 2), as DEAR tells it beside each.
        """
        query = self.scene.refused
        vary = [name for name in query.columns if name not in self.held]
        for _ in range(2):
            start = time.process_time()
            told = explainer.generate_counterfactuals(
                query, total_CFs=1, desired_class=1, features_to_vary=vary
            )
            seconds = time.process_time() - start
        worth = [example.actions[["confidence", "reliance"]] for example in told.cf_examples_list]
        parts = [part.reindex([0]) for part in worth]
        return seconds / len(query), pd.concat(parts, ignore_index=True)


def contest(scene: Scene, methods: Sequence[str]) -> Iterator[Outcome]:
    """DEAR, then DiCE's methods, then DEAR where it is as well supported as each of them.

    With pairs of features to act on; as well supported as `gradient` also without.
    """
    run = Contest(scene, HELD[scene.name])
    yield run.dear(DEFAULT)
    yield run.dear(CHEAPEST, search=Search.cheapest())
    yield run.dear(f"{DEFAULT}, on what people can act on", act_on=scene.act_on)
    yield run.dear(PAIRS, act_on=run.pairs)
    found: list[Outcome] = []
    for method in methods:
        found.append(run.incumbent(method))
        yield found[-1]
    for outcome in (each for each in found if each.solved.any()):
        run.supported(outcome.support, pairs=True)
        if outcome.method == "gradient":
            run.supported(outcome.support)
    yield from run.known.values()


def row_of(outcome: Outcome, dear: Outcome) -> Row:
    """One method's line; `both` are the rows that the default and the method solve.

    Args:
        outcome: the method.
        dear: DEAR as it comes, the default.
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
        **outcome.columns,
        "held_changed": outcome.changed,
        "build_cpu_s": outcome.build,
        "first_call_cpu_s": outcome.calls[0],
        "one_row_cpu_s": _or_nan(np.mean, outcome.calls[1:]),
        "all_rows_cpu_s": outcome.together,
    }


def _or_nan(middle: Any, values: Any) -> float:
    """A mean or median, NaN of nothing."""
    return float(middle(values)) if len(values) else float("nan")
