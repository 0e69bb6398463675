"""What a method proposes for the rows of a call, and what these answers are worth.

A `Question` is the call, the method and the rows. A `Spread` holds the confidence of answers under
resamples, and the ranges of their changes; its resamples are others than those that a search
evaluates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import compress
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from dear_plugin._threads import bar, lazy
from dear_plugin.data.encoder import Encoder, patch
from dear_plugin.evaluation.trained import Trained
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.feasible import Case, Status
from dear_plugin.search import SearchProblem
from dear_plugin.search.criteria import (
    ROUNDING,
    TOLERANCE,
    Criterion,
    Decoded,
    Measure,
    Reached,
    by_share,
    confidence,
    least_values,
    margins,
    measures_of_rows,
    scored,
    unseen,
)
from dear_plugin.search.problem import answered, together
from dear_plugin.search.settings import CRITERIA, Search

# How an alternative differs from the first answer, and the names of that.
ANOTHER, SEVERAL, SAME = 1, 2, 3
KINDS = ("", "another set", "pair of features", "same features")

Texts: TypeAlias = Sequence[str] | npt.NDArray[Any]
Column = npt.NDArray[Any]


@dataclass(frozen=True)
class Batch:
    """An entry for each of m rows: tensors, arrays, frames, cases, batches; all else is of all."""

    def select(self, idx: Tensor) -> Self:
        """The rows at positions (q,)."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: _selected(each, idx) for name, each in values.items()})


@dataclass(frozen=True)
class Joinable(Batch):
    """A batch whose entries for each row are tensors and arrays alone."""

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The records of consecutive chunks as one; what holds for every row is the first's."""
        first, *others = parts
        return first._changed(lambda *columns: np.concatenate(columns), *others)

    def merged(self, part: Self, idx: Tensor) -> Self:
        """This record with the rows at positions (q,) replaced by those of another."""
        return self._changed(lambda column, new: _put(column.copy(), idx, new), part)

    def _changed(self, change: Callable[..., Column], *others: Self) -> Self:
        """This record with each column changed, given those of other records."""
        out: dict[str, Any] = {}
        for name in (each.name for each in fields(self)):
            columns = [getattr(each, name) for each in (self, *others)]
            if isinstance(columns[0], Tensor):
                out[name] = torch.from_numpy(change(*map(_array, columns)))
            elif isinstance(columns[0], np.ndarray):
                out[name] = change(*columns)
        return replace(self, **out)


