"""RecourseMethod: the contract of every method, DEAR and its rivals alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import pandas as pd
import torch
from torch import Tensor

from dear_plugin.classifier import Classifier, Output
from dear_plugin.constraints import Constraints, limits
from dear_plugin.costs import split
from dear_plugin.encoding import Encoder
from dear_plugin.errors import NotFittedError, TargetError
from dear_plugin.lazy import lazy
from dear_plugin.limits import Limits
from dear_plugin.memory import keep_room
from dear_plugin.plan import Plan, standstill
from dear_plugin.recourses import Hooks, Recourses
from dear_plugin.schema import Schema
from dear_plugin.support import Support
from dear_plugin.target import Goal, Target

# How far past the decision boundary a proposal aims; each retry aims farther.
SLACKS = (1e-4, 1e-3, 1e-1)


@dataclass(frozen=True)
class Case:
    """m rows that need recourse, as a method sees them.

    Attributes:
        x: (m, p) the factual rows.
        goal: their targets.
        limits: their admissible changes.
        slack: how far past the boundary to aim.
        rows: (m,) their positions in the frame that was asked about.
    """

    x: Tensor
    goal: Goal
    limits: Limits
    slack: float
    rows: Tensor

    def __len__(self) -> int:
        """How many rows (m)."""
        return len(self.x)

    def select(self, rows: Tensor) -> Case:
        """Some of the rows."""
        return replace(
            self,
            x=self.x[rows],
            goal=self.goal.select(rows),
            limits=self.limits.select(rows),
            rows=self.rows[rows],
        )


class RecourseMethod(ABC):
    """Frame in, `Recourses` out.

    A method owes two hooks: `_learn(rows)` and `_propose(case)`. Everything that must hold for
    all methods is done here, once: checking, constraints, rounding, scoring the rows that the
    user sees through the user's own model, and keeping every row.

    Args:
        model: a torch module on the encoded tensor, an object with `predict_proba` on frames, or
            a callable from a frame to probabilities.
        schema: the features.
        output: "logits" (default for modules), "probabilities" (default for black boxes) or
            "values" (regression).
        encode: for modules on a host's encoding, a differentiable map from ours.
    """

    def __init__(
        self,
        model: Any,
        schema: Schema,
        *,
        output: Output | None = None,
        encode: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        self.schema = schema
        self.encoder = Encoder(schema)
        self.classifier = Classifier(model, self.encoder, output=output, encode=encode)
        self._rows: Tensor | None = None

    def fit(self, frame: pd.DataFrame) -> Self:
        """Learn from training rows; a fit that fails or is interrupted changes nothing.

        Args:
            frame: n rows with the schema's features, in user units.

        Raises:
            InputError: rows that do not fit the schema.
        """
        rows, before = self.encoder.rows(frame), dict(self.__dict__)
        keep_room()
        try:
            self._learn(rows)
            self._rows = rows
            self.__dict__.pop("_support", None)
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def generate(
        self,
        frame: pd.DataFrame,
        target: Target | None = None,
        *,
        within: Constraints | None = None,
    ) -> Recourses:
        """Recourse for n rows; an already accepted row comes back as itself.

        Args:
            frame: any frame with the schema's features.
            target: what the model should say; None is class 1 (the second of two named classes).
            within: what holds for this call only.

        Raises:
            NotFittedError: `fit` was not called.
            InputError, TargetError, ConstraintError: what came does not fit the schema.
            ModelError: the model's answer is no score.
        """
        fitted = self._fitted_rows
        keep_room()
        x = self.encoder.rows(frame).to(fitted.dtype)
        box = limits(within, x, self.encoder, self.encoder.units.grains(frame))
        # What is told later is told of the people who were asked about, whatever becomes of them.
        frame = frame.copy()
        before = self.classifier.frame_scores(frame, x)
        goal = self._goal(target, len(x)).from_here(before)
        case = Case(x, goal, box, SLACKS[0], torch.arange(len(x)))
        accepted = goal.accepts(before)
        plan, frame_after, scores = self._settle(case, frame, before, accepted)
        return self._result(case, frame, plan, frame_after, (before, scores))

    @abstractmethod
    def _learn(self, rows: Tensor) -> None:
        """Learn from training rows, (n, p)."""

    @abstractmethod
    def _propose(self, case: Case) -> Plan:
        """Propose for m refused rows; proposals must lie within `case.limits`."""

    def _alternatives(self, case: Case, k: int) -> Sequence[Plan]:
        """Up to k plans over all m rows, cheapest first; without an override, the one there is."""
        return [self._propose(case)]

    def _shares(self, case: Case, plan: Plan, position: int) -> Mapping[str, tuple[float, float]]:
        """Expected probabilities of binary features that do not flip; none by default."""
        return {}

    @property
    def _fitted_rows(self) -> Tensor:
        """(n, p) the training rows."""
        if self._rows is None:
            raise NotFittedError(f"{type(self).__name__} is not fitted; call fit(frame) first")
        return self._rows

    @lazy
    def _support(self) -> Support:
        return Support(self._fitted_rows, self.classifier)

    def _goal(self, target: Target | None, n: int) -> Goal:
        classes, output = self.classifier.classes, self.classifier.output
        wanted = Target.of_class(_class_one(classes)) if target is None else target
        if not isinstance(wanted, Target):
            raise TargetError(
                f"target must be a Target, {wanted!r} came: a class is Target.of_class({wanted!r})"
            )
        if wanted.is_range != (output == "values"):
            raise TargetError(
                "Target.of_range is for models with output='values', Target.of_class (the default)"
                f" for all others; {wanted} came with output={output!r}"
            )
        return wanted.resolve(n, classes)

    def _settle(
        self, case: Case, frame: pd.DataFrame, before: Tensor, done: Tensor
    ) -> tuple[Plan, pd.DataFrame, Tensor]:
        """Propose, write, and score what the user will see; aim farther where that fails."""
        plan, scores = standstill(case.x, done), before
        if bool(done.all()):
            return plan, frame.copy(), before
        for slack in SLACKS:
            todo = (~done).nonzero()[:, 0]
            # Rows of its own: what a method does with them is its own affair.
            part = replace(case, x=case.x.clone()) if len(todo) == len(case) else case.select(todo)
            plan = plan.merged(self._propose(replace(part, slack=slack)), todo)
            written, after, told = _written(self, case, frame, plan, todo)
            # Only what the search believed in is worth another try.
            done = done.index_copy(0, todo, case.goal.accepts(told, todo) | plan.failed[todo])
            scores = scores.index_copy(0, todo, told)
            if bool(done.all()):
                break
        return written, after, scores

    def _result(
        self,
        case: Case,
        frame: pd.DataFrame,
        plan: Plan,
        after: pd.DataFrame,
        scores: tuple[Tensor, Tensor],
    ) -> Recourses:
        success = case.goal.accepts(scores[1])
        direct, indirect = split(self.encoder, case.x, plan.rows, plan.direct)
        columns: dict[str, Any] = {
            "success": success.numpy(),
            "reason": plan.said(success),
            "acted_on": plan.acted_on(case.x, self.schema.names),
            "direct_cost": direct.double().numpy(),
            "indirect_cost": indirect.double().numpy(),
            "cost": (direct + indirect).double().numpy(),
            "suppressed_cost": plan.suppressed.double().numpy(),
            "score_before": case.goal.score(scores[0]).double().numpy(),
            "score_after": case.goal.score(scores[1]).double().numpy(),
        }
        if plan.kinds:
            columns["kind"] = list(plan.kinds)
        actions = pd.DataFrame(columns, index=frame.index)
        return Recourses(
            frame, after, actions, self.encoder, case.x, plan, self._hooks(case, frame, plan)
        )

    def _hooks(self, case: Case, frame: pd.DataFrame, plan: Plan) -> Hooks:
        return Hooks(
            _SupportOf(self, case), _AlternativesOf(self, case, frame), _SharesOf(self, case, plan)
        )


@dataclass(frozen=True)
class _SupportOf:
    """The support of a result's rows, asked for later; picklable, as a closure is not."""

    method: RecourseMethod
    case: Case

    def __call__(self, reached: Tensor, rows: Tensor) -> Tensor:
        return self.method._support.of(reached, self.case.goal.select(rows))


