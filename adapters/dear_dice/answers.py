"""Answers: the engine's results, one per rank, as rows that DiCE can be given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd
import torch

from dear_dice.examples import Origin
from dear_dice.model import Decided, Host
from dear_dice.request import Query
from dear_dice.wish import Mask, Rows
from dear_plugin import Recourses

# The kind of what the engine's alternatives are alternatives to, and the one of those that act on
# a set of their own.
FIRST, OTHER = "first", "another set"


@dataclass(frozen=True)
class Results:
    """m counterfactuals of n rows, those of one row together, in the order of their ranks.

    Attributes:
        rows: (m,) the row of the query that each belongs to, ascending.
        frame: the features, in the query's own values and dtypes.
        actions: the engine's table of actions; `kind` says where one that is not the first came
            from; confidence, reliance, plausibility and credible stand at its end.
        indirect: (m, p) which features moved without being acted on.
        origins: where each came from.
        decided: (m,) the outcomes, as DiCE reads them off the model.
    """

    rows: Rows
    frame: pd.DataFrame
    actions: pd.DataFrame
    indirect: Mask
    origins: Sequence[Origin]
    decided: Decided

    @classmethod
    def of(cls, results: Sequence[Recourses], query: Query, host: Host, k: int) -> Results:
        """Up to k counterfactuals a row, every one confirmed by the model through DiCE.

        Args:
            results: the engine's results over the query's rows, one per rank.
            query: the query.
            host: the model.
            k: how many a row.
        """
        n = len(query.rows)
        rows = np.tile(np.arange(n), len(results))
        best = results[0].outcome.assign(kind=FIRST)
        actions = pd.concat([best, *(r.outcome for r in results[1:])], ignore_index=True)
        solved = np.flatnonzero(actions["success"])
        solved = solved[np.argsort(rows[solved], kind="stable")]
        frame = pd.concat([r.counterfactuals for r in results], ignore_index=True)
        indirect = np.concatenate([(r.changed & ~r.proposal.direct).numpy() for r in results])
        answers = cls(
            rows[solved],
            query.dialect.write(frame.iloc[solved].reset_index(drop=True)),
            actions.iloc[solved].drop(columns="success").reset_index(drop=True),
            indirect[solved],
            [(results[i // n], int(i % n)) for i in solved],
            np.zeros(len(solved), dtype=np.int64),
        )
        return answers._distinct()._confirmed(query, host)._first(k)._weighed(results)

    def undone(self, query: Query, host: Host) -> Results:
        """With every indirect change undone that the outcome can do without."""
        frame, before = self.frame.copy(), query.rows.iloc[self.rows].reset_index(drop=True)
        for j, name in enumerate(frame.columns):
            at = np.flatnonzero(self.indirect[:, j])
            if len(at):
                trial = frame.iloc[at].copy()
                trial[name] = before[name].iloc[at]
                scores = host.scores(trial)
                fine = at[query.wish.met(scores, host.decided(trial, scores), self.rows[at])]
                frame[name] = frame[name].where(~frame.index.isin(fine), before[name])
        return replace(self, frame=frame, decided=host.decided(frame, host.scores(frame)))

    def spans(self, n: int) -> list[slice]:
        """Where the counterfactuals of each of n rows stand."""
        ends = np.searchsorted(self.rows, np.arange(n + 1))
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def _distinct(self) -> Results:
        """Each once, and each set of features that is not to be acted on again once."""
        again = self.frame.assign(**{"": self.rows}).duplicated()
        acted = self.actions[["acted_on"]].assign(row=self.rows).duplicated()
        again |= acted & (self.actions["kind"] == OTHER)
        return self._where(~again.to_numpy(dtype=bool))

    def _confirmed(self, query: Query, host: Host) -> Results:
        if not len(self.rows):
            return self
        scores = host.scores(self.frame)
        decided = host.decided(self.frame, scores)
        return replace(self, decided=decided)._where(query.wish.met(scores, decided, self.rows))

    def _first(self, k: int) -> Results:
        ranks = pd.Series(self.rows).groupby(self.rows).cumcount()
        return self._where(np.asarray(ranks < k))

    def _weighed(self, results: Sequence[Recourses]) -> Results:
        """With what each is worth, which is not asked of those that are left out."""
        parts: list[pd.DataFrame] = []
        for result in results:
            at = [i for i, (own, _) in enumerate(self.origins) if own is result]
            if at or not parts:
                places = torch.tensor([self.origins[i][1] for i in at], dtype=torch.int64)
                parts.append(pd.DataFrame(vars(result.hooks.worth(places)), index=at))
        return replace(self, actions=self.actions.join(pd.concat(parts)))

    def _where(self, fine: Mask) -> Results:
        if fine.all():
            return self
        at = np.flatnonzero(fine)
        return Results(
            self.rows[at],
            self.frame.iloc[at].reset_index(drop=True),
            self.actions.iloc[at].reset_index(drop=True),
            self.indirect[at],
            [self.origins[i] for i in at],
            self.decided[at],
        )
