"""Report: diagnostics of a fitted decoder's indirect changes on held-out rows."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from torch import Tensor

from dear_plugin import _html
from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders import Decoder, Decoders, DifferentiableDecoder
from dear_plugin.evaluation import fidelity
from dear_plugin.evaluation.misfit import is_tested, misfits
from dear_plugin.problem.action_sets import ActionSets

logger = logging.getLogger(__name__)

# With fewer rows, a weak dependence may not be significant.
FEW_ROWS = 1000
# Fidelities from which indirect changes follow the data closely, or in part.
CLOSELY, PARTLY = 0.9, 0.6
# Misfits in the printed report; `misfits` has all.
MOST_NAMED = 5


@dataclass(frozen=True)
class Report:
    """How well indirect changes reproduce the dependences in the data.

    A fidelity is the reproduced share of the dependence on x_S in the data. It is NaN where that
    dependence is not significant.

    Attributes:
        fidelity: dependence fidelity, ties at random: 0 features move independently, 1 perfect.
        distribution_fidelity: the same for whole distributions.
        shown: dependence fidelity of rows as displayed, with middle ties.
        standardised: dependence fidelity with every column scaled to variance 1, which weighs
            heavy-tailed features equally.
        round_trip: mean absolute `g(e(x), x_S) - x`; 0 is perfect reconstruction.
        identity: mean correlation of g_j with x_j; 0 means that g is independent of x.
        joint: AUC of a classifier between generated and real rows; 0.5 is perfect.
        joint_independent: the same for rows of which only x_S is changed.
        entanglement: mean absolute `d2 g / dv dx_S` over the rows, a Series by set; NaN where a
            decoder has no derivatives.
        per_set: a tidy frame with `set, dependence_fidelity, standardised, distribution_fidelity,
            identity, uncompared, misfit`. `uncompared` is the share of training rows that are
            compared with rows that differ in some held feature, as too few agree in all of them;
            `misfit` is the largest of the set, 0 without one, NaN where a set is not tested
            because some of its features may follow from others.
        misfits: where these rows contradict what is estimated to follow, the largest first: `set,
            feature, of, within, misfit`. The mean or the spread of the feature is off by `misfit`
            standard deviations, in all rows or within groups of held features.
        visible: how far the mean of what follows must be off, in standard deviations, for so many
            rows to show it; see `Misfits`.
        rows: the number of rows.

    Example:
        >>> from dear_plugin import DEAR, Schema
        >>> from dear_plugin.datasets import load_loan
        >>> train, test = load_loan(1_000).split(0.5)
        >>> schema = Schema.infer(train, target="approved", immutable=["gender"])
        >>> dear = DEAR(lambda rows: rows["savings"] / 60, schema, act_on=["savings"]).fit(train)
        >>> dear.diagnose(test).rows
        500
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
    misfits: pd.DataFrame
    visible: float
    rows: int

    @property
    def verdict(self) -> str:
        """Whether the indirect changes are to be relied on, and what these rows contradict."""
        if not self.contradicted:
            return f"{self._overall}{self._not_visible}"
        return f"{self._overall} Contradicted by these rows: {_few(self.contradicted)}."

    @property
    def _not_visible(self) -> str:
        """What these rows are too few to contradict."""
        if np.isnan(self.visible):
            return ""
        missed = f"what is off by less than {_text(self.visible)} sd they may miss"
        return f" These rows contradict nothing; {missed}."

    @property
    def contradicted(self) -> tuple[str, ...]:
        """The misfits in words, such as `savings after income (mean off by 0.31 sd)`."""
        return tuple(
            f"{row['feature']} after {row['set']} ({row['of']} off by {row['misfit']:.2f} sd"
            + (f", within groups of {row['within']})" if row["within"] else ")")
            for row in self.misfits.to_dict("records")
        )

    def contradictions(self, of: str) -> dict[str, str]:
        """The misfits of a set in words, by feature."""
        named = zip(self.misfits.to_dict("records"), self.contradicted, strict=True)
        return {row["feature"]: text for row, text in named if row["set"] == of}

    @property
    def _overall(self) -> str:
        """The verdict by fidelity."""
        # Columns of 0 and 1 may drown the dependence of numbers, which vary less.
        fidelity = self.standardised if np.isnan(self.fidelity) else self.fidelity
        if np.isnan(fidelity):
            return "The features do not depend on each other: no indirect changes are expected."
        if fidelity >= CLOSELY:
            return "Indirect changes follow the dependences in the data closely."
        if fidelity >= PARTLY:
            return "Indirect changes follow the dependences in the data in part."
        return "Indirect changes do not follow the dependences in the data: do not rely on them."

    def _repr_html_(self) -> str:
        """The verdict and the figures, for notebooks."""
        figures = {
            "dependence fidelity (1 is perfect)": _text(self.fidelity),
            "distribution fidelity (1 is perfect)": _text(self.distribution_fidelity),
            "joint AUC (0.5 is perfect)": _text(self.joint, 3),
            "joint AUC of independent changes": _text(self.joint_independent, 3),
            "round trip (0 is perfect)": f"{self.round_trip:.2g}",
        }
        sets = [
            (row["set"], _text(row["dependence_fidelity"]), _text(row["distribution_fidelity"]))
            for row in self.per_set.to_dict("records")
        ]
        heads = ("acting on", "dependence fidelity", "distribution fidelity")
        return "".join(
            [
                _html.STYLE,
                f"<p><b>{_html.cell(self.verdict)}</b></p>",
                _html.table((f"{self.rows:,} rows", "measured"), figures.items()),
                _html.table(heads, sets),
                _html.note("-: too little dependence to measure. Fidelity is of associations."),
            ]
        )

    def __str__(self) -> str:
        """The report in a few lines."""
        return "\n".join(
            [
                *self._fidelities(),
                *(f"contradicted: {text}" for text in self.contradicted[:MOST_NAMED]),
                f"round trip {self.round_trip:.2g}, identity {_text(self.identity)},"
                f" joint AUC {_text(self.joint, 3)} (0.5 is perfect, independent moves"
                f" {_text(self.joint_independent, 3)})",
                "0: features move independently; 1: they move as in the data; below 0: worse than"
                " 0.",
                "Fidelity is of associations, not causal effects.",
            ]
        )

    @property
    def independent(self) -> tuple[str, ...]:
        """The sets on which no other feature depends significantly."""
        columns = ["dependence_fidelity", "standardised", "distribution_fidelity"]
        return tuple(self.per_set.loc[self.per_set[columns].isna().all(axis=1), "set"])

    def _fidelities(self) -> Iterator[str]:
        """The lines on the fidelities."""
        totals = self.fidelity, self.shown, self.standardised, self.distribution_fidelity
        if np.isnan(totals).all() and len(self.independent) == len(self.per_set):
            more = "; more rows may show some" if self.rows < FEW_ROWS else ""
            yield "dependence fidelity: none to measure, the features do not depend on each other"
            yield f"by clearly more than chance (in {self.rows:,} rows{more}):"
            yield "expect nothing to follow an action, small indirect changes are noise"
            return
        first, shown, scaled, last = map(_text, totals)
        yield (
            f"dependence fidelity {first} (as shown {shown}, standardised {scaled}),"
            f" distribution fidelity {last}"
        )
        if np.isnan(totals).any():
            yield f"-: too little dependence in these {self.rows:,} rows to measure it"
        if self.independent:
            yield f"no feature clearly follows {_few(self.independent)}: expect nothing to follow"


