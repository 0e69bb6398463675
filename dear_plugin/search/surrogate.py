"""Rescue: where no value succeeded, those that look most likely to.

Whoever may act on one number moves other features along, and now and then a window opens between
the values that were tried. What the model said of these tells where to look: pair by pair the
margin is taken for a Gaussian process, a linear function of the decoded row that bends a little
along the way, and the values where it may reach highest are asked about: the upper confidence
bound of Srinivas et al. (2010), "Gaussian process optimization in the bandit setting".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from dear_plugin.search.incumbent import Missed
from dear_plugin.search.problem import Question
from dear_plugin.search.scan import Scan

# By how many standard deviations a margin may exceed what is expected of it.
HOPE = 4.0
# How much margins vary by themselves, and by bends along the way, for each unit of what linear
# functions vary by. With fewer bends, windows narrower than the grid are missed; with more, those
# that open where other features jump.
NOISE = 1e-4
BENDS = 1e-3
# What only fills up is so noisy that nothing is learned from it.
NOTHING = 1e8
# Of the mean of margins, a share by which they do not seem to differ.
ALIKE = 1e-6
# Cells of a batch: each tensor of doubles takes up to 4 MiB.
CELLS = 1 << 19


@dataclass(frozen=True)
class Heard:
    """What was said of t values of m pairs (row, set).

    Attributes:
        values: (m, t) the values, ascending; NaN where a pair has fewer.
        margin: (m, t) their margins, double; NaN likewise.
    """

    values: Tensor
    margin: Tensor

    @classmethod
    def of(cls, pairs: Tensor, missed: Sequence[Missed], count: int) -> Heard:
        """What was said of pairs, (m,) ascending, each row * count + set."""
        owners, values, margins = [pairs[:0]], [torch.empty(0)], [torch.empty(0)]
        for part in missed:
            pair = part.rows * count + part.sets
            at = torch.searchsorted(pairs, pair).clamp_max_(len(pairs) - 1)
            heard = (pairs[at] == pair)[:, None] & part.margin.isfinite()
            owners.append(at[:, None].expand(heard.shape)[heard])
            values.append(part.values[..., 0][heard])
            margins.append(part.margin[heard])
        owner, value, margin = (torch.cat(each).numpy() for each in (owners, values, margins))
        # Whoever else asks, each of a pair's values counts once.
        order = np.lexsort((value, owner))
        owner, value = owner[order], value[order]
        first = np.ones(len(owner), dtype=bool)
        first[1:] = (owner[1:] != owner[:-1]) | (value[1:] != value[:-1])
        owner, value, margin = owner[first], value[first], margin[order][first]
        counts = np.bincount(owner, minlength=len(pairs))
        place = np.arange(len(owner)) - (counts.cumsum() - counts)[owner]
        out = np.full((2, len(pairs), max(1, counts.max(initial=0))), np.nan)
        out[:, owner, place] = value, margin
        return cls(torch.from_numpy(out[0]).float(), torch.from_numpy(out[1]))

    def part(self, at: Tensor) -> Heard:
        """What was said of some pairs, (q,)."""
        return Heard(self.values[at], self.margin[at])


def likeliest(question: Question, scan: Scan, missed: Sequence[Missed], count: int) -> Scan:
    """So many values of each pair as look most likely to succeed; those asked about come last.

    Args:
        question: who asks what.
        scan: m pairs, and the values that they may try.
        missed: what was said of other values.
        count: how many values each may try.
    """
    s = len(question.sets)
    heard = Heard.of(scan.rows * s + scan.sets, missed, s)
    told, asked = heard.values.shape[1], scan.values.shape[1]
    cells = (told + asked) * max(told, question.classifier.encoder.d)
    batches = torch.arange(len(scan.rows)).split(max(1, CELLS // cells))
    parts = [_best(question, scan.part(at), heard.part(at), count) for at in batches]
    values = torch.cat([part.values for part in parts])
    return replace(scan, values=values, before=torch.cat([part.before for part in parts]))


def _best(question: Question, scan: Scan, heard: Heard, count: int) -> Scan:
    """The same of few pairs."""
    again = (scan.values[:, :, None] == heard.values[:, None]).any(2)
    scan = replace(scan, before=scan.before.masked_fill(again, torch.inf))
    hope = torch.where(scan.cheaper(torch.inf), _hope(question, scan, heard), -torch.inf)
    return scan.at(hope.sort(dim=1, descending=True, stable=True).indices[:, :count])


def _hope(question: Question, scan: Scan, heard: Heard) -> Tensor:
    """(m, c) how high the margin of each value may be, after what was said of others."""
    known = heard.margin.isfinite()
    tried = torch.where(known, heard.values, scan.x)
    there, here = _moved(question, scan, tried), _moved(question, scan, scan.values)
    alike = there @ there.mT + _close(tried, tried)
    nearby = here @ there.mT + _close(scan.values, tried)
    count = known.sum(1, keepdim=True).clamp_min(1)
    spread = (alike.diagonal(dim1=1, dim2=2) * known).sum(1, keepdim=True) / count
    noise = torch.where(known, NOISE * spread, NOTHING)
    mean = heard.margin.nan_to_num(0.0).sum(1, keepdim=True) / count
    rest = (heard.margin - mean).nan_to_num(0.0)
    # Half of the way to the inverse is enough: the rest is squares of it.
    root = torch.linalg.cholesky(alike + noise.diag_embed())
    both = torch.cat([rest[:, None], nearby], 1).mT
    half = torch.linalg.solve_triangular(root, both, upper=False)
    weights, shared = half[..., :1], half[..., 1:]
    expected = mean + (weights * shared).sum(1)
    unsure = (here.square().sum(2) + 1.0 + BENDS - shared.square().sum(1)).clamp_min(0.0)
    # Where all margins were alike, it is worth a try where least is known.
    least = (ALIKE * mean).square() + torch.finfo(torch.float32).tiny
    scale = torch.maximum(weights.square().sum(1) / count, least)
    hope: Tensor = expected + HOPE * (unsure * scale).sqrt()
    return hope


def _close(values: Tensor, others: Tensor) -> Tensor:
    """(m, c, t) how values, (m, c), vary with others, (m, t), whatever else moves; double."""
    gap = (values[:, :, None] - others[:, None]).abs()
    return 1.0 + BENDS * (1.0 - gap.double()).clamp_min_(0.0)


def _moved(question: Question, scan: Scan, values: Tensor) -> Tensor:
    """(m, c, d) how far actions, (m, c), take each encoded column from the factual; double."""
    encoder = question.classifier.encoder
    _, reached = question.reach(scan.rows, scan.sets, values[..., None])
    return (encoder.expand(reached) - encoder.expand(question.x[scan.rows])[:, None]).double()
