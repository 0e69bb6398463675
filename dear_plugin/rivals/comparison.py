"""The answers of several fitted methods to the same rows, side by side."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dear_plugin import _html
from dear_plugin._threads import bar, lazy, one_thread
from dear_plugin._threads import progress as showing
from dear_plugin.errors import SchemaError, SettingError, near
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.goals import Label, Target
from dear_plugin.results.recourses import Recourses
from dear_plugin.rivals.intervals import (
    LEAST,
    Floats,
    Truths,
    difference,
    estimate,
    estimates,
    is_plausible,
)

if TYPE_CHECKING:
    from dear_plugin.plots.ink import Figure

COPIED = ["success", "credible", "cost", "direct_cost", "indirect_cost", "confidence", "reliance"]
NOTE = (
    "Costs: medians over solved rows with 95 % bootstrap intervals, in units of cost."
    " Differences: the reference's cost minus the method's, on rows with plausible answers of both"
    f" (plausibility {LEAST:g}, or the factual's own if that is lower)."
)
# The columns of the tables in notebooks, and their cells.
SUMMARY = {
    "rows": "{rows:,.0f}",
    "success": "{success:.0%}",
    "credible": "{credible:.0%}",
    "cost": "{cost:.2f} [{cost_low:.2f}, {cost_high:.2f}]",
    "effort": "{effort:.2f}",
    "plausibility": "{plausibility:.2f}",
    "support": "{support:.2f}",
    "action alone": "{alone:.0%}",
    "CPU ms a row": "{cpu_ms:.1f}",
}
DIFFERENCES = {
    "rows": "{rows:,.0f}",
    "its cost": "{cost:.2f}",
    "cost of the reference": "{reference_cost:.2f}",
    "difference": "{difference:.2f} [{low:.2f}, {high:.2f}]",
    "reference is cheaper": "{cheaper:.0%}",
}


@one_thread()
def compare(
    methods: Mapping[str, RecourseMethod],
    frame: pd.DataFrame,
    target: Target | Label | None = None,
    *,
    within: Constraints | None = None,
    reference: str | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: bool = True,
) -> Comparison:
    """The answers of several methods to the same n rows, side by side.

    All methods should have the same model and training rows: each method scores rows with its own
    model, and measures plausibility and support among its own training rows.

    Args:
        methods: fitted methods by name: `DEAR`, a baseline, or an explainer of a host that
            `dear_dice.wrap_dice` or `dear_alibi.wrap_alibi` has wrapped.
        frame: n rows, as for `RecourseMethod.generate`.
        target: the wanted decision, as for `generate`.
        within: the constraints of this call, for every method.
        reference: the name of the method that the others are compared with; None for the first.
        seed: the seed of the bootstrap.
        n_jobs: the threads that search the rows, as for `generate`.
        progress: show a bar of work of more than two seconds, in a terminal or a notebook.

    Raises:
        SettingError: methods are not a mapping of names to `RecourseMethod`, or do not include
            the reference.
        NotFittedError: a method is not fitted.
        SchemaError: the methods do not have the same features on the same scales.

    Example:
        >>> from dear_plugin import DEAR, Schema, compare
        >>> from dear_plugin.rivals import GrowingSpheres, NearestAccepted
        >>> from dear_plugin.datasets import load_loan
        >>> data = load_loan(600)
        >>> schema = Schema.infer(data.features, immutable=data.immutable)
        >>> model = lambda f: (f["income"] > f["income"].median()).to_numpy(float)
        >>> kinds = {"DEAR": DEAR, "nearest": NearestAccepted, "spheres": GrowingSpheres}
        >>> methods = {
        ...     name: kind(model, schema).fit(data.features) for name, kind in kinds.items()
        ... }
        >>> compare(methods, data.features.head(10), progress=False)
        Comparison(3 methods, 10 rows, reference 'DEAR')
    """
    _check_comparable(methods)
    reference = next(iter(methods)) if reference is None else reference
    if reference not in methods:
        raise SettingError(f"reference: {near([reference], methods)}")
    results, parts = {}, []
    with showing(progress):
        for name, method in bar([*methods.items()], "compare, methods"):
            start = time.process_time()
            results[name] = method.generate(frame, target, within=within, n_jobs=n_jobs)
            parts.append(_tidy(name, method, results[name], time.process_time() - start))
    return Comparison(pd.concat(parts, ignore_index=True), results, reference, seed)


@dataclass(frozen=True, repr=False)
class Comparison:
    """The answers of several methods to the same n rows, from `compare`.

    Attributes:
        table: a line for each method and row, in the order of both. `method`; `row`, the label of
            the frame's index; `needed`, whether the method's model rejects the factual; `success`,
            `credible`, `cost`, `direct_cost`, `indirect_cost`, `confidence`, `reliance` and
            `reason` as in `Recourses.actions`; `changed`, the number of features that differ;
            `alone`, 1 if the action alone suffices, else 0; `plausibility` and `support`;
            `plausible`, whether the plausibility is at least that of one training row in twenty,
            or of the factual; `seconds`, the CPU time of the method's call over its rows. `alone`,
            `plausibility` and `support` are NaN if a row has no answer.
        results: the `Recourses` by name of the method.
        reference: the name of the method that the others are compared with.
        seed: the seed of the bootstrap.

    Example:
        >>> from dear_plugin import Schema, compare
        >>> from dear_plugin.rivals import GrowingSpheres, NearestAccepted
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> methods = (
        ...     kind(lambda f: f["savings"] / 60, schema).fit(frame)
        ...     for kind in (GrowingSpheres, NearestAccepted)
        ... )
        >>> compared = compare(dict(zip("ab", methods)), frame.head(5), progress=False)
        >>> compared.table.groupby("method").size().tolist()
        [5, 5]
    """

    table: pd.DataFrame
    results: Mapping[str, Recourses]
    reference: str
    seed: int

    def __len__(self) -> int:
        """The number of rows (n)."""
        return len(self.results[self.reference])

    def __repr__(self) -> str:
        """The numbers of methods and rows, and the reference."""
        size = f"{len(self.results)} methods, {len(self):,} rows"
        return f"Comparison({size}, reference {self.reference!r})"

    def __str__(self) -> str:
        """The summary as text."""
        return f"{self!r}\n{self.summary.to_string()}"

    @lazy
    def summary(self) -> pd.DataFrame:
        """A line for each method, with its name as index.

        `rows` is the number of rejected rows; `success` and `credible` are shares of these. Over
        solved rows, there are the median `cost` with its 95 % interval, `cost_low` and
        `cost_high`, the median `effort` (the direct cost), the mean `plausibility` and `support`,
        and the share `alone` in which the action alone suffices. `cpu_ms` is the CPU time of a
        row.
        """
        lines = {name: self._summary(self._lines(name)) for name in self.results}
        return pd.DataFrame.from_dict(lines, orient="index").rename_axis("method")

    @lazy
    def differences(self) -> pd.DataFrame:
        """The reference's cost minus that of every other method, with its name as index.

        It has, over the `rows` for which both have a plausible answer, the medians
        `reference_cost` and `cost`, and the median `difference` with its 95 % interval, `low` and
        `high`, negative if the reference is cheaper. `cheaper` is the share of rows in which it
        is.
        """
        columns = ["rows", "reference_cost", "cost", "difference", "low", "high", "cheaper"]
        others = [name for name in self.results if name != self.reference]
        lines = {name: self._difference(name) for name in others}
        table = pd.DataFrame.from_dict(lines, orient="index", columns=columns)
        return table.rename_axis("method").astype({"rows": int})

    @lazy
    def estimates(self) -> pd.DataFrame:
        """A line for each method and measure: `method, measure, value, low, high, rows`.

        The measures of `summary`, `plausible` and `seconds`, each with its 95 % interval.
        """
        return estimates(self.table, seed=self.seed)

    def plot(self) -> Figure:
        """Every method's cost and effort against its plausibility; needs matplotlib."""
        from dear_plugin.plots import fronts

        return fronts(self.table)

    def dots(self) -> Figure:
        """Every method's measures with their intervals; needs matplotlib."""
        from dear_plugin.plots import dots

        return dots(self.estimates)

    def _repr_html_(self) -> str:
        """The summary and the differences as tables, for notebooks."""
        parts = [_html.STYLE, _html.note(repr(self)), _table("method", self.summary, SUMMARY)]
        if len(self.differences):
            title = f"{self.reference} compared with"
            parts.append(_table(title, self.differences, DIFFERENCES))
        return "".join([*parts, _html.note(NOTE)])

    def _lines(self, name: str) -> pd.DataFrame:
        """The lines of a method."""
        return self.table[self.table["method"] == name]

    def _summary(self, lines: pd.DataFrame) -> dict[str, float]:
        """The summary of a method's lines."""
        needed = lines[lines["needed"]]
        solved = needed[needed["success"]]
        cost = needed["cost"].where(needed["success"])
        median = estimate(cost, median=True, seed=self.seed)
        return {
            "rows": len(needed),
            "success": needed["success"].mean(),
            "credible": needed["credible"].mean(),
            **dict(zip(("cost", "cost_low", "cost_high"), median, strict=True)),
            "effort": solved["direct_cost"].median(),
            **solved[["plausibility", "support", "alone"]].mean(),
            "cpu_ms": 1000.0 * lines["seconds"].mean(),
        }

    def _difference(self, name: str) -> list[float]:
        """The line of a method in `differences`."""
        (own, mine), (cost, plausible) = map(self._costs, (self.reference, name))
        found = difference(own, cost, mine & plausible, seed=self.seed)
        return [found.rows, found.cost, found.other, *found.difference, found.cheaper]

    def _costs(self, name: str) -> tuple[Floats, Truths]:
        """(n,) the costs of a method, and (n,) bool, rows with a plausible answer."""
        lines = self._lines(name)
        plausible: Truths = (lines["plausible"] & lines["needed"]).to_numpy(bool)
        return lines["cost"].to_numpy(np.float64), plausible


