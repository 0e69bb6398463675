"""`RecourseMethod`, the base class of all methods.

A method learns from rows and proposes for a case. The class reads a call's arguments, and has
what scikit-learn and notebooks need: parameters, a fitted state, texts.
"""

from __future__ import annotations

import copy
import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from functools import cache, partial
from itertools import compress
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from dear_plugin import _html
from dear_plugin._threads import fitting, one_thread
from dear_plugin._threads import progress as showing
from dear_plugin._validation import Named, instance, jobs, one_of, suggesting
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Schema
from dear_plugin.decoders import Decoders, Sample
from dear_plugin.errors import NotFittedError, SettingError, shown
from dear_plugin.evaluation.trained import Trained
from dear_plugin.methods.answering import PAST, Answering, Run
from dear_plugin.models.classifier import (
    Classifier,
    Output,
    check_estimator,
    check_repeats,
)
from dear_plugin.problem.constraints import Constraints, admissible, held_cells
from dear_plugin.problem.feasible import Case
from dear_plugin.problem.goals import Label, Target, goal_of, most_likely
from dear_plugin.problem.rules import Rules
from dear_plugin.results.proposal import Proposal, Question, answers_per_row
from dear_plugin.results.recourses import Recourses
from dear_plugin.search import Search

__all__ = ["Case", "RecourseMethod"]

# A target that depends on what the model says of the rows: scores, (n, c), and classes, (n,).
TargetOf: TypeAlias = Callable[[Tensor, Tensor], Target]


