"""The report of `diagnose` on a fitted decoder, from held-out rows.

A *misfit* is a contradiction between held-out rows and the decoder. If rows are moved to the same
values of x_S, their means must not depend on where they started: `r = mean over a of g(v, a)` is
independent of x_S given the held features if g is right. The dependence that is left is the
misfit.

- r and the bins of x_S are both regressed on the held features first. An error of only one of the
  two regressions then does no harm (Robinson 1988). Their columns are not those of the decoder:
  numbers with kinks, their products, categories, and leaves of a tree that predicts x_S.
- Means are tested, and the absolute deviations of numbers. All rows are tested, and groups of each
  held feature and of pairs of them, since effects and spreads may differ between groups.
- The report states the smallest misfit that so few rows would show.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dear_plugin import _html
from dear_plugin._threads import bar
from dear_plugin.check import fidelity
from dear_plugin.check.fidelity import bins_of
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.numbers import known
from dear_plugin.decoders import Decoders
from dear_plugin.decoders.protocol import Members
from dear_plugin.errors import MOST_NAMED
from dear_plugin.problem.action_sets import ActionSets

logger = logging.getLogger(__name__)

# With fewer rows, a weak dependence may not be significant.
FEW_ROWS = 1000
# The smallest fidelities at which indirect changes follow the data closely, or in part.
CLOSELY, PARTLY = 0.9, 0.6


@dataclass(frozen=True)
class Report:
    """How well indirect changes reproduce the dependences in held-out rows.

    A fidelity is the share of the dependence on x_S in the data that the decoder reproduces. It is
    NaN if that dependence is not significant.

    Attributes:
        fidelity: dependence fidelity: 0 if features move independently, 1 if perfect.
        distribution_fidelity: the same for whole distributions.
        standardised: dependence fidelity with every column scaled to variance 1, which weighs
            heavy-tailed features equally.
        round_trip: mean absolute `g(e(x), x_S) - x`; 0 is perfect reconstruction.
        joint: AUC of a classifier between generated and real rows; 0.5 is perfect.
        joint_independent: the same AUC for rows in which only x_S is changed.
        entanglement: mean absolute `d2 g / dv dx_S` over the rows, a Series by set; NaN if a
            decoder has no derivatives.
        per_set: a tidy frame with `set, dependence_fidelity, standardised, distribution_fidelity,
            uncompared, misfit`. `uncompared` is the share of training rows that are compared with
            rows that differ in some held feature, because too few agree in all. `misfit` is the
            largest misfit of the set. It is 0 without one, and NaN if the set is not tested,
            because some of its features may follow from others.
        misfits: a frame of the misfits, the largest first: `set, feature, of, within, misfit`. The
            mean or the spread of the feature is off by `misfit` standard deviations, in all rows
            or within groups of held features.
        visible: the smallest error of a mean, in standard deviations, that so many rows would
            show; see `misfits`.
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
    standardised: float
    round_trip: float
    joint: float
    joint_independent: float
    entanglement: pd.Series
    per_set: pd.DataFrame
    misfits: pd.DataFrame
    visible: float
    rows: int

    @property
    def verdict(self) -> str:
        """Whether indirect changes can be relied on, and which ones these rows contradict."""
        more = ""
        if self.contradicted:
            more = f" Contradicted by these rows: {_few(self.contradicted)}."
        elif not np.isnan(self.visible):
            size = f"{_text(self.visible)} standard deviations"
            more = f" These rows show no error in them; errors below {size} may be missed."
        return f"{self._overall}{more}"

    @property
    def contradicted(self) -> tuple[str, ...]:
        """The misfits as texts, such as `savings after income (mean off by 0.31 sd)`."""
        return tuple(
            f"{row['feature']} after {row['set']} ({row['of']} off by {row['misfit']:.2f} sd"
            + (f", within groups of {row['within']})" if row["within"] else ")")
            for row in self.misfits.to_dict("records")
        )

    @property
    def contradictions(self) -> dict[str, dict[str, str]]:
        """The misfits as texts, by set and by feature."""
        out: dict[str, dict[str, str]] = {name: {} for name in self.misfits["set"]}
        for row, text in zip(self.misfits.to_dict("records"), self.contradicted, strict=True):
            out[row["set"]][row["feature"]] = text
        return out

    @property
    def _overall(self) -> str:
        """The verdict by fidelity."""
        # Numbers vary less than columns of 0 and 1, so that their dependence may not count.
        fidelity = self.standardised if np.isnan(self.fidelity) else self.fidelity
        if np.isnan(fidelity):
            return "The features do not depend on each other: no indirect changes are expected."
        if fidelity >= CLOSELY:
            return "Indirect changes follow the dependences in the data closely."
        if fidelity >= PARTLY:
            return "Indirect changes follow the dependences in the data in part."
        return "Indirect changes do not follow the dependences in the data: do not rely on them."

    def _repr_html_(self) -> str:
        """The verdict, the report and its sets, for notebooks."""
        text = _html.cell(f"{self.verdict}\n{self}")
        sets = self.per_set.to_html(index=False, float_format=_text)
        return f"<pre style='white-space: pre-wrap'>{text}</pre>{sets}"

    def __str__(self) -> str:
        """The report in a few lines."""
        return "\n".join(
            [
                *self._fidelities(),
                *(f"contradicted: {text}" for text in self.contradicted[:MOST_NAMED]),
                f"round trip {self.round_trip:.2g}, joint AUC {_text(self.joint, 3)} (0.5 is"
                f" perfect, independent moves {_text(self.joint_independent, 3)})",
                "0: features move independently; 1: they move as in the data; below 0: worse than"
                " 0.",
                "Fidelity is of associations, not causal effects.",
            ]
        )

    @property
    def independent(self) -> tuple[str, ...]:
        """The labels of the sets on which no other feature depends significantly."""
        columns = ["dependence_fidelity", "standardised", "distribution_fidelity"]
        return tuple(self.per_set.loc[self.per_set[columns].isna().all(axis=1), "set"])

    def _fidelities(self) -> Iterator[str]:
        """The lines of the report on fidelities."""
        totals = self.fidelity, self.standardised, self.distribution_fidelity
        if np.isnan(totals).all() and len(self.independent) == len(self.per_set):
            more = "; more rows may show some" if self.rows < FEW_ROWS else ""
            yield "dependence fidelity: none to measure, the features do not depend on each other"
            yield f"by clearly more than chance (in {self.rows:,} rows{more}):"
            yield "expect no indirect changes; small ones are noise"
            return
        first, scaled, last = map(_text, totals)
        yield f"dependence fidelity {first} (standardised {scaled}), distribution fidelity {last}"
        if np.isnan(totals).any():
            yield f"-: too little dependence in these {self.rows:,} rows to measure it"
        if self.independent:
            names = _few(self.independent)
            yield f"no feature clearly follows {names}: expect no indirect changes"


