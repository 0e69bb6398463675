"""The measures of answers that depend on training rows: plausibility, support, consistency.

*Consistency* is the share of training rows that gain by the same kind of change. It is computed
from the model's scores alone, on individual conditional expectation curves (Goldstein et al. 2015,
"Peeking Inside the Black Box"): one feature of some training rows takes each of a few values, and
the other features keep theirs.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dear_plugin._threads import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.numbers import amounts_of
from dear_plugin.decoders import Decoders
from dear_plugin.models.classifier import Classifier, cutoffs, warn_of_labels
from dear_plugin.problem.goals import Goal

# The numbers of training rows that are scored for the unit of the margin, and for plausibility.
SCORED_ROWS, COMPARED_ROWS = 2_000, 5_000
NEIGHBOURS = 5
# Above so many encoded columns, a product of matrices is cheaper than a tree. The cells of one
# product, and the number of near rows that it finds; their distances are then computed exactly.
MOST_COLUMNS, DISTANCES_AT_A_TIME, NEAR = 20, 1 << 22, 16
# The quantiles whose difference is the unit of a number; their difference in standard deviations
# of a normal distribution.
CENTRAL, NORMAL = (0.05, 0.95), 3.29


class Neighbours:
    """The nearest of n rows by Euclidean distance on encoded columns.

    Args:
        rows: (n, p) the rows.
        encoder: expands them, (n, d).
        units: (d,) the units of the encoded columns in distances; None for 1.
    """

    def __init__(self, rows: Tensor, encoder: Encoder, units: Tensor | None = None) -> None:
        self.rows, self.encoder = rows, encoder
        self._units = torch.ones(encoder.d).double() if units is None else units

    def query(self, rows: Tensor, k: int = NEIGHBOURS, *, skip: int = 0) -> tuple[Tensor, Tensor]:
        """(m, k) the distances of rows, (m, p), to their nearest rows, and the positions of these.

        Args:
            rows: the rows.
            k: the number of neighbours.
            skip: the number of nearest rows to leave out: 1 if each row is among them itself.
        """
        last = min(k + skip, len(self.rows))
        first = skip if skip < last else 0
        parts = self._points(rows).split(max(1, DISTANCES_AT_A_TIME // len(self.rows)))
        found = zip(*(self._nearest(part, last) for part in parts), strict=True)
        distances, near = map(torch.cat, found)
        new = self.encoder.is_new(rows)
        if bool(new.any()):
            # A new category is as distant as any other two.
            more = (
                torch.where(self.encoder.blocks, 1.0, 0.75).double() * self.encoder.shares.sign()
            )
            more = more / self._units[list(self.encoder.starts)] ** 2
            distances = (distances.square() + (new * more).sum(1)[:, None]).sqrt()
        return distances[:, first:], near[:, first:]

    def distance(self, rows: Tensor, *, skip: int = 0) -> Tensor:
        """(m,) double, the mean distance of rows, (m, p), to their nearest rows; see `query`."""
        return torch.from_numpy(self.query(rows, skip=skip)[0].numpy().mean(1))

    def _points(self, rows: Tensor) -> Tensor:
        scaled = self.encoder.expand(rows).double() / self._units
        compared = scaled[..., self.encoder.compared]
        # If all columns are identifiers, no two rows differ.
        return compared if compared.shape[-1] else 0.0 * scaled[..., :1]

    @lazy
    def _known(self) -> Tensor:
        """(n, d) the rows as points."""
        return self._points(self.rows)

    @lazy
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        # Midpoint splits: balanced trees are slow with many ties (three times slower on Adult).
        return cKDTree(self._known.numpy(), leafsize=32, balanced_tree=False)

    def _nearest(self, points: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """(m, c) distances of points, (m, d), to the nearest rows, and these; ties by position."""
        near = torch.zeros(len(points), count, dtype=torch.int64)
        unsure = torch.ones(len(points), dtype=torch.bool)
        if self.encoder.d > MOST_COLUMNS:
            near, unsure = self._by_product(points, count)
        if bool(unsure.any()):
            found = self._tree.query(points[unsure].numpy(), k=range(1, count + 1))[1]
            near[unsure] = torch.from_numpy(found)
        return self._exact(points, near)

    def _by_product(self, points: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """(m, c) the nearest rows by a product in float32, and (m,) bool, where it may be wrong.

        A rounding error or a tie may hide a nearer row.
        """
        middle, rough, squares, kept = self._lowered
        moved, most = points - middle, min(max(NEAR, count + 1), len(rough))
        products = torch.addmm(squares, moved.float(), rough.T, alpha=-2.0)
        low, near = products.topk(most, largest=False)
        distances, near = self._exact(points, near)
        hidden = low[:, -1].double() + moved.square().sum(1) * kept
        unsure = (distances[:, count - 1].square() >= hidden) & (most < len(rough))
        return near[:, :count], unsure

    def _exact(self, points: Tensor, near: Tensor) -> tuple[Tensor, Tensor]:
        """(m, c) the sorted distances of points, (m, d), to rows, (m, c), and these rows."""
        near = near.sort(dim=1).values
        exact = (self._known[near] - points[:, None]).square().sum(2).sqrt()
        distances, order = exact.sort(dim=1, stable=True)
        return distances, near.gather(1, order)

    @lazy
    def _lowered(self) -> tuple[Tensor, Tensor, Tensor, float]:
        """(d,) the median of known points, (n, d) their differences from it, and (n,) squares.

        Squares are lowered by their largest rounding error; the last value is the share that is
        left. Extreme points are far from all others, so that their larger error does not matter.
        """
        middle = self._known.median(0).values
        moved = self._known - middle
        kept = 1.0 - 2.0**-22 * (moved.shape[1] + 4)
        return middle, moved.float(), (moved.square().sum(1) * kept).float(), kept


@dataclass(eq=False)
class Trained:
    """Measures that depend on training rows, each computed on first use.

    Attributes:
        rows: (n, p) the training rows.
        classifier: the model.
        copies: the copies of the model.
        decoders: the decoders fitted on these rows; None for a method without decoders.
        contradicted: the indirect changes that held-out rows contradict, `{set: {feature: text}}`.
    """

    rows: Tensor
    classifier: Classifier
    copies: Sequence[Classifier] = ()
    decoders: Decoders | None = None
    contradicted: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        """The arguments; measures are computed again."""
        return {field.name: vars(self)[field.name] for field in fields(self)}

    def plausibility(self, rows: Tensor) -> Tensor:
        """(m,) the plausibility of rows, (m, p): conformal p-values in (0, 1], without labels.

        It is `(1 + #{i: d_i >= d}) / (n + 1)`. d is the mean distance of the row to its 5 nearest
        training rows, and d_i that of training row i to 5 others, for at most 5,000 training rows.
        Source: Vovk et al. (2005), "Algorithmic Learning in a Random World".
        """
        near, known = self._calibration
        at, n = torch.searchsorted(known, near.distance(rows)), len(known)
        return (1.0 + n - at) / (n + 1.0)

    def support(self, reached: Tensor, goal: Goal, idx: Tensor) -> Tensor:
        """The share of the 5 nearest training rows that reach a goal by the model's scores.

        It is yNN of Pawelczyk et al. (2021), row by row.

        Args:
            reached: (r, p) rows.
            goal: the targets of n rows.
            idx: (r,) or (m, r), the position of the target of each row; the result has this shape.
        """
        neighbours, scores = self._supporting
        near = neighbours.query(reached)[1]
        each = scores[near.flatten()].repeat(idx.numel() // max(len(reached), 1), 1)
        accepted = goal.accepts(each, idx.flatten().repeat_interleave(near.shape[1]))
        return accepted.view(*idx.shape, near.shape[1]).float().mean(-1)

    @lazy
    def advised(self) -> bool:
        """Warn once, on first access, that indirect changes are associations without tiers."""
        logger.warning(
            "some answers need indirect changes, which are associations and not effects:"
            " tiers=[[...], [...]] or causes={...} (in Schema.infer, DiCE, Alibi) states an order"
            " of causes"
        )
        return True

    @lazy
    def consistency(self) -> Consistency:
        """The consistency of changes."""
        return Consistency(self.scored[0], self.classifier)

    @lazy
    def usual(self) -> Usual:
        """The usual values of numbers in similar rows."""
        return Usual(self.classifier.encoder, _some(self.rows, COMPARED_ROWS))

    @lazy
    def scored(self) -> tuple[Tensor, Tensor]:
        """(m, p) some training rows in random order, and (m, c) their scores.

        The spread of the scores is the unit of the margin. Rows are complete if the model needs
        complete ones.
        """
        scored = self.classifier.score_training_rows(_some(self.rows, SCORED_ROWS))
        warn_of_labels(self.classifier, scored[1])
        return scored

    @lazy
    def digests(self) -> dict[str, str]:
        """SHA-256 of the training rows, and of scores of some rows, which identify the model."""
        # Scores in other batches differ by less than the last of these decimals.
        scores = self.scored[1].double().numpy().round(4)
        each = {"data": self.rows.numpy(), "model": scores}
        return {
            name: sha256((values + 0.0).tobytes()).hexdigest() for name, values in each.items()
        }

    @lazy
    def deviations(self) -> Tensor:
        """(p,) robust standard deviations of the features, in units of cost."""
        found = [_robust_spread(column, NORMAL) for column in self.rows.T]
        return torch.tensor(found, dtype=torch.float64) / self.classifier.encoder.unit

    @lazy
    def cutoffs(self) -> Tensor | None:
        """The margins from which on the model predicts a class, see `cutoffs`; None for 0."""
        return cutoffs(self.classifier, self.rows)

    @lazy
    def _calibration(self) -> tuple[Neighbours, Tensor]:
        """Some training rows, and (n,) their sorted mean distances to the others."""
        encoder = self.classifier.encoder
        near = Neighbours(
            _some(self.rows, COMPARED_ROWS), encoder, robust_units(self.rows, encoder)
        )
        return near, near.distance(near.rows, skip=1).sort().values

    @lazy
    def _supporting(self) -> tuple[Neighbours, Tensor]:
        """The training rows and their scores; complete rows only if the model needs these."""
        rows, scores = self.classifier.score_training_rows(self.rows)
        return Neighbours(rows, self.classifier.encoder), scores


def _some(rows: Tensor, count: int) -> Tensor:
    """(m, p) up to `count` of rows, (n, p), in random order."""
    rng = torch.Generator().manual_seed(0)
    return rows[torch.randperm(len(rows), generator=rng)[:count]]


def robust_units(rows: Tensor, encoder: Encoder) -> Tensor:
    """(d,) double, the units of encoded columns, which outliers do not affect.

    The unit of a number is the range of its central nine tenths, or its standard deviation if that
    range is zero. The unit of a column of a category, or of a special level, is sqrt(2).

    Args:
        rows: (n, p) training rows.
        encoder: expands them, (n, d).
    """
    units = torch.full((encoder.d,), math.sqrt(2.0), dtype=torch.float64)
    for j in encoder.amounts(rows).any(0).nonzero()[:, 0].tolist():
        units[encoder.starts[j]] = _robust_spread(encoder.scaled(rows[:, j], j)) or 1.0
    return units


def _robust_spread(column: Tensor, parts: float = 1.0) -> float:
    """The range of the central nine tenths of a column, (n,), over `parts`, or its deviation."""
    values = amounts_of(column).numpy()
    low, high = np.quantile(values, CENTRAL)
    if high > low:
        return float(high - low) / parts
    # The square of a large number may overflow.
    largest = float(np.abs(values).max()) or 1.0
    return float((values / largest).std()) * largest


logger = logging.getLogger(__name__)

# Rows and values of a curve: the model gets at most 1,000 rows for a feature of up to 50 values.
MODEL_ROWS, MOST_ROWS, FEWEST_ROWS, POINTS = 1_000, 200, 20, 5
# The quantiles that the values of a number are chosen from.
QUANTILES = torch.arange(1, 40, dtype=torch.float64) / 40.0
# The relative rounding error of a margin; smaller changes do not count.
TOLERANCE = 1e-5
# The smallest consistency of a clear direction.
CLEAR = 0.7
# Margins that are held in memory at a time.
CELLS = 1 << 22


@dataclass(frozen=True)
class Curves:
    """The scores of r training rows at g values of a feature.

    Attributes:
        scores: (r, g, c) the scores.
        amounts: the first values, which are amounts; the others are levels.
    """

    scores: Tensor
    amounts: int

    def pairs(self, start: int, end: int) -> tuple[Tensor, Tensor]:
        """(q,) the positions of values before and after changes of a kind, see `Feature.changes`.

        Pairs of amounts are about half of the values apart.
        """
        amounts, step = torch.arange(self.amounts), max(1, self.amounts // 2)
        if start < 0 and end < 0:
            low, high = amounts[: max(self.amounts - step, 0)], amounts[step:]
            return (low, high) if end > start else (high, low)
        one = amounts if start < 0 else torch.tensor([self.amounts + start])
        other = amounts if end < 0 else torch.tensor([self.amounts + end])
        return one.repeat_interleave(len(other)), other.repeat(len(one))


class Consistency:
    """The consistency of changes: the share of training rows that gain by the same kind of change.

    A kind is a number up or down, one category to another, or a special level left or entered.
    Training rows whose margin does not change are left out. The share is 1 if no margin changes:
    the change then acts only by its indirect changes. The model is called on the first request
    of a feature, with at most 1,000 rows for a feature of up to 50 values.

    Args:
        rows: (n, p) training rows in random order that the model can score.
        classifier: the model.
    """

    def __init__(self, rows: Tensor, classifier: Classifier) -> None:
        self.rows, self.classifier = rows, classifier
        self._curves: dict[int, Curves | None] = {}

    def of(self, x: Tensor, reached: Tensor, acted: Tensor, goal: Goal, idx: Tensor) -> Tensor:
        """(m, p) double, the consistency of each direct change; 1 elsewhere.

        It is NaN if the model does not take rows that change in this feature alone.

        Args:
            x: (m, p) the factual rows.
            reached: (m, p) the counterfactuals.
            acted: (m, p) bool, the features acted on.
            goal: the targets of n rows.
            idx: (m,) the position of each row's target.
        """
        out, moved = torch.ones(x.shape, dtype=torch.float64), acted & (x != reached)
        for j in moved.any(0).nonzero()[:, 0].tolist():
            at = moved[:, j].nonzero()[:, 0]
            out[at, j] = self._share(j, x[at, j], reached[at, j], goal, idx[at])
        return out

    def _share(self, j: int, before: Tensor, after: Tensor, goal: Goal, idx: Tensor) -> Tensor:
        """(m,) double, the consistency of changes of feature j, given (m,) values of each side."""
        curves, feature = self._curves_of(j), self._encoder.features[j]
        places = feature.changes(before, after)
        if curves is None:
            return torch.full((len(idx),), torch.nan, dtype=torch.float64)
        keys, which = torch.cat([places, idx[:, None]], 1).unique(dim=0, return_inverse=True)
        shares = torch.empty(len(keys), dtype=torch.float64)
        for start, end in keys[:, :2].unique(dim=0).tolist():
            at = ((keys[:, 0] == start) & (keys[:, 1] == end)).nonzero()[:, 0]
            shares[at] = _gaining(curves, curves.pairs(start, end), goal, keys[at, 2])
        return shares[which]

    def _curves_of(self, j: int) -> Curves | None:
        """The curves of feature j; None if the model does not take such rows."""
        if j not in self._curves:
            try:
                with torch.inference_mode(False):  # the curves outlive the inference mode
                    self._curves[j] = self._measured(j)
            except Exception as error:  # the user's model may check its rows
                self.classifier.scores(self.rows[:FEWEST_ROWS])  # raised if it fails too
                logger.warning("no consistency of %r: %s", self._encoder.schema.names[j], error)
                self._curves[j] = None
        return self._curves[j]

    def _measured(self, j: int) -> Curves:
        """The curves of feature j, from a call of the model."""
        values, amounts = self._values(j)
        ordinary = self._encoder.amounts(self.rows[:, j], at=j)
        rows = self.rows[ordinary] if bool(ordinary.any()) else self.rows
        count = max(FEWEST_ROWS, min(MOST_ROWS, MODEL_ROWS // len(values)))
        grid = rows[:count, None].repeat(1, len(values), 1)
        grid[:, :, j] = values.to(grid)
        scores = self.classifier.scores(grid.flatten(0, 1))
        return Curves(scores.view(*grid.shape[:2], -1), amounts)

    def _values(self, j: int) -> tuple[Tensor, int]:
        """(g,) the values of a feature, and the number of amounts, which are first."""
        feature, known = self._encoder.schema.features[j], self.rows[:, j]
        amounts = _spread(known[self._encoder.amounts(known, at=j)])
        levels, missing = feature.label_values, feature.missing_value
        if not bool((known == missing).any()):
            levels = levels.masked_fill(levels == missing, 0.0)  # the model may not take it
        return torch.cat([amounts, levels]), len(amounts)

    @property
    def _encoder(self) -> Encoder:
        return self.classifier.encoder


def _spread(values: Tensor) -> Tensor:
    """Up to `POINTS` distinct values of a number, (n,): evenly spaced quantiles."""
    if not len(values):
        return values
    found = values.double().quantile(QUANTILES, interpolation="nearest").unique()
    distinct: Tensor = values.unique() if len(found) == 1 else found.to(values)
    places = torch.linspace(0, len(distinct) - 1, min(POINTS, len(distinct))).round().long()
    return distinct[places]


def _gaining(curves: Curves, pairs: tuple[Tensor, Tensor], goal: Goal, idx: Tensor) -> Tensor:
    """(m,) double, the share of training rows that gain, for the targets at positions (m,)."""
    before, after = (curves.scores[:, at].flatten(0, 1) for at in pairs)
    out, q = torch.ones(len(idx), dtype=torch.float64), len(before)
    if not q:
        return out
    for at in torch.arange(len(idx)).split(max(1, CELLS // q)):
        rows = idx[at].repeat_interleave(q)
        low, high = (goal.margin(s.repeat(len(at), 1), rows).double() for s in (before, after))
        change, error = high - low, TOLERANCE * (low.abs() + high.abs())
        gain, loss = (
            each.view(-1, q).sum(1).double() for each in (change > error, change < -error)
        )
        moved = gain + loss
        out[at] = torch.where(moved > 0.0, gain / moved.clamp_min(1.0), 1.0)
    return out


# The number of similar training rows, and the share of them beyond each end.
ALIKE, OUTER = 300, 0.01


class Usual:
    """The usual values of numbers: the central 98 % of their values in similar training rows.

    A linear regression predicts a number from all other features that definitions do not link with
    it, or its logarithm from theirs, whichever is closer: a rent is an area times a price.
    Training rows are similar if their predictions are nearest.

    Args:
        encoder: the encoder of the rows.
        known: (n, p) the training rows.
    """

    def __init__(self, encoder: Encoder, known: Tensor) -> None:
        self._encoder, self._known = encoder, known
        self._fits: dict[int, tuple[Tensor, Tensor, Tensor, bool]] = {}
        (low, high), amounts = encoder.central, encoder.amounts(known)
        self._positive = (known.where(amounts, 1.0) > 0.0).all(0) & amounts.any(0) & (low < high)

    def ends(self, rows: Tensor, j: int) -> tuple[Tensor, Tensor]:
        """(m,) twice, the smallest and the largest usual value of a number in rows, (m, p)."""
        if j not in self._fits:
            self._fits[j] = self._fit(j)
        weights, fitted, values, logs = self._fits[j]
        own, count = self._others(rows, j, logs) @ weights, min(ALIKE, len(fitted))
        # Among windows of sorted predictions, the one whose ends are nearest.
        starts = torch.searchsorted(fitted, own)[:, None] + torch.arange(-count, 1)
        starts = starts.clamp(0, len(fitted) - count)
        far = ((fitted[each] - own[:, None]).abs() for each in (starts, starts + count - 1))
        first = starts.gather(1, torch.maximum(*far).argmin(1, keepdim=True))
        alike = values[first + torch.arange(count)]
        low, high = alike.quantile(torch.tensor([OUTER, 1.0 - OUTER]).double(), 1)
        least, most = (float(end[j]) for end in self._encoder.central)
        return low.clamp_min(least), high.clamp_max(most)

    def _fit(self, j: int) -> tuple[Tensor, Tensor, Tensor, bool]:
        """(q,) the weights of a number's regression, (m,) sorted predictions, and (m,) values.

        Last is whether they are of logarithms. Predictions are closer if rows that are next to
        each other by them have closer values.
        """
        some, out = self._known[self._encoder.amounts(self._known[:, j], at=j)], []
        for logs in (False, True)[: 1 + bool(self._positive[j])]:
            columns = self._others(some, j, logs)
            target = self._central(some, logs)[:, [j]].double()
            found = torch.linalg.lstsq(columns, target, driver="gelsd").solution[:, 0]
            fitted, order = (columns @ found).sort(stable=True)
            out.append((found, fitted, some[order, j].double(), logs))
        return min(out, key=lambda each: float(each[2].diff().square().sum()))

    def _others(self, rows: Tensor, j: int, logs: bool) -> Tensor:
        """(m, q) a constant, and the encoded columns of the other features."""
        schema, of = self._encoder.schema, self._encoder.feature_of
        fixed = schema.definitions
        tied = {each.name for each in fixed} | {schema.names[j]}
        tied |= {name for each in fixed if each.name == schema.names[j] for name in each.members}
        left = ~torch.isin(of, torch.tensor(schema.index(sorted(tied)))) & self._encoder.compared
        columns = self._encoder.expand(self._central(rows, logs)).double()[:, left]
        return torch.cat([torch.ones(len(rows), 1).double(), columns], 1)

    def _central(self, rows: Tensor, logs: bool) -> Tensor:
        """(m, p) rows with numbers clipped to the central training values.

        With logarithms, those of positive ones take these values, too, from end to end.
        """
        (low, high), amounts = self._encoder.central, self._encoder.amounts(rows)
        out = torch.where(amounts, rows.clamp(low, high), rows)
        share = (out / low).log() / (high / low).log()
        return torch.where(amounts & self._positive & logs, low + (high - low) * share, out)
