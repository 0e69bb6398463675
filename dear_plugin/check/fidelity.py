"""How well generated rows reproduce the dependence of real rows on x_S.

Each real row has a bin b of x_S and a value a. Random rows i, the sources, are moved to this
value: the generated rows are `g(v_i, a)`. Both are rounded alike, so that equal numbers have equal
bits. With held features, sources are drawn from the rows that are nearest in these. Their
distribution in a bin then equals that of the real rows.

- Dependence fidelity is `1 - sum p_b (e^2 - eta) / sum p_b (e0^2 - eta0)`. e is the difference
  between the means of generated and real rows in b, e0 that between unmoved sources and real rows.
  eta and eta0 are the variances of these by chance.
- Distribution fidelity is the same with Kolmogorov-Smirnov distances, and with their means over
  random relabellings of the pooled sample.
- Joint AUC is the AUC of a classifier between generated and real rows.

A method that moves features independently has fidelity 0, a perfect conditional model 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._threads import bar
from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders import Decoders
from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.transport.values import cut
from dear_plugin.problem.action_sets import ActionSets

METRIC_BINS, SOURCES, NEAREST, JITTER = 10, 4, 20, 1e-6
MOST_ROWS, KS_ROWS = 10_000, 1_000
# A generated row needs two rows, a source and a destination: a third gives samples of equal size.
REAL_SHARE = 1 / 3
DRAWS = 4
LEAST_DEVIATION = 1e-6
# The smallest denominator of a fidelity in standard errors: its relative error is then a quarter.
SIGNIFICANT = 4.0


@dataclass(frozen=True)
class Sample:
    """Generated and real rows, for s sets.

    Attributes:
        real: (n, d) held-out rows, encoded.
        unmoved: s tensors, (n, d), the mean of the possible sources of each real row.
        bins: (s, n) the bin of each real row's x_S.
        sources: (s, m) the rows that were moved, `SOURCES` times to the bin of each real row.
        generated: (s, m, d) the moved rows.
        acted: (s, d) bool, the columns of S and of its held features.
        matched: whether sources are matched to the real row in held features.
        round_trip: the mean of |g(e(x), x_S) - x|.
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

        A generated row with a matched source depends on its real row, and is compared with the
        other half of real rows.
        """
        even = torch.arange(len(self.real)) % 2 == 0
        return ~even | (not self.matched), (even | (not self.matched)).repeat(SOURCES)


def draw(decoders: Decoders, sets: ActionSets, rows: Tensor, *, seed: int = 0) -> Sample:
    """The sample: random rows moved to the x_S of real rows.

    Args:
        decoders: the decoders to evaluate.
        sets: the s sets.
        rows: (n, p) held-out rows; at most `MOST_ROWS` are used.
        seed: the seed of the draw.
    """
    rng, encoder = torch.Generator().manual_seed(seed), decoders.sample.encoder
    rows = rows[torch.randperm(len(rows), generator=rng)[:MOST_ROWS]]
    n = len(rows)
    real = encoder.expand(encoder.rounded(rows))
    destinations = torch.arange(n).repeat(SOURCES)
    held = [decoders.conditioned(members) for members in sets.members]
    columns = {each: torch.isin(encoder.feature_of, torch.tensor(each)) for each in held}
    kept = [torch.tensor([*members, *decoders.held(members)]) for members in sets.members]
    candidates = {
        each: _candidates(real[:, own & encoder.compared], rng) for each, own in columns.items()
    }
    unmoved = {each: real[of].mean(1).expand(real.shape) for each, of in candidates.items()}
    sources, generated, trips = [], [], []
    # A round trip is measured in the range of a number, not in units of cost.
    shares = encoder.unit / encoder.width
    for members, each in bar([*zip(sets.members, held, strict=True)], "diagnosing, action sets"):
        decoder, of = decoders.of(members), candidates[each]
        drawn = torch.randint(of.shape[1], (len(destinations),), generator=rng)
        source, v = of[destinations % len(of), drawn], decoder.encode(rows, rng)
        values = rows[:, list(members)][:, None]
        moved = decoder.decode(rows[source], v[source], values[destinations])[:, 0]
        back = decoder.decode(rows, v, values)[:, 0]
        sources.append(source)
        generated.append(encoder.expand(encoder.rounded(moved)))
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
    """(n, k) the nearest rows in held columns, (n, h); (1, n) all rows if h = 0."""
    n, h = given.shape
    if not h:
        return torch.arange(n)[None]
    from scipy.spatial import KDTree

    x = given + JITTER * torch.rand(n, h, generator=rng, dtype=torch.float64)
    return torch.from_numpy(KDTree(x.numpy()).query(x.numpy(), range(1, min(NEAREST, n) + 1))[1])


def bins_of(encoder: Encoder, rows: Tensor, members: Members, *how: int) -> Tensor:
    """(n,) bins of x_S, the combinations of the bins of its features; `how` is that of `cut`."""
    codes, limits = torch.zeros(len(rows), dtype=torch.int64), how or (METRIC_BINS,)
    for j in members:
        feature, column = encoder.schema.features[j], rows[:, j]
        bins = (cut(column, *limits)[0] if feature.has_order else column).long()
        codes = codes * (int(bins.max()) + 1) + bins
    return torch.as_tensor(codes.unique(return_inverse=True)[1])


def dependence(sample: Sample, standardised: bool = False) -> pd.DataFrame:
    """A frame of the excess of e and e0 over chance: `set, column, left, all, noise`.

    Dependence fidelity over any rows of the frame is `1 - left.sum() / all.sum()`. `noise.sum()`
    over the rows of a set is the variance of its `all.sum()` if nothing depends on x_S.

    Args:
        sample: generated and real rows.
        standardised: scale every column to variance 1, and leave out constant columns.
    """
    scale, acted = torch.ones(sample.real.shape[1], dtype=torch.float64), sample.acted
    if standardised:
        deviation = sample.real.double().std(0, correction=0)
        scale = deviation.clamp_min(LEAST_DEVIATION)
        acted = acted | (deviation < LEAST_DEVIATION)
    tables = []
    for i, bins in enumerate(sample.bins):
        unmoved = (sample.unmoved[i] - sample.real).double() / scale
        noise = noise_of_means(unmoved)
        # Sources and real rows are the same rows: their means agree, which costs one degree of
        # freedom.
        lost = unmoved.var(0, correction=0) / len(unmoved)
        made = sample.generated[i].view(SOURCES, *sample.real.shape).mean(0)
        left = squared_means((made - sample.real).double() / scale, bins)
        kept = slope(sample.generated[i], sample.real[sample.sources[i]])
        left += lost * (1.0 - (1.0 - kept).square())
        whole = squared_means(unmoved, bins) + lost
        by_chance = noise[:, ~acted[i]].sum(1) * int(bins.max())
        tables.append(_tidy(i, acted[i], left, whole, by_chance))
    return pd.concat(tables, ignore_index=True)


def distribution(sample: Sample, seed: int = 0) -> pd.DataFrame:
    """A frame of the excess of Kolmogorov-Smirnov distances; columns as in `dependence`."""
    rng, halves = np.random.default_rng(seed), sample.halves
    tables = []
    for i in range(len(sample.bins)):
        left, whole = torch.zeros(sample.real.shape[1]), torch.zeros(sample.real.shape[1])
        relabelled = torch.zeros(RELABELLINGS, sample.real.shape[1])
        for b in range(int(sample.bins[i].max()) + 1):
            in_bin = sample.bins[i] == b
            share = float(in_bin.float().mean())
            in_bin, moved_to_bin = in_bin & halves[0], in_bin.repeat(SOURCES) & halves[1]
            if not (in_bin.any() and moved_to_bin.any()):
                continue
            at = _subsample(in_bin.nonzero()[:, 0], rng)
            moves = _subsample(moved_to_bin.nonzero()[:, 0], rng)
            sources = sample.sources[i][moves]
            real, scale = sample.real[at], overlap_scale(at, sources)
            left += share * ks(sample.generated[i][moves], real, rng, scale)[0]
            beyond, by_chance = ks(sample.real[sources], real, rng, scale)
            whole += share * beyond
            relabelled += share * by_chance
        noise = shares_of_variance(relabelled.double(), ~sample.acted[i])
        tables.append(_tidy(i, sample.acted[i], left, whole, noise))
    return pd.concat(tables, ignore_index=True)


def ratio(table: pd.DataFrame) -> float:
    """The fidelity over the sets and columns of a table; NaN without a significant dependence.

    The dependence `all.sum()` must exceed `SIGNIFICANT` standard errors under independence.
    """
    # A pair of features counts twice: as the dependence of a on b, and of b on a.
    twice = 2.0 if table["set"].nunique() > 1 else 1.0
    error = float(np.sqrt(twice * max(table["noise"].sum(), 0.0)))
    whole = float(table["all"].sum())
    if whole <= SIGNIFICANT * error:
        return float("nan")
    return 1.0 - float(table["left"].sum()) / whole


def joint(sample: Sample, seed: int = 0, independent: bool = False) -> float:
    """The mean AUC of a classifier between generated and real rows over `DRAWS`; 0.5 is perfect.

    A third of the rows is the real sample. Pairs of other rows, a source and a destination, make
    the generated sample. No row is in two pairs: a classifier would recognise the copies.

    Args:
        sample: generated and real rows.
        seed: the seed of the classifier and the samples.
        independent: change x_S alone, like a decoder without dependences.
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
    values = {k: v[kept].double().numpy() for k, v in columns.items()}
    return pd.DataFrame({"set": i, "column": kept.numpy(), **values})