def diagnose(decoders: Decoders, sets: ActionSets, rows: Tensor, seed: int) -> Report:
    """The report on fitted decoders.

    Args:
        decoders: the decoders of the sets.
        sets: the s action sets.
        rows: (n, p) held-out rows.
        seed: the seed of random draws.
    """
    random = fidelity.draw(decoders, sets, rows, seed=seed)
    fitted = [decoders.of(members) for members in sets.members]
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
        "uncompared": [decoder.uncompared for decoder in fitted],
        "misfit": largest.where([is_tested(decoders, m) for m in sets.members]).tolist(),
    }
    return Report(
        fidelity=whole,
        distribution_fidelity=distribution,
        standardised=scaled,
        round_trip=random.round_trip,
        joint=fidelity.joint(random, seed),
        joint_independent=fidelity.joint(random, seed, independent=True),
        entanglement=pd.Series(
            [float(decoder.entanglement(rows).nanmean()) for decoder in fitted],
            sets.labels,
            name="entanglement",
        ),
        per_set=pd.DataFrame({"set": sets.labels, **per_set}),
        misfits=found,
        visible=visible,
        rows=len(random.real),
    )


def readable_rows(frame: pd.DataFrame, encoder: Encoder) -> Tensor:
    """The readable rows of a held-out frame, (n, p); a warning states the number of others.

    Raises:
        InputError: whole columns cannot be read, or no row can.
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


MOST_ROWS = 5_000
# The number of values of x_S that all rows are moved to.
REFERENCES = 4
LEAST_BIN = 40
KINKS, MOST_FACTORS, LEAVES, MIN_LEAF = (0.25, 0.5, 0.75), 8, 48, 40
GROUPS, LEAST_GROUP = 3, 200
# The number of held features whose pairs are groups, too.
MOST_CROSSED = 4
# The probability that the smallest visible misfit is found.
POWER = 0.8
# The share of a column at either end that is clamped.
OUTER = 0.005
# In standard deviations: the smallest misfit, and the smallest deviation of a column.
TOLERANCE, LEAST_DEVIATION = 0.05, 1e-6
# The family-wise error rate of a report.
ERROR = 0.01
# A misfit in a group is reported if it is so many times larger than in all rows.
LARGER = 1.5
MEAN, SPREAD = "mean", "spread"
COLUMNS = ["set", "feature", "of", "within", "misfit"]


def misfits(
    decoders: Decoders, sets: ActionSets, rows: Tensor, seed: int = 0
) -> tuple[pd.DataFrame, float]:
    """The misfits of held-out rows, and the smallest misfit that so few rows would show.

    Args:
        decoders: the decoders of the sets.
        sets: the s action sets.
        rows: (n, p) held-out rows; at most `MOST_ROWS` are used.
        seed: the seed of the draw.

    Returns:
        A frame of the misfits beyond chance, the largest of each set and feature, in descending
        order: `set, feature, of` ("mean" or "spread"), `within` (the held features of the group,
        or empty) and `misfit`, in standard deviations of the feature. Second, the misfit of a mean
        in all rows that half of the tests would find in `POWER` of such samples; NaN without
        tests.
    """
    rng = torch.Generator().manual_seed(seed)
    rows = rows[torch.randperm(len(rows), generator=rng)[:MOST_ROWS]]
    tests = [
        (label, *test)
        for label, members in bar([*zip(sets.labels, sets.members, strict=True)], "testing, sets")
        if is_tested(decoders, members)
        for test in _tests(decoders, rows, members, rng)
    ]
    columns = [*COLUMNS, "p", "unit", "freedom"]
    found = pd.DataFrame(tests, columns=columns).astype(dict.fromkeys(columns[4:], float))
    visible = _visible(found[(found["within"] == "") & (found["of"] == MEAN)], len(found))
    found = found[(found["p"] * len(found) < ERROR) & (found["misfit"] > TOLERANCE)]
    weight = found["misfit"] * LARGER ** (found["within"] == "")
    first = found.loc[weight.sort_values(ascending=False).index].drop_duplicates(COLUMNS[:2])
    first = first.sort_values("misfit", ascending=False)[COLUMNS].reset_index(drop=True)
    return first, visible


def _visible(tests: pd.DataFrame, count: int) -> float:
    """The smallest misfit that half of the tests find, if `count` tests share the error rate."""
    from scipy.special import chndtrinc, chndtrix

    if tests.empty:
        return float("nan")
    freedom, unit = tests[["freedom", "unit"]].to_numpy().T
    tolerated = (TOLERANCE / unit) ** 2
    least = chndtrinc(chndtrix(1.0 - ERROR / count, freedom, tolerated), freedom, 1.0 - POWER)
    return float((least**0.5 * tests["unit"]).median())


def is_tested(decoders: Decoders, members: Members) -> bool:
    """Whether a set can be tested: none of its features may follow from another one.

    Otherwise features that follow one part are causes of the next part, and are not held.
    """
    return len(decoders.decoder.parts(decoders.sample.encoder.schema, members)) == 1


def _tests(
    decoders: Decoders, rows: Tensor, members: Members, rng: torch.Generator
) -> Iterator[tuple[str, str, str, float, float, float, int]]:
    """`feature, of, within, misfit, p, unit, freedom` of each test of a set."""
    held, encoder = decoders.conditioned(members), decoders.sample.encoder
    bins = _merged(bins_of(encoder, rows, members))
    at, controls = one_hot(bins).double(), _controls(encoder, rows, held, bins)
    moved, features = _moved(decoders, rows, members, rng)
    names_of = encoder.schema.names
    at, moved = _left(at, controls), _left(moved, controls)
    numbers = encoder.amounts(rows).any(0)[features].nonzero()[:, 0].tolist()
    columns = torch.cat([moved, _left(moved[:, numbers].abs(), controls)], 1)
    names = [(names_of[j], MEAN) for j in features]
    names += [(names_of[features[i]], SPREAD) for i in numbers]
    for within, group in _groups(encoder, rows, held):
        tested = _tested(at[group], columns[group])
        for name, size, p, unit in zip(names, *map(Tensor.tolist, tested), strict=True):
            yield *name, within, size, p, unit, at.shape[1] - 1


def _moved(
    decoders: Decoders, rows: Tensor, members: Members, rng: torch.Generator
) -> tuple[Tensor, list[int]]:
    """The decoded columns of all rows at the same values of x_S, those of evenly spaced rows.

    Returns:
        (n, q) the mean of each column over these values, in standard deviations, and the feature
        of each column. Columns that cannot change are left out.
    """
    decoder, encoder = decoders.of(members), decoders.sample.encoder
    order = rows[:, members[0]].argsort(stable=True)
    places = (2 * torch.arange(REFERENCES) + 1) * len(rows) // (2 * REFERENCES)
    values = rows[order[places]][:, list(members)].expand(len(rows), -1, -1)
    moved = decoder.decode(rows, decoder.encode(rows, rng), values).flatten(0, 1)
    real, moved = (encoder.expand(encoder.rounded(x)).double() for x in (rows, moved))
    deviation = real.std(0, correction=0)
    others = ~torch.isin(encoder.feature_of, torch.tensor([*members, *decoders.held(members)]))
    # Missing numbers stay missing: they are replaced by the mean of the known ones.
    kept = (others & ~encoder.is_level & (deviation > LEAST_DEVIATION)).nonzero()[:, 0]
    moved = (moved.view(len(rows), REFERENCES, -1).mean(1) / deviation)[:, kept]
    missing = ~known(rows)[:, encoder.feature_of[kept]]
    moved = torch.where(missing, moved.masked_fill(missing, torch.nan).nanmean(0), moved)
    # A few extreme rows would hide the misfit of most rows.
    moved = moved.clamp(*_quantiles(moved, (OUTER, 1.0 - OUTER)))
    return moved, encoder.feature_of[kept].tolist()


def _quantiles(x: Tensor, shares: Sequence[float]) -> Tensor:
    """(k, q) the quantiles of each column, (n, q)."""
    return x.sort(0)[0][[int(share * (len(x) - 1)) for share in shares]]


def _merged(bins: Tensor) -> Tensor:
    """(n,) the bins, with bins of too few rows joined to one."""
    counts = torch.bincount(bins)
    rare = torch.where(counts[bins] < LEAST_BIN, len(counts), bins)
    return torch.as_tensor(rare.unique(return_inverse=True)[1])


def _controls(encoder: Encoder, rows: Tensor, held: Members, bins: Tensor) -> Tensor:
    """(n, c) a constant, and the columns of the held features."""
    given = torch.isin(encoder.feature_of, torch.tensor(held)) & encoder.compared
    x = encoder.expand(rows)[:, given].double()
    columns = [torch.ones(len(x), 1).double(), x]
    if bool(given.any()):
        x = (x - x.mean(0)) / x.std(0, correction=0).clamp_min(LEAST_DEVIATION)
        bent = [(x - end).clamp_min(0.0) for end in _quantiles(x, KINKS)]
        products = [(a * b)[:, None] for a, b in combinations(x.T[:MOST_FACTORS], 2)]
        columns += [*bent, *products, _leaves(x, bins)]
    return torch.cat(columns, 1)


def _leaves(x: Tensor, bins: Tensor) -> Tensor:
    """(n, l) indicators of the leaves of a regression tree that predicts bins."""
    from sklearn.tree import DecisionTreeRegressor

    tree = DecisionTreeRegressor(max_leaf_nodes=LEAVES, min_samples_leaf=MIN_LEAF, random_state=0)
    columns = x.float().numpy()
    leaf = torch.from_numpy(tree.fit(columns, one_hot(bins).numpy()).apply(columns))
    return one_hot(_merged(leaf)).double()


def _left(targets: Tensor, controls: Tensor) -> Tensor:
    """(n, q) the residuals of the regression of targets, (n, q), on controls, (n, c)."""
    inverse: Tensor = torch.linalg.pinv(controls.T @ controls, hermitian=True)
    return targets - controls @ (inverse @ (controls.T @ targets))


def _groups(encoder: Encoder, rows: Tensor, held: Members) -> Iterator[tuple[str, Tensor]]:
    """Names and (n,) bool masks: all rows, and the largest groups of one or two held features."""
    yield "", torch.ones(len(rows), dtype=torch.bool)
    features = encoder.schema.features
    kept = [j for j in held if not features[j].identifier]
    codes = {j: bins_of(encoder, rows, (j,), GROUPS, LEAST_GROUP) for j in kept}
    pairs = combinations(kept[:MOST_CROSSED], 2)
    for members in [*((j,) for j in kept), *pairs]:
        own = torch.stack([codes[j] for j in members], 1).unique(dim=0, return_inverse=True)[1]
        counts = torch.bincount(own)
        for code in counts.argsort(descending=True)[: GROUPS ** len(members)].tolist():
            if LEAST_GROUP <= counts[code] < len(rows):
                yield " x ".join(features[j].name for j in members), own == code


def _tested(at: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The test of whether columns depend on the bins of x_S; both are residuals.

    Args:
        at: (m, b) the bins.
        moved: (m, q) the columns.

    Returns:
        (q,) the root mean square of the dependence beyond chance, the p-value under a dependence
        of `TOLERANCE`, and the dependence that one unit of noncentrality stands for.
    """
    from scipy.special import chndtr  # scipy.stats takes most of a second to import

    m, freedom, moved = len(at), at.shape[1] - 1, moved - moved.mean(0)
    sums, inverse = at.T @ moved, torch.linalg.pinv(at.T @ at, hermitian=True)
    variance = torch.einsum("mb,mq,mc->qbc", at, moved.square(), at)
    beyond = (sums * (inverse @ sums)).sum(0) - (variance * inverse).sum((1, 2))
    weighted = torch.linalg.pinv(variance, hermitian=True) @ sums.T[..., None]
    unit = (moved.square().mean(0).clamp_min(LEAST_DEVIATION) / m).sqrt()
    tolerated = (TOLERANCE / unit).square()
    below = chndtr((sums.T * weighted[..., 0]).sum(1).numpy(), freedom, tolerated.numpy())
    return (beyond.clamp_min(0.0) / m).sqrt(), 1.0 - torch.from_numpy(below), unit
