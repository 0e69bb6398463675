"""The tables of `credible`: all measures of every cell and configuration, with intervals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy.typing as npt
import pandas as pd

from dear_plugin.benchmark.requirements_tables import calibration_error, requirements
from dear_plugin.benchmark.tables import Row, Table, shown, with_ends
from dear_plugin.rivals.intervals import estimate, paired

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
        groups, solved = own["split"].to_numpy(), own["success"]
        shares = {h: with_ends(estimate(own[c], groups)) for h, c in SHARES.items()}
        good = own[own["credible"] & solved]
        splits = good["split"].to_numpy()
        rows = real[(real["cell"] == cell) & (real["line"] == line)]
        # Few splits have no interval: the mean over splits.
        joint, independent, dependence, distribution = (
            shown(own.groupby("split")[name].first().mean(), 3) for name in FIDELITIES
        )
        yield {
            "cell": cell,
            "line": line,
            "splits": own["split"].nunique(),
            "rows": len(own),
            "success": f"{solved.mean():.3f}",
            "cost": shown(own["cost"].where(solved).median(), 3),
            "effort": shown(own["direct_cost"].where(solved).median(), 3),
            **shares,
            "calibration error": f"{calibration_error(own):.3f}",
            "reliance": shown(own["reliance"].median(), 3),
            **{heading: _three(own, rows, *of) for heading, of in COMPARED.items()},
            "outliers, answers - factuals": _outliers(own, groups),
            "of credible answers": _outliers(good, splits),
            "retrained, of credible answers": with_ends(estimate(good["still_accepted"], splits)),
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
            groups = both.index.get_level_values("split").to_numpy()
            found = {
                name: with_ends(paired(both[column], both[f"{column}_reference"], groups))
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
            groups = own.index.get_level_values("split")
            counted = part[part["replicated_indirect"].notna()]
            needed = f"{calibration_error(counted):.3f} (n = {len(counted)})"
            yield {
                "cell": cell,
                "tiers": how,
                "rows": len(part),
                **{name: with_ends(estimate(own[name], groups)) for name in own},
                "calibration error": f"{calibration_error(part):.3f}",
                "of those that need it": needed if len(counted) else "",
            }
        one, other = shares[0].align(shares[1], join="inner", axis=0)
        groups = one.index.get_level_values("split")
        found = {name: with_ends(paired(one[name], other[name], groups)) for name in one}
        yield {"cell": cell, "tiers": "with - without", "rows": len(one), **found}


def _lines_of_cells(answers: pd.DataFrame) -> Iterator[tuple[str, dict[str, pd.DataFrame]]]:
    """Each cell and the rows of its lines, by split and row."""
    for cell, own in answers.groupby("cell", sort=False):
        lines = own.groupby("line", sort=False)
        yield str(cell), {str(name): part.set_index(["split", "row"]) for name, part in lines}


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


def _outliers(own: pd.DataFrame, groups: npt.ArrayLike) -> str:
    """The share of outliers among answers minus that among their factuals."""
    return with_ends(paired(own["outlier"], own["outlier_before"], groups))