class RecourseMethod(Named, ABC):
    """Frame in, `Recourses` out.

    A subclass implements `_learn(rows)` and `_propose(case)`. The base class does what all
    methods share: it checks the input, applies constraints, rounds, scores the rows of the result
    with the user's own model, and keeps every row.

    `follows_margin` says whether a target farther past the boundary leads to other candidates; it
    is False for methods that go through the same candidates whatever the target.

    Args:
        model: a torch module on the encoded tensor, an object with `predict_proba` on frames, or
            a callable from a frame to probabilities.
        schema: the features.
        output: "logits" (default for modules), "probabilities" (default for black boxes) or
            "values" (regression).
        encode: for modules on a host's encoding, a differentiable map from ours.

    Example:
        >>> from dear_plugin import RecourseMethod
        >>> from dear_plugin.rivals import GrowingSpheres
        >>> issubclass(GrowingSpheres, RecourseMethod)
        True
    """

    follows_margin: ClassVar[bool] = True
    # Whether several threads may search at once.
    in_threads: bool = True
    # The criteria of its answers, if it has any.
    search: Search = Search.cheapest()
    _copies: Sequence[Classifier] = ()

    def __init__(
        self,
        model: Any,
        schema: Schema,
        *,
        output: Output | None = None,
        encode: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        if not isinstance(schema, Schema):
            swapped, fix = isinstance(model, Schema), "Schema.infer(frame) makes one"
            raise SettingError(
                f"schema must be a Schema, got {shown(schema)}:"
                f" {'the model comes first' if swapped else fix}"
            )
        self.schema = schema
        self.encoder = Encoder(schema)
        self.classifier = Classifier(model, self.encoder, output=output, encode=encode)
        self._trained: Trained | None = None
        # Arguments that are not attributes of the same names.
        self._params: dict[str, Any] = {"model": model, "schema": schema}
        self._params |= {"output": output, "encode": encode}

    def __repr__(self) -> str:
        """The features, the model, and how many rows it is fitted on."""
        known = self._trained
        fitted = "not fitted" if known is None else f"fitted on {len(known.rows):,} rows"
        model = type(self.classifier.model).__name__
        return f"{type(self).__name__}({', '.join([*self._repr_parts, f'model {model}', fitted])})"

    def _repr_html_(self) -> str:
        """The method and its features, for notebooks."""
        return _html.note(repr(self)) + self.schema._repr_html_()

    @property
    def _repr_parts(self) -> Sequence[str]:
        """The parts of `repr` besides the model and the rows."""
        return [f"{len(self.schema)} features"]

    @property
    def trained(self) -> Trained:
        """The training rows, and what answers are compared with.

        Raises:
            NotFittedError: `fit` was not called.
        """
        if self._trained is None:
            raise NotFittedError(f"{type(self).__name__} is not fitted; call fit(frame) first")
        return self._trained

    def __sklearn_clone__(self) -> Self:
        """The same method with the same model, not fitted: what `sklearn.base.clone` returns."""
        return type(self)(**self.get_params())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments by name, like those of a scikit-learn estimator.

        A subclass stores its own arguments as attributes of the same names.

        Args:
            deep: has no effect; parameters of the model are not included.
        """
        _, *names = inspect.signature(type(self).__init__).parameters
        known = self._params
        return {name: known[name] if name in known else getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> Self:
        """Set some of the constructor's arguments; the method is not fitted afterwards.

        Args:
            params: by name, as in `get_params`.

        Raises:
            TypeError: a name that the constructor does not have.
        """
        vars(self).update(vars(type(self)(**{**self.get_params(), **params})))
        return self

    @suggesting
    def fit(self, frame: pd.DataFrame, *, n_jobs: int = 1, progress: bool = True) -> Self:
        """Fit on training rows; a fit that fails or is interrupted changes nothing.

        Args:
            frame: n rows with the schema's features, in user units.
            n_jobs: the number of threads that fit the decoders of action sets, if there are any
                that are not trained together; -1 for all cores. What is fitted is the same.
            progress: show a bar of work of more than two seconds, in a terminal or a notebook.

        Raises:
            InputError: rows that do not fit the schema.
            SettingError: `n_jobs` is no number of threads.
        """
        count = jobs("n_jobs", n_jobs)
        self.encoder.check_columns(frame)
        fitted = copy.copy(self)
        with one_thread(), showing(progress), fitting(count):
            fitted._trained = fitted._trained_on(self.encoder.rows(self._converted(frame)))
        vars(self).update(vars(fitted))
        return self

    def _trained_on(self, rows: Tensor) -> Trained:
        """What `fit` makes of rows, (n, p)."""
        check_estimator(self.classifier, rows)
        learned: object = self._learn(rows)  # another author's may return itself
        decoders = learned if isinstance(learned, Decoders) else None
        return Trained(rows, self.classifier, self._copies, decoders)

    def _converted(self, frame: pd.DataFrame) -> pd.DataFrame:
        """A frame, (n, p), in the values of the schema; a host may write them in another way."""
        return frame

    @suggesting
    @one_thread()
    def generate(
        self,
        frame: pd.DataFrame,
        target: Target | Label | TargetOf | None = None,
        *,
        within: Constraints | None = None,
        k: int = 1,
        on_error: Literal["report", "raise"] = "report",
        n_jobs: int = 1,
        progress: bool = True,
    ) -> Recourses:
        """Recourse for n rows; an accepted row is returned unchanged.

        Args:
            frame: any frame with the schema's features; no rows give an empty result.
            target: the wanted decision: a `Target`, or the label of a class; None is class 1. A
                model that names its classes must then have classes 0 and 1 (or False and True).
                A function gets the scores, (n, c), and the numbers of the present classes, (n,),
                of the rows (NaN and 0 of those that cannot be read), and returns a `Target`.
            within: constraints of this call only.
            k: the most answers of a row, which are searched at once: see
                `Recourses.alternatives`. Letters state the first that can be stated.
            on_error: "report" returns a row that cannot be read unchanged, with success False and
                the reason; "raise" raises an error. A category that no training row has cannot
                be read where it may be acted on; elsewhere it is kept, and passed to the model.
            n_jobs: the number of threads that search the rows, and later alternatives of them;
                -1 for all cores. The answers are the same. Each of them calls the model, and ends
                its rows after an error in another one. Wrapped explainers search in one.
            progress: see `fit`.

        Raises:
            NotFittedError: `fit` was not called.
            InputError, TargetError, ConstraintError: an argument does not fit the schema, or k is
                no whole number from 1.
            ModelError: the model returns no scores.
        """
        k, count = answers_per_row(k), jobs("n_jobs", n_jobs)
        question = question_of(self, frame, target, within, on_error=on_error)
        with showing(progress):
            return Answering(self, question, count).recourses(k)

    @abstractmethod
    def _learn(self, rows: Tensor) -> Decoders | None:
        """Fit on training rows, (n, p); what is learned is assigned last, in one statement.

        Returns:
            The decoders of what follows an action, if there are any.
        """

    @abstractmethod
    def _propose(self, case: Case) -> Proposal:
        """Propose for m rejected rows; proposals must lie within `case.feasible`."""

    def _alternatives(self, case: Case, k: int) -> Sequence[Proposal]:
        """Up to k proposals for all m rows, cheapest first; by default that of `_propose`."""
        return [self._propose(case)]

    def _searching(self, case: Case) -> Run:
        """What gives the first k proposals for all m rows, and may continue where it ended."""
        return partial(self._alternatives, case)

    @property
    def _acts(self) -> Tensor:
        """(p,) bool, the features that may be acted on."""
        return torch.tensor([not feature.immutable for feature in self.schema])

    @property
    def settings(self) -> dict[str, Any]:
        """What it was made with, as plain values: what a save and a record keep."""
        return {
            "schema": self.schema.to_dict(),
            "rules": len(self.schema.rules),
            "search": asdict(self.search),
            "output": self.classifier.output,
            "copies": len(self._copies),
        }


logger = logging.getLogger(__name__)


def question_of(
    method: RecourseMethod,
    frame: pd.DataFrame,
    target: Target | Label | TargetOf | None,
    within: Constraints | None,
    *,
    acts: Tensor | None = None,
    on_error: str = "report",
) -> Question:
    """A call: the rows of a frame, their constraints and targets, and the model's scores.

    Args:
        method: a fitted one.
        frame: n rows.
        target: see `RecourseMethod.generate`; so are errors.
        within: see there.
        acts: (n, p) bool, the features that may be acted on; None for those of the method.
        on_error: see there.
    """
    trained = method.trained
    encoder, classifier = method.encoder, trained.classifier
    one_of("report", "raise")("on_error", on_error)
    within = Constraints() if within is None else within
    instance(Constraints)("within", within)
    encoder.check_columns(frame)
    if twice := [*frame.index[frame.index.duplicated()].unique()[:3]]:
        logger.warning("the index has labels of several rows, such as %s: a label is all", twice)
    within = within.for_rows(frame.index)
    target = target.for_rows(frame.index) if isinstance(target, Target) else target
    frame = method._converted(frame)
    frozen, not_acted = held_cells(within, len(frame), encoder.schema)
    acts = method._acts if acts is None else acts
    identifiers = torch.tensor([f.identifier for f in encoder.schema]).expand_as(frozen)
    for fixed in (frozen | not_acted | ~acts, identifiers, torch.zeros_like(frozen)):
        x, bad = encoder.readable_rows(frame, fixed)
        if _scores_new(classifier, frame, x, bad):
            break
    if bad and on_error == "raise":
        encoder.rows(frame, fixed)
    unreadable = np.full(len(x), "", dtype=object)
    unreadable[list(bad)] = list(bad.values())
    at = torch.from_numpy(np.flatnonzero(unreadable == ""))
    _warn_of_new(encoder, x[at])
    x[list(bad)] = 0.0
    rules = None if trained.decoders is None else trained.decoders.sample.shared(_rules)
    feasible = admissible(within, x, encoder, encoder.held(frame), rules)
    # A copy: the caller may change the frame later.
    frame = frame.copy()
    part = frame.iloc[at.numpy()] if bad else frame
    known = classifier.frame_scores(part, x[at])
    check_repeats(classifier, part, x[at], known)
    scores = known.new_full((len(x), known.shape[1]), torch.nan).index_copy(0, at, known)
    decided = cache(lambda: classifier.decisions(part))
    if callable(target):
        now = most_likely(known) if (own := decided()) is None else own
        target = target(scores, torch.zeros(len(x), dtype=now.dtype).index_copy(0, at, now))
    goal = goal_of(target, len(x), classifier.classes, classifier.output)
    goal = goal.bind(scores, lambda: trained.cutoffs)
    accepted = torch.zeros(len(x), dtype=torch.bool)
    accepted[at] = goal.select(at).succeeds(known, decided)
    return Question(
        *(encoder, trained, method.search, method.settings),
        case=Case(x, goal, feasible, goal.aim(PAST[0])),
        frame=frame,
        scores=scores,
        accepted=accepted,
        may_act=acts & ~feasible.limits.not_actionable,
        unreadable=unreadable,
    )


def _rules(sample: Sample) -> Rules:
    return Rules.of(sample.encoder, sample.rows.numpy())


def _scores_new(
    classifier: Classifier, frame: pd.DataFrame, x: Tensor, unreadable: Collection[int]
) -> bool:
    """Whether the model takes the readable rows with categories that no training row has.

    An error that it has with known categories, too, is its own.
    """
    is_new = classifier.encoder.is_new(x)
    at = [i for i in is_new.any(1).nonzero()[:, 0].tolist() if i not in unreadable]
    try:
        classifier.frame_scores(frame.iloc[at], x[at])
    except Exception:  # of the user's model, such as an encoder of known categories alone
        classifier.scores(x[at].masked_fill(is_new[at], 0.0))
        return False
    return True


def _warn_of_new(encoder: Encoder, x: Tensor) -> None:
    """Warn of categories that no training row has, which may be typos; not of identifiers."""
    new = encoder.is_new(x).any(0).tolist()
    if names := [f.name for f in compress(encoder.schema, new) if f.actionable]:
        logger.warning(
            "columns %s have values that no training row has: they are passed to the model as"
            " they are",
            names,
        )