def diagnose(decoders: Decoders, sets: ActionSets, rows: Tensor, seed: int) -> Report:
    """Report on fitted decoders.

    Args:
        decoders: of the sets.
        sets: the s action sets.
        rows: (n, p) held-out rows.
        seed: of the random draws.
    """
    random, displayed = (
        fidelity.draw(decoders, sets, rows, seed=seed, as_displayed=each) for each in (False, True)
    )
    fitted = [decoders.of(members) for members in sets.members]
    identities = fidelity.identity(random)
    tables = {
        "dependence_fidelity": fidelity.dependence(random),
        "standardised": fidelity.dependence(random, standardised=True),
        "distribution_fidelity": fidelity.distribution(random, seed),
    }
    whole, scaled, distribution = map(fidelity.ratio, tables.values())
    by_set = {
        name: [fidelity.ratio(table[table["set"] == i]) for i in range(len(fitted))]
        for name, table in tables.items()
    }
    found, visible = misfits(decoders, sets, rows, seed)
    largest = found.groupby("set")["misfit"].max().reindex(sets.labels).fillna(0.0)
    per_set = {
        **by_set,
        "identity": identities,
        "uncompared": [decoder.uncompared for decoder in fitted],
        "misfit": largest.where([is_tested(decoders, m) for m in sets.members]).tolist(),
    }
    return Report(
        fidelity=whole,
        distribution_fidelity=distribution,
        shown=fidelity.ratio(fidelity.dependence(displayed)),
        standardised=scaled,
        round_trip=random.round_trip,
        identity=float(pd.Series(identities).mean()),
        joint=fidelity.joint(random, seed),
        joint_independent=fidelity.joint(random, seed, independent=True),
        entanglement=pd.Series(
            [_entanglement(decoder, rows) for decoder in fitted], sets.labels, name="entanglement"
        ),
        per_set=pd.DataFrame({"set": sets.labels, **per_set}),
        misfits=found,
        visible=visible,
        rows=len(random.real),
    )


def _entanglement(decoder: Decoder, rows: Tensor) -> float:
    """The mean mixed derivative over rows; NaN for a decoder without derivatives."""
    if not isinstance(decoder, DifferentiableDecoder):
        return float("nan")
    return float(decoder.entanglement(rows).nanmean())


def readable_rows(frame: pd.DataFrame, encoder: Encoder) -> Tensor:
    """The readable rows of a held-out frame, (n, p); a warning gives the number of others.

    Raises:
        InputError: columns that are unreadable as a whole, or no readable row.
    """
    rows, reasons = encoder.readable_rows(frame)
    if len(reasons) == len(rows):
        return encoder.rows(frame)
    if reasons:
        logger.warning("%d of %d rows cannot be read and are left out", len(reasons), len(rows))
    return rows[[i for i in range(len(rows)) if i not in reasons]]


def _text(number: float, places: int = 2) -> str:
    return "-" if np.isnan(number) else f"{number:.{places}f}"


def _few(names: tuple[str, ...], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" * (len(names) > most))
