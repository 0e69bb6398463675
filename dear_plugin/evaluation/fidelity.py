"""Fidelity: do generated rows depend on x_S as real ones do?

Two numbers measure any decoder, three more keep them honest (DESIGN, section 4). For each real row
in bin b of x_S, its value a and people i drawn at random give generated rows `g(v_i, a)`. Real and
generated rows are written alike, as a frame has them: a float32 that was computed lies beside the
one that was read; trees tell the two apart, and a distribution's atom falls into several.
Under `given` they are drawn from those most like the real row in what is given, so that a bin's
people have its own distribution of it.

- Dependence fidelity, `1 - sum p_b (e^2 - eta) / sum p_b (e0^2 - eta0)`: e compares means of
  generated and real rows in b, e0 those of the same people unchanged and real rows in b; eta is
  the variance that e has by chance alone.
- Distribution fidelity, the same with Kolmogorov-Smirnov distances and their mean over random
  relabellings of the pooled sample.

A method that moves features independently scores 0, a perfect conditional model 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind
from dear_plugin.decoders import Decoder
from dear_plugin.decoders.transport.bins import cut
from dear_plugin.evaluation import excess
from dear_plugin.evaluation.joint import auc, once
from dear_plugin.problem.action_sets import ActionSets

METRIC_BINS = 10
PEOPLE = 4
ALIKE = 20
JITTER = 1e-6
MOST_ROWS = 10_000
KS_ROWS = 1_000
# Two of the others make one generated row: as many of these as are shown.
SHOWN = 1 / 3
DRAWS = 4
LEAST_DEVIATION = 1e-6
# A ratio whose denominator is four standard errors is known to about a quarter.
CLEAR = 4.0


@dataclass(frozen=True)
class Sample:
    """Generated rows beside real ones, for s sets.

    Attributes:
        real: (n, d) held-out rows, encoded.
        still: (n, d) the mean of those who may be moved to each, as they are.
        bins: (s, n) the bin of each real row's x_S.
        people: (s, m) who was moved.
        bin_of: (s, m) the bin they were moved to.
        generated: (s, m, d) where they ended up.
        own: (s, d) bool, the columns of S itself and of what is given.
        matched: whether people are like the row they are moved to in what is given.
        round_trip: mean |g(e(x), x_S) - x|.
    """

    real: Tensor
    still: Tensor
    bins: Tensor
    people: Tensor
    bin_of: Tensor
    generated: Tensor
    own: Tensor
    matched: bool
    round_trip: float

    @property
    def sides(self) -> tuple[Tensor, Tensor]:
        """(n,) and (m,) bool, real rows and generated ones that know nothing of each other.

        Matched people share with their row what is given: they are held against other rows.
        """
        even = torch.arange(len(self.real)) % 2 == 0
        return ~even | (not self.matched), (even | (not self.matched)).repeat(PEOPLE)


def draw(
    decoder: Decoder,
    encoder: Encoder,
    sets: ActionSets,
    rows: Tensor,
    *,
    seed: int = 0,
    as_displayed: bool = False,
) -> Sample:
    """Move random people to the x_S of real rows.

    Args:
        decoder: the decoder to be measured.
        encoder: the gate.
        sets: its sets.
        rows: (n, p) held-out rows; at most `MOST_ROWS` are used.
        seed: of the draw.
        as_displayed: middle ties, as people see them, instead of random ones.
    """
    rng = torch.Generator().manual_seed(seed)
    rows = rows[torch.randperm(len(rows), generator=rng)[:MOST_ROWS]]
    n, s = len(rows), len(sets)
    v = decoder.encode(rows, None if as_displayed else rng)
    real, donors = encoder.expand(encoder.units.rounded(rows)), torch.arange(n).repeat(PEOPLE)
    given = (encoder.feature_of == decoder.given_features[:, None]).any(0)
    alike = _alike(real[:, given], rng)
    drawn = torch.randint(alike.shape[1], (s, len(donors)), generator=rng)
    people = alike[donors % len(alike), drawn]
    generated = []
    for i in range(s):
        which, at = people[i], torch.full((len(donors),), i)
        x = rows[which]
        values = rows[donors[:, None], sets.positions[i]][:, None]
        moved = decoder.decode(x, v[which, i], values, at)[:, 0]
        generated.append(encoder.expand(encoder.units.rounded(moved)))
    bins = torch.stack([_bins(encoder, rows, m) for m in sets.members])
    return Sample(
        real,
        real[alike].mean(1).expand(real.shape),
        bins,
        people,
        bins[:, donors],
        torch.stack(generated),
        sets.masks[:, encoder.feature_of] | given,
        bool(given.any()),
        _round_trip(decoder, encoder, sets, rows, v),
    )


def _alike(given: Tensor, rng: torch.Generator) -> Tensor:
    """(n, k) who may be moved to each row, the most alike; (1, n) anyone, if nothing is given.

    Args:
        given: (n, h) encoded columns in which people are to be alike.
        rng: picks among those who are exactly alike.
    """
    n, h = given.shape
    if not h:
        return torch.arange(n)[None]
    from scipy.spatial import KDTree

    x = given + JITTER * torch.rand(n, h, generator=rng, dtype=torch.float64)
    return torch.from_numpy(KDTree(x.numpy()).query(x.numpy(), range(1, min(ALIKE, n) + 1))[1])


def _round_trip(
    decoder: Decoder, encoder: Encoder, sets: ActionSets, rows: Tensor, v: Tensor
) -> float:
    """The mean |g(e(x), x_S) - x| of rows, (n, p), and latents, (n, s, k)."""
    n, s = v.shape[:2]
    every, here = rows.repeat(s, 1), rows[:, sets.positions].transpose(0, 1)
    which = torch.arange(s).repeat_interleave(n)
    back = decoder.decode(
        every, v.transpose(0, 1).flatten(0, 1), here.flatten(0, 1)[:, None], which
    )
    return float(encoder.distance(back[:, 0], every).mean())


def _bins(encoder: Encoder, rows: Tensor, members: tuple[int, ...]) -> Tensor:
    """(n,) bins of x_S: the cells that the bins of its features make together."""
    codes = torch.zeros(len(rows), dtype=torch.int64)
    for j in members:
        feature, column = encoder.schema.features[j], rows[:, j]
        own = column.long() if feature.kind is not Kind.NUMERIC else cut(column, METRIC_BINS)[0]
        codes = codes * (int(own.max()) + 1) + own
    return torch.as_tensor(codes.unique(return_inverse=True)[1])


def dependence(sample: Sample, standardised: bool = False) -> pd.DataFrame:
    """What e and e0 exceed chance by, one row per set and column: `set, column, left, all, noise`.

    Dependence fidelity over any selection is `1 - left.sum() / all.sum()`; `noise.sum()` over the
    rows of a set is the variance that its `all.sum()` has where nothing depends on x_S.

    Args:
        sample: generated rows beside real ones.
        standardised: scale every column to variance 1, and leave out those that are constant.
    """
    scale, own = torch.ones(sample.real.shape[1], dtype=torch.float64), sample.own
    if standardised:
        deviation = sample.real.double().std(0, correction=0)
        scale, own = deviation.clamp_min(LEAST_DEVIATION), own | (deviation < LEAST_DEVIATION)
    still = (sample.still - sample.real).double() / scale
    noise = excess.noise_of_means(still)
    # The same people are on both sides: the means of all bins together agree by themselves.
    lost = still.var(0, correction=0) / len(still)
    tables = []
    for i, bins in enumerate(sample.bins):
        made = sample.generated[i].view(PEOPLE, *sample.real.shape).mean(0)
        left = excess.squared_means((made - sample.real).double() / scale, bins)
        kept = excess.slope(sample.generated[i], sample.real[sample.people[i]])
        left += lost * (1.0 - (1.0 - kept).square())
        by_chance = noise[:, ~own[i]].sum(1) * int(bins.max())
        tables.append(_tidy(i, own[i], left, excess.squared_means(still, bins) + lost, by_chance))
    return pd.concat(tables, ignore_index=True)


def distribution(sample: Sample, seed: int = 0) -> pd.DataFrame:
    """What Kolmogorov-Smirnov distances exceed chance by; columns as in `dependence`."""
    rng, sides = np.random.default_rng(seed), sample.sides
    tables = []
    for i in range(len(sample.bins)):
        left, whole = torch.zeros(sample.real.shape[1]), torch.zeros(sample.real.shape[1])
        relabelled = torch.zeros(excess.RELABELLINGS, sample.real.shape[1])
        for b in range(int(sample.bins[i].max()) + 1):
            here, there = sample.bins[i] == b, sample.bin_of[i] == b
            share = float(here.float().mean())
            here, there = here & sides[0], there & sides[1]
            if not (here.any() and there.any()):
                continue
            at = _some(here.nonzero()[:, 0], rng)
            move = _some(there.nonzero()[:, 0], rng)
            who = sample.people[i][move]
            real, scale = sample.real[at], excess.sharing(at, who)
            left += share * excess.ks(sample.generated[i][move], real, rng, scale)[0]
            beyond, by_chance = excess.ks(sample.real[who], real, rng, scale)
            whole += share * beyond
            relabelled += share * by_chance
        noise = excess.shares_of_variance(relabelled.double(), ~sample.own[i])
        tables.append(_tidy(i, sample.own[i], left, whole, noise))
    return pd.concat(tables, ignore_index=True)


def ratio(table: pd.DataFrame) -> float:
    """One fidelity over the sets and columns of a table; NaN where there is none to measure.

    Where features depend on x_S by no more than chance, both sums are noise, and so is their
    ratio: what there is to follow must be `CLEAR` times its standard error.
    """
    # A pair of features is counted both ways, as a follows b and as b follows a.
    twice = 2.0 if table["set"].nunique() > 1 else 1.0
    error = float(np.sqrt(twice * max(table["noise"].sum(), 0.0)))
    whole = float(table["all"].sum())
    if whole <= CLEAR * error:
        return float("nan")
    return 1.0 - float(table["left"].sum()) / whole


def identity(sample: Sample) -> list[float]:
    """Per set, the mean correlation of g_j with x_j: whether people remain themselves."""
    out = []
    for i in range(len(sample.bins)):
        a, b = sample.generated[i], sample.real[sample.people[i]]
        a, b = a - a.mean(0), b - b.mean(0)
        scale = (a.square().mean(0) * b.square().mean(0)).sqrt()
        kept = ~sample.own[i] & (scale > 1e-9)
        out.append(float(((a * b).mean(0)[kept] / scale[kept]).mean()))
    return out


def joint(sample: Sample, seed: int = 0, independent: bool = False) -> float:
    """How well a classifier tells generated rows from real ones: AUC, 0.5 is perfect.

    A third of the rows is shown as it is. Pairs of the others, a person and a row whose x_S they
    take, give the generated ones, and nobody is in two pairs: a classifier recognises a person or
    a value that it has seen, and calls it generated, whatever the decoder did. The mean over
    `DRAWS` such draws.

    Args:
        sample: generated rows beside real ones, written alike.
        seed: of the classifier and of which rows it sees.
        independent: the same people moved to the same values of x_S, and nothing else of them:
            what a decoder that knows of no dependence would get.
    """
    n, found = len(sample.real), []
    for again in range(DRAWS):
        rng = np.random.default_rng([seed, again])
        shown = torch.from_numpy(rng.permutation(n) < n * SHOWN)
        at, move = once(sample.people, ~shown, rng, 2 * KS_ROWS)
        made = sample.generated[at, move]
        if independent:
            made = torch.where(sample.own[at], made, sample.real[sample.people[at, move]])
        found.append(auc(_some(sample.real[shown], rng, 2 * KS_ROWS), made, seed))
    return float(np.mean(found))


def _tidy(i: int, own: Tensor, left: Tensor, whole: Tensor, noise: Tensor) -> pd.DataFrame:
    kept = (~own).nonzero()[:, 0]
    columns = {"left": left, "all": whole, "noise": noise}
    table = pd.DataFrame({k: v[kept].double().numpy() for k, v in columns.items()})
    table.insert(0, "column", kept.numpy())
    table.insert(0, "set", i)
    return table


def _some(x: Tensor, rng: np.random.Generator, most: int = KS_ROWS) -> Tensor:
    if len(x) <= most:
        return x
    return x[torch.from_numpy(rng.choice(len(x), most, replace=False))]
