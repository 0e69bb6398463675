"""Trained: training rows, the nearest of them, and the facts that answers are compared with."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.special_values import amounts_of
from dear_plugin.decoders import Decoders
from dear_plugin.evaluation.consistency import Consistency
from dear_plugin.evaluation.report import Report
from dear_plugin.evaluation.usual import Usual
from dear_plugin.models.checks import warn_of_labels
from dear_plugin.models.classifier import Classifier
from dear_plugin.models.cutoffs import cutoffs
from dear_plugin.problem.target import Goal

logger = logging.getLogger(__name__)

# Training rows in the sample of scores that gives the unit of the margin, and of plausibility.
SCORED_ROWS, MOST_ROWS = 2_000, 5_000
NEIGHBOURS = 5
# Above so many encoded columns a product of matrices is cheaper than a tree; cells of one product;
# the rows that it finds, whose distances are then computed exactly.
MOST_COLUMNS, CELLS, NEAR = 20, 1 << 22, 16
# The quantiles whose distance is the unit of a number; their distance in standard deviations, if
# the distribution is normal.
CENTRAL, NORMAL = (0.05, 0.95), 3.29


class Neighbours:
    """The nearest of some rows, Euclidean on the encoding: by a k-d tree, or by all distances.

    Args:
        rows: (n, p) the rows.
        encoder: expands them, (n, d).
        units: (d,) the units of the encoded columns in distances; None for 1.
    """

    def __init__(self, rows: Tensor, encoder: Encoder, units: Tensor | None = None) -> None:
        self.rows, self.encoder = rows, encoder
        self._units = torch.ones(encoder.d).double() if units is None else units

    def query(self, rows: Tensor, k: int = NEIGHBOURS, *, skip: int = 0) -> tuple[Tensor, Tensor]:
        """(m, k) the distances of rows, (m, p), to their nearest ones, and these.

        Args:
            rows: the rows.
            k: the number of neighbours.
            skip: the number of nearest rows to leave out: 1 if the rows are among them.
        """
        last = min(k + skip, len(self.rows))
        first = skip if skip < last else 0
        parts = self._points(rows).split(max(1, CELLS // len(self.rows)))
        found = zip(*(self._nearest(part, last) for part in parts), strict=True)
        distances, near = map(torch.cat, found)
        new = self.encoder.is_new(rows)
        if bool(new.any()):
            # New categories are as distant as any other two.
            more = (
                torch.where(self.encoder.blocks, 1.0, 0.75).double() * self.encoder.shares.sign()
            )
            more = more / self._units[list(self.encoder.starts)] ** 2
            distances = (distances.square() + (new * more).sum(1)[:, None]).sqrt()
        return distances[:, first:], near[:, first:]

    def distance(self, rows: Tensor, *, skip: int = 0) -> Tensor:
        """(m,) double, the mean distance of rows, (m, p), to their nearest; see `query`."""
        return torch.from_numpy(self.query(rows, skip=skip)[0].numpy().mean(1))

    def _points(self, rows: Tensor) -> Tensor:
        scaled = self.encoder.expand(rows).double() / self._units
        compared = scaled[..., self.encoder.compared]
        # Where all are identifiers, no two rows differ.
        return compared if compared.shape[-1] else 0.0 * scaled[..., :1]

    @lazy
    def _known(self) -> Tensor:
        """(n, d) the points of the rows."""
        return self._points(self.rows)

    @lazy
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        # Midpoint splits: with many ties, balanced trees are slow (three times slower on Adult).
        return cKDTree(self._known.numpy(), leafsize=32, balanced_tree=False)

    def _nearest(self, points: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """(m, c) the distances of points, (m, d), to the nearest, and these; ties by position."""
        near = torch.zeros(len(points), count, dtype=torch.int64)
        unsure = torch.ones(len(points), dtype=torch.bool)
        if self.encoder.d > MOST_COLUMNS:
            near, unsure = self._by_product(points, count)
        if bool(unsure.any()):
            found = self._tree.query(points[unsure].numpy(), k=range(1, count + 1))[1]
            near[unsure] = torch.from_numpy(found)
        return self._exact(points, near)

    def _by_product(self, points: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """(m, c) what a product in float32 finds nearest, and (m,) bool, where it may be wrong.

        Its rounding error, or a tie, may hide one.
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
        """(m, c) the sorted distances of points, (m, d), to known ones, (m, c), and these."""
        near = near.sort(dim=1).values
        exact = (self._known[near] - points[:, None]).square().sum(2).sqrt()
        distances, order = exact.sort(dim=1, stable=True)
        return distances, near.gather(1, order)

    @lazy
    def _lowered(self) -> tuple[Tensor, Tensor, Tensor, float]:
        """(d,) the median of known points, these less it, their squares less what is rounded.

        And the share of squares that is not rounded. Extreme points are far from all others, so
        that their larger error does not matter.
        """
        middle = self._known.median(0).values
        moved = self._known - middle
        kept = 1.0 - 2.0**-22 * (moved.shape[1] + 4)
        return middle, moved.float(), (moved.square().sum(1) * kept).float(), kept