@dataclass(frozen=True)
class Proposal(Joinable):
    """What a method proposes for m rows, in user units.

    What is not given has its default for every row.

    Attributes:
        rows: (m, p) the counterfactuals; the factual itself where there is no proposal.
        direct: (m, p) bool, the features acted on.
        suppressed: (m,) l1 indirect change that the decoder expects and the constraints exclude.
        reasons: (m,) the method's own words on why a row has no recourse; "" for none.
        searched: whether the actions come from a search; False where the user gave them.
        status: (m,) int64, see `Status`.
        kind: (m,) int64, how an alternative differs from the first, see `KINDS`.
        tried: (m, 3) int64, the features that may be acted on alone, the given groups, and 1 where
            actions are left out.
        measured: (m, c) what the search measured, in the order of its criteria, NaN for nothing.
        least: (m,) the plausibility that the search required, NaN for none.

    Example:
        >>> from dear_plugin import Proposal
        >>> rows = torch.tensor([[0.2, 0.5], [0.4, 0.1]])  # of a case of two rows
        >>> acted_on = torch.tensor([[True, False], [False, False]])
        >>> proposal = Proposal(rows, acted_on, torch.zeros(2), ["", "no row is accepted"])
        >>> proposal.failed
        tensor([False,  True])
    """

    rows: Tensor
    direct: Tensor
    suppressed: Tensor
    reasons: Texts
    searched: bool = True
    status: Any = None
    kind: Any = None
    tried: Any = None
    measured: Any = None
    least: Any = None

    def __post_init__(self) -> None:
        """Fill in what is not given; texts become arrays."""
        m, device = len(self.rows), self.rows.device
        columns = {
            "status": (m,),
            "kind": (m,),
            "tried": (m, 3),
            "measured": (m, len(CRITERIA)),
            "least": (m,),
        }
        for name, shape in columns.items():
            if getattr(self, name) is None:
                blank = torch.nan if name in ("measured", "least") else 0
                object.__setattr__(self, name, torch.full(shape, blank, device=device))
        object.__setattr__(self, "reasons", _texts(self.reasons))

    @lazy
    def failed(self) -> Tensor:
        """(m,) bool, rows that have no recourse."""
        own = torch.from_numpy(np.asarray(self.reasons) != "")
        failed: Tensor = own | (self.status.cpu() >= Status.UNREACHED)
        return failed

    @property
    def accepted(self) -> Tensor:
        """(m,) bool, rows that are accepted already, and are proposed as they are."""
        accepted: Tensor = self.status == Status.ACCEPTED
        return accepted

    def clone(self) -> Proposal:
        """The same with copies of its tensors: those made in inference mode have no gradient."""
        return self.select(torch.arange(len(self.rows)))

    def costs(self, x: Tensor, encoder: Encoder, per_unit: Tensor | None) -> tuple[Tensor, Tensor]:
        """Direct cost `sum c_j |d_j|` over S and indirect cost, (m,) each, in units of cost.

        What a unit of a feature costs, (m, p), or None for 1, counts in the direct cost alone, not
        in that of what follows. Without an order of causes, indirect costs are of associations.
        """
        moved = encoder.distance(self.rows, x)
        acted = moved * self.direct
        direct = acted.sum(1)
        indirect = (moved.sum(1) - direct).clamp_min(0.0)
        return direct if per_unit is None else (acted * per_unit).sum(1), indirect

    def acted_on(self, x: Tensor, names: Sequence[str]) -> npt.NDArray[Any]:
        """(m,) the names, (p,), of what is acted on and changed of x, (m, p), joined by " + "."""
        # Few of these rows differ: each label is made once, with the row's bytes as its key.
        cells, p = (self.direct & (self.rows != x)).numpy().tobytes(), x.shape[1]
        rows = [cells[at : at + p] for at in range(0, len(cells), p)]
        labels = {row: " + ".join(dict.fromkeys(compress(names, row))) for row in set(rows)}
        return _texts(labels[row] for row in rows)


def identity_proposal(x: Tensor, accepted: Tensor) -> Proposal:
    """The proposal that changes nothing of x, (m, p), accepted or not, (m,) bool."""
    none, status = torch.zeros(x.shape, dtype=torch.bool), int(Status.ACCEPTED) * accepted.long()
    return Proposal(x.clone(), none, torch.zeros(len(x)), [""] * len(x), status=status)


def _texts(texts: Iterable[str]) -> npt.NDArray[Any]:
    """Texts as an object array, from which pandas makes a column faster than from a list."""
    made = texts if isinstance(texts, np.ndarray) else list(map(str, texts))
    return np.array(made, dtype=object)


def _selected(value: Any, idx: Tensor) -> Any:
    """What the rows at positions (q,) have of a value of m rows; what holds for all is kept."""
    if isinstance(value, Tensor):
        return torch.from_numpy(_array(value)[idx.numpy()])
    if isinstance(value, pd.DataFrame):
        return value.iloc[idx.numpy()]
    if isinstance(value, np.ndarray):
        return value[idx.numpy()]
    return value.select(idx) if isinstance(value, Batch | Case) else value


def _put(column: Column, idx: Tensor, new: Column) -> Column:
    """A column, some rows of which are replaced in place."""
    column[idx.numpy()] = new
    return column


def _array(column: Tensor) -> Column:
    """A tensor as an array; a method may propose rows on a GPU, or with a gradient."""
    array: Column = column.detach().cpu().numpy()
    return array