def _subsample(x: Tensor, rng: np.random.Generator, most: int = KS_ROWS) -> Tensor:
    if len(x) <= most:
        return x
    return x[torch.from_numpy(rng.choice(len(x), most, replace=False))]


FOLDS = 3
# The number of bins of the trees. Finer bins would detect values that a decoder has tabulated and
# repeats.
LEVELS = 64
FEWEST = 10


def disjoint_moves(
    sources: Tensor, allowed: Tensor, rng: np.random.Generator, most: int
) -> tuple[Tensor, Tensor]:
    """(k,) sets and (k,) moves in random order that use no row twice.

    A move uses its source and its destination, whose x_S it takes. A classifier would recognise
    copies of a row in a training and a test fold, for any decoder.

    Args:
        sources: (s, m) the row that is moved; move i goes to the x_S of row `i % n`.
        allowed: (n,) bool, the rows that may be used.
        rng: the generator of the order.
        most: the maximum number of moves.
    """
    to = torch.arange(sources.shape[1]) % len(allowed)
    pairs = (allowed[sources] & allowed[to] & (sources != to)).nonzero()
    pairs = pairs[torch.from_numpy(rng.permutation(len(pairs)))]
    moved, destinations = sources[pairs[:, 0], pairs[:, 1]].tolist(), to[pairs[:, 1]].tolist()
    used: set[int] = set()
    chosen: list[int] = []
    for i, (source, destination) in enumerate(zip(moved, destinations, strict=True)):
        if len(chosen) == most:
            break
        if source not in used and destination not in used:
            used |= {source, destination}
            chosen.append(i)
    return pairs[chosen, 0], pairs[chosen, 1]


