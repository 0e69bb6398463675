"""Advice: the answers of a result in; a line for each kind of advice among them out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin.data.exclusion import DOWN, UP, Exclusion
from dear_plugin.data.special_values import amounts_of
from dear_plugin.results.result import Result
from dear_plugin.results.values import amount_of
from dear_plugin.search.settings import CRITERIA

COLUMNS = (
    *("feature", "change", "rows", "share", "old", "new", "goes", "at_edge"),
    *("consistency", "agreement", "follows", "example", "excludes"),
)
# Indirect changes that a line names, each in at least this share of its rows.
MOST_FOLLOW, USUAL = 2, 0.5
SPECIAL = "from or to a special value"

Positions = npt.NDArray[np.int64]


def advice(result: Result) -> pd.DataFrame:
    """The kinds of advice of a result, the most frequent first: `COLUMNS`."""
    done = result.success & result.acts
    acting = result.select(done.nonzero()[:, 0])
    if not len(acting):
        return pd.DataFrame(columns=COLUMNS)
    lines = [_line(acting, kind) for kind in _kinds(acting)]
    frame = pd.DataFrame(lines, columns=COLUMNS)
    return frame.sort_values("rows", ascending=False, kind="stable", ignore_index=True)


@dataclass(frozen=True)
class _Kind:
    """A kind of advice: the rows that get it.

    Attributes:
        j: the position of the feature.
        change: "up", "down", or the levels.
        ends: the old and the new level, or None twice for a number.
        at: (m,) the rows.
    """

    j: int
    change: str
    ends: tuple[Any, Any] | None
    at: Positions


def _kinds(result: Result) -> Iterator[_Kind]:
    """The kinds of advice of a result in which every row acts."""
    acted = result.proposal.direct & result.changed
    for j in acted.any(0).nonzero()[:, 0].tolist():
        at = acted[:, j].nonzero()[:, 0]
        before, after = result.x[at, j], result.proposal.rows[at, j]
        for change, ends, some in _changes(result, j, before, after):
            yield _Kind(j, change, ends, at[some].numpy())


def _changes(
    result: Result, j: int, before: Tensor, after: Tensor
) -> Iterator[tuple[str, tuple[Any, Any] | None, Tensor]]:
    """The changes of feature j, (m,) values each: what it is called, its levels, its rows."""
    feature = result.encoder.schema.features[j]
    codes = feature.changes(before, after)
    if not feature.categories:
        amounts = (codes < 0).all(1)
        each = {
            UP: amounts & (after > before),
            DOWN: amounts & (after < before),
            SPECIAL: ~amounts,
        }
        yield from ((name, None, mask) for name, mask in each.items() if bool(mask.any()))
        return
    for pair in codes.unique(dim=0):
        old, new = (feature.categories[int(code)] for code in pair)
        called = [feature.called_level(each) or each for each in (old, new)]
        yield " → ".join(map(str, called)), (old, new), (codes == pair).all(1)


def _line(result: Result, kind: _Kind) -> tuple[Any, ...]:
    """The cells of a kind, in the order of `COLUMNS`."""
    at, part = torch.from_numpy(kind.at), result.credibility
    consistency = result.question.consistency(result.proposal, at)[:, kind.j]
    agreement = part.measured[at, CRITERIA.index("agreement")]
    old, new = kind.ends or _medians(result, kind)
    name = result.encoder.schema.names[kind.j]
    example = kind.at[part.credible[at].to(torch.int8).argmax()]
    return (
        *(name, kind.change, len(at), len(at) / len(result), old, new),
        *_extent(result, kind),
        *(float(consistency.mean()), float(agreement.nanmean()), _follows(result, at)),
        *(result.factuals.index[example], _excluded(result, kind, new)),
    )


def _extent(result: Result, kind: _Kind) -> tuple[str, float]:
    """How far a kind usually goes, and the share of rows in which it goes to the edge of the data.

    Of amounts: the median change, and nine tenths of them; the end of the central training values.
    """
    j, at, encoder = kind.j, torch.from_numpy(kind.at), result.encoder
    feature = encoder.schema.features[j]
    if not feature.holds_numbers or kind.change == SPECIAL:
        return "", math.nan
    new = result.proposal.rows[at, j]
    size = (new - result.x[at, j]).abs()
    least, middle, most = (amount_of(feature, size.quantile(q).item()) for q in (0.05, 0.5, 0.95))
    goes = middle if least == most else f"{middle} ({least} to {most})"
    (low, high), step = (end[j] for end in encoder.central), encoder.step[j]
    edge = new >= high - step if kind.change == UP else new <= low + step
    return goes, float(edge.double().mean())


def _medians(result: Result, kind: _Kind) -> tuple[Any, Any]:
    """The median old and new value of a number or level, without special values."""
    j, feature = kind.j, result.encoder.schema.features[kind.j]
    if not feature.holds_numbers:
        rows = (each[kind.at, j] for each in (result.x, result.proposal.rows))
        middle = [amounts_of(each).median().numpy() for each in rows]
        old, new = feature.cells(np.array(middle))
        return old, new
    frames = result.factuals, result.counterfactuals
    columns = (frame[feature.name].iloc[kind.at].astype(float) for frame in frames)
    old, new = (c.where(~c.isin(feature.special)).median() for c in columns)
    places = feature.precision
    return (old, new) if places is None else (round(old, places), round(new, places))


def _follows(result: Result, at: Tensor) -> str:
    """The features that change indirectly in most rows, with the share of these rows."""
    moved = result.proposal.rows[at] - result.x[at]
    sure = result.proposal.direct | (result.proposal.rows == result.alone)
    moved = moved.masked_fill(sure[at], 0.0)
    shares: list[tuple[float, str]] = []
    for j, feature in enumerate(result.encoder.schema):
        up, down = ((moved[:, j] * sign > 0.0).double().mean().item() for sign in (1.0, -1.0))
        if not feature.categories:
            shares += [(up, f"{feature.called} {UP}"), (down, f"{feature.called} {DOWN}")]
        else:
            shares += [(up + down, f"{feature.called} changes")]
    usual = sorted((each for each in shares if each[0] >= USUAL), reverse=True)[:MOST_FOLLOW]
    return ", ".join(f"{text} in {share:.0%}" for share, text in usual)


def _excluded(result: Result, kind: _Kind, new: Any) -> str:
    """The argument of `Schema.infer` that excludes a kind."""
    feature = result.encoder.schema.features[kind.j]
    return str(Exclusion.of(feature, kind.change, new))