# Rows whose resamples are held in memory at a time.
ROWS_RESAMPLED = 1024


class Method(Protocol):
    """What a result asks the method that made it."""

    encoder: Encoder
    search: Search
    in_threads: bool

    @property
    def _acts(self) -> Tensor: ...

    @property
    def trained(self) -> Trained:
        """The training rows."""

    @property
    def settings(self) -> dict[str, Any]:
        """What it was made with, as plain values."""

    def _converted(self, frame: pd.DataFrame) -> pd.DataFrame: ...

    def _alternatives(
        self, case: Case, k: int, attempt: Attempt | None = None
    ) -> Sequence[Proposal]: ...


@dataclass(frozen=True)
class Credibility(Batch):
    """What m answers are worth, by the criteria of a search in their order.

    Attributes:
        measured: (m, c) double, the measured values, one minus the value for reliance; NaN where
            there is no answer, or where the criterion is not evaluated.
        least: (m, c) double, the required values; NaN where none is.
        margin: (m,) double, how far past the boundary the score is.
        least_margin: (m,) double, the required one; NaN where none is, or where nothing is done.
        credible: (m,) bool, whether there is an answer that has them, and the margin.
    """

    measured: Tensor
    least: Tensor
    margin: Tensor
    least_margin: Tensor
    credible: Tensor

    @property
    def lacks(self) -> Tensor:
        """(m, c) bool, the criteria that are not met."""
        return self.measured < self.least - TOLERANCE

    @property
    def near(self) -> Tensor:
        """(m,) bool, answers with less than the required margin."""
        return self.margin < self.least_margin * (1.0 - ROUNDING)


@dataclass
class Attempt:
    """A search of some rows, which alternatives continue.

    Attributes:
        first: the result of the first answers; None before.
        more: at most one function, which gives the first k answers of every row by rank, and
            continues with what it tried; a caller takes it out meanwhile.
    """

    first: Any = None
    more: list[Callable[[int], list[Proposal]]] = field(default_factory=list)


