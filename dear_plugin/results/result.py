"""The answers as frames: `actions` (costs, credibility, reasons) and `direct` (new values)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._threads import lazy
from dear_plugin.data.encoder import Encoder, patch
from dear_plugin.data.feature import with_cells
from dear_plugin.problem.feasible import Reason, Status
from dear_plugin.results.changes import Line, frame, join, lines, needed_ranges, only
from dear_plugin.results.proposal import (
    KINDS,
    Batch,
    Credibility,
    Proposal,
    Question,
    Ranges,
    Spread,
    ranges,
)
from dear_plugin.search.criteria import TOLERANCE, Criterion, Reached, RowCriteria, margins, scored
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
        columns |= {"credible": worth.credible.numpy(), "reason": reason}
        return with_cells(self.outcome, columns)

    @lazy
    def lines(self) -> list[list[Line]]:
        """(n,) the lines of `changes` of each row."""
        rows = self.x, self.proposal.rows, self.alone
        least = needed_ranges(self.question, self.proposal, self.spread)
        return lines(
            *(self.encoder, rows, self.proposal.direct, self.mates),
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
          in its own unit; `low_one` and `high_one`, of the change of one person; texts say of a
          range that is wider than the unit of cost, the usual range, that it is not known;
        - `agree`, in how many of the `redraws` it changes;
        - `size`, the change in units of cost; `unit`, of a number; `exact`, of what is forced,
          whether it must be just that value, which an order between numbers does not ask for;
        - `link`, of what is expected to follow: "effect", or "association" within a tier and
          where no order of causes is stated.

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
        values of a usual accepted training row there, and maybe in what does not move the model's
        score, the row has an answer.
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
    def mates(self) -> Tensor:
        """(n, p) bool, of what an indirect change is an association, see `CausalOrder.mates`."""
        direct = self.proposal.direct.numpy()
        return torch.from_numpy(self.encoder.schema.causal_order.mates(direct))

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


# What an answer has that does not meet a criterion, and what is said of the required value.
WORDS = {
    "consistency": "a change that the model does not clearly favour",
    "plausibility": "values that hardly anybody has",
    "gain": "an action that does not help by itself: only what goes along, an association, does",
    "reliance": "reliance on more of what follows than is allowed",
    "support": "too few accepted neighbours",
    "agreement": "too few copies of the model that accept it",
    "confidence": "success in too few resamples",
}

Texts = npt.NDArray[Any]
# The criteria that depend on more than the counterfactual.
OF_ACTIONS = [CRITERIA.index(n) for n in ("consistency", "gain", "reliance", "confidence")]
# Training rows among which the most usual accepted one is sought; cells of trials, 32 MiB.
SOUGHT, CELLS = 200, 1 << 22


def reasons(question: Question, proposal: Proposal, success: Tensor) -> Texts:
    """(n,) a reason for every failure, and what is known of successes without their criteria.

    Args:
        question: n rows.
        proposal: for them.
        success: (n,) bool, the decision of the user's model on the rows of the result.
    """
    out = np.where(proposal.accepted.numpy(), str(Reason.ACCEPTED), "").astype(object)
    said = ~success | proposal.failed | (proposal.status > Status.ACCEPTED)
    for i in (said & ~proposal.accepted).nonzero()[:, 0].tolist():
        out[i] = str(_reason(question, proposal, i, done=bool(success[i])))
    return out


def _reason(question: Question, proposal: Proposal, i: int, *, done: bool) -> str:
    """The reason of the row at position i, where it is `done` or not."""
    if not proposal.searched:
        own = str(proposal.reasons[i])
        return own if done else own or Reason.NOT_WANTED
    if done:
        advice = proposal.status[i] != Status.NO_ADVICE
        return Reason.LESS_FAR if bool(proposal.failed[i]) else "" if advice else Reason.NO_ADVICE
    return _failure(question, proposal, i) if bool(proposal.failed[i]) else Reason.REFUSED_ROUNDED


def _failure(question: Question, proposal: Proposal, i: int) -> str:
    """Why the row at position i has no recourse."""
    if proposal.reasons[i]:
        return str(proposal.reasons[i])
    if proposal.status[i] == Status.EXCLUDED:
        return _excluded(question, i)
    if proposal.status[i] == Status.NO_MORE:
        return Reason.NO_MORE
    alone, together, excluded = proposal.tried[i].tolist()
    names = [feature.called for feature in question.method.encoder.schema]
    label = " + ".join(compress(names, proposal.direct[i].tolist()))
    text = Reason.CLOSEST.format(
        _unreached(alone, together, question.method.search.max_features), label
    )
    return f"{text}; {_excluded(question, i)}" if excluded else text


def _excluded(question: Question, i: int) -> str:
    """Which actions of the row at position i are left out."""
    feasible = question.case.feasible
    names = [*compress(feasible.rules.names, feasible.required[i].tolist())]
    return Reason.EXCLUDED_RULES.format(names[0]) if names else Reason.EXCLUDED


def _unreached(alone: int, together: int, most: int) -> str:
    """The sets that were tried for a row whose search did not reach the target.

    Args:
        alone: the number of features that may be acted on alone.
        together: the number of given sets of several features that may be acted on.
        most: the largest number of the single features that are tried together.
    """
    most, of, tried = min(most, alone), f"of the {alone} actionable features", []
    if most > 1:
        tried.append(f"1 {'or' if most == 2 else 'to'} {most} {of}")
    elif alone:
        tried.append("the only actionable feature" if alone == 1 else f"a single one {of}")
    if together:
        tried.append(f"the {together} given groups" if together > 1 else "the given group")
    return Reason.UNREACHED.format(" or of ".join(tried))


def complete(
    known: Sequence[str],
    question: Question,
    worth: Credibility,
    success: Tensor,
    found: Tensor,
    *,
    proposal: Proposal,
) -> Texts:
    """(n,) the reasons `known`, where these come first, with what answers lack, and obstacles.

    Args:
        known: (n,) see `reasons`.
        question: n rows.
        worth: of the answers.
        success: (n,) bool, where there are answers.
        found: (n, p) bool, see `obstacles`.
        proposal: of the answers.
    """
    out = np.array(known, dtype=object)
    sought = proposal.searched and question.method.search.has_criteria
    unconfirmed = _unconfirmed(question, proposal, worth)
    for i in (success & (worth.lacks.any(1) | worth.near)).nonzero()[:, 0].tolist():
        at = worth.lacks[i].nonzero()[:, 0].tolist()
        measured, least = (each[i, at].tolist() for each in (worth.measured, worth.least))
        text = join([*map(short_of, [CRITERIA[c] for c in at], measured, least)])
        reason = Reason.UNCONFIRMED if bool(unconfirmed[i]) else Reason.LACKING
        out[i] = known[i] or (reason.format(text) if sought and at else text)
        out[i] = out[i] or Reason.LESS_MARGIN
    for i in found.any(1).nonzero()[:, 0].tolist():
        some = compress(question.method.encoder.schema, found[i].tolist())
        names = [*dict.fromkeys(feature.called for feature in some)]
        out[i] = Reason.IN_THE_WAY.format(out[i], join(names))
    return out


def _unconfirmed(question: Question, proposal: Proposal, worth: Credibility) -> Tensor:
    """(n,) bool, answers that lack confidence alone, and had enough in the search's resamples."""
    at, least = CRITERIA.index("confidence"), question.method.search.stricter.min_confidence
    enough: Tensor = proposal.measured[:, at] >= least - TOLERANCE
    return enough & worth.lacks[:, at] & (worth.lacks.sum(1) == 1)