@dataclass(eq=False)
class Trained:
    """Facts of the training rows, each computed when it is first needed; a fit makes a new one.

    Attributes:
        rows: (n, p) the training rows.
        classifier: the model.
        copies: of the model, trained again.
        decoders: fitted on these rows; None for a method without any.
        report: what held-out rows say of the decoders; None before they were diagnosed.
    """

    rows: Tensor
    classifier: Classifier
    copies: Sequence[Classifier] = ()
    decoders: Decoders | None = None
    report: Report | None = None

    def __getstate__(self) -> dict[str, Any]:
        """What is computed on first access is computed again."""
        return {field.name: vars(self)[field.name] for field in fields(self)}

    def plausibility(self, rows: Tensor) -> Tensor:
        """(m,) the conformal p-values of rows, (m, p), in (0, 1]; they ignore labels.

        `(1 + #{i: d_i >= d}) / (n + 1)`, where d is the mean distance to the 5 nearest training
        rows and d_i that of training row i without itself, over at most 5,000 training rows:
        Vovk et al. (2005), "Algorithmic Learning in a Random World".
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
            idx: (r,), or (m, r), the row whose target is meant; so is the support.
        """
        neighbours, scores = self._supporting
        near = neighbours.query(reached)[1]
        each = scores[near.flatten()].repeat(idx.numel() // max(len(reached), 1), 1)
        accepted = goal.accepts(each, idx.flatten().repeat_interleave(near.shape[1]))
        return accepted.view(*idx.shape, near.shape[1]).float().mean(-1)

    @lazy
    def advised(self) -> bool:
        """Advise to state tiers; once, on first access."""
        logger.warning(
            "some answers count on indirect changes, which are associations unless"
            " tiers=[[...], [...]] or causes={...} (in Schema.infer, DiCE and Alibi) states an"
            " order of causes"
        )
        return True

    @lazy
    def consistency(self) -> Consistency:
        """Whether the model rewards a kind of change in general."""
        return Consistency(self.scored[0], self.classifier)

    @lazy
    def usual(self) -> Usual:
        """The usual values of a number in rows that are alike in all else."""
        return Usual(self.classifier.encoder, _some(self.rows, MOST_ROWS))

    @lazy
    def scored(self) -> tuple[Tensor, Tensor]:
        """(m, p) some of them in random order, complete ones if need be, and (m, c) their scores.

        The spread of the scores is the unit of the margin.
        """
        scored = self.classifier.score_training_rows(_some(self.rows, SCORED_ROWS))
        warn_of_labels(self.classifier, scored[1])
        return scored

    @lazy
    def digests(self) -> dict[str, str]:
        """SHA-256 of the training rows, and of the scores of some, by which a model is known."""
        # Those of other batches differ by less than the last of these decimals.
        scores = self.scored[1].double().numpy().round(4)
        each = {"data": self.rows.numpy(), "model": scores}
        return {
            name: sha256((values + 0.0).tobytes()).hexdigest() for name, values in each.items()
        }

    @lazy
    def deviations(self) -> Tensor:
        """(p,) their standard deviations in units of cost, whatever the extreme values."""
        found = [_spread(column, NORMAL) for column in self.rows.T]
        return torch.tensor(found, dtype=torch.float64) / self.classifier.encoder.unit

    @lazy
    def cutoffs(self) -> Tensor | None:
        """The margins from which on the model decides for a class, see `cutoffs`; None for 0."""
        return cutoffs(self.classifier, self.rows)

    @lazy
    def _calibration(self) -> tuple[Neighbours, Tensor]:
        """Some training rows, and (n,) their sorted mean distances, each without itself."""
        encoder = self.classifier.encoder
        near = Neighbours(_some(self.rows, MOST_ROWS), encoder, robust_units(self.rows, encoder))
        return near, near.distance(near.rows, skip=1).sort().values

    @lazy
    def _supporting(self) -> tuple[Neighbours, Tensor]:
        """The training rows and their scores; complete rows only if the model needs them."""
        rows, scores = self.classifier.score_training_rows(self.rows)
        return Neighbours(rows, self.classifier.encoder), scores


def _some(rows: Tensor, count: int) -> Tensor:
    """(m, p) so many of rows, (n, p), in random order."""
    rng = torch.Generator().manual_seed(0)
    return rows[torch.randperm(len(rows), generator=rng)[:count]]


def robust_units(rows: Tensor, encoder: Encoder) -> Tensor:
    """(d,) double, the units of encoded columns: robust ones, whatever the outliers.

    A number counts in units of the range of its central nine tenths, or of its standard deviation
    where that is zero; a column of a category, or of a special level, in units of sqrt(2).

    Args:
        rows: (n, p) training rows.
        encoder: expands them, (n, d).
    """
    units = torch.full((encoder.d,), math.sqrt(2.0), dtype=torch.float64)
    for j in encoder.amounts(rows).any(0).nonzero()[:, 0].tolist():
        units[encoder.starts[j]] = _spread(encoder.scaled(rows[:, j], j)) or 1.0
    return units


def _spread(column: Tensor, parts: float = 1.0) -> float:
    """A part of the range of the central nine tenths of a column, (n,), or its deviation."""
    values = amounts_of(column).numpy()
    low, high = np.quantile(values, CENTRAL)
    if high > low:
        return float(high - low) / parts
    # The square of a large number may overflow.
    largest = float(np.abs(values).max()) or 1.0
    return float((values / largest).std()) * largest