def _table(title: str, lines: pd.DataFrame, columns: Mapping[str, str]) -> str:
    """A table with the index of lines as its first column.

    Args:
        title: of the first column.
        lines: with the values.
        columns: the formats of the others, by title.
    """
    records = zip(lines.index, lines.to_dict("records"), strict=True)
    cells = [[name, *_cells(record, columns.values())] for name, record in records]
    return _html.table([title, *columns], cells, right=columns)


def _cells(record: Mapping[Hashable, Any], formats: Iterable[str]) -> Iterator[str]:
    """The values of a record in some formats, "-" for an unknown one."""
    for text in formats:
        cell = text.format_map(record)
        yield "-" if "nan" in cell else cell


def _tidy(name: str, method: RecourseMethod, result: Recourses, seconds: float) -> pd.DataFrame:
    """The lines of a method in `Comparison.table`; `seconds` are those of all rows."""
    actions, n = result.actions.reset_index(drop=True), len(result)
    success, found = actions["success"], actions["plausibility"].to_numpy(np.float64)
    own = method.trained.plausibility(result.x).double().numpy()
    alone = (actions["reliance"] == 0.0).astype(float)
    return pd.DataFrame(
        {
            "method": name,
            "row": pd.Series(list(result.factuals.index), dtype=object).infer_objects(),
            "needed": ~result.proposal.accepted.numpy(),
            **actions[COPIED],
            "alone": alone.where(actions["reliance"].notna()),
            "plausibility": found,
            "plausible": success & is_plausible(found, own),
            "support": result.support.reset_index(drop=True).where(success),
            "changed": result.changed.sum(1).numpy(),
            "seconds": seconds / max(n, 1),
            "reason": actions["reason"],
        },
        index=actions.index,
    )


