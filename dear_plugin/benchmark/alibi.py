"""Alibi: DEAR compared with CounterfactualRLTabular on the same predictor, rows and constraints.

python -m dear_plugin.benchmark alibi --rows 1000 --steps 10000 300 --out results/alibi

Each method runs in a fresh process on label-encoded rows, explains all rejected rows in one call,
and is evaluated on the rows that it returns. CounterfactualRL treats features as independent: all
its changes are direct, its confidence is 1 and its reliance 0. DEAR's cost is the total; the
table also has its direct and indirect parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dear_plugin.benchmark.alibi_metrics import (
    NOTHING,
    RULES,
    AlibiMetrics,
    FeatureRules,
    Line,
)
from dear_plugin.benchmark.cfrl import Example, explainer, networks, train
from dear_plugin.benchmark.experiment import Experiment, Requirement, silent
from dear_plugin.benchmark.matched import at_support
from dear_plugin.benchmark.meter import Meter, in_fresh_process
from dear_plugin.benchmark.tables import Row
from dear_plugin.search import Search

if TYPE_CHECKING:
    import dear_alibi

DEFAULT, CHEAPEST, BASELINE = "DEAR, default", "DEAR, cheapest", "CFRL"
SUPPORTS = (0.6, 0.8, 1.0)
CHEAPER = 10.0
MOST_MIB = 2048.0


def dear_rows(experiment: Experiment) -> list[Line]:
    """DEAR, the same fit under more constraints, the cheapest search, and with support."""
    metrics, (rules, more) = AlibiMetrics.of(experiment), RULES[experiment.name]
    dear, fit = _fitted(metrics, rules)
    found = [
        _explained(dear, metrics, DEFAULT, rules, FeatureRules((), ()), fit),
        _explained(dear, metrics, _name_with(more), rules, more, Meter(0.0, 0.0)),
    ]
    others = {CHEAPEST: Search.cheapest()} | {
        at_support(DEFAULT, share): Search(min_support=share) for share in SUPPORTS
    }
    for name, search in others.items():
        dear, fit = _fitted(metrics, rules, search=search)
        found.append(_explained(dear, metrics, name, rules, FeatureRules((), ()), fit))
    return found


def _fitted(
    metrics: AlibiMetrics, rules: FeatureRules, **options: Any
) -> tuple[dear_alibi.DEAR, Meter]:
    """DEAR fitted under constraints, and the cost of the fit."""
    import dear_alibi

    dear = dear_alibi.DEAR(
        metrics.predictor,
        **metrics.description,
        immutable_features=rules.immutable,
        ranges=rules.ranges,
        **options,
    )
    X = metrics.predictor.array(metrics.experiment.train)
    with Meter() as fit:
        dear.fit(X)
    return dear, fit


def _explained(
    dear: dear_alibi.DEAR,
    metrics: AlibiMetrics,
    name: str,
    rules: FeatureRules,
    extra: FeatureRules,
    fit: Meter,
) -> Line:
    """A fitted DEAR that explains all rejected rows twice, under additional constraints."""
    call: dict[str, Any] = {"immutable_features": extra.immutable, "ranges": extra.ranges}
    with Meter() as first:
        found = dear.explain(metrics.refused, Y_t=1, **call)
    with Meter() as again:
        dear.explain(metrics.refused, Y_t=1, **call)
    line = metrics.line(name, found.data["cf"]["X"], rules.plus(extra), found.data)
    return _priced(line, _price(len(metrics.refused), fit, (first, again)))


def many_rows(experiment: Experiment, count: int) -> Line:
    """DEAR with many rows in one call: the rejected ones, repeated."""
    metrics, rules = AlibiMetrics.of(experiment), RULES[experiment.name][0]
    dear, fit = _fitted(metrics, rules)
    dear.explain(metrics.refused[:100], Y_t=1)
    X = np.resize(metrics.refused, (count, metrics.refused.shape[1]))
    with Meter() as explain:
        found = dear.explain(X, Y_t=1)
    X_cf = found.data["cf"]["X"]
    return Line(
        {
            "method": f"{DEFAULT}, {count:,} rows in one call",
            "rows": count,
            "validity": float(metrics.valid(X_cf).mean()),
            "violations": metrics.violations(X, X_cf, rules),
            **_price(count, fit, (explain, explain)),
        }
    )


def cfrl_rows(experiment: Experiment, example: Example) -> list[Line]:
    """CounterfactualRLTabular and its autoencoder."""
    metrics, rules = AlibiMetrics.of(experiment), RULES[experiment.name][0]
    rows = metrics.rows()
    with silent():
        nets = networks(rows, example)
        with Meter() as pretrain:
            train(nets, rows, example)
        cfrl = explainer(
            rows,
            metrics.predictor,
            nets,
            example,
            immutable=rules.immutable,
            increasing=rules.increasing,
        )
        with Meter() as fit:
            cfrl.fit(rows.X)
        meters = []
        for _ in range(2):
            with Meter() as explain:
                found = cfrl.explain(metrics.refused, Y_t=np.array([1]), C=[])
            meters.append(explain)
    line = metrics.line(f"{BASELINE}, {example.steps:,} steps", found.data["cf"]["X"], rules)
    price = _price(len(metrics.refused), fit, (meters[0], meters[1]), pretrain)
    return [_priced(line, price)]


def compare(
    experiment: Experiment, steps: Sequence[int], many: int, epochs: int = Example.epochs
) -> Iterator[Line]:
    """The lines of the table, each method in a fresh process.

    Args:
        experiment: the model and the rejected rows.
        steps: training steps of CounterfactualRL, one line each.
        many: rows of one large call of DEAR, for its memory; 0 leaves it out.
        epochs: of CounterfactualRL's autoencoder.
    """
    yield from in_fresh_process(dear_rows, experiment)
    if many:
        yield in_fresh_process(many_rows, experiment, many)
    for count in steps:
        example = replace(Example(), steps=count, epochs=epochs)
        yield from in_fresh_process(cfrl_rows, experiment, example)


def requirements(lines: Sequence[Row]) -> Iterator[Requirement]:
    """The requirements on DEAR."""
    dear, changed = lines[:2]
    yield Requirement("validity", "1.00", f"{dear['validity']:.3f}", dear["validity"] == 1.0)
    yield Requirement("violations", "0", str(dear["violations"]), dear["violations"] == 0)
    baselines = [line for line in lines if line["method"].startswith(BASELINE)]
    if baselines:
        yield from _baseline_requirements(dear, baselines)
    kept = changed["violations"] == 0 and changed["fit_cpu_s"] == 0.0
    yield Requirement(
        "a change of immutable features or ranges",
        "no new fit",
        f"validity {changed['validity']:.3f}, violations {changed['violations']}, no fit",
        kept,
    )
    for line in lines:
        if "one call" in line["method"]:
            most = line["explain_peak_mib"]
            yield Requirement(
                f"peak memory of explain, {line['rows']:,} rows",
                f"< {MOST_MIB:.0f} MiB above the level before",
                f"{most:.0f} MiB",
                most < MOST_MIB,
            )


def _baseline_requirements(dear: Row, baselines: Sequence[Row]) -> Iterator[Requirement]:
    """Cost and fit against CounterfactualRL with the most and the fewest steps."""
    long, short = (pick(baselines, key=lambda r: r["fit_cpu_s"]) for pick in (max, min))
    yield Requirement(
        f"direct cost, median, against {long['method']}",
        "no higher than its whole cost",
        f"{dear['direct_median']:.3f} (whole {dear['cost_median']:.3f}) against"
        f" {long['cost_median']:.3f}",
        dear["direct_median"] <= long["cost_median"],
    )
    whole = long["fit_cpu_s"] + long["autoencoder_cpu_s"]
    yield Requirement(
        f"fit, against {long['method']} and its autoencoder",
        f"{CHEAPER:.0f} times cheaper",
        f"{dear['fit_cpu_s']:.2f} s against {whole:.1f} s: {whole / dear['fit_cpu_s']:.0f} times",
        dear["fit_cpu_s"] * CHEAPER <= whole,
    )
    yield Requirement(
        f"fit, against {short['method']} without its autoencoder",
        "no higher",
        f"{dear['fit_cpu_s']:.2f} s against {short['fit_cpu_s']:.1f} s",
        dear["fit_cpu_s"] <= short["fit_cpu_s"],
    )


def _priced(line: Line, price: Mapping[str, float]) -> Line:
    return replace(line, row={**line.row, **price})


def _name_with(more: FeatureRules) -> str:
    immutable, increasing = ", ".join(more.immutable), ", ".join(more.increasing)
    return f"{DEFAULT}, {immutable} immutable and {increasing} increasing too"


def _price(
    n: int, fit: Meter, calls: tuple[Meter, Meter], autoencoder: Meter | None = None
) -> dict[str, float]:
    """The cost of the fit and of explaining n rows, in a first and a second call."""
    first, again = calls
    before = autoencoder or Meter(NOTHING, NOTHING)
    return {
        "autoencoder_cpu_s": before.cpu_s,
        "fit_cpu_s": fit.cpu_s,
        "first_cpu_ms_a_row": 1000.0 * first.cpu_s / n,
        "cpu_ms_a_row": 1000.0 * again.cpu_s / n,
        "fit_peak_mib": np.nanmax([before.peak_mib, fit.peak_mib]),
        "explain_peak_mib": first.peak_mib,
    }
