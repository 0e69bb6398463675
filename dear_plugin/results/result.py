"""Result: the answers as frames: `actions` (costs, credibility) and `direct` (new values)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.columns import patch
from dear_plugin.data.encoder import Encoder
from dear_plugin.results.changes import Line, frame, lines, only
from dear_plugin.results.needed import needed
from dear_plugin.results.proposal import KINDS, Batch, Proposal
from dear_plugin.results.question import Credibility, Question
from dear_plugin.results.reasons import complete, obstacles, reasons
from dear_plugin.results.spread import Ranges, Spread, ranges
from dear_plugin.search.settings import CRITERIA

TEXT_COLUMNS = ("reason", "acted_on", "kind")


@dataclass(frozen=True)
class Result(Batch):
    """n rows of a question with their answers, in numbers; `Recourses` shows them.

    Attributes:
        question: the call: the method, and the n rows.
        proposal: what the method proposed, (n, p) rows as the frame can hold them.
        counterfactuals: the columns, order, dtypes, index and category labels of the query; a
            failed row is its best attempt within the constraints.
        scores: (n, c) the scores of the counterfactuals.
        success: (n,) bool, whether the decision of the user's model is the wanted one.
        rank: (n,) int64, the rank of each answer; None where there are no others.
    """

    question: Question
    proposal: Proposal
    counterfactuals: pd.DataFrame
    scores: Tensor
    success: Tensor
    rank: Tensor | None = None

    @lazy
    def outcome(self) -> pd.DataFrame:
        """The columns of `actions` that do not say what an answer is worth."""
        question, proposal = self.question, self.proposal
        per_unit = question.case.feasible.limits.costs
        direct, indirect = proposal.costs(self.x, self.encoder, per_unit)
        columns: dict[str, Any] = {
            "success": self.success.numpy(),
            "reason": reasons(question, proposal, self.success),
            "acted_on": proposal.acted_on(self.x, self.encoder.schema.names),
            "direct_cost": direct.double().numpy(),
            "indirect_cost": indirect.double().numpy(),
            "cost": (direct + indirect).double().numpy(),
            "suppressed_cost": proposal.suppressed.double().numpy(),
            "score_before": question.score(question.scores),
            "score_after": question.score(self.scores),
        }
        if self.rank is not None:
            columns["kind"] = [KINDS[kind] for kind in proposal.kind.tolist()]
        outcome = pd.DataFrame(columns, index=question.frame.index)
        # Of no rows, pandas 3 would infer another dtype.
        return outcome.astype({name: str for name in TEXT_COLUMNS if name in columns})

    @classmethod
    def gathered(cls, parts: Sequence[Self], at: Sequence[Tensor]) -> Self:
        """Of results of one question, the rows at positions, (m,) of each, one after another."""
        pairs = list(zip(parts, at, strict=True))
        return cls(
            parts[0].question.select(torch.cat(list(at))),
            Proposal.joined([part.proposal.select(idx) for part, idx in pairs]),
            pd.concat([part.counterfactuals.iloc[idx.numpy()] for part, idx in pairs]),
            torch.cat([part.scores[idx] for part, idx in pairs]),
            torch.cat([part.success[idx] for part, idx in pairs]),
            torch.cat([part.ranking[idx] for part, idx in pairs]),
        )

    @property
    def factuals(self) -> pd.DataFrame:
        """The frame of the query."""
        return self.question.frame

    @property
    def encoder(self) -> Encoder:
        """That of the method."""
        return self.question.method.encoder

    @property
    def x(self) -> Tensor:
        """(n, p) the factual rows."""
        return self.question.case.x

    def __len__(self) -> int:
        """The number of rows (n)."""
        return len(self.factuals)

    def select(self, at: Tensor) -> Self:
        """The rows at positions, (m,), as a result of their own."""
        part = super().select(at)
        # What is known of the rows is not evaluated again.
        for name in ("spread", "ranges", "credibility"):
            if name in vars(self):
                vars(part)[name] = vars(self)[name].select(at)
        if "lines" in vars(self):
            vars(part)["lines"] = [self.lines[i] for i in at.tolist()]
        return part

    @lazy
    def actions(self) -> pd.DataFrame:
        """The actions, their costs and their credibility, with the index of the factuals.

        `success`, `reason`, `acted_on`; `direct_cost`, `indirect_cost`, `cost` and
        `suppressed_cost`, l1 in units of cost: 1 is a changed category, or a change of a number by
        the range of its central training values (98 %, see `Schema.infer`); .07 is 7 % of it. The
        direct one is times the `costs` of the features;
        `score_before` and `score_after`, the wanted class's probability (or the predicted value);
        and, NaN where a row has no answer:

        - `confidence`, the share of resamples under which the answer still succeeds,
          of resamples that the search has not seen;
        - `reliance`, the least share of the indirect change with which it does: 0 where the action
          alone suffices;
        - `plausibility`, the share of training rows at least as far from their neighbours;
        - `consistency`, of the training rows whose score the same kind of change moves, the share
          that gain, by the model alone: about one half where the model has no clear direction;
        - `agreement`, the share of the copies of the model that accept the answer, NaN without;
        - `credible`, bool: whether these meet the criteria of the method (or the defaults of
          `Search`), and the score has the margin of its search; also of an action that the user
          gave. False where there is no answer.

        The last six are computed on first access.
        """
        worth, success = self.credibility, self.success
        names = ("confidence", "reliance", "plausibility", "consistency", "agreement")
        columns = {n: worth.measured[:, CRITERIA.index(n)].numpy().copy() for n in names}
        columns["reliance"] = 1.0 - columns["reliance"]
        reason = self.outcome["reason"]
        known = worth, success, self.in_the_way
        texts = complete(reason.tolist(), self.question, *known, proposal=self.proposal)
        reason = pd.Series(texts, reason.index, dtype=reason.dtype)
        return self.outcome.assign(**columns, credible=worth.credible.numpy(), reason=reason)

    @lazy
    def lines(self) -> list[list[Line]]:
        """(n,) the lines of `changes` of each row."""
        rows = self.x, self.proposal.rows, self.alone
        least = needed(self.question, self.proposal, self.spread)
        return lines(
            *(self.encoder, rows, self.proposal.direct),
            frames=self.labelled,
            spread=replace(self.spread, least=least),
            ranges=self.ranges,
            ranking=self.ranking,
        )

    @property
    def changes(self) -> pd.DataFrame:
        """What changes, one line for each feature that changes in a row.

        Row by row, what is acted on first, then by the size of the change:

        - `row`, the label; `rank`, 0 for the first answer; `feature`, and its `label` in texts;
        - `kind`: "direct", what is acted on; "forced", what a rule between columns sets with it;
          "indirect", what is expected to follow;
        - `old` and `new`, the values in the factual and the counterfactual; `alone`, the value
          with the action alone; `least`, from which value on, up to `new`, an indirect change
          must happen, as far as the model was asked: `new` where other values may not do, `old`
          where the answer does not need it beside the others;
        - `low` and `high`, the ends of the change of a number on average of people like this,
          in its own unit; `low_one` and `high_one`, of the change of one person;
        - `agree`, in how many of the `redraws` it changes;
        - `size`, the change in units of cost; `unit`, of a number; `exact`, of what is forced,
          whether it must be just that value, which an order between numbers does not ask for.

        Everything that texts say of an answer is made of these lines and of `actions`.
        """
        return frame(line for own in self.lines for line in own)

    @lazy
    def spread(self) -> Spread:
        """What becomes of the answers under resamples."""
        return self.question.spread(self.proposal)

    @lazy
    def ranges(self) -> Ranges:
        """Between which ends numbers change: of the mean and of one person."""
        return ranges(self.question.case, self.proposal, self.question.method.trained)

    @lazy
    def credibility(self) -> Credibility:
        """What the answers are worth, by the criteria of the method."""
        return self.question.credibility(self.proposal, self.success, self.scores, self.spread)

    @lazy
    def obstacles(self) -> pd.Series:
        """The features that stand in the way of a credible answer, and cannot be acted on.

        Joined by " + "; "" where there is a credible answer, or where nothing is found. With the
        values of a usual accepted training row there, the row has an answer.
        """
        schema = self.encoder.schema.names
        names = [
            " + ".join(dict.fromkeys(compress(schema, row))) for row in self.in_the_way.tolist()
        ]
        return pd.Series(names, self.factuals.index, dtype=str, name="obstacles")

    @lazy
    def in_the_way(self) -> Tensor:
        """(n, p) bool, what stands in the way, see `obstacles`."""
        return obstacles(self.question, self.proposal, self.credibility, self.ranking == 0)

    @lazy
    def support(self) -> pd.Series:
        """Share of each counterfactual's 5 nearest training rows that get the wanted decision."""
        values = pd.Series(np.nan, self.factuals.index, name="support")
        known = self.question.readable
        found = self.question.support(self.proposal.rows[known], known)
        values.iloc[known.numpy()] = found.double().numpy()
        return values

    @lazy
    def labelled(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The factuals and counterfactuals, with labels of features that have several columns."""
        label = self.encoder.schema.labelled
        return label(self.factuals), label(self.counterfactuals)

    @lazy
    def direct(self) -> pd.DataFrame:
        """The action alone: the new values of the features acted on, missing elsewhere.

        Index and columns are those of `factuals`. Integers and booleans have pandas' nullable
        dtypes (Int64, boolean), which allow missing values; all other dtypes stay. Of a feature
        with several columns all are there.
        `dear.apply(factuals, direct)` gives the counterfactuals again.
        """
        return only(self.counterfactuals, self.encoder.schema, self.proposal.direct)

    @lazy
    def forced(self) -> pd.DataFrame:
        """What the action alone forces: the new values, missing elsewhere; dtypes as of `direct`.

        A rule between columns, such as a sum, sets them with the action, whatever else follows.
        The rows with `direct` and `forced` in place keep every rule that the factuals keep.
        """
        encoder, forced = self.encoder, self.alone != self.x
        after = patch(encoder, self.factuals, self.x, rows=self.alone)[0]
        return only(after, encoder.schema, forced & ~self.proposal.direct)

    @lazy
    def alone(self) -> Tensor:
        """(n, p) the factuals with the action alone, and what it forces."""
        direct = self.proposal.direct
        return self.question.repaired(torch.where(direct, self.proposal.rows, self.x), direct)

    @property
    def changed(self) -> Tensor:
        """(n, p) bool: which features differ from the factual."""
        return self.proposal.rows != self.x

    @property
    def ranking(self) -> Tensor:
        """(n,) int64: the rank of each answer, 0 for the first."""
        none = torch.zeros(len(self), dtype=torch.int64)
        return none if self.rank is None else self.rank

    @lazy
    def acts(self) -> Tensor:
        """(n,) bool: rows in which a feature acted on changes."""
        return (self.changed & self.proposal.direct).any(1)
