"""Misfit: where held-out rows contradict a decoder; decoders and rows in, sizes out.

Rows that are moved to the same values of x_S must not show where they started:
`r = mean over a of g(v, a)` is independent of x_S given the held features if g is right, and what
is left of that dependence is the misfit. Both r and the bins of x_S are regressed on the held
features first, so that an error of either regression alone does no harm (Robinson 1988). The
columns are not the decoder's: numbers with kinks, their products, categories, and the leaves of a
tree that predicts x_S. Means are tested, and of numbers absolute deviations, in all rows and in
groups of each held feature and in crossings of two, since effects and spreads may differ between
these. What these rows are too few to show is reported with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dear_plugin._progress import bar
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.special_values import known
from dear_plugin.decoders import Decoders
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.transport.axes import cut
from dear_plugin.evaluation.fidelity import bins_of
from dear_plugin.problem.action_sets import ActionSets

MOST_ROWS = 5_000
# The values of x_S that all rows are moved to.
REFERENCES = 4
LEAST_BIN = 40
KINKS, MOST_FACTORS, LEAVES, MIN_LEAF = (0.25, 0.5, 0.75), 8, 48, 40
GROUPS, LEAST_GROUP = 3, 200
# Held features whose crossings are groups, too.
MOST_CROSSED = 4
# How likely the smallest visible misfit is to be found.
POWER = 0.8
# The outer share of a column on either side that is clamped.
OUTER = 0.005
# In standard deviations: what is too small to be named, and the least deviation of a column.
TOLERANCE, LEAST_DEVIATION = 0.05, 1e-6
# The family-wise error rate of a report.
ERROR = 0.01
# A misfit in one group is given if it is so many times larger than in all rows.
LARGER = 1.5
MEAN, SPREAD = "mean", "spread"
COLUMNS = ["set", "feature", "of", "within", "misfit"]


class Misfits(NamedTuple):
    """What held-out rows contradict, and what they are too few to show.

    Attributes:
        found: the misfits beyond chance, the largest of each set and feature, in descending
            order: `set, feature, of` ("mean" or "spread"), `within` (the held features in a group
            of which it was found, or empty) and `misfit`, in standard deviations of the feature.
        visible: the misfit of a mean in all rows that half of the tests would find in `POWER` of
            such samples; NaN without a test.
    """

    found: pd.DataFrame
    visible: float


def misfits(decoders: Decoders, sets: ActionSets, rows: Tensor, seed: int = 0) -> Misfits:
    """The misfits of some sets.

    Args:
        decoders: of the sets.
        sets: the s action sets.
        rows: (n, p) held-out rows; at most `MOST_ROWS` are used.
        seed: of the draw.
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
    return Misfits(first, visible)


def _visible(tests: pd.DataFrame, count: int) -> float:
    """The smallest misfit that half of some tests find, of `count` that share the error rate."""
    from scipy.special import chndtrinc, chndtrix

    if tests.empty:
        return float("nan")
    freedom, unit = tests[["freedom", "unit"]].to_numpy().T
    tolerated = (TOLERANCE / unit) ** 2
    least = chndtrinc(chndtrix(1.0 - ERROR / count, freedom, tolerated), freedom, 1.0 - POWER)
    return float((least**0.5 * tests["unit"]).median())


def is_tested(decoders: Decoders, members: Members) -> bool:
    """Whether a set can be tested: none of its features may follow from another one.

    Between two parts, what follows the first part is a cause of the second, and is not held.
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
    """What follows for all rows at the same values of x_S, those of evenly spaced rows.

    Returns:
        (n, q) the mean over these values of each column that may follow, in standard deviations,
        and the feature of each.
    """
    decoder, encoder = decoders.of(members), decoders.sample.encoder
    order = rows[:, members[0]].argsort(stable=True)
    places = (2 * torch.arange(REFERENCES) + 1) * len(rows) // (2 * REFERENCES)
    values = rows[order[places]][:, list(members)].expand(len(rows), -1, -1)
    moved = decoder.decode(rows, decoder.encode(rows, rng), values).flatten(0, 1)
    real, moved = (encoder.expand(encoder.grid.round(x)).double() for x in (rows, moved))
    deviation = real.std(0, correction=0)
    others = ~torch.isin(encoder.feature_of, torch.tensor([*members, *decoders.held(members)]))
    # What is missing stays so: known numbers are compared, and missing ones are as their mean.
    kept = (others & ~encoder.is_level & (deviation > LEAST_DEVIATION)).nonzero()[:, 0]
    moved = (moved.view(len(rows), REFERENCES, -1).mean(1) / deviation)[:, kept]
    missing = ~known(rows)[:, encoder.feature_of[kept]]
    moved = torch.where(missing, moved.masked_fill(missing, torch.nan).nanmean(0), moved)
    # Few rows far out would hide what most of them show.
    moved = moved.clamp(*_quantiles(moved, (OUTER, 1.0 - OUTER)))
    return moved, encoder.feature_of[kept].tolist()


def _quantiles(x: Tensor, shares: Sequence[float]) -> Tensor:
    """(k, q) quantiles of each column, (n, q)."""
    return x.sort(0)[0][[int(share * (len(x) - 1)) for share in shares]]


def _merged(bins: Tensor) -> Tensor:
    """(n,) bins of which those of too few rows are one."""
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
    """(n, l) indicators of the leaves of a regression tree from held columns to bins."""
    from sklearn.tree import DecisionTreeRegressor

    tree = DecisionTreeRegressor(max_leaf_nodes=LEAVES, min_samples_leaf=MIN_LEAF, random_state=0)
    columns = x.float().numpy()
    leaf = torch.from_numpy(tree.fit(columns, one_hot(bins).numpy()).apply(columns))
    return one_hot(_merged(leaf)).double()


def _left(targets: Tensor, controls: Tensor) -> Tensor:
    """(n, q) what the regression of targets on the controls leaves."""
    inverse: Tensor = torch.linalg.pinv(controls.T @ controls, hermitian=True)
    return targets - controls @ (inverse @ (controls.T @ targets))


def _groups(encoder: Encoder, rows: Tensor, held: Members) -> Iterator[tuple[str, Tensor]]:
    """All rows, the largest groups of each held feature, and crossings of two; bool, (n,)."""
    yield "", torch.ones(len(rows), dtype=torch.bool)
    features = encoder.schema.features
    kept = [j for j in held if not features[j].identifier]
    codes = {j: features[j].coarser(rows[:, j], _groups_of).long() for j in kept}
    pairs = combinations(kept[:MOST_CROSSED], 2)
    for members in [*((j,) for j in kept), *pairs]:
        own = torch.stack([codes[j] for j in members], 1).unique(dim=0, return_inverse=True)[1]
        counts = torch.bincount(own)
        for code in counts.argsort(descending=True)[: GROUPS ** len(members)].tolist():
            if LEAST_GROUP <= counts[code] < len(rows):
                yield " x ".join(features[j].name for j in members), own == code


def _groups_of(column: Tensor) -> Tensor:
    return cut(column, GROUPS, LEAST_GROUP)[0]


def _tested(at: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Whether columns depend on the bins of x_S, both without the held features.

    Args:
        at: (m, b) the bins.
        moved: (m, q) the columns.

    Returns:
        (q,) the root mean square of the dependence beyond chance, the probability of one as
        significant if it were `TOLERANCE`, and what one unit of noncentrality is.
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
