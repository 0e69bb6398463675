"""Moves: fitted sets, their decoder and what to try first; they turn cases into plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders import Decoder
from dear_plugin.decoders.redraws import Redraws
from dear_plugin.decoders.still import Still
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.case import Case
from dear_plugin.problem.seen_pairs import SeenPairs
from dear_plugin.results.describe import unreached
from dear_plugin.results.proposal import Proposal
from dear_plugin.search import (
    Actions,
    CandidateGrids,
    Evidence,
    Incumbents,
    Search,
    SearchProblem,
    choose,
    confidence,
    gradient_search,
    group_search,
    line_search,
    reliance,
    start_search,
)
from dear_plugin.search.candidates import snapped


@dataclass(frozen=True)
class Optimizer:
    """What can be done about a refusal by acting on some sets.

    Attributes:
        sets: the s sets.
        decoder: fitted on them.
        grids: what to try first.
        classifier: the model.
        rows: (n, p) the training rows.
        possible: which pairs of values indirect changes may make; None where all were met.
    """

    sets: ActionSets
    decoder: Decoder
    grids: CandidateGrids
    classifier: Classifier
    rows: Tensor
    possible: SeenPairs | None = None

    @classmethod
    def learned(
        cls,
        rows: Tensor,
        sets: ActionSets,
        decoder: Decoder,
        classifier: Classifier,
        coarse: int,
    ) -> Optimizer:
        """Fit a decoder for some sets on training rows, (n, p)."""
        decoder.fit(rows, classifier.encoder, sets)
        encoder = classifier.encoder
        grids, possible = (
            CandidateGrids.of(rows, encoder, sets, coarse),
            SeenPairs.of(rows, encoder),
        )
        return cls(sets, decoder, grids, classifier, rows, possible)

    @property
    def encoder(self) -> Encoder:
        """The gate."""
        return self.classifier.encoder

    def asking(self, model: Classifier) -> Optimizer:
        """The same for another model: what was learned, redraws too, is about the rows alone."""
        other = replace(self, classifier=model)
        if (redraws := self.__dict__.get("redraws")) is not None:
            other.__dict__["redraws"] = redraws
        return other

    @lazy
    def redraws(self) -> Redraws:
        """The decoder as other rows of the same population might have made it."""
        return self.decoder.redraws(self.rows, self.encoder, self.sets)

    @lazy
    def still(self) -> Optimizer:
        """The same sets, acted on without anything moving along."""
        decoder = Still()
        decoder.fit(self.rows, self.encoder, self.sets)
        return replace(self, decoder=decoder, possible=None)

    def place(self, members: tuple[int, ...]) -> int | None:
        """Where a set, by the positions of its features, lies among `sets`; None if nowhere."""
        known = [frozenset(m) for m in self.sets.members]
        wanted = frozenset(members)
        return known.index(wanted) if wanted in known else None

    def problem(self, case: Case, only: Tensor | None = None) -> SearchProblem:
        """A case as the searches see it; only some sets, (s,) bool, may be acted on."""
        may = case.feasible.may_act(self.sets)
        return SearchProblem(
            case.x,
            self.decoder.encode(case.x),
            case.goal,
            case.feasible,
            self.sets,
            self.decoder,
            self.classifier,
            may if only is None else may & only,
            self.possible,
        )

    def find(
        self,
        problem: SearchProblem,
        search: Search,
        prune: bool = True,
        starts: Tensor | None = None,
        limit: Tensor | None = None,
    ) -> Incumbents:
        """The cheapest success of every row and set.

        Args:
            problem: who asks what.
            search: how to search.
            prune: ask only about what may still become a row's cheapest.
            starts: (n, w) values of the only set that are tried first.
            limit: (n,) the cost from which on nothing is looked for.
        """
        found = Incumbents.none(problem, limit)
        if starts is not None:
            with torch.inference_mode():
                start_search(problem, self.grids, starts, search, found)
        if search.solver == "gradient":
            gradient_search(problem, search, found)
            return found
        # Also where alternatives are looked for, which is not a part of a plan.
        with torch.inference_mode():
            line_search(problem, self.grids, search, found, prune)
            group_search(problem, self.grids, search, found, prune)
        return found

    def proposal(
        self,
        case: Case,
        search: Search,
        evidence: Evidence | None = None,
        *,
        only: Tensor | None = None,
        starts: Tensor | None = None,
    ) -> Proposal:
        """The cheapest success of every row; with evidence, the cheapest that is worth something.

        Args:
            case: the rows.
            search: how to search, and what is asked of an answer.
            evidence: what answers are judged by; None takes the cheapest.
            only: (s,) bool, the sets that may be acted on; None for all.
            starts: as in `find`.
        """
        problem = self.problem(case, only)
        # No derivative is asked for on the way, and small operations are quicker for it.
        with torch.inference_mode(search.solver == "line"):
            proposal = self._plan(problem, search, evidence, starts)
        return _outliving(proposal)

    def applied(self, case: Case, at: int, values: Tensor) -> Proposal:
        """What follows from given actions on one set: nothing is searched.

        Args:
            case: m people.
            at: the place of the set among `sets`.
            values: (m, p) the new values of its features, admissible or people's own.
        """
        problem = self.problem(case)
        with torch.inference_mode():
            sets = torch.full((len(case),), at)
            chosen = self._as_searched(problem, sets, values[:, self.sets.positions[at]])
            every = torch.arange(len(case))
            proposal = self.decoded(problem, every, sets, chosen, [""] * len(case))
            # Decimals finer than the steps of a search are kept as they were given.
            proposal = replace(proposal, rows=torch.where(proposal.direct, values, proposal.rows))
            return _outliving(proposal)

    def certainty(self, case: Case, reached: Tensor, acted: Tensor) -> tuple[Tensor, Tensor]:
        """(m,) the confidence and (m,) the reliance of answers on one set.

        Args:
            case: m people.
            reached: (m, p) their answers.
            acted: (p,) bool, the features of the set.
        """
        with torch.inference_mode():
            problem, actions = self.answered(case, reached, acted)
            sure, needed = confidence(problem, actions)[0], reliance(problem, actions)
        return sure.clone(), needed.clone()

    def answered(
        self, case: Case, reached: Tensor, acted: Tensor
    ) -> tuple[SearchProblem, Actions]:
        """Answers on one set as the criteria see them; arguments as in `certainty`."""
        sets = (self.sets.masks == acted).all(1).nonzero()[:1, 0].expand(len(case))
        values = reached.gather(1, self.sets.positions[sets])
        problem = replace(self.problem(case), redraws=self.redraws)
        return problem, Actions(torch.arange(len(case)), sets, values, reached)

    def _as_searched(self, problem: SearchProblem, sets: Tensor, wanted: Tensor) -> Tensor:
        """Wanted values, (m, w), to the bit as the search has them when it tries the same."""
        rows, where = torch.arange(len(wanted)), self.sets.positions[sets]
        own = problem.x.gather(1, where)
        held = wanted == own
        inside = [
            problem.feasible.admits(own[:, [i]], where[:, i], rows) for i in range(where.shape[1])
        ]
        # Who does nothing stays; who holds a number that no action may reach holds it there.
        kept = held & (held.all(1, keepdim=True) | ~torch.cat(inside, 1))
        return torch.where(kept, own, snapped(problem, rows, sets, wanted[:, None])[:, 0])

    def _plan(
        self,
        problem: SearchProblem,
        search: Search,
        evidence: Evidence | None,
        starts: Tensor | None,
    ) -> Proposal:
        found = self.find(problem, search, starts=starts)
        if evidence is None:
            least, at = found.cost.min(1)
            sets = torch.where(least.isfinite(), at, -1)
            values = found.values[torch.arange(len(problem)), at]
            return self._completed(problem, search, found, sets, values)
        if search.min_confidence:
            problem = replace(problem, redraws=self.redraws)
        known = [found.successes]
        if search.prefer_alone or search.max_reliance < 1.0:
            known.append(self._alone(problem, search, found).successes)
        choice, notes = choose(problem, self.grids, known, search, evidence)
        proposal = self._completed(problem, search, found, choice.sets, choice.values)
        return replace(proposal, notes=notes)

    def _alone(self, problem: SearchProblem, search: Search, found: Incumbents) -> Incumbents:
        """What succeeds without any indirect change, and costs little more than what was found."""
        still = replace(problem, decoder=self.still.decoder, v=problem.v[..., :0], seen_pairs=None)
        limit = None
        if search.max_reliance == 1.0:
            limit = found.cost.amin(1) * (1.0 + search.prefer_alone)
        return self.still.find(still, replace(search, solver="line"), limit=limit)

    def decoded(
        self,
        problem: SearchProblem,
        rows: Tensor,
        sets: Tensor,
        values: Tensor,
        reasons: Sequence[str],
    ) -> Proposal:
        """The plan of m actions.

        Args:
            problem: the n people.
            rows: (m,) who acts.
            sets: (m,) the set acted on, -1 where nothing is done.
            values: (m, w) the new values of its features.
            reasons: (m,) why there is nothing better.
        """
        acting, x = sets >= 0, problem.x[rows]
        which = sets.clamp_min(0)
        moved, reached = problem.decode_actions(rows, which, values[:, None])
        wanted = problem.feasible.rounded(x, moved, rows)
        here = x[:, None]
        lost = self.encoder.distance(wanted, here) - self.encoder.distance(reached, here)
        direct = self.sets.masks[which] & acting[:, None]
        indirect = torch.where(direct, 0.0, lost[:, 0].clamp_min(0.0))
        return Proposal(
            torch.where(acting[:, None], reached[:, 0], x),
            direct,
            torch.where(acting, indirect.sum(1), 0.0),
            reasons,
        )

    def _completed(
        self,
        problem: SearchProblem,
        search: Search,
        found: Incumbents,
        sets: Tensor,
        values: Tensor,
    ) -> Proposal:
        """Rows without a success get their nearest miss, and say what was tried."""
        failed = sets < 0
        values = torch.where(failed[:, None], found.tried_values, values)
        labels, single = self.sets.labels, self.sets.single
        reasons = [""] * len(sets)
        for i in failed.nonzero()[:, 0].tolist():
            which, may = int(found.tried_set[i]), problem.actionable[i]
            alone, together = int((may & single).sum()), int((may & ~single).sum())
            reasons[i] = (
                "nothing admissible to act on"
                if which < 0
                else f"{unreached(alone, together, search.largest_set)};"
                f" acting on {labels[which]} comes closest"
            )
        everyone, chosen = torch.arange(len(sets)), torch.where(failed, found.tried_set, sets)
        return self.decoded(problem, everyone, chosen, values, reasons)


def _outliving(proposal: Proposal) -> Proposal:
    """A plan whose tensors can be differentiated, though made in inference mode."""
    own = {name: getattr(proposal, name).clone() for name in ("rows", "direct", "suppressed")}
    return replace(proposal, **own)