@dataclass(frozen=True)
class Question(Batch):
    """n rows, the method that gives recourse, and what the model says of the rows.

    Attributes:
        method: fitted.
        case: the n rows; those that cannot be read are zero, and no method sees them.
        frame: the same in user units.
        scores: (n, c) their scores, NaN for those that cannot be read.
        accepted: (n,) bool, whether the model's decision is the wanted one.
        unreadable: (n,) why a row cannot be read; "" where it can.
        n_jobs: the number of threads that search the rows, as in joblib.
        attempts: what was searched, by how far past the boundary; no part of a pickle.
    """

    method: Method
    case: Case
    frame: pd.DataFrame
    scores: Tensor
    accepted: Tensor
    unreadable: npt.NDArray[np.object_]
    n_jobs: int = 1
    attempts: dict[float, Attempt] = field(default_factory=dict, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """What was searched is searched again."""
        return {**vars(self), "attempts": {}}

    def select(self, idx: Tensor) -> Self:
        """The question of the rows at positions (q,)."""
        return replace(super().select(idx), attempts={})

    @property
    def may_act(self) -> Tensor:
        """(n, p) bool, what a row may act on: a choice of the method, and of its limits."""
        return self.method._acts & ~self.case.feasible.limits.not_actionable

    @property
    def readable(self) -> Tensor:
        """(q,) the positions of the rows that can be read."""
        return torch.from_numpy(np.flatnonzero(self.unreadable == ""))

    @property
    def unchanged(self) -> Proposal:
        """The proposal that changes nothing; rows that cannot be read have failed."""
        return replace(identity_proposal(self.case.x, self.accepted), reasons=self.unreadable)

    def over_all(self, part: Proposal) -> Proposal:
        """A proposal for the rows that can be read as one for all rows."""
        whole = replace(self.unchanged, searched=part.searched)
        return part if len(self.readable) == len(self.case) else whole.merged(part, self.readable)

    def score(self, scores: Tensor) -> npt.NDArray[np.float64]:
        """(n,) the reported score of each row, given the model's, (n, c); NaN if unreadable."""
        out, at = np.full(len(self.case), np.nan), self.readable
        out[at.numpy()] = self.case.goal.select(at).score(scores[at]).double().numpy()
        return out

    def accepts_part(self, rows: Tensor, reached: Tensor) -> Tensor:
        """(n,) bool, whether the user's model accepts rows, (n, p), and they are possible.

        They have actions and a part of what follows, of answers, (n, p).
        """
        every = torch.arange(len(self.case))
        after, seen = patch(self.method.encoder, self.frame, self.case.x, rows=rows)
        possible = self.case.feasible.is_possible(self.case.x, seen, reached, every)
        return self.decided(after, seen, every)[1] & possible

    def repaired(
        self, rows: Tensor, direct: Tensor, told: Tensor | bool = False, *, forced: bool = True
    ) -> Tensor:
        """(n, p) the same rows, of which is set what actions, and what is told, force.

        Args:
            rows: (n, p) with the actions in place.
            direct: (n, p) bool, what is acted on.
            told: (n, p) bool, what else stays as it is.
            forced: see `Admissible.repair`.
        """
        still, order = direct.clone(), self.method.encoder.schema.causal_order
        for acted in still.unique(dim=0) if order.is_stated else ():
            held = list(order.held(acted.nonzero()[:, 0].tolist()))
            still[:, held] |= (direct == acted).all(1)[:, None]
        every, still = torch.arange(len(self.case)), still | torch.as_tensor(told)
        feasible, x = self.case.feasible, self.case.x
        return feasible.repair(x, rows[:, None], still, every, forced=forced)[:, 0]

    def decided(self, frame: pd.DataFrame, seen: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """(m, c) scores and (m,) bool, the wanted decision, of a frame of rows at positions."""
        classifier = self.method.trained.classifier
        scores, goal = classifier.frame_scores(frame, seen), self.case.goal.select(rows)
        return scores, goal.succeeds(scores, lambda: classifier.decisions(frame))

    def support(self, reached: Tensor, idx: Tensor) -> Tensor:
        """(m,) the support of rows, (m, p), at positions, (m,)."""
        return self.method.trained.support(reached, self.case.goal, idx)

    def consistency(self, proposal: Proposal, idx: Tensor) -> Tensor:
        """(m, p) double, the consistency of what answers at positions, (m,), act on; else 1."""
        x, rows, acted = self.case.x[idx], proposal.rows[idx], proposal.direct[idx]
        return self.method.trained.consistency.of(x, rows, acted, self.case.goal, idx)

    def spread(self, proposal: Proposal) -> Spread:
        """What becomes of the answers under resamples."""
        parts = torch.arange(len(self.case)).split(ROWS_RESAMPLED)
        return Spread.joined(
            [
                spread(self.case.select(at), proposal.select(at), self.method.trained)
                for at in bar(parts, "resamples, chunks of rows")
            ]
        )

    def credibility(
        self, proposal: Proposal, success: Tensor, scores: Tensor, spread: Spread
    ) -> Credibility:
        """What the answers of a proposal of any origin are worth.

        Args:
            proposal: of the rows.
            success: (n,) bool, where there are answers.
            scores: (n, c) of the rows with them.
            spread: of the proposal.
        """
        rows, trained = success.nonzero()[:, 0], self.method.trained
        search = self.method.search if self.method.search.has_criteria else Search()
        # What the search has measured is not evaluated again; its confidence is of resamples by
        # which it chose, in whose place are others.
        order, known = self.method.encoder.schema.causal_order, proposal.measured[rows].double()
        # With an order of causes, what follows is an effect of the action.
        gain = torch.ones_like(spread.gain) if order.is_stated else spread.gain
        for name, column in (
            ("gain", gain),
            ("reliance", 1.0 - spread.reliance),
            ("confidence", spread.confidence),
        ):
            known[:, CRITERIA.index(name)] = column[rows]
        measures: dict[str, Measure] = {
            **measures_of_rows(self.case.goal, trained),
            "consistency": lambda found: (self.consistency(proposal, found.rows).amin(1), 0.0, {}),
        }
        evaluated = {"plausibility", "consistency", "agreement"} | search.required.keys()
        # All are evaluated: of none a value is required here.
        none = torch.full((len(self.case),), -torch.inf)
        wanted = {
            name: Criterion(each, none) for name, each in measures.items() if name in evaluated
        }
        measured, least = torch.full((2, len(self.case), len(CRITERIA)), torch.nan).double()
        measured[rows] = scored(Reached(rows, proposal.rows[rows]), wanted, known)[2]
        own = proposal.least[rows].double()
        new = own.isnan()
        own = own.masked_scatter(new, trained.plausibility(self.case.x[rows[new]]).double())
        for name, column in least_values(search, own).items():
            least[rows, CRITERIA.index(name)] = column.double()
        if not order.is_stated and bool((spread.reliance[rows] > 0.0).any()):
            _ = trained.advised
        enough = self._asked_margin.masked_fill(~success | proposal.accepted, torch.nan)
        good = success & ~proposal.failed & (proposal.status != Status.NO_ADVICE)
        worth = Credibility(measured, least, self.case.goal.margin(scores).double(), enough, good)
        return replace(worth, credible=good & ~worth.near & ~worth.lacks.any(1))

    @property
    def _asked_margin(self) -> Tensor:
        """(n,) double, the margin that the method's search asks for; NaN where it does not."""
        if not self.method.search.margin:
            return torch.full((len(self.case),), torch.nan).double()
        return margins(self.case, self.method.search, self.method.trained).double()


# Resamples, of half of the rows, differ from an estimate sqrt(2) times as much as the truth does:
# 95 % of the truths are between these quantiles of means; and 95 % of the rows between those.
OF_MEANS, OF_PEOPLE = 0.166, 0.025
# `describe` names the features that do not flip whose probability changes most, by how much.
MOST_FLIPS, LEAST_FLIP = 2, 0.05
# Rows of other individuals that are decoded at a time.
ROWS_AT_A_TIME = 1 << 16

Amounts = Callable[..., Tensor]


@dataclass(frozen=True)
class Spread(Joinable):
    """What m answers do under resamples of the decoder, none of which a search has seen.

    Attributes:
        confidence: (m,) double, the share of resamples under which an answer succeeds.
        reliance: (m,) double, the least share of the indirect change from which on it succeeds.
        alone: (m,) bool, whether the model accepts the action alone, with what it forces, and the
            row with that is possible.
        possible: (m,) bool, False where the model accepts it, though the row is not.
        gain: (m,) double, 1 where the action itself helps, see `Shares`.
        least: (m, p) the row with the share of the indirect change that is the reliance.
        moved: (m, p) int64, the number of resamples in which a feature changes.
        count: the number of resamples; 0 without any.
    """

    confidence: Tensor
    reliance: Tensor
    alone: Tensor
    possible: Tensor
    gain: Tensor
    least: Tensor
    moved: Tensor
    count: int

    @classmethod
    def of(cls, x: Tensor, rows: Tensor, resampled: Tensor) -> Spread:
        """The spread of answers over r resamples.

        Confidence is 1 and reliance 0 here, as where all changes are direct.

        Args:
            x: (m, p) the factual rows.
            rows: (m, p) the answers.
            resampled: (m, r, p) the counterfactuals under the resamples.
        """
        moved, one = (resampled != x[:, None]).sum(1), torch.ones(len(x), dtype=torch.float64)
        none, alone = torch.zeros_like(one), torch.ones(len(x), dtype=torch.bool)
        return cls(one, none, alone, alone, one, rows, moved, resampled.shape[1])


@dataclass(frozen=True)
class Ranges(Joinable):
    """Between which ends numbers change in m answers, in user units; 0 for categories.

    The change in the answer itself is in both ranges. Without resamples it is both of their ends.

    Attributes:
        low: (m, p) of the mean change of people like this, which 95 % of such ranges contain.
        high: (m, p) likewise.
        low_one: (m, p) of one person's change, which 95 % of such ranges contain.
        high_one: (m, p) likewise.
    """

    low: Tensor
    high: Tensor
    low_one: Tensor
    high_one: Tensor

    @classmethod
    def of(
        cls, x: Tensor, rows: Tensor, resampled: Tensor, amounts: Amounts, expected: Tensor
    ) -> Ranges:
        """The ranges of answers over r resamples of q individuals each.

        Args:
            x: (m, p) the factual rows.
            rows: (m, p) the answers.
            resampled: (m, q, r, p) the counterfactuals under the resamples.
            amounts: says which cells are amounts in all of some rows.
            expected: (m, e, p) the counterfactuals of e individuals in the sample itself.
        """
        own = _steps(x, rows[:, None, None], amounts)[0][:, 0, 0]
        if not resampled.numel():
            return cls(own, own, own, own)
        one = ends(_steps(x, resampled, amounts)[0].flatten(1, 2), OF_PEOPLE)
        means, middle = (_mean(x, each, amounts) for each in (resampled, expected[:, :, None]))
        both = around(means, middle[:, 0]), one
        found = ((low.minimum(own), high.maximum(own)) for low, high in both)
        return cls(*(end for pair in found for end in pair))


def spread(case: Case, proposal: Proposal, trained: Trained) -> Spread:
    """What becomes of answers under resamples; without decoders there are none.

    Args:
        case: m rows.
        proposal: their answers.
        trained: the training rows, with the decoders and the model.
    """
    draws = torch.arange(0) if trained.decoders is None else unseen(trained.decoders.decoder)
    still = proposal.rows[:, None].expand(-1, len(draws), -1)
    out, rows = Spread.of(case.x, proposal.rows, still), _acting(case, proposal)
    if trained.decoders is None or not len(rows):
        return out
    with torch.inference_mode():
        problem, actions = as_actions(case, proposal, rows, trained)
        after = problem.resample(actions.rows, actions.sets, actions.values, draws)
        asks = confidence(problem, actions.rows, after), by_share(problem, actions)
        (share, _), parts = answered(problem.scores, together(asks))
        known = replace(
            Spread.of(problem.x, actions.reached, after),
            confidence=share,
            reliance=parts.reliance,
            alone=parts.alone,
            possible=parts.possible[:, 0] | ~parts.accepted[:, 0],
            gain=parts.gain,
            least=parts.least,
        )
    return out.merged(known, rows)


def ranges(case: Case, proposal: Proposal, trained: Trained) -> Ranges:
    """Between which ends numbers change in answers; arguments as of `spread`.

    Of other individuals than confidence is, in the same resamples. No end is beyond what a
    counterfactual may be.
    """
    none, amounts = case.x[:, None, None][:, :, :0], trained.classifier.encoder.amounts
    out = Ranges.of(case.x, proposal.rows, none, amounts, none[:, 0])
    if trained.decoders is None:
        return out
    decoder, rows = trained.decoders.decoder, _acting(case, proposal)
    turns = torch.arange(1, decoder.people + 1) if decoder.people > 1 else torch.zeros(1).long()
    draws = unseen(decoder) + 2 * decoder.draws * turns[:, None]
    for at in rows.split(max(1, ROWS_AT_A_TIME // draws.numel())) if len(rows) else ():
        with torch.inference_mode():
            problem, actions = as_actions(case, proposal, at, trained)
            acts = actions.rows, actions.sets, actions.values
            after = problem.resample(*acts, draws.flatten()).unflatten(1, draws.shape)
            expected = actions.reached[:, None]
            if decoder.people > 1:
                expected = problem.resample(*acts, torch.arange(1 - decoder.draws, 1))
            known = Ranges.of(problem.x, actions.reached, after, amounts, expected)
        out = out.merged(known, at)
    limits, some = case.feasible.limits, amounts(case.x)
    least, most = ((end - case.x).where(some, 0.0) for end in (limits.floor, limits.ceiling))
    return Ranges(*(getattr(out, each.name).clamp(least, most) for each in fields(out)))


def flip_probabilities(
    case: Case, proposal: Proposal, position: int, trained: Trained
) -> dict[int, tuple[float, float]]:
    """The probabilities of binary features of a row that do not flip, which change most."""
    x, row, direct = case.x[position], proposal.rows[position], proposal.direct[position]
    where = direct.nonzero()[:, 0]
    if trained.decoders is None or not len(where):
        return {}
    decoder = trained.decoders.of(tuple(where.tolist()))
    found = decoder.flip_probabilities(x[None], torch.stack([x[where], row[where]]))
    free = case.feasible.limits.floor[position] < case.feasible.limits.ceiling[position]
    unchanged = (row == x) & ~direct & free
    changes = sorted(((abs(b - a), j) for j, (a, b) in found.items() if unchanged[j]))
    named = [j for change, j in changes[::-1][:MOST_FLIPS] if change >= LEAST_FLIP]
    return {j: found[j] for j in named}


def _acting(case: Case, proposal: Proposal) -> Tensor:
    """(q,) the positions of answers that act."""
    return ((proposal.rows != case.x).any(1) & proposal.direct.any(1)).nonzero()[:, 0]


def as_actions(
    case: Case, proposal: Proposal, rows: Tensor, trained: Trained
) -> tuple[SearchProblem, Decoded]:
    """The answers at positions, (q,), as actions of a search problem."""
    part, acted = proposal.select(rows), proposal.direct[rows]
    sets, which = ActionSets.acted_on(acted, trained.classifier.encoder.schema)
    problem = SearchProblem.of(case.select(rows), sets, trained)
    values = part.rows.gather(1, sets.positions[which])
    return problem, Decoded(torch.arange(len(rows)), part.rows, which, values)


def around(values: Tensor, middle: Tensor) -> tuple[Tensor, Tensor]:
    """(m, p) twice, the ends of the range of a mean that is about some middle, (m, p).

    So far from the middle as the values, (m, r, p), of resamples are, on either side: as far as
    they are biased, the middle may be (Hall 1988).
    """
    far = ends((values - middle[:, None]).abs(), OF_MEANS)[1]
    return middle - far, middle + far


def ends(values: Tensor, outer: float) -> tuple[Tensor, Tensor]:
    """(m, p) twice, between which all but an outer share of a distribution is on either side.

    Args:
        values: (m, r, p) a sample of it, of which the i-th smallest is at i / (r + 1).
        outer: the share.
    """
    ordered, last = values.sort(1).values, values.shape[1] - 1
    place = min(max(outer * (last + 2) - 1.0, 0.0), last / 2.0)
    at, part = int(place), place - int(place)
    low, high = (
        torch.lerp(each[:, at], each[:, min(at + 1, last)], part)
        for each in (ordered, ordered.flip(1))
    )
    return low, high


def _mean(x: Tensor, rows: Tensor, amounts: Amounts) -> Tensor:
    """(m, r, p) the mean changes over q individuals, (m, q, r, p), of those that are known."""
    steps, known = _steps(x, rows, amounts)
    return steps.sum(1) / known.sum(1).clamp_min(1)


def _steps(x: Tensor, rows: Tensor, amounts: Amounts) -> tuple[Tensor, Tensor]:
    """(m, q, r, p) the changes of numbers, 0 from or to a special value; and where not, bool."""
    here = x[:, None, None]
    known = amounts(here, rows)
    return torch.where(known, rows - here, 0.0), known
