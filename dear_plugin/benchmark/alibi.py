"""DEAR beside Alibi's CounterfactualRLTabular: the same predictor, people and constraints.

python -m dear_plugin.benchmark alibi --rows 1000 --steps 10000 300 --out results/alibi

Each method works in a fresh process on label-encoded rows, is asked for all refused rows in one
call, and is measured on what it returns, as it returns it. CounterfactualRL moves features as if
they were independent: what it changes is all action, its confidence 1 and its reliance 0. DEAR's
cost is the whole, what it acts on and what it expects to move along being told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dear_plugin.benchmark.cfrl import Example, explainer, networks, train
from dear_plugin.benchmark.hosts import Mark, Scene, silent
from dear_plugin.benchmark.meter import Meter, in_fresh_process
from dear_plugin.benchmark.ruler import NOTHING, RULES, Line, Ruler, Rules
from dear_plugin.benchmark.tables import Row
from dear_plugin.search import Search

if TYPE_CHECKING:
    import dear_alibi

DEFAULT, CHEAPEST, RIVAL = "DEAR, default", "DEAR, cheapest", "CFRL"
CHEAPER = 10.0
MOST_MIB = 2048.0


def dear_rows(scene: Scene) -> list[Line]:
    """DEAR, DEAR after a change of the rules (the same fit), and the cheapest of DEAR."""
    ruler, (rules, more) = Ruler.of(scene), RULES[scene.name]
    dear, fit = _fitted(ruler, rules)
    found = [
        _explained(dear, ruler, DEFAULT, rules, Rules((), ()), fit),
        _explained(dear, ruler, _said(more), rules, more, Meter(0.0, 0.0)),
    ]
    dear, fit = _fitted(ruler, rules, search=Search.cheapest())
    return [*found, _explained(dear, ruler, CHEAPEST, rules, Rules((), ()), fit)]


def _fitted(ruler: Ruler, rules: Rules, **options: Any) -> tuple[dear_alibi.DEAR, Meter]:
    """DEAR under some rules, fitted, and what the fit costs."""
    import dear_alibi

    dear = dear_alibi.DEAR(
        ruler.predictor,
        **ruler.description,
        immutable_features=rules.immutable,
        ranges=rules.ranges,
        **options,
    )
    X = ruler.predictor.array(ruler.scene.train)
    with Meter() as fit:
        dear.fit(X)
    return dear, fit


def _explained(
    dear: dear_alibi.DEAR, ruler: Ruler, name: str, rules: Rules, extra: Rules, fit: Meter
) -> Line:
    """A fitted DEAR asked about all refused rows, twice, under more rules than its own."""
    asked: dict[str, Any] = {"immutable_features": extra.immutable, "ranges": extra.ranges}
    with Meter() as first:
        found = dear.explain(ruler.refused, Y_t=1, **asked)
    with Meter() as again:
        dear.explain(ruler.refused, Y_t=1, **asked)
    line = ruler.line(name, found.data["cf"]["X"], rules.plus(extra), found.data)
    return _priced(line, _price(len(ruler.refused), fit, (first, again)))


def many_rows(scene: Scene, count: int) -> Line:
    """DEAR asked for many rows in one call: the refused ones, over and over."""
    ruler, rules = Ruler.of(scene), RULES[scene.name][0]
    dear, fit = _fitted(ruler, rules)
    dear.explain(ruler.refused[:100], Y_t=1)
    X = np.resize(ruler.refused, (count, ruler.refused.shape[1]))
    with Meter() as explain:
        found = dear.explain(X, Y_t=1)
    X_cf = found.data["cf"]["X"]
    return Line(
        {
            "method": f"{DEFAULT}, {count:,} rows in one call",
            "rows": count,
            "validity": float(ruler.valid(X_cf).mean()),
            "violations": ruler.violations(X, X_cf, rules),
            **_price(count, fit, (explain, explain)),
        }
    )


def cfrl_rows(scene: Scene, example: Example) -> list[Line]:
    """CounterfactualRLTabular and its autoencoder."""
    ruler, rules = Ruler.of(scene), RULES[scene.name][0]
    rows = ruler.rows()
    with silent():
        nets = networks(rows, example)
        with Meter() as pretrain:
            train(nets, rows, example)
        cfrl = explainer(
            rows,
            ruler.predictor,
            nets,
            example,
            immutable=rules.immutable,
            growing=rules.growing,
        )
        with Meter() as fit:
            cfrl.fit(rows.X)
        asked = []
        for _ in range(2):
            with Meter() as explain:
                found = cfrl.explain(ruler.refused, Y_t=np.array([1]), C=[])
            asked.append(explain)
    line = ruler.line(f"{RIVAL}, {example.steps:,} steps", found.data["cf"]["X"], rules)
    price = _price(len(ruler.refused), fit, (asked[0], asked[1]), pretrain)
    return [_priced(line, price)]


def contest(
    scene: Scene, steps: Sequence[int], many: int, epochs: int = Example.epochs
) -> Iterator[Line]:
    """The lines of the table, each method in a fresh process.

    Args:
        scene: the model and the refused rows.
        steps: how long CounterfactualRL is trained, a line each.
        many: how many rows DEAR is asked for in one call, for its memory; 0 leaves that out.
        epochs: of CounterfactualRL's autoencoder.
    """
    yield from in_fresh_process(dear_rows, scene)
    if many:
        yield in_fresh_process(many_rows, scene, many)
    for count in steps:
        example = replace(Example(), steps=count, epochs=epochs)
        yield from in_fresh_process(cfrl_rows, scene, example)


def marks(lines: Sequence[Row]) -> Iterator[Mark]:
    """The marks that DEAR is to meet here."""
    dear, changed = lines[:2]
    yield Mark("validity", "1.00", f"{dear['validity']:.3f}", dear["validity"] == 1.0)
    yield Mark("violations", "0", str(dear["violations"]), dear["violations"] == 0)
    rivals = [line for line in lines if line["method"].startswith(RIVAL)]
    if rivals:
        yield from _rival_marks(dear, rivals)
    kept = changed["violations"] == 0 and changed["fit_cpu_s"] == 0.0
    yield Mark(
        "a change of immutables or ranges",
        "no new fit",
        f"validity {changed['validity']:.3f}, violations {changed['violations']}, no fit",
        kept,
    )
    for line in lines:
        if "one call" in line["method"]:
            most = line["explain_peak_mib"]
            yield Mark(
                f"peak memory of explain, {line['rows']:,} rows",
                f"< {MOST_MIB:.0f} MiB above the level before",
                f"{most:.0f} MiB",
                most < MOST_MIB,
            )


def _rival_marks(dear: Row, rivals: Sequence[Row]) -> Iterator[Mark]:
    """Cost and fit against CounterfactualRL, trained longest and shortest."""
    long, short = (pick(rivals, key=lambda r: r["fit_cpu_s"]) for pick in (max, min))
    yield Mark(
        f"direct cost, median, against {long['method']}",
        "no higher than its whole cost",
        f"{dear['direct_median']:.3f} (whole {dear['cost_median']:.3f}) against"
        f" {long['cost_median']:.3f}",
        dear["direct_median"] <= long["cost_median"],
    )
    whole = long["fit_cpu_s"] + long["autoencoder_cpu_s"]
    yield Mark(
        f"fit, against {long['method']} and its autoencoder",
        f"{CHEAPER:.0f} times cheaper",
        f"{dear['fit_cpu_s']:.2f} s against {whole:.1f} s: {whole / dear['fit_cpu_s']:.0f} times",
        dear["fit_cpu_s"] * CHEAPER <= whole,
    )
    yield Mark(
        f"fit, against {short['method']} without its autoencoder",
        "no dearer",
        f"{dear['fit_cpu_s']:.2f} s against {short['fit_cpu_s']:.1f} s",
        dear["fit_cpu_s"] <= short["fit_cpu_s"],
    )


def _priced(line: Line, price: Mapping[str, float]) -> Line:
    return replace(line, row={**line.row, **price})


def _said(more: Rules) -> str:
    return f"{DEFAULT}, {', '.join(more.immutable)} held and {', '.join(more.growing)} growing too"


def _price(
    n: int, fit: Meter, asked: tuple[Meter, Meter], autoencoder: Meter | None = None
) -> dict[str, float]:
    """What it costs to fit and to explain n rows, the first time and again."""
    first, again = asked
    before = autoencoder or Meter(NOTHING, NOTHING)
    return {
        "autoencoder_cpu_s": before.cpu_s,
        "fit_cpu_s": fit.cpu_s,
        "first_cpu_ms_a_row": 1000.0 * first.cpu_s / n,
        "cpu_ms_a_row": 1000.0 * again.cpu_s / n,
        "fit_peak_mib": np.nanmax([before.peak_mib, fit.peak_mib]),
        "explain_peak_mib": first.peak_mib,
    }