def short_of(name: str, share: float, least: float) -> str:
    """What an answer has that does not meet a criterion, with figures where their texts differ.

    Args:
        name: of the criterion.
        share: its value, from 0 to 1; for reliance, one minus it.
        least: the required value; for reliance, one minus it.
    """
    ends, bound = (share, least), "at least"
    if name == "reliance":
        ends, bound = (1.0 - share, 1.0 - least), "at most"
    value, wanted = (f"{end:.2g}" for end in ends)
    if name == "gain" or value == wanted:
        return WORDS[name]
    return f"{WORDS[name]} ({name} {value}, {bound} {wanted} is required)"


def obstacles(question: Question, proposal: Proposal, worth: Credibility, some: Tensor) -> Tensor:
    """(n, p) bool, what stands in the way of a credible answer, and cannot be acted on.

    In a trial it takes the value of a usual accepted training row: then the nearest attempt has
    the margin and the criteria of counterfactuals; or the factual has, if its action is at fault.

    Args:
        question: n rows.
        proposal: for them.
        worth: of the answers.
        some: (n,) bool, the rows to ask: what is in the way of a further answer was not in the way
            of the first, or was said of it.
    """
    x, out = question.case.x, torch.zeros_like(proposal.direct)
    if not (proposal.searched and question.method.search.has_criteria):
        return out
    # The others' reasons say it: what cannot be read, or nothing that may be acted on.
    sought = ~worth.credible & ~question.accepted & (proposal.status != Status.NO_MORE)
    sought &= torch.from_numpy(proposal.reasons == "") & some
    # Nothing was in the way of the search.
    sought &= ~_unconfirmed(question, proposal, worth)
    at_fault = worth.lacks[:, OF_ACTIONS].any(1) | (proposal.status == Status.NO_ADVICE)
    for swapped in (False, True):
        start = torch.where((at_fault ^ swapped)[:, None], x, proposal.rows)
        rows = (sought & ~out.any(1)).nonzero()[:, 0]
        for at in rows.split(max(1, CELLS // out.shape[1] ** 2)) if len(rows) else ():
            out[at] = _freed(question.select(at), start[at])
    return out


def _freed(question: Question, start: Tensor) -> Tensor:
    """(m, p) bool, features that are not acted on, but for which m rows would have an answer.

    In a trial such a feature takes its value in the most usual accepted training row. The feature
    that brings the row nearest to the margin and the criteria of rows is freed, then another one,
    up to as many as a search acts on together. None where these do not suffice; nor what does
    not move the model's score.

    Args:
        question: of m rows without a credible answer.
        start: (m, p) the rows of the trials: the nearest attempts, or the factuals.
    """
    method, (m, p) = question.method, start.shape
    usual, every = _usual(question), torch.eye(p, dtype=torch.bool)
    left = ~question.may_act & (start != usual)
    left &= torch.tensor([not feature.identifier for feature in method.encoder.schema])
    freed, found = torch.zeros(m, p, dtype=torch.bool), torch.zeros(m, dtype=torch.bool)
    criteria = RowCriteria.of(question.case, method.search, method.trained)
    wanted = {} if criteria is None else criteria.wanted
    for _ in range(method.search.max_features):
        rows, one = (left & ~found[:, None]).nonzero(as_tuple=True)
        if not len(rows):
            break
        trials = torch.where(freed[rows] | every[one], usual[rows], start[rows])
        near = torch.full(left.shape, -torch.inf, dtype=torch.float64)
        near[rows, one] = _nearness(question, wanted, Reached(rows, trials))
        best, at = near.max(1)
        some = (best > -torch.inf).nonzero()[:, 0]
        freed[some] |= every[at[some]]
        left[some, at[some]] = False
        found |= best == torch.inf
    freed &= found[:, None]
    rows, one = freed.nonzero(as_tuple=True)
    if len(rows):
        after = torch.where(freed, usual, start)[rows]
        trials = torch.cat([after, torch.where(every[one], start[rows], after)])
        scores = method.trained.classifier.scores(trials)
        own, without = question.case.goal.margin(scores, rows.repeat(2)).chunk(2)
        freed[rows, one] = ~own.isclose(without)
    return freed


def _usual(question: Question) -> Tensor:
    """(m, p) for each row the most usual training row that its target accepts."""
    trained, m = question.method.trained, len(question.case)
    rows, scores = (each[:SOUGHT] for each in trained.scored)
    order = trained.plausibility(rows).argsort(descending=True, stable=True)
    owner = torch.arange(m).repeat_interleave(len(rows))
    accepted = question.case.goal.accepts(scores[order].repeat(m, 1), owner).view(m, -1)
    return rows[order[accepted.int().argmax(1)]]


def _nearness(question: Question, wanted: Mapping[str, Criterion], found: Reached) -> Tensor:
    """(q,) double, how near trials are to the margin and the criteria; infinite where met.

    A criterion that is met counts 1; of the next one, and of the margin, what is missing does.
    """
    case, trained = question.case, question.method.trained
    margin = case.goal.margin(trained.classifier.scores(found.reached), found.rows)
    least = margins(case, question.method.search, trained)[found.rows]
    short, met = (least - margin).double().clamp_min(0.0), scored(found, wanted)[0]
    part = met.clamp_max(1.0 + len(wanted)) - short / (1.0 + short)
    return torch.where(short > 0.0, part, met)
