"""The tables of `credible`: all measures of every cell and configuration, with intervals.

The table of requirements says in which cells they are met.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
        good = own[own["credible"] & solved]
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
            "outliers, answers - factuals": _outliers(own),
            "of credible answers": _outliers(good),
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


def _outliers(own: pd.DataFrame) -> str:
    """The share of outliers among answers minus that among their factuals."""
    return with_ends(_more_outliers(own))


# A value and the ends of its interval, or NaN.
Found: TypeAlias = Sequence[float]
Measure: TypeAlias = Callable[[pd.DataFrame, pd.DataFrame], Found]


@dataclass(frozen=True)
class Requirement:
    """A bound on a measure of the answers of a cell.

    Attributes:
        words: the name of the measure.
        sign: 1 for "at least", -1 for "at most".
        bound: the bound; NaN for no requirement.
        of: a function from the answers of a cell and its held-out rows to the measure.
        line: the configuration.
    """

    words: str
    sign: int
    bound: float
    of: Measure
    line: str = "default"

    @property
    def text(self) -> str:
        """The requirement as text."""
        if np.isnan(self.bound):
            return self.words
        return f"{self.words}: at {'least' if self.sign > 0 else 'most'} {self.bound:g}"


def requirements(answers: pd.DataFrame, real: pd.DataFrame) -> Iterator[Row]:
    """One row per requirement.

    Args:
        answers: the answers of all cells and lines.
        real: the held-out rows of the same cells.
    """
    rows = dict(list(real.groupby("cell", sort=False)))
    for each in REQUIREMENTS:
        cells = answers[answers["line"] == each.line].groupby("cell", sort=False)
        found = {str(cell): each.of(own, rows[cell]) for cell, own in cells}
        known = {cell: measure for cell, measure in found.items() if not np.isnan(measure[0])}
        if known:
            yield _row(each, known)


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


def _row(each: Requirement, found: dict[str, Found]) -> Row:
    """The row of a requirement: the cells that meet it, the range, and the others."""
    missed = [c for c, (value, *_) in found.items() if each.sign * (value - each.bound) < 0.0]
    values = [value for value, *_ in found.values()]
    has_bound = not np.isnan(each.bound)
    return {
        "requirement": each.text,
        "configuration": each.line,
        "met in": f"{len(found) - len(missed)} of {len(found)} cells" if has_bound else "",
        "from, to": f"{min(values):.2f}, {max(values):.2f}",
        "not met": "; ".join(f"{cell} {_text(found[cell])}" for cell in missed),
    }


def _text(found: Found) -> str:
    """A measure, with its interval if it has one."""
    return with_ends(found) if len(found) > 1 and not np.isnan(found[1]) else f"{found[0]:.3f}"


def _share(column: str, credible: bool = False) -> Measure:
    """The mean of a column, of all answers or of the credible ones."""

    def _of(own: pd.DataFrame, real: pd.DataFrame) -> Found:
        some = own[own["credible"] & own["success"]] if credible else own
        return estimate(some[column])

    return _of


def _more_outliers(own: pd.DataFrame) -> Estimate:
    """The share of outliers among answers minus that among their factuals."""
    return paired(own["outlier"], own["outlier_before"])


def _unseen(own: pd.DataFrame, real: pd.DataFrame) -> Found:
    """The share of answers with an unseen pair minus that of held-out rows."""
    return (own["unseen"].mean() - real.loc[real["group"] == "anybody", "unseen"].mean(),)


REQUIREMENTS = (
    Requirement("replication", 1, 0.90, _share("replicated")),
    Requirement("replication", 1, 0.97, _share("replicated"), "max_reliance=0"),
    Requirement("replication where needed", 1, 0.90, _share("replicated_indirect")),
    Requirement("calibration error", -1, 0.05, lambda own, _: (calibration_error(own),)),
    Requirement("noise reported, 1,000 rows", -1, 0.02, _share("noise_1000")),
    Requirement("noise reported, 30,000 rows", -1, 0.02, _share("noise_30000")),
    Requirement("unseen pairs above held-out rows", -1, 0.005, _unseen),
    Requirement("joint AUC", -1, 0.53, lambda own, _: (own["joint"].iloc[0],)),
    Requirement("retrained, of credible answers", 1, 0.90, _share("still_accepted", True)),
    Requirement(
        "retrained, of credible answers", 1, 0.90, _share("still_accepted", True), "copies"
    ),
    Requirement(
        "outliers of credible answers above factuals",
        -1,
        0.03,
        lambda own, _: _more_outliers(own[own["credible"] & own["success"]]),
    ),
    Requirement("refused after noise of .01 of the range", -1, np.nan, _share("invalidated")),
    Requirement("rows with a credible answer", 1, np.nan, _share("credible")),
)
