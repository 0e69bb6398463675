"""Diagnostics: a readable report on how far a fitted DEAR's indirect changes can be believed."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from dear_plugin import fidelity
from dear_plugin.fidelity import Sample


@dataclass(frozen=True)
class Report:
    """How well indirect changes follow the data.

    Attributes:
        fidelity: dependence fidelity, ties at random: 0 features move independently, 1 perfect.
        distribution_fidelity: the same for whole distributions.
        shown: dependence fidelity of the rows as people see them (middle ties).
        standardised: dependence fidelity with every column scaled to variance 1, which shows
            heavy-tailed features.
        round_trip: mean absolute `g(e(x), x_S) - x`; 0 means x itself comes back.
        identity: mean correlation of g_j with x_j; 0 means a stranger was drawn.
        joint: AUC of a classifier between generated and real rows; 0.5 is perfect.
        joint_independent: the same for the same people moved independently: only x_S changes.
        entanglement: mean absolute `d2 g / dv dx_S` over the rows, a Series by set; NaN where a
            decoder has no derivatives.
        per_set: a tidy frame with `set, dependence_fidelity, distribution_fidelity, identity`.
    """

    fidelity: float
    distribution_fidelity: float
    shown: float
    standardised: float
    round_trip: float
    identity: float
    joint: float
    joint_independent: float
    entanglement: pd.Series
    per_set: pd.DataFrame

    def __str__(self) -> str:
        """The report in a few lines."""
        return (
            f"dependence fidelity {self.fidelity:.2f} (as shown {self.shown:.2f},"
            f" standardised {self.standardised:.2f}), distribution fidelity"
            f" {self.distribution_fidelity:.2f}\n"
            f"round trip {self.round_trip:.2g}, identity {self.identity:.2f},"
            f" joint AUC {self.joint:.3f} (0.5 is perfect, independent moves"
            f" {self.joint_independent:.3f})\n"
            "0: features move independently; 1: they move as in the data."
            " Associations, not causal effects."
        )


def report(
    labels: tuple[str, ...], random: Sample, shown: Sample, entanglement: pd.Series, seed: int
) -> Report:
    """Measure two samples of one decoder.

    Args:
        labels: the names of the s sets.
        random: a sample with ties at random.
        shown: a sample with middle ties.
        entanglement: mean mixed derivatives by set.
        seed: of the relabellings.
    """
    means, laws = fidelity.dependence(random), fidelity.distribution(random, seed)
    same = fidelity.identity(random)
    per_set = pd.DataFrame(
        {
            "set": labels,
            "dependence_fidelity": [_ratio(means[means["set"] == i]) for i in range(len(labels))],
            "distribution_fidelity": [_ratio(laws[laws["set"] == i]) for i in range(len(labels))],
            "identity": same,
        }
    )
    return Report(
        _ratio(means),
        _ratio(laws),
        _ratio(fidelity.dependence(shown)),
        _ratio(means, standardised=True),
        random.round_trip,
        float(pd.Series(same).mean()),
        fidelity.joint(random, seed),
        fidelity.joint(random, seed, independent=True),
        entanglement,
        per_set,
    )


def _ratio(table: pd.DataFrame, standardised: bool = False) -> float:
    """One fidelity over the sets and columns of a table."""
    weight = 1.0 / table["variance"].clip(lower=1e-12) if standardised else 1.0
    whole = float((table["all"] * weight).sum())
    return 1.0 - float((table["left"] * weight).sum()) / whole if whole > 0 else float("nan")
