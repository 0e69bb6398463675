"""Tables of `credible`: every ruler for every cell and line, with intervals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from dear_plugin.benchmark.rulers import Estimate, estimate, paired
from dear_plugin.benchmark.tables import Row

FIRST = "cheapest"
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


def values(people: pd.DataFrame, real: pd.DataFrame) -> Iterator[Row]:
    """Every number by itself: cell, line, ruler, value, and the ends of its interval."""
    for (cell, line), own in people.groupby(["cell", "line"], sort=False):
        held = real[(real["cell"] == cell) & (real["line"] == line)]
        for ruler, found in _estimates(own, held).items():
            yield {"cell": cell, "line": line, "ruler": ruler, **found._asdict()}


def table(people: pd.DataFrame, real: pd.DataFrame) -> Iterator[Row]:
    """One row per cell and line; answers / the same people before / real held-out rows."""
    for (cell, line), own in people.groupby(["cell", "line"], sort=False):
        held = real[(real["cell"] == cell) & (real["line"] == line)]
        found = _estimates(own, held)
        yield {
            "cell": cell,
            "line": line,
            "splits": own["split"].nunique(),
            "people": len(own),
            "success": _short(found["success"]),
            "cost": _short(found["cost"]),
            **{name: _with_ends(found[name]) for name in list(SHARES)[:3]},
            "calibration error": _short(found["calibration error"]),
            "alone": _with_ends(found["alone"]),
            "reliance": _short(found["reliance"]),
            **{name: _with_ends(found[name]) for name in list(SHARES)[4:]},
            "outliers": _three(found, "outliers"),
            "outliers among accepted": _three(found, "outliers among accepted"),
            "outliers, answers - before": _with_ends(found["outliers, answers - before"]),
            "of credible answers": _with_ends(found["outliers, credible - before"]),
            "retrained, of credible answers": _with_ends(found["retrained, credible"]),
            "5-neighbour distance": _three(found, "5-neighbour distance"),
            "unseen pairs": _three(found, "unseen pairs"),
            "joint AUC (independent)": f"{_short(found['joint AUC'])}"
            f" ({_short(found['joint AUC, independent'])})",
        }


def differences(people: pd.DataFrame) -> Iterator[Row]:
    """Every line minus the first, on people to whom both have an answer."""
    for cell, own in people.groupby("cell", sort=False):
        lines = {str(n): p.set_index(["split", "row"]) for n, p in own.groupby("line", sort=False)}
        base = lines.pop(FIRST, None)
        for line, other in lines.items() if base is not None else ():
            both = other.join(base, how="inner", rsuffix="_first")
            groups = both.index.get_level_values("split").to_numpy()
            rulers = {"cost": "cost", **SHARES, "outliers": "outlier", "unseen pairs": "unseen"}
            gaps = {
                name: paired(both[column], both[f"{column}_first"], groups)
                for name, column in rulers.items()
            }
            yield {
                "cell": cell,
                "line": f"{line} - {FIRST}",
                "people": len(both),
                **{name: _with_ends(gap) for name, gap in gaps.items()},
            }


def _estimates(own: pd.DataFrame, held: pd.DataFrame) -> dict[str, Estimate]:
    """Every ruler of one cell and line."""
    groups = own["split"].to_numpy()
    anybody, accepted = (held[held["who"] == who] for who in ("anybody", "accepted"))
    cost = own["cost"].where(own["success"])
    found = {
        "success": estimate(own["success"], groups),
        "cost": estimate(cost, groups, median=True),
        "reliance": estimate(own["reliance"], groups, median=True),
        **{name: estimate(_column(own, column), groups) for name, column in SHARES.items()},
        "outliers, answers - before": paired(own["outlier"], own["outlier_before"], groups),
        "calibration error": Estimate(_calibration_error(own), np.nan, np.nan),
    }
    fine = own[own["credible"] & own["success"]]
    apart = fine["split"].to_numpy()
    found["outliers, credible - before"] = paired(fine["outlier"], fine["outlier_before"], apart)
    found["retrained, credible"] = estimate(fine["still_accepted"], apart)
    crowd = {
        "outliers": ("outlier", anybody),
        "outliers among accepted": ("outlier_accepted", accepted),
        "5-neighbour distance": ("distance", anybody),
        "unseen pairs": ("unseen", anybody),
    }
    for name, (column, rows) in crowd.items():
        middle = column == "distance"
        found[name] = estimate(own[column], groups, median=middle)
        found[f"{name}, before"] = estimate(own[f"{column}_before"], groups, median=middle)
        found[f"{name}, real"] = estimate(rows[column], rows["split"], median=middle)
    for name, column in (("joint AUC", "joint"), ("joint AUC, independent", "independent")):
        splits = own.groupby("split")[column].first()
        # Of a few splits: their mean, the least and the greatest.
        found[name] = Estimate(
            *(float(each) for each in (splits.mean(), splits.min(), splits.max()))
        )
    return found


def _calibration_error(own: pd.DataFrame) -> float:
    """The mean distance of replication from confidence, by tenths of confidence.

    Each tenth counts with the share of answers that lie in it.
    """
    both = own[["promised_confidence", "replicated"]].dropna()
    if both.empty:
        return np.nan
    tenth = np.minimum((10.0 * both["promised_confidence"]).astype(int), 9)
    groups = both.groupby(tenth)
    off = (groups["replicated"].mean() - groups["promised_confidence"].mean()).abs()
    return float(np.average(off, weights=groups.size()))


def _column(own: pd.DataFrame, name: str) -> pd.Series:
    """A column, NaN where a run did not measure it."""
    return own[name] if name in own else pd.Series(np.nan, own.index)


def _short(found: Estimate) -> str:
    return "" if np.isnan(found.value) else f"{found.value:.3f}"


def _with_ends(found: Estimate) -> str:
    return (
        "" if np.isnan(found.value) else f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
    )


def _three(found: dict[str, Estimate], name: str) -> str:
    return " / ".join(_short(found[key]) for key in (name, f"{name}, before", f"{name}, real"))
