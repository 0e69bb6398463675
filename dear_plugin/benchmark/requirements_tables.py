"""The table of requirements on answers: in which cells of `credible` they are met."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd

from dear_plugin.benchmark.tables import Row, with_ends
from dear_plugin.rivals.intervals import estimate, paired

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
        return estimate(some[column], some["split"].to_numpy())

    return _of


def _outliers(own: pd.DataFrame, real: pd.DataFrame) -> Found:
    """The share of outliers among credible answers minus that among their factuals."""
    good = own[own["credible"] & own["success"]]
    return paired(good["outlier"], good["outlier_before"], good["split"].to_numpy())


def _unseen(own: pd.DataFrame, real: pd.DataFrame) -> Found:
    """The share of answers with an unseen pair minus that of held-out rows."""
    return (own["unseen"].mean() - real.loc[real["group"] == "anybody", "unseen"].mean(),)


def _joint(own: pd.DataFrame, real: pd.DataFrame) -> Found:
    """The mean of each split's joint AUC."""
    return (own.groupby("split")["joint"].first().mean(),)


REQUIREMENTS = (
    Requirement("replication", 1, 0.90, _share("replicated")),
    Requirement("replication", 1, 0.97, _share("replicated"), "max_reliance=0"),
    Requirement("replication where needed", 1, 0.90, _share("replicated_indirect")),
    Requirement("calibration error", -1, 0.05, lambda own, _: (calibration_error(own),)),
    Requirement("noise reported, 1,000 rows", -1, 0.02, _share("noise_1000")),
    Requirement("noise reported, 30,000 rows", -1, 0.02, _share("noise_30000")),
    Requirement("unseen pairs above held-out rows", -1, 0.005, _unseen),
    Requirement("joint AUC", -1, 0.53, _joint),
    Requirement("retrained, of credible answers", 1, 0.90, _share("still_accepted", True)),
    Requirement(
        "retrained, of credible answers", 1, 0.90, _share("still_accepted", True), "copies"
    ),
    Requirement("outliers of credible answers above factuals", -1, 0.03, _outliers),
    Requirement("refused after noise of .01 of the range", -1, np.nan, _share("invalidated")),
    Requirement("rows with a credible answer", 1, np.nan, _share("credible")),
)