# The largest relative difference of equal scales.
SAME_SCALE = 0.01


def _check_comparable(methods: Any) -> None:
    """Raise an error unless the methods, by name, can be compared.

    Raises:
        SettingError: they are not a mapping of names to `RecourseMethod`, or an empty one.
        NotFittedError: a method is not fitted.
        SchemaError: the methods do not have the same features on the same scales.
    """
    if not isinstance(methods, Mapping) or not methods:
        got = type(methods).__name__ if methods else "none"
        raise SettingError(f"methods must be a mapping of names to fitted methods, got {got}")
    for name, method in methods.items():
        if not isinstance(method, RecourseMethod):
            raise SettingError(
                f"methods[{name!r}] must be a RecourseMethod, got {type(method).__name__}; wrap"
                " explainers of DiCE with dear_dice.wrap_dice, of Alibi with"
                " dear_alibi.wrap_alibi"
            )
        # An error if it is not fitted.
        _ = method.trained
    scales = {k: {f.name: f.unit_of_cost / f.cost for f in m.schema} for k, m in methods.items()}
    _check_scales(scales)


def _check_scales(scales: Mapping[str, Mapping[str, float]]) -> None:
    """Raise an error unless all methods have the features of the first, on the same scales.

    Args:
        scales: for each method, the change of each feature that costs 1.
    """
    (first, expected), *others = scales.items()
    for name, found in others:
        names = sorted(set(expected) ^ set(found))
        if names:
            raise SchemaError(
                f"the methods must have the same features: {names} are only in one of {first!r}"
                f" and {name!r}; make both for the same columns"
            )
        unequal = [f for f in expected if not np.isclose(found[f], expected[f], SAME_SCALE, 0.0)]
        if unequal:
            pairs = ", ".join(f"{f!r}: {expected[f]:g} and {found[f]:g}" for f in unequal)
            raise SchemaError(
                f"the methods must scale features alike, else their costs have different units;"
                f" got, as the change that costs 1 in {first!r} and {name!r}, {pairs}; fit both on"
                " the same rows, with the same central= and costs= (or Constraints(costs=) for"
                " all); wrap_alibi(explainer, schema) takes those of a schema"
            )
