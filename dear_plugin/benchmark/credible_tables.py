"""Tables of `credible`: all metrics of every cell and configuration, with intervals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from dear_plugin.benchmark.answer_metrics import ACCEPTED, ALL, DEFAULT, GROUP, WITHOUT_TIERS
from dear_plugin.benchmark.metrics import Estimate, estimate, paired
from dear_plugin.benchmark.tables import Row

REFERENCE = "cheapest"
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


def values(answers: pd.DataFrame, real: pd.DataFrame) -> Iterator[Row]:
    """One row per estimate: cell, line, metric, value, and the ends of its interval."""
    for (cell, line), own in answers.groupby(["cell", "line"], sort=False):
        real_part = real[(real["cell"] == cell) & (real["line"] == line)]
        for metric, found in _estimates(own, real_part).items():
            yield {"cell": cell, "line": line, "metric": metric, **found._asdict()}


def table(answers: pd.DataFrame, real: pd.DataFrame) -> Iterator[Row]:
    """One row per cell and line; counterfactuals / factuals / real held-out rows."""
    for (cell, line), own in answers.groupby(["cell", "line"], sort=False):
        real_part = real[(real["cell"] == cell) & (real["line"] == line)]
        found = _estimates(own, real_part)
        yield {
            "cell": cell,
            "line": line,
            "splits": own["split"].nunique(),
            "rows": len(own),
            "success": _short(found["success"]),
            "cost": _short(found["cost"]),
            **{name: _with_ends(found[name]) for name in list(SHARES)[:3]},
            "calibration error": _short(found["calibration error"]),
            "alone": _with_ends(found["alone"]),
            "reliance": _short(found["reliance"]),
            **{name: _with_ends(found[name]) for name in list(SHARES)[4:]},
            "outliers": _three(found, "outliers"),
            "outliers among accepted": _three(found, "outliers among accepted"),
            "outliers, answers - factuals": _with_ends(found["outliers, answers - factuals"]),
            "of credible answers": _with_ends(found["outliers, credible - factuals"]),
            "retrained, of credible answers": _with_ends(found["retrained, credible"]),
            "5-neighbour distance": _three(found, "5-neighbour distance"),
            "unseen pairs": _three(found, "unseen pairs"),
            "joint AUC (independent)": f"{_short(found['joint AUC'])}"
            f" ({_short(found['joint AUC, independent'])})",
        }


def differences(answers: pd.DataFrame) -> Iterator[Row]:
    """Every line minus `REFERENCE`, on rows of both."""
    for cell, own in answers.groupby("cell", sort=False):
        lines = {str(n): p.set_index(["split", "row"]) for n, p in own.groupby("line", sort=False)}
        base = lines.pop(REFERENCE, None)
        for line, other in lines.items() if base is not None else ():
            both = other.join(base, how="inner", rsuffix="_reference")
            groups = both.index.get_level_values("split").to_numpy()
            metrics = {"cost": "cost", **SHARES, "outliers": "outlier", "unseen pairs": "unseen"}
            estimates = {
                name: paired(both[column], both[f"{column}_reference"], groups)
                for name, column in metrics.items()
            }
            yield {
                "cell": cell,
                "line": f"{line} - {REFERENCE}",
                "rows": len(both),
                **{name: _with_ends(found) for name, found in estimates.items()},
            }


def tiers(answers: pd.DataFrame) -> Iterator[Row]:
    """With tiers, without, and the mean difference on rows of both; each cell that has both."""
    for cell, own in answers.groupby("cell", sort=False):
        lines = {str(n): p.set_index(["split", "row"]) for n, p in own.groupby("line", sort=False)}
        if not {DEFAULT, WITHOUT_TIERS} <= set(lines):
            continue
        shares = {name: _tier_shares(lines[name]) for name in (DEFAULT, WITHOUT_TIERS)}
        for how, line in (("with", DEFAULT), ("without", WITHOUT_TIERS)):
            part, groups = lines[line], lines[line].index.get_level_values("split")
            means = {n: _with_ends(estimate(c, groups)) for n, c in shares[line].items()}
            counted = part[part["replicated_indirect"].notna()]
            errors = {
                "calibration error": f"{_calibration_error(part):.3f}",
                "of those that need it": (
                    f"{_calibration_error(counted):.3f} (n = {len(counted)})" * bool(len(counted))
                ),
            }
            yield {"cell": cell, "tiers": how, "rows": len(part), **means, **errors}
        one, other = shares[DEFAULT].align(shares[WITHOUT_TIERS], join="inner", axis=0)
        groups = one.index.get_level_values("split")
        found = {n: _with_ends(paired(one[n], other[n], groups)) for n in one}
        yield {"cell": cell, "tiers": "with - without", "rows": len(one), **found}


def _tier_shares(own: pd.DataFrame) -> pd.DataFrame:
    """What `tiers` compares, of solved rows; credible and success are of all rows."""
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


def _estimates(own: pd.DataFrame, real: pd.DataFrame) -> dict[str, Estimate]:
    """All metrics of one cell and line."""
    groups = own["split"].to_numpy()
    all_rows, accepted = (real[real[GROUP] == group] for group in (ALL, ACCEPTED))
    cost = own["cost"].where(own["success"])
    found = {
        "success": estimate(own["success"], groups),
        "cost": estimate(cost, groups, median=True),
        "reliance": estimate(own["reliance"], groups, median=True),
        **{name: estimate(_column(own, column), groups) for name, column in SHARES.items()},
        "outliers, answers - factuals": paired(own["outlier"], own["outlier_before"], groups),
        "calibration error": Estimate(_calibration_error(own), np.nan, np.nan),
    }
    credible = own[own["credible"] & own["success"]]
    splits = credible["split"].to_numpy()
    found["outliers, credible - factuals"] = paired(
        credible["outlier"], credible["outlier_before"], splits
    )
    found["retrained, credible"] = estimate(credible["still_accepted"], splits)
    reference = {
        "outliers": ("outlier", all_rows),
        "outliers among accepted": ("outlier_accepted", accepted),
        "5-neighbour distance": ("distance", all_rows),
        "unseen pairs": ("unseen", all_rows),
    }
    for name, (column, rows) in reference.items():
        median = column == "distance"
        found[name] = estimate(own[column], groups, median=median)
        found[f"{name}, factuals"] = estimate(own[f"{column}_before"], groups, median=median)
        found[f"{name}, real"] = estimate(rows[column], rows["split"], median=median)
    for name, column in (("joint AUC", "joint"), ("joint AUC, independent", "independent")):
        auc = own.groupby("split")[column].first()
        # Few splits: their mean, minimum and maximum.
        found[name] = Estimate(float(auc.mean()), float(auc.min()), float(auc.max()))
    return found


def _calibration_error(own: pd.DataFrame) -> float:
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


def _column(own: pd.DataFrame, name: str) -> pd.Series:
    """A column, NaN if the run has none."""
    return own[name] if name in own else pd.Series(np.nan, own.index)


def _short(found: Estimate) -> str:
    return "" if np.isnan(found.value) else f"{found.value:.3f}"


def _with_ends(found: Estimate) -> str:
    return (
        "" if np.isnan(found.value) else f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"
    )


def _three(found: dict[str, Estimate], name: str) -> str:
    return " / ".join(_short(found[key]) for key in (name, f"{name}, factuals", f"{name}, real"))
