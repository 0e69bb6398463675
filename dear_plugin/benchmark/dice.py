"""DiCE: DEAR compared with DiCE's own methods on the same model and rejected rows.

python -m dear_plugin.benchmark dice --rows 200 --out results/dice

Every method is called through `wrap_dice`, one row per call as in DiCE: its answers are projected
onto the constraints, scored by the model, and evaluated by the engine. Its time is that of its own
`generate_counterfactuals`; a frozen feature counts as changed if the answer before the projection
changes it. Baselines have no indirect changes: confidence 1, reliance 0. Plausibility is computed
in the same way for all methods.
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

from dear_plugin.benchmark.experiment import Experiment, silent
from dear_plugin.benchmark.matched import Answers, PlausibilityTest, at_support
from dear_plugin.benchmark.metrics.decision import Floats, Truths
from dear_plugin.benchmark.tables import Row
from dear_plugin.benchmark.timed_explainer import TimedExplainer
from dear_plugin.benchmark.wrappings import OnDice
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.target import Target
from dear_plugin.results.recourses import Recourses
from dear_plugin.search import Search

if TYPE_CHECKING:
    from dear_dice import DiceDEAR

DEFAULT, PAIRS, CHEAPEST = "DEAR, default", "DEAR, default, pairs too", "DEAR, cheapest"
# The configurations of DEAR in the comparison of costs of plausible answers.
COMPARED = (DEFAULT, PAIRS, CHEAPEST)
METHODS = ("random", "genetic", "kdtree", "gradient")
FROZEN = {"adult": ("sex", "race", "native-country"), "loan": ("gender",)}
SUPPORTS = (0.2, 0.4, 0.6, 0.8, 1.0)
# The fastest sparsity option of each method; none for `gradient`, which needs 20 seconds per row
# with it. Two columns of probabilities for methods that misinterpret a single one.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "random": {"posthoc_sparsity_algorithm": "binary"},
    "genetic": {"posthoc_sparsity_algorithm": "binary"},
    "kdtree": {"posthoc_sparsity_algorithm": "binary"},
    "gradient": {"posthoc_sparsity_param": None},
}
COLUMNS = {"random": 1, "genetic": 2, "kdtree": 2, "gradient": 1}


@dataclass(frozen=True)
class Outcome:
    """The answers and times of one method.

    Attributes:
        method: its name in the table.
        recourses: its answers, evaluated by the engine.
        changed: the number of frozen cells that its own answers change.
        build: CPU seconds to build the explainer; DEAR is fitted there.
        calls: CPU seconds of each call with one row.
        together: CPU seconds a row with all rows in one call.
        train: the training rows.
        certainty: `confidence` and `reliance` that the method returns, (n,) each; None for those
            of `recourses`.
    """

    method: str
    recourses: Recourses
    changed: int
    build: float
    calls: Sequence[float]
    together: float
    train: pd.DataFrame
    certainty: pd.DataFrame | None = None

    @property
    def solved(self) -> Truths:
        """(n,) bool, the solved rows."""
        solved: Truths = self.recourses.actions["success"].to_numpy(dtype=bool)
        return solved

    @property
    def cost(self) -> Floats:
        """(n,) total cost."""
        cost: Floats = self.recourses.actions["cost"].to_numpy(dtype=float)
        return cost

    @cached_property
    def answers(self) -> Answers:
        """Its costs, plausibility and support."""
        found = self.recourses
        test = PlausibilityTest(self.train, found.encoder, found.x)
        rows, support = found.proposal.rows, found.support.to_numpy()
        return test.answers(self.method, rows, self.cost, support, self.solved)

    @property
    def columns(self) -> dict[str, float]:
        """The mean metrics of its answers."""
        frame = self.recourses.actions if self.certainty is None else self.certainty
        confidence, reliance = (frame[name].to_numpy() for name in ("confidence", "reliance"))
        return self.answers.columns(confidence, reliance)

    @property
    def support(self) -> float:
        """The mean support of solved rows."""
        return self.columns["support"]


@dataclass(frozen=True)
class DiceComparison:
    """The comparison of an experiment.

    Attributes:
        experiment: the model and the rejected rows.
        frozen: the features that must not change.
        known: DEAR by pairs or not and `min_support`.
    """

    experiment: Experiment
    frozen: tuple[str, ...]
    known: dict[tuple[bool, float], Outcome] = field(default_factory=dict)

    def dice_method(self, method: str) -> Outcome:
        """One of DiCE's own methods."""
        import dice_ml

        data, model = self._interfaces(COLUMNS[method])
        with silent():
            start = time.process_time()
            explainer = dice_ml.Dice(data, model, method=method)
            build = time.process_time() - start
            timed, found = self._answers(explainer, ARGUMENTS[method])
        calls = timed.seconds
        together = _or_nan(np.mean, calls)
        train = self.experiment.train
        return Outcome(method, found, timed.changed, build, calls, together, train)

    def dear(self, name: str, **options: Any) -> Outcome:
        """DEAR with options of `DiceDEAR`."""
        import dear_dice

        data, model = self._interfaces(1)
        with silent():
            start = time.process_time()
            explainer = dear_dice.DiceDEAR(data, model, **options)
            build = time.process_time() - start
            together, certainty = self._together(explainer)
            timed, found = self._answers(explainer, {})
        return Outcome(
            name,
            found,
            timed.changed,
            build,
            timed.seconds,
            together,
            self.experiment.train,
            certainty,
        )

    def supported(self, least: float, pairs: bool = False) -> Outcome:
        """DEAR at the smallest `min_support` with at least some mean support.

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
        return self.dear(at_support(name, share), search=search, act_on=act_on)

    @property
    def pairs(self) -> list[str | tuple[str, ...]]:
        """The actionable features and their pairs."""
        names = [n for n in self.experiment.schema.names if n not in self.frozen]
        return [*names, *combinations(names, 2)]

    def _interfaces(self, columns: int) -> tuple[Any, Any]:
        """DiCE's data and model interface; new ones, as its methods modify them."""
        import dice_ml

        experiment = self.experiment
        with silent():
            data = dice_ml.Data(
                dataframe=experiment.train,
                continuous_features=experiment.numbers,
                outcome_name=experiment.target,
            )
            module = OnDice(experiment.model, experiment.schema, columns)
            return data, dice_ml.Model(model=module, backend="PYT", func="ohe-min-max")

    def _answers(
        self, explainer: Any, arguments: dict[str, Any]
    ) -> tuple[TimedExplainer, Recourses]:
        """The answers of all rejected rows, one row per call."""
        import dear_dice

        timed = TimedExplainer(explainer, self.frozen)
        method = dear_dice.wrap_dice(timed, **arguments).fit(self.experiment.train)
        within = Constraints(frozen=self.frozen)
        return timed, method.generate(self.experiment.refused, Target.of_class(1), within=within)

    def _together(self, explainer: DiceDEAR) -> tuple[float, pd.DataFrame]:
        """CPU seconds a row with all rows in one call, and confidence and reliance, (n, 2).

        The first call is not timed.
        """
        query = self.experiment.refused
        vary = [name for name in query.columns if name not in self.frozen]
        for _ in range(2):
            start = time.process_time()
            result = explainer.generate_counterfactuals(
                query, total_CFs=1, desired_class=1, features_to_vary=vary
            )
            seconds = time.process_time() - start
        names = ["confidence", "reliance"]
        parts = [each.actions[names].reindex([0]) for each in result.cf_examples_list]
        return seconds / len(query), pd.concat(parts, ignore_index=True)