@dataclass(frozen=True)
class _AlternativesOf:
    """The alternatives to a result's rows, asked for later."""

    method: RecourseMethod
    case: Case
    frame: pd.DataFrame

    def __call__(self, k: int) -> Iterator[Recourses]:
        method, case = self.method, self.case
        before = method.classifier.frame_scores(self.frame)
        accepted = case.goal.accepts(before)
        for plan in method._alternatives(case, k):
            kept = plan.sparing(case.x, accepted)
            written, after, scores = _written(method, case, self.frame, kept, case.rows)
            # One at a time: k results of many wide rows would not fit into memory together.
            yield method._result(case, self.frame, written, after, (before, scores))


@dataclass(frozen=True)
class _SharesOf:
    """The expected probabilities beside a result's rows, asked for later."""

    method: RecourseMethod
    case: Case
    plan: Plan

    def __call__(self, position: int) -> Mapping[str, tuple[float, float]]:
        return self.method._shares(self.case, self.plan, position)


def _written(
    method: RecourseMethod, case: Case, frame: pd.DataFrame, plan: Plan, rows: Tensor
) -> tuple[Plan, pd.DataFrame, Tensor]:
    """The plan as the user's frame can hold it, that frame, and the scores of some rows, (m,)."""
    after, seen = method.encoder.patch(frame, case.x, plan.rows, case.limits.ends)
    # The model is asked again about nobody who stays as they were.
    asked = (after, seen) if len(rows) == len(case) else (after.iloc[rows.numpy()], seen[rows])
    return replace(plan, rows=seen), after, method.classifier.frame_scores(*asked)


def _class_one(classes: Sequence[Hashable] | None) -> Hashable:
    """Class 1, or the second of two named classes."""
    if classes is None or 1 in classes:
        return 1
    if len(classes) != 2:
        raise TargetError(f"which of the classes {list(classes)} is wanted? say target=")
    return classes[-1]
