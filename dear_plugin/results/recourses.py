"""Recourses: what every person could change, what would move along, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from numbers import Integral
from typing import overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind
from dear_plugin.errors import InputError
from dear_plugin.results.describe import NO_ACTION, Change, Expected, certainty, nearest, sentence
from dear_plugin.results.proposal import ACCEPTED, Proposal
from dear_plugin.results.spread import Spread

Floats = npt.NDArray[np.float64]


class RowKey(Enum):
    """Whom `Recourses.describe` speaks of where no index is given."""

    EVERYBODY = "everybody"


@dataclass(frozen=True)
class Worth:
    """What the answers of m rows are worth; NaN where there is none.

    Attributes:
        confidence: (m,) double, the share of redraws of the decoder under which it succeeds.
        reliance: (m,) double, the least share of the indirect change with which it succeeds.
        plausibility: (m,) double, the share of training rows at least as odd.
        credible: (m,) bool, whether it meets what is asked of an answer.
    """

    confidence: Floats
    reliance: Floats
    plausibility: Floats
    credible: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Hooks:
    """What a result asks its method for when somebody looks.

    Attributes:
        support: (m, p) rows and (m,) their positions in the result -> (m,) support.
        alternatives: k -> one result per rank, each over all rows.
        shares: position -> the expected probability, before and after, of binary features that
            do not flip but lean, by name.
        worth: (m,) positions in the result -> what their answers are worth.
        ranges: (m,) positions in the result -> how far redraws of the decoder agree on them.
    """

    support: Callable[[Tensor, Tensor], Tensor]
    alternatives: Callable[[int], Iterable[Recourses]]
    shares: Callable[[int], Mapping[str, tuple[float, float]]]
    worth: Callable[[Tensor], Worth]
    ranges: Callable[[Tensor], Spread]


@dataclass(frozen=True)
class Recourses:
    """The result of `generate`: n rows, every one of them kept.

    Attributes:
        factuals: the frame that was asked about.
        counterfactuals: the same columns, order, dtypes, index and category labels; a failed row
            is its best constraint-keeping attempt.
        outcome: the columns of `actions` that are known at once.
        encoder: the gate of the method.
        x: (n, p) the factual rows.
        proposal: what was proposed, (n, p) rows.
        hooks: the method's answers to later questions.
    """

    factuals: pd.DataFrame
    counterfactuals: pd.DataFrame
    outcome: pd.DataFrame
    encoder: Encoder
    x: Tensor
    proposal: Proposal
    hooks: Hooks

    def __len__(self) -> int:
        """How many rows there are (n)."""
        return len(self.factuals)

    def __repr__(self) -> str:
        """One line on how it went."""
        done = self.outcome["success"]
        cost = self.outcome.loc[done, "cost"].median()
        return f"Recourses({int(done.sum())} of {len(self)} rows solved, median cost {cost:.3g})"

    @lazy
    def actions(self) -> pd.DataFrame:
        """What is done, what it costs and what it is worth, with the index of the factuals.

        `success`, `reason`, `acted_on`; `direct_cost`, `indirect_cost`, `cost` and
        `suppressed_cost`, l1 in min-max scaled units where a changed category counts 1;
        `score_before` and `score_after`, the wanted class's probability (or the predicted value);
        and, NaN where a row has no answer:

        - `confidence`, the share of redraws of the decoder under which the answer still succeeds;
        - `reliance`, the least share of the indirect change with which it does: 0 where the action
          alone suffices;
        - `plausibility`, the share of training rows at least as odd as the counterfactual;
        - `credible`, whether these meet what the method asks of an answer (or what `Search` asks
          by default), bool; False where there is no answer.

        The last four are computed when `actions` is first looked at.
        """
        return self.outcome.assign(**vars(self.hooks.worth(torch.arange(len(self)))))

    @lazy
    def support(self) -> pd.Series:
        """Share of each counterfactual's 5 nearest training rows that get the wanted decision."""
        values = self.hooks.support(self.proposal.rows, torch.arange(len(self)))
        return pd.Series(values.numpy(), index=self.factuals.index, name="support", dtype=float)

    @lazy
    def direct(self) -> pd.DataFrame:
        """The action alone: the new values of what is acted on, missing elsewhere.

        Index and columns are those of `factuals`. Integers and truth values come as pandas'
        nullable dtypes (Int64, boolean), which know missing values; all other dtypes stay. A
        feature of a group that keeps its value is there with that value: it is held. What
        `dear.apply(factuals, direct)` gives are the counterfactuals again.
        """
        after, features = self.counterfactuals, self.encoder.schema.names
        where = dict(zip(features, self.proposal.direct.numpy().T, strict=True))
        none = np.zeros(len(self), dtype=bool)
        columns = [_only(after[name], where.get(name, none)) for name in after]
        return pd.concat(columns, axis=1).set_axis(after.columns, axis=1)

    @property
    def changed(self) -> Tensor:
        """(n, p) bool: which features differ from the factual."""
        return self.proposal.rows != self.x

    @overload
    def describe(self) -> pd.Series: ...

    @overload
    def describe(self, index: Hashable) -> str: ...

    def describe(self, index: Hashable = RowKey.EVERYBODY) -> str | pd.Series:
        """One person's recourse in plain words, or everybody's.

        What to do; what is then expected to follow, as a range over the redraws of the decoder
        where these do not agree; whether the action alone is enough; and in how many redraws the
        answer still succeeds. The indirect part is an association in the data, not a causal
        effect.

        Args:
            index: a label of the frame's index; without one, all rows are told, as a series with
                the index of the factuals.

        Raises:
            InputError: a label that is not in the index, or that several rows share.
        """
        if index is RowKey.EVERYBODY:
            return self._described
        at = _positions(self.factuals.index, index)
        if len(at) != 1:
            raise InputError(f"index {index!r} names {len(at)} rows; exactly one is needed")
        return self.describe_row(int(at[0]))

    def describe_row(self, position: int) -> str:
        """As `describe`, for the row at a position."""
        at = range(len(self))[position]
        if (silent := self._nothing(at)) is not None:
            return silent
        rows = torch.tensor([at])
        return self._words(at, self.hooks.worth(rows), self.hooks.ranges(rows), 0)

    @lazy
    def _described(self) -> pd.Series:
        """(n,) what `describe_row` says of each."""
        told = {at: self._nothing(at) for at in range(len(self))}
        rows = torch.tensor([at for at, text in told.items() if text is None], dtype=torch.int64)
        if len(rows):
            worth, spread = self.hooks.worth(rows), self.hooks.ranges(rows)
            for place, at in enumerate(rows.tolist()):
                told[at] = self._words(at, worth, spread, place)
        return pd.Series(list(told.values()), self.factuals.index, dtype=object, name="describe")

    @lazy
    def acts(self) -> Tensor:
        """(n,) bool: who changes something of what is acted on."""
        return (self.changed & self.proposal.direct).any(1)

    def _nothing(self, position: int) -> str | None:
        """What is said of a row for which there is nothing to do; None where there is."""
        row = self.outcome.iloc[position]
        if not row["success"] and self.proposal.searched:
            return f"no recourse found: {row['reason']}"
        if bool(self.acts[position]):
            return None
        return _unchanged(row, bool(self.changed[position].any()))

    def _words(self, position: int, worth: Worth, spread: Spread, place: int) -> str:
        """What is said of a row that acts, at some place of what is known of several."""
        changed, direct = self.changed[position], self.proposal.direct[position]
        follows, row = changed & ~direct, self.outcome.iloc[position]
        could = follows | ((spread.moved[place] > 0) & ~direct)
        words = sentence(
            self._changes(position, changed & direct),
            self._changes(position, follows),
            self.hooks.shares(position),
            self._expected(follows, spread, place),
        )
        if not row["success"]:
            return f"{words}; {row['reason']}"
        more = []
        if spread.count and bool(could.any()):
            sure, needed = float(worth.confidence[place]), float(worth.reliance[place])
            more = certainty(needed, round(sure * spread.count), spread.count)
        if worth.credible[place] or not self.proposal.searched:
            return " ".join([f"{words}.", *more]) if more else words
        noted = self.proposal.noted[position]
        return nearest(words, more, noted, float(worth.plausibility[place]))

    def _expected(self, follows: Tensor, spread: Spread, place: int) -> dict[str, Expected]:
        """What redraws say of the features that follow, (p,) bool, where they do not agree."""
        out = {}
        for j in follows.nonzero()[:, 0].tolist():
            feature, moved = self.encoder.schema.features[j], int(spread.moved[place, j])
            low, high = float(spread.low[place, j]), float(spread.high[place, j])
            if feature.kind is Kind.NUMERIC and low < high:
                out[feature.name] = Expected(low * feature.width, high * feature.width)
            elif moved < spread.count and low == high == 0.0:
                out[feature.name] = Expected(times=(moved, spread.count))
        return out

    def alternatives(self, k: int = 4) -> pd.DataFrame:
        """Up to k recourses a row, each acting on a different set of features.

        When the sets run out, larger actions on a used set follow, labelled so.

        Args:
            k: how many at most; 100 a row is the most that is ever given. Where fewer are found,
                fewer are returned.

        Returns:
            A long frame, one row per (factual, rank): `index`, `rank` (0 is the answer of
            `generate`; the others come kind by kind, cheapest first), the columns of `actions`,
            `kind` ("another set", "pair of features" or "larger action"), and the features. Where
            a feature has one of these names, ours ends in "_".
        """
        if isinstance(k, bool) or not isinstance(k, Integral) or k < 1:
            raise InputError(f"k must be a whole number, at least 1, {k!r} came")
        if not len(self):
            return self._table(0).assign(kind="")
        parts, places = [], []
        for rank, result in enumerate(self.hooks.alternatives(k)):
            # What failed or changes nothing is no alternative; the first rank keeps everyone.
            fine = result.outcome["success"].to_numpy() & result.acts.numpy()
            kept = np.flatnonzero(fine | (rank == 0))
            if len(kept):
                parts.append(result._table(rank).iloc[kept])
                places.append(kept)
        order = np.concatenate(places).argsort(kind="stable")
        return pd.concat(parts, ignore_index=True).iloc[order].reset_index(drop=True)

    def _table(self, rank: int) -> pd.DataFrame:
        """Labels, rank, actions and features side by side."""
        labels = pd.Series(list(self.factuals.index), dtype=object).infer_objects()
        head = pd.DataFrame({"index": labels, "rank": rank}, index=labels.index)
        head = pd.concat([head, self.actions.reset_index(drop=True)], axis=1)
        clash = {c: _apart(c, self.counterfactuals) for c in head}
        features = self.counterfactuals.reset_index(drop=True)
        return pd.concat([head.rename(columns=clash), features], axis=1)

    def _changes(self, position: int, mask: Tensor) -> list[Change]:
        """The features of a mask, (p,), with their old and new value."""
        before, after = self.factuals.iloc[position], self.counterfactuals.iloc[position]
        features = self.encoder.schema.features
        picked = [features[j] for j in mask.nonzero()[:, 0].tolist()]
        return [(f, before[f.name], after[f.name]) for f in picked]


def _unchanged(row: pd.Series, moves: bool) -> str:
    """What is said of a row, (actions,), in which nothing is done, though something may move."""
    if row["success"] and row["reason"] in ("", ACCEPTED) and not moves:
        return "nothing to change: the decision is already the wanted one"
    return f"nothing changes: {row['reason'] or NO_ACTION}"


def _only(column: pd.Series, kept: npt.NDArray[np.bool_]) -> pd.Series:
    """A column, missing where it is not kept, (n,) bool; nullable where its dtype has no such."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iub":
        column = column.convert_dtypes(False, False, True, True, False)
    return column.where(kept)


def _positions(index: pd.Index, label: Hashable) -> npt.NDArray[np.int64]:
    """Where a label lies; the index itself knows that NaN is NaN."""
    try:
        at: npt.NDArray[np.int64] = np.atleast_1d(np.arange(len(index))[index.get_loc(label)])
        return at
    except (KeyError, TypeError, ValueError, pd.errors.InvalidIndexError):
        return np.empty(0, dtype=np.int64)


def _apart(name: str, taken: Container[object]) -> str:
    """A name that is not taken."""
    while name in taken:
        name += "_"
    return name
