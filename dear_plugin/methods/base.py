"""RecourseMethod: the base class of all methods; a frame in, recourses out."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Literal, Self

import pandas as pd
import torch
from torch import Tensor

from dear_plugin._progress import fitting
from dear_plugin._progress import progress as showing
from dear_plugin._threads import one_thread
from dear_plugin._validation.settings import Named, jobs
from dear_plugin.decoders import Decoders
from dear_plugin.evaluation.trained import Trained
from dear_plugin.methods.calls import question_of
from dear_plugin.methods.estimator import Estimator
from dear_plugin.models.checks import check_estimator
from dear_plugin.problem.case import Case
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.target import Label, Target
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.question import Attempt
from dear_plugin.results.recourses import Recourses
from dear_plugin.results.writing import settled

__all__ = ["Case", "RecourseMethod"]


class RecourseMethod(Named, Estimator, ABC):
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

    @one_thread()
    def generate(
        self,
        frame: pd.DataFrame,
        target: Target | Label | None = None,
        *,
        within: Constraints | None = None,
        on_error: Literal["report", "raise"] = "report",
        n_jobs: int = 1,
        progress: bool = True,
    ) -> Recourses:
        """Recourse for n rows; an accepted row is returned unchanged.

        Args:
            frame: any frame with the schema's features; no rows give an empty result.
            target: the wanted decision: a `Target`, or the label of a class; None is class 1. A
                model that names its classes must then have classes 0 and 1 (or False and True).
            within: constraints of this call only.
            on_error: "report" returns a row that cannot be read unchanged, with success False and
                the reason; "raise" raises an error. A category that no training row has cannot
                be read where it may be acted on; elsewhere it is kept, and passed to the model.
            n_jobs: the number of threads that search the rows, and later alternatives of them;
                -1 for all cores. The answers are the same. Each of them calls the model, and ends
                its rows after an error in another one. Wrapped explainers search in one.
            progress: see `fit`.

        Raises:
            NotFittedError: `fit` was not called.
            InputError, TargetError, ConstraintError: an argument does not fit the schema.
            ModelError: the model returns no scores.
        """
        question = question_of(self, frame, target, within, on_error=on_error, n_jobs=n_jobs)
        with showing(progress):
            return Recourses.of(next(settled(question)))

    @one_thread()
    def ways(
        self,
        frame: pd.DataFrame,
        target: Target | Label | None = None,
        *,
        within: Constraints | None = None,
        k: int = 4,
        on_error: Literal["report", "raise"] = "report",
        n_jobs: int = 1,
        progress: bool = True,
    ) -> list[Recourses]:
        """Up to k results over the same rows: their first answers, their second ones, ...

        As `generate` and then `alternatives`, in one search.

        Args:
            frame: see `generate`.
            target: see `generate`.
            within: see `generate`.
            k: the largest number of results.
            on_error: see `generate`.
            n_jobs: see `generate`.
            progress: see `fit`.

        Raises:
            NotFittedError, InputError, TargetError, ConstraintError, ModelError: see `generate`;
                k is no whole number from 1.
        """
        question = question_of(self, frame, target, within, on_error=on_error, n_jobs=n_jobs)
        with showing(progress):
            return [Recourses.of(each, ranked=True) for each in settled(question, k)]

    @abstractmethod
    def _learn(self, rows: Tensor) -> Decoders | None:
        """Fit on training rows, (n, p); what is learned is assigned last, in one statement.

        Returns:
            The decoders of what follows an action, if there are any.
        """

    @abstractmethod
    def _propose(self, case: Case) -> Proposal:
        """Propose for m rejected rows; proposals must lie within `case.feasible`."""

    def _alternatives(
        self, case: Case, k: int, attempt: Attempt | None = None
    ) -> Sequence[Proposal]:
        """Up to k proposals for all m rows, cheapest first; by default that of `_propose`.

        An attempt holds what a search of the same rows has tried, if the method keeps it.
        """
        return [self._propose(case)]

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
