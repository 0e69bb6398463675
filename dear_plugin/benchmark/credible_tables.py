"""The tables of `credible`: all measures of every cell and configuration, with intervals.

The table of requirements says in which cells they are met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import pandas as pd

from dear_plugin.benchmark.tables import Row, Table, shown, with_ends
from dear_plugin.rivals.intervals import Estimate, estimate, paired

REFERENCE, DEFAULT, WITHOUT_TIERS = "cheapest", "default", "without tiers"
# Shares of answers: the heading of the table and the column of the answers.
SHARES = {
    "credible": "credible",
    "replication": "replicated",
    "of those that need it": "replicated_indirect",
    "alone": "alone",
    "noise 1,000": "noise_1000",
    "noise 30,000": "noise_30000",
    "retrained": "still_accepted",
    "invalidated": "invalidated",
}
# Measures of answers, of their factuals, and of held-out rows of a group.
COMPARED = {
    "outliers": ("outlier", "anybody"),
    "outliers among accepted": ("outlier_accepted", "accepted"),
    "5-neighbour distance": ("distance", "anybody"),
    "unseen pairs": ("unseen", "anybody"),
}
FIDELITIES = ("joint", "independent", "dependence", "distribution")


def tables(found: pd.DataFrame) -> Iterator[tuple[str, Table]]:
    """All tables; lines without tiers have a table of their own."""
    answers = found[found["group"] == "answers"]
    answers = answers.assign(**{n: answers[n].astype(bool) for n in ("success", "credible")})
    real = found[found["group"] != "answers"]
    yield "credible", table(answers[answers["line"] != WITHOUT_TIERS], real)
    yield "requirements", requirements(answers, real)
    yield "paired", differences(answers[answers["line"] != WITHOUT_TIERS])
    yield "tiers", tiers(answers)


def table(answers: pd.DataFrame, real: pd.DataFrame) -> Iterator[Row]:
    """One row per cell and line; three values are of answers / factuals / held-out rows."""
    for (cell, line), own in answers.groupby(["cell", "line"], sort=False):
        solved = own["success"]
        shares = {h: with_ends(estimate(own[c])) for h, c in SHARES.items()}
        good = _credible(own)
        rows = real[(real["cell"] == cell) & (real["line"] == line)]
        joint, independent, dependence, distribution = (
            shown(own[name].iloc[0], 3) for name in FIDELITIES
        )
        yield {
            "cell": cell,
            "line": line,
            "rows": len(own),
            "success": f"{solved.mean():.3f}",
            "cost": shown(own["cost"].where(solved).median(), 3),
            "effort": shown(own["direct_cost"].where(solved).median(), 3),
            **shares,
            "calibration error": f"{calibration_error(own):.3f}",
            "reliance": shown(own["reliance"].median(), 3),
            **{heading: _three(own, rows, *of) for heading, of in COMPARED.items()},
            "outliers, answers - factuals": with_ends(_more_outliers(own)),
            "of credible answers": with_ends(_more_outliers(good)),
            "retrained, of credible answers": with_ends(estimate(good["still_accepted"])),
            "joint AUC (independent)": f"{joint} ({independent})",
            "dependence, distribution fidelity": f"{dependence}, {distribution}",
        }


def differences(answers: pd.DataFrame) -> Iterator[Row]:
    """The mean of every line minus `REFERENCE`, on rows of both."""
    metrics = {"cost": "cost", **SHARES, "outliers": "outlier", "unseen pairs": "unseen"}
    for cell, lines in _lines_of_cells(answers):
        base = lines.pop(REFERENCE, None)
        for line, other in lines.items() if base is not None else ():
            both = other.join(base, how="inner", rsuffix="_reference")
            found = {
                name: with_ends(paired(both[column], both[f"{column}_reference"]))
                for name, column in metrics.items()
            }
            yield {"cell": cell, "line": f"{line} - {REFERENCE}", "rows": len(both), **found}


def tiers(answers: pd.DataFrame) -> Iterator[Row]:
    """Each cell with and without tiers, and the mean difference on rows of both."""
    for cell, lines in _lines_of_cells(answers):
        if not {DEFAULT, WITHOUT_TIERS} <= set(lines):
            continue
        parts = [lines[name] for name in (DEFAULT, WITHOUT_TIERS)]
        shares = [_tier_shares(part) for part in parts]
        for how, part, own in zip(("with", "without"), parts, shares, strict=True):
            counted = part[part["replicated_indirect"].notna()]
            needed = f"{calibration_error(counted):.3f} (n = {len(counted)})"
            yield {
                "cell": cell,
                "tiers": how,
                "rows": len(part),
                **{name: with_ends(estimate(own[name])) for name in own},
                "calibration error": f"{calibration_error(part):.3f}",
                "of those that need it": needed if len(counted) else "",
            }
        one, other = shares[0].align(shares[1], join="inner", axis=0)
        found = {name: with_ends(paired(one[name], other[name])) for name in one}
        yield {"cell": cell, "tiers": "with - without", "rows": len(one), **found}


def _lines_of_cells(answers: pd.DataFrame) -> Iterator[tuple[str, dict[str, pd.DataFrame]]]:
    """Each cell and the rows of its lines, by row."""
    for cell, own in answers.groupby("cell", sort=False):
        lines = own.groupby("line", sort=False)
        yield str(cell), {str(name): part.set_index("row") for name, part in lines}


def _tier_shares(own: pd.DataFrame) -> pd.DataFrame:
    """The measures that `tiers` compares, of solved rows; credible and success of all rows."""
    solved = own["success"]
    return pd.DataFrame(
        {
            "success": solved.astype(float),
            "credible": own["credible"].astype(float),
            "cost": own["cost"].where(solved),
            "indirect cost": own["indirect_cost"].where(solved),
            "reliance 0": (own["reliance"] == 0.0).astype(float).where(solved),
            "outliers - factuals": own["outlier"] - own["outlier_before"],
            "retrained": own["still_accepted"],
            "replication": own["replicated"],
        }
    )


def _three(own: pd.DataFrame, real: pd.DataFrame, column: str, group: str) -> str:
    """A measure of answers / factuals / held-out rows: a share, or the median of a distance."""
    parts = own[column], own[f"{column}_before"], real.loc[real["group"] == group, column]
    values = (part.median() if column == "distance" else part.mean() for part in parts)
    return " / ".join(f"{value:.3f}" for value in values)


def requirements(answers: pd.DataFrame, real: pd.DataFrame) -> Iterator[Row]:
    """One row per requirement: the cells that meet it, the range, and the others.

    Args:
        answers: the answers of all cells and lines.
        real: the held-out rows of the same cells.
    """
    rows = dict(list(real.groupby("cell", sort=False)))
    for words, sign, bound, of, line in REQUIREMENTS:
        cells = answers[answers["line"] == line].groupby("cell", sort=False)
        every = {str(cell): of(own, rows[cell]) for cell, own in cells}
        found = {cell: each for cell, each in every.items() if not np.isnan(each.value)}
        if not found:
            continue
        missed = [cell for cell, each in found.items() if sign * (each.value - bound) < 0.0]
        values, has_bound = [each.value for each in found.values()], not np.isnan(bound)
        bounded = f"{words}: at {'least' if sign > 0 else 'most'} {bound:g}"
        yield {
            "requirement": bounded if has_bound else words,
            "configuration": line,
            "met in": f"{len(found) - len(missed)} of {len(found)} cells" if has_bound else "",
            "from, to": f"{min(values):.2f}, {max(values):.2f}",
            "not met": "; ".join(f"{cell} {_text(found[cell])}" for cell in missed),
        }


def calibration_error(own: pd.DataFrame) -> float:
    """The mean absolute difference of replication and confidence over ten bins of confidence.

    Bins are weighted by their number of answers.
    """
    both = own[["promised_confidence", "replicated"]].dropna()
    if both.empty:
        return np.nan
    bins = np.minimum((10.0 * both["promised_confidence"]).astype(int), 9)
    groups = both.groupby(bins)
    errors = (groups["replicated"].mean() - groups["promised_confidence"].mean()).abs()
    return float(np.average(errors, weights=groups.size()))


def _text(found: Estimate) -> str:
    """A measure, with its interval if it has one."""
    return f"{found.value:.3f}" if np.isnan(found.low) else with_ends(found)


def _credible(own: pd.DataFrame) -> pd.DataFrame:
    """The answers that are credible."""
    return own[own["credible"] & own["success"]]


def _more_outliers(own: pd.DataFrame) -> Estimate:
    """The share of outliers among answers minus that among their factuals."""
    return paired(own["outlier"], own["outlier_before"])


def _unseen(own: pd.DataFrame, real: pd.DataFrame) -> float:
    """The share of answers with an unseen pair minus that of held-out rows."""
    anybody = real["group"] == "anybody"
    return float(own["unseen"].mean() - real.loc[anybody, "unseen"].mean())


def _mean(column: str) -> Measure:
    """The mean of a column of all answers."""
    return lambda own, _: estimate(own[column])


def _only(of: Callable[[pd.DataFrame, pd.DataFrame], float]) -> Measure:
    """A measure without an interval."""
    return lambda own, real: Estimate(of(own, real), np.nan, np.nan)


def _still_accepted(own: pd.DataFrame, _: pd.DataFrame) -> Estimate:
    """The share of retrained models that accept credible answers."""
    return estimate(_credible(own)["still_accepted"])


# The name of a measure, 1 for "at least" and -1 for "at most", the bound, NaN for none, the
# measure of the answers of a cell and its held-out rows, and the configuration.
Measure: TypeAlias = Callable[[pd.DataFrame, pd.DataFrame], Estimate]
REQUIREMENTS: tuple[tuple[str, int, float, Measure, str], ...] = (
    ("replication", 1, 0.90, _mean("replicated"), DEFAULT),
    ("replication", 1, 0.97, _mean("replicated"), "max_reliance=0"),
    ("replication where needed", 1, 0.90, _mean("replicated_indirect"), DEFAULT),
    ("calibration error", -1, 0.05, _only(lambda own, _: calibration_error(own)), DEFAULT),
    ("noise reported, 1,000 rows", -1, 0.02, _mean("noise_1000"), DEFAULT),
    ("noise reported, 30,000 rows", -1, 0.02, _mean("noise_30000"), DEFAULT),
    ("unseen pairs above held-out rows", -1, 0.005, _only(_unseen), DEFAULT),
    ("joint AUC", -1, 0.53, _only(lambda own, _: own["joint"].iloc[0]), DEFAULT),
    ("retrained, of credible answers", 1, 0.90, _still_accepted, DEFAULT),
    ("retrained, of credible answers", 1, 0.90, _still_accepted, "copies"),
    (
        *("outliers of credible answers above factuals", -1, 0.03),
        *(lambda own, _: _more_outliers(_credible(own)), DEFAULT),
    ),
    ("refused after noise of .01 of the range", -1, np.nan, _mean("invalidated"), DEFAULT),
    ("rows with a credible answer", 1, np.nan, _mean("credible"), DEFAULT),
)