def compare(experiment: Experiment, methods: Sequence[str]) -> Iterator[Outcome]:
    """DEAR, DiCE's methods, and DEAR with at least the support of each, also with pairs."""
    run = DiceComparison(experiment, FROZEN[experiment.name])
    yield run.dear(DEFAULT)
    yield run.dear(CHEAPEST, search=Search.cheapest())
    yield run.dear(f"{DEFAULT}, actionable features", act_on=experiment.act_on)
    yield run.dear(PAIRS, act_on=run.pairs)
    found: list[Outcome] = []
    for method in methods:
        found.append(run.dice_method(method))
        yield found[-1]
    for outcome in (each for each in found if each.solved.any()):
        for pairs in (False, True):
            run.supported(outcome.support, pairs)
    yield from run.known.values()


def row_of(outcome: Outcome, dear: Outcome) -> Row:
    """The table row of a method; `both` is the number of rows that it and the default solve.

    Args:
        outcome: the method.
        dear: the default of DEAR.
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
        **outcome.columns,
        "frozen_changed": outcome.changed,
        "build_cpu_s": outcome.build,
        "first_call_cpu_s": outcome.calls[0],
        "one_row_cpu_s": _or_nan(np.mean, outcome.calls[1:]),
        "all_rows_cpu_s": outcome.together,
    }


def _or_nan(average: Any, values: Any) -> float:
    """A mean or median, NaN without values."""
    return float(average(values)) if len(values) else float("nan")