def auc(real: Tensor, generated: Tensor, seed: int) -> float:
    """The cross-validated AUC of boosted trees; NaN with fewer than `FEWEST` rows in a sample.

    Args:
        real: (n, d) one sample.
        generated: (m, d) the other sample.
        seed: the seed of the classifier.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict

    if min(len(real), len(generated)) < FEWEST:
        return float("nan")
    x = torch.cat([real, generated]).numpy()
    y = np.repeat([0, 1], [len(real), len(generated)])
    trees = HistGradientBoostingClassifier(max_iter=50, max_bins=LEVELS, random_state=seed)
    probabilities = cross_val_predict(trees, x, y, cv=FOLDS, method="predict_proba")[:, 1]
    return float(roc_auc_score(y, probabilities))


RELABELLINGS = 20


def squared_means(difference: Tensor, bins: Tensor) -> Tensor:
    """(d,) the mean over rows of the squared bin mean of a difference, less its variance.

    Args:
        difference: (n, d) the difference of each row.
        bins: (n,) the bin of each row.
    """
    count = torch.bincount(bins).double()[:, None]
    total = torch.zeros(len(count), difference.shape[1], dtype=torch.float64)
    mean = total.index_add(0, bins, difference.double()) / count
    square = total.index_add(0, bins, difference.double() ** 2) / count
    variance = (square - mean**2).clamp_min(0.0) / (count - 1.0).clamp_min(1.0)
    return (count * (mean**2 - variance)).sum(0) / len(difference)


def slope(after: Tensor, before: Tensor) -> Tensor:
    """(d,) the regression slope of values after a move on values before it, (m, d) each."""
    after, before = after.double(), before.double() - before.double().mean(0)
    return (after * before).mean(0) / before.square().mean(0).clamp_min(1e-12)


def noise_of_means(difference: Tensor) -> Tensor:
    """(d, d) the chance variance of `squared_means` with two bins, by pairs of columns.

    With B bins it is B - 1 times as large. There are B - 1 independent squared deviations of means
    of variance C / n each, where C is the covariance of the differences.

    Args:
        difference: (n, d) the difference of each row.
    """
    n = len(difference)
    centred = difference - difference.mean(0)
    covariance = centred.T @ centred / max(n - 1, 1)
    return 2.0 * covariance**2 / n**2


def overlap_scale(first: Tensor, second: Tensor) -> float:
    """The standard deviation of the difference of two sample means, relative to disjoint samples.

    Rows in both samples cancel. A row that is several times in the second sample counts once.

    Args:
        first: (n,) distinct row numbers.
        second: (m,) row numbers, with repetitions.
    """
    n, m = len(first), len(second)
    copies = torch.bincount(second, minlength=int(first.max()) + 1).double()
    shared = float(copies[first].sum()) / (n * m)
    separate = 1.0 / n + float(copies.square().sum()) / m**2
    return float(np.sqrt(max(separate - 2.0 * shared, 0.0) / (1.0 / n + 1.0 / m)))


def ks(
    a: Tensor, b: Tensor, rng: np.random.Generator, scale: float = 1.0
) -> tuple[Tensor, Tensor]:
    """(d,) KS(a, b) less its mean over relabellings, and (`RELABELLINGS`, d) the relabelled ones.

    Args:
        a: (n, d) one sample.
        b: (m, d) the other sample; both are pooled and relabelled.
        rng: the generator of the relabellings.
        scale: the factor of relabelled distances, see `overlap_scale`.
    """
    pooled, order = torch.cat([a, b]).sort(0)
    last = torch.ones(pooled.shape, dtype=torch.bool)
    last[:-1] = pooled[1:] > pooled[:-1]
    step = torch.cat([torch.full((len(a),), 1.0 / len(a)), torch.full((len(b),), -1.0 / len(b))])
    by_chance = torch.stack(
        [
            _distance(step[torch.from_numpy(rng.permutation(len(step)))], order, last)
            for _ in range(RELABELLINGS)
        ]
    )
    return _distance(step, order, last) - scale * by_chance.mean(0), scale * by_chance


def shares_of_variance(draws: Tensor, counted: Tensor) -> Tensor:
    """(d,) the contribution of each column to the variance of a sum of columns.

    Args:
        draws: (m, d) independent draws of the columns.
        counted: (d,) bool, the columns in the sum.
    """
    centred = draws - draws.mean(0)
    total = centred[:, counted].sum(1, keepdim=True)
    return (centred * total).sum(0) / (len(draws) - 1)


def _distance(step: Tensor, order: Tensor, last: Tensor) -> Tensor:
    """(d,) the largest difference of two distribution functions, given their steps, (n + m,)."""
    differences = step[order].cumsum(0).abs()
    return torch.where(last, differences, 0.0).amax(0)
