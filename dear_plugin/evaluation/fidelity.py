"""Fidelity: how well generated rows reproduce the dependence of real rows on x_S.

For each real row in bin b of x_S, with value a, rows i drawn at random (the sources) give
generated rows `g(v_i, a)`. Both are rounded alike, so that equal numbers have equal bits.
Where features are held, sources are drawn from the rows nearest to the real row in these, so that
their distribution in a bin is that of the real rows.

- Dependence fidelity, `1 - sum p_b (e^2 - eta) / sum p_b (e0^2 - eta0)`: e is the difference
  between the means of generated and real rows in b, e0 that between unmoved sources and real rows;
  eta and eta0 are their variances by chance.
- Distribution fidelity, the same with Kolmogorov-Smirnov distances and their mean over random
  relabellings of the pooled sample.

A method that moves features independently has fidelity 0, a perfect conditional model 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._progress import bar
from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders import Decoders
from dear_plugin.decoders.transport.axes import cut
from dear_plugin.evaluation import excess
from dear_plugin.evaluation.joint import auc, disjoint_moves
from dear_plugin.problem.action_sets import ActionSets

METRIC_BINS = 10
SOURCES = 4
NEAREST = 20
JITTER = 1e-6
MOST_ROWS = 10_000
KS_ROWS = 1_000
# A generated row takes two rows, a source and a destination: the samples are of equal size.
REAL_SHARE = 1 / 3
DRAWS = 4
LEAST_DEVIATION = 1e-6
# The minimum denominator of a fidelity in standard errors: its relative error is about a quarter.
SIGNIFICANT = 4.0


@dataclass(frozen=True)
class Sample:
    """Generated and real rows, for s sets.

    Attributes:
        real: (n, d) held-out rows, encoded.
        unmoved: s tensors, (n, d), the mean of the possible sources of each real row, unmoved.
        bins: (s, n) the bin of each real row's x_S.
        sources: (s, m) the rows that were moved, `SOURCES` times to the bin of each real row.
        generated: (s, m, d) the moved rows.
        acted: (s, d) bool, the columns of S and of the features held for it.
        matched: whether sources are matched to the real row in held features.
        round_trip: mean |g(e(x), x_S) - x|.
    """

    real: Tensor
    unmoved: list[Tensor]
    bins: Tensor
    sources: Tensor
    generated: Tensor
    acted: Tensor
    matched: bool
    round_trip: float

    @property
    def halves(self) -> tuple[Tensor, Tensor]:
        """(n,) and (m,) bool, real and generated rows that are independent of each other.

        Generated rows with matched sources depend on their own real row, and are compared with the
        other half.
        """
        even = torch.arange(len(self.real)) % 2 == 0
        return ~even | (not self.matched), (even | (not self.matched)).repeat(SOURCES)


def draw(
    decoders: Decoders,
    sets: ActionSets,
    rows: Tensor,
    *,
    seed: int = 0,
    as_displayed: bool = False,
) -> Sample:
    """Move random rows to the x_S of real rows.

    Args:
        decoders: the decoders to evaluate.
        sets: the s sets.
        rows: (n, p) held-out rows; at most `MOST_ROWS` are used.
        seed: of the draw.
        as_displayed: middle ties, as in displayed results, instead of random ones.
    """
    rng, encoder = torch.Generator().manual_seed(seed), decoders.sample.encoder
    rows = rows[torch.randperm(len(rows), generator=rng)[:MOST_ROWS]]
    n = len(rows)
    real = encoder.expand(encoder.grid.round(rows))
    destinations, tie = torch.arange(n).repeat(SOURCES), None if as_displayed else rng
    held = [decoders.conditioned(members) for members in sets.members]
    columns = {each: torch.isin(encoder.feature_of, torch.tensor(each)) for each in held}
    kept = [torch.tensor([*members, *decoders.held(members)]) for members in sets.members]
    candidates = {
        each: _candidates(real[:, own & encoder.compared], rng) for each, own in columns.items()
    }
    unmoved = {each: real[of].mean(1).expand(real.shape) for each, of in candidates.items()}
    sources, generated, trips = [], [], []
    # Of the range of a number, whatever the unit of cost.
    shares = encoder.unit / encoder.width
    for members, each in bar([*zip(sets.members, held, strict=True)], "diagnosing, action sets"):
        decoder, of = decoders.of(members), candidates[each]
        drawn = torch.randint(of.shape[1], (len(destinations),), generator=rng)
        source, v = of[destinations % len(of), drawn], decoder.encode(rows, tie)
        values = rows[:, list(members)][:, None]
        moved = decoder.decode(rows[source], v[source], values[destinations])[:, 0]
        back = decoder.decode(rows, v, values)[:, 0]
        sources.append(source)
        generated.append(encoder.expand(encoder.grid.round(moved)))
        trips.append(float((encoder.distance(back, rows) * shares).mean()))
    return Sample(
        real,
        [unmoved[each] for each in held],
        torch.stack([bins_of(encoder, rows, m) for m in sets.members]),
        torch.stack(sources),
        torch.stack(generated),
        torch.stack([torch.isin(encoder.feature_of, each) for each in kept]),
        any(held),
        float(np.mean(trips)),
    )


def _candidates(given: Tensor, rng: torch.Generator) -> Tensor:
    """(n, k) the nearest rows of each in held columns, (n, h); (1, n) all rows if h = 0."""
    n, h = given.shape
    if not h:
        return torch.arange(n)[None]
    from scipy.spatial import KDTree

    x = given + JITTER * torch.rand(n, h, generator=rng, dtype=torch.float64)
    return torch.from_numpy(KDTree(x.numpy()).query(x.numpy(), range(1, min(NEAREST, n) + 1))[1])


def bins_of(encoder: Encoder, rows: Tensor, members: tuple[int, ...]) -> Tensor:
    """(n,) bins of x_S: combinations of the bins of its features."""
    codes = torch.zeros(len(rows), dtype=torch.int64)
    for j in members:
        feature, column = encoder.schema.features[j], rows[:, j]
        bins = feature.coarser(column, lambda amounts: cut(amounts, METRIC_BINS)[0]).long()
        codes = codes * (int(bins.max()) + 1) + bins
    return torch.as_tensor(codes.unique(return_inverse=True)[1])


def dependence(sample: Sample, standardised: bool = False) -> pd.DataFrame:
    """The excess of e and e0 over chance, by set and column: `set, column, left, all, noise`.

    Dependence fidelity over any selection is `1 - left.sum() / all.sum()`; `noise.sum()` over the
    rows of a set is the variance of its `all.sum()` if nothing depends on x_S.

    Args:
        sample: generated and real rows.
        standardised: scale every column to variance 1, and leave out those that are constant.
    """
    scale, acted = torch.ones(sample.real.shape[1], dtype=torch.float64), sample.acted
    if standardised:
        deviation = sample.real.double().std(0, correction=0)
        scale = deviation.clamp_min(LEAST_DEVIATION)
        acted = acted | (deviation < LEAST_DEVIATION)
    tables = []
    for i, bins in enumerate(sample.bins):
        unmoved = (sample.unmoved[i] - sample.real).double() / scale
        noise = excess.noise_of_means(unmoved)
        # Sources and real rows are the same rows: the overall means agree, which costs a degree
        # of freedom.
        lost = unmoved.var(0, correction=0) / len(unmoved)
        made = sample.generated[i].view(SOURCES, *sample.real.shape).mean(0)
        left = excess.squared_means((made - sample.real).double() / scale, bins)
        slope = excess.slope(sample.generated[i], sample.real[sample.sources[i]])
        left += lost * (1.0 - (1.0 - slope).square())
        whole = excess.squared_means(unmoved, bins) + lost
        by_chance = noise[:, ~acted[i]].sum(1) * int(bins.max())
        tables.append(_tidy(i, acted[i], left, whole, by_chance))
    return pd.concat(tables, ignore_index=True)


def distribution(sample: Sample, seed: int = 0) -> pd.DataFrame:
    """The excess of Kolmogorov-Smirnov distances over chance; columns as in `dependence`."""
    rng, halves = np.random.default_rng(seed), sample.halves
    tables = []
    for i in range(len(sample.bins)):
        left, whole = torch.zeros(sample.real.shape[1]), torch.zeros(sample.real.shape[1])
        relabelled = torch.zeros(excess.RELABELLINGS, sample.real.shape[1])
        for b in range(int(sample.bins[i].max()) + 1):
            in_bin = sample.bins[i] == b
            share = float(in_bin.float().mean())
            in_bin, moved_to_bin = in_bin & halves[0], in_bin.repeat(SOURCES) & halves[1]
            if not (in_bin.any() and moved_to_bin.any()):
                continue
            at = _subsample(in_bin.nonzero()[:, 0], rng)
            moves = _subsample(moved_to_bin.nonzero()[:, 0], rng)
            sources = sample.sources[i][moves]
            real, scale = sample.real[at], excess.overlap_scale(at, sources)
            left += share * excess.ks(sample.generated[i][moves], real, rng, scale)[0]
            beyond, by_chance = excess.ks(sample.real[sources], real, rng, scale)
            whole += share * beyond
            relabelled += share * by_chance
        noise = excess.shares_of_variance(relabelled.double(), ~sample.acted[i])
        tables.append(_tidy(i, sample.acted[i], left, whole, noise))
    return pd.concat(tables, ignore_index=True)


def ratio(table: pd.DataFrame) -> float:
    """The fidelity over the sets and columns of a table; NaN without a significant dependence.

    The dependence, `all.sum()`, must be `SIGNIFICANT` times its standard error under independence.
    """
    # A pair of features is counted twice, as the dependence of a on b and that of b on a.
    twice = 2.0 if table["set"].nunique() > 1 else 1.0
    error = float(np.sqrt(twice * max(table["noise"].sum(), 0.0)))
    whole = float(table["all"].sum())
    if whole <= SIGNIFICANT * error:
        return float("nan")
    return 1.0 - float(table["left"].sum()) / whole


def identity(sample: Sample) -> list[float]:
    """Per set, the mean correlation of g_j with x_j over the columns outside S."""
    out = []
    for i in range(len(sample.bins)):
        a, b = sample.generated[i], sample.real[sample.sources[i]]
        a, b = a - a.mean(0), b - b.mean(0)
        scale = (a.square().mean(0) * b.square().mean(0)).sqrt()
        kept = ~sample.acted[i] & (scale > 1e-9)
        out.append(float(((a * b).mean(0)[kept] / scale[kept]).mean()))
    return out


def joint(sample: Sample, seed: int = 0, independent: bool = False) -> float:
    """The AUC of a classifier between generated and real rows, 0.5 is perfect; mean of `DRAWS`.

    A third of the rows is the real sample. Pairs of the others, a source and a destination, give
    the generated sample. No row is in two pairs: a classifier would recognise the copies.

    Args:
        sample: generated and real rows.
        seed: of the classifier and of the samples.
        independent: change x_S alone, as a decoder without dependences would.
    """
    n, aucs = len(sample.real), []
    for draw in range(DRAWS):
        rng = np.random.default_rng([seed, draw])
        real = torch.from_numpy(rng.permutation(n) < n * REAL_SHARE)
        at, move = disjoint_moves(sample.sources, ~real, rng, 2 * KS_ROWS)
        made = sample.generated[at, move]
        if independent:
            made = torch.where(sample.acted[at], made, sample.real[sample.sources[at, move]])
        aucs.append(auc(_subsample(sample.real[real], rng, 2 * KS_ROWS), made, seed))
    return float(np.mean(aucs))


def _tidy(i: int, acted: Tensor, left: Tensor, whole: Tensor, noise: Tensor) -> pd.DataFrame:
    kept = (~acted).nonzero()[:, 0]
    columns = {"left": left, "all": whole, "noise": noise}
    table = pd.DataFrame({k: v[kept].double().numpy() for k, v in columns.items()})
    table.insert(0, "column", kept.numpy())
    table.insert(0, "set", i)
    return table


def _subsample(x: Tensor, rng: np.random.Generator, most: int = KS_ROWS) -> Tensor:
    if len(x) <= most:
        return x
    return x[torch.from_numpy(rng.choice(len(x), most, replace=False))]
