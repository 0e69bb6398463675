"""Misfit: where held-out rows contradict what is told to follow; decoders and rows in, sizes out.

Rows that are told what they would be at the same values of x_S must not show where they started:
`r = mean over a of g(v, a)` is independent of x_S given the held features if g is right, and what
is left of that dependence is the misfit. Both r and the bins of x_S are regressed on the held
features first, so that an error of either regression alone does no harm (Robinson 1988). The
columns are not the decoder's: numbers with kinks, their products, categories, and the leaves of a
tree that predicts x_S. Means are tested, and of numbers absolute deviations, in all rows and in
groups of each held feature, since effects and spreads may differ between these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from dear_plugin.data.encoder import Encoder
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


def misfits(
    decoders: Decoders, encoder: Encoder, sets: ActionSets, rows: Tensor, seed: int = 0
) -> pd.DataFrame:
    """The misfits beyond chance, the largest of each set and feature, in descending order.

    Args:
        decoders: of the sets.
        encoder: of the rows.
        sets: the s action sets.
        rows: (n, p) held-out rows; at most `MOST_ROWS` are used.
        seed: of the draw.

    Returns:
        `set, feature, of` ("mean" or "spread"), `within` (the held feature in a group of which it
        was found, or empty) and `misfit`, in standard deviations of the feature.
    """
    rng = torch.Generator().manual_seed(seed)
    rows = rows[torch.randperm(len(rows), generator=rng)[:MOST_ROWS]]
    tests = [
        (label, *test)
        for label, members in zip(sets.labels, sets.members, strict=True)
        if is_tested(decoders, encoder, members)
        for test in _tests(decoders, encoder, rows, members, rng)
    ]
    found = pd.DataFrame(tests, columns=[*COLUMNS, "p"]).astype({"misfit": float, "p": float})
    found = found[(found["p"] * len(found) < ERROR) & (found["misfit"] > TOLERANCE)]
    weight = found["misfit"] * LARGER ** (found["within"] == "")
    first = found.loc[weight.sort_values(ascending=False).index].drop_duplicates(COLUMNS[:2])
    return first.sort_values("misfit", ascending=False)[COLUMNS].reset_index(drop=True)


def is_tested(decoders: Decoders, encoder: Encoder, members: Members) -> bool:
    """Whether a set can be tested: none of its features may follow from another one.

    Between two parts, what follows the first part is a cause of the second, and is not held.
    """
    return len(decoders.decoder.parts(encoder.schema, members)) == 1


def _tests(
    decoders: Decoders, encoder: Encoder, rows: Tensor, members: Members, rng: torch.Generator
) -> Iterator[tuple[str, str, str, float, float]]:
    """`feature, of, within, misfit, p` of each test of a set."""
    held, schema = decoders.conditioned(members), encoder.schema
    bins = _merged(bins_of(encoder, rows, members))
    at, controls = one_hot(bins).double(), _controls(encoder, rows, held, bins)
    told, features = _told(decoders, encoder, rows, members, rng)
    at, told = _left(at, controls), _left(told, controls)
    numbers = [i for i, j in enumerate(features) if schema.features[j].is_number]
    columns = torch.cat([told, _left(told[:, numbers].abs(), controls)], 1)
    names = [(schema.names[j], MEAN) for j in features]
    names += [(schema.names[features[i]], SPREAD) for i in numbers]
    for within, group in _groups(encoder, rows, held):
        tested = _tested(at[group], columns[group])
        for name, size, p in zip(names, *map(Tensor.tolist, tested), strict=True):
            yield *name, within, size, p


def _told(
    decoders: Decoders, encoder: Encoder, rows: Tensor, members: Members, rng: torch.Generator
) -> tuple[Tensor, list[int]]:
    """What follows for all rows at the same values of x_S, those of evenly spaced rows.

    Returns:
        (n, q) the mean over these values of each column that may follow, in standard deviations,
        and the feature of each.
    """
    decoder, order = decoders.of(members), rows[:, members[0]].argsort(stable=True)
    places = (2 * torch.arange(REFERENCES) + 1) * len(rows) // (2 * REFERENCES)
    values = rows[order[places]][:, list(members)].expand(len(rows), -1, -1)
    moved = decoder.decode(rows, decoder.encode(rows, rng), values).flatten(0, 1)
    real, told = (encoder.expand(encoder.grid.round(x)).double() for x in (rows, moved))
    deviation = real.std(0, correction=0)
    others = ~torch.isin(encoder.feature_of, torch.tensor([*members, *decoders.held(members)]))
    kept = (others & (deviation > LEAST_DEVIATION)).nonzero()[:, 0]
    told = (told.view(len(rows), REFERENCES, -1).mean(1) / deviation)[:, kept]
    # Few rows far out would hide what most of them show.
    told = told.clamp(*_quantiles(told, (OUTER, 1.0 - OUTER)))
    return told, encoder.feature_of[kept].tolist()


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
    """All rows, and the largest groups of each held feature; bool, (n,)."""
    yield "", torch.ones(len(rows), dtype=torch.bool)
    for j in held:
        if encoder.schema.features[j].identifier:
            continue
        feature, codes = encoder.schema.features[j], rows[:, j].long()
        if feature.is_number:
            codes = cut(rows[:, j], GROUPS, LEAST_GROUP)[0]
        counts = torch.bincount(codes)
        for code in counts.argsort(descending=True)[:GROUPS].tolist():
            if LEAST_GROUP <= counts[code] < len(rows):
                yield feature.name, codes == code


def _tested(at: Tensor, told: Tensor) -> tuple[Tensor, Tensor]:
    """Whether columns depend on the bins of x_S, both without the held features.

    Args:
        at: (m, b) the bins.
        told: (m, q) the columns.

    Returns:
        (q,) the root mean square of the dependence beyond chance, and the probability of one as
        significant if it were `TOLERANCE`.
    """
    from scipy.special import chndtr  # scipy.stats takes most of a second to import

    m, freedom, told = len(at), at.shape[1] - 1, told - told.mean(0)
    sums, inverse = at.T @ told, torch.linalg.pinv(at.T @ at, hermitian=True)
    variance = torch.einsum("mb,mq,mc->qbc", at, told.square(), at)
    beyond = (sums * (inverse @ sums)).sum(0) - (variance * inverse).sum((1, 2))
    weighted = torch.linalg.pinv(variance, hermitian=True) @ sums.T[..., None]
    tolerated = m * TOLERANCE**2 / told.square().mean(0).clamp_min(LEAST_DEVIATION)
    below = chndtr((sums.T * weighted[..., 0]).sum(1).numpy(), freedom, tolerated.numpy())
    return (beyond.clamp_min(0.0) / m).sqrt(), 1.0 - torch.from_numpy(below)
