"""RecourseMethod: the base class of all methods; a frame in, recourses out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import pandas as pd
import torch
from torch import Tensor

from dear_plugin import _html
from dear_plugin._validation.settings import one_of, require_instance
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Schema
from dear_plugin.errors import NotFittedError
from dear_plugin.evaluation.trained import Trained
from dear_plugin.methods.parameters import Parameters
from dear_plugin.methods.writing import SLACKS, result_of, settle, write
from dear_plugin.models.classifier import Classifier, Output
from dear_plugin.problem.case import Case
from dear_plugin.problem.constraints import Constraints, feasible_set
from dear_plugin.problem.target import Label, Target, goal_of
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.recourses import Recourses
from dear_plugin.results.spread import Spread
from dear_plugin.results.unreadable import with_unreadable
from dear_plugin.search import Search

__all__ = ["SLACKS", "Case", "RecourseMethod"]

Compute = Callable[[Case, pd.DataFrame, Tensor, Tensor], Recourses]


class RecourseMethod(Parameters, ABC):
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
        >>> from dear_plugin.baselines import GrowingSpheres
        >>> issubclass(GrowingSpheres, RecourseMethod)
        True
    """

    follows_margin: ClassVar[bool] = True
    # Its criteria are those of its answers, if it has any.
    search: Search = Search.cheapest()

    def __init__(
        self,
        model: Any,
        schema: Schema,
        *,
        output: Output | None = None,
        encode: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        require_instance("schema", schema, Schema)
        self.schema = schema
        self.encoder = Encoder(schema)
        self.classifier = Classifier(model, self.encoder, output=output, encode=encode)
        self._trained: Trained | None = None
        self._params = {"model": model, "schema": schema, "output": output, "encode": encode}

    def __repr__(self) -> str:
        """The features, the model, and how many rows it is fitted on."""
        known = self._trained
        fitted = "not fitted" if known is None else f"fitted on {len(known.rows):,} rows"
        model = type(self.classifier.model).__name__
        return f"{type(self).__name__}({', '.join([*self._repr_parts, f'model {model}', fitted])})"

    def _repr_html_(self) -> str:
        """The method and its features, for notebooks."""
        return _html.note(repr(self)) + self.schema._repr_html_()

    def fit(self, frame: pd.DataFrame) -> Self:
        """Fit on training rows; a fit that fails or is interrupted changes nothing.

        Args:
            frame: n rows with the schema's features, in user units.

        Raises:
            InputError: rows that do not fit the schema.
        """
        return self._fit_rows(self.encoder.rows(frame))

    def _fit_rows(self, rows: Tensor) -> Self:
        """As `fit`, on rows, (n, p)."""
        trained = Trained(rows, self.classifier)
        self._learn(rows)
        self._trained = trained
        return self

    def generate(
        self,
        frame: pd.DataFrame,
        target: Target | Label | None = None,
        *,
        within: Constraints | None = None,
        on_error: Literal["report", "raise"] = "report",
    ) -> Recourses:
        """Recourse for n rows; an accepted row is returned unchanged.

        Args:
            frame: any frame with the schema's features; no rows give an empty result.
            target: the wanted decision: a `Target`, or the label of a class; None is class 1. A
                model that names its classes must then have classes 0 and 1 (or False and True).
            within: constraints of this call only.
            on_error: "report" returns a row that cannot be read, such as one with an unknown
                category, unchanged, with success False and the reason; "raise" raises an error.

        Raises:
            NotFittedError: `fit` was not called.
            InputError, TargetError, ConstraintError: an argument does not fit the schema.
            ModelError: the model returns no scores.
        """
        return self._over_readable(self._recourses, frame, target, within, on_error)

    def _over_readable(
        self,
        compute: Compute,
        frame: pd.DataFrame,
        target: Target | Label | None,
        within: Constraints | None,
        on_error: str,
    ) -> Recourses:
        """The result of n rows; those that cannot be read are returned unchanged.

        `compute` returns the result of m readable rows from their case, their frame, its scores
        and (m,) their positions among all rows.
        """
        trained = self.trained
        one_of("report", "raise")("on_error", on_error)
        x, reasons = self.encoder.readable_rows(frame)
        if reasons and on_error == "raise":
            self.encoder.rows(frame)
        x, at = x.to(trained.rows.dtype), torch.arange(len(x))
        if within is not None:
            require_instance("within", within, Constraints)
        feasible = feasible_set(within, x, self.encoder, self.encoder.units.resolutions(frame))
        goal = goal_of(target, len(x), self.classifier.classes, self.classifier.output)
        # A copy: the caller may change the frame later.
        part = frame = frame.copy()
        if reasons:
            at = torch.tensor([i for i in at.tolist() if i not in reasons], dtype=torch.int64)
            x, goal, feasible = x[at], goal.select(at), feasible.select(at)
            part = frame.iloc[at.numpy()]
        before = self.classifier.frame_scores(part, x)
        goal = goal.bind(before, lambda: trained.cutoffs)
        case = Case(x, goal, feasible, SLACKS[0], torch.arange(len(x)))
        result = compute(case, part, before, at)
        return with_unreadable(result, frame, reasons) if reasons else result

    def _recourses(self, case: Case, frame: pd.DataFrame, before: Tensor, at: Tensor) -> Recourses:
        accepted = case.goal.succeeds(before, lambda: self.classifier.decisions(frame))
        return result_of(self, case, frame, before, settle(self, case, frame, before, accepted))

    def _result_of(
        self, case: Case, frame: pd.DataFrame, proposal: Proposal, before: Tensor
    ) -> Recourses:
        """The result of a proposal for all rows, each of them scored again."""
        written = write(self, case, frame, proposal, case.rows)
        return result_of(self, case, frame, before, written)

    @abstractmethod
    def _learn(self, rows: Tensor) -> None:
        """Fit on training rows, (n, p); what is learned is assigned last, in one statement."""

    @abstractmethod
    def _propose(self, case: Case) -> Proposal:
        """Propose for m rejected rows; proposals must lie within `case.feasible`."""

    def _alternatives(self, case: Case, k: int) -> Sequence[Proposal]:
        """Up to k proposals for all m rows, cheapest first; by default that of `_propose`."""
        return [self._propose(case)]

    def _flip_probabilities(
        self, case: Case, proposal: Proposal, position: int
    ) -> Mapping[str, tuple[float, float]]:
        """Probabilities of binary features that do not flip; none by default."""
        return {}

    def _shares_of_actions(self, case: Case, proposal: Proposal) -> Mapping[str, Tensor]:
        """(m,) the criteria that depend on the decoder, by name; 1 for those that are left out."""
        return {}

    def _spread(self, case: Case, proposal: Proposal) -> Spread:
        """How far redraws of the decoder agree on answers; by default there is none."""
        none = case.x[:, None][:, :0]
        return Spread.of(case.x, proposal.rows, none, self.encoder.is_number)

    @property
    def _repr_parts(self) -> Sequence[str]:
        """The parts of `repr` besides the model and the rows."""
        return [f"{len(self.schema)} features"]

    @property
    def _criteria(self) -> Search:
        """The criteria of a credible answer: those of the search, or the defaults."""
        return self.search if self.search.has_criteria else Search()

    @property
    def trained(self) -> Trained:
        """The training rows, and what answers are compared with.

        Raises:
            NotFittedError: `fit` was not called.
        """
        if self._trained is None:
            raise NotFittedError(f"{type(self).__name__} is not fitted; call fit(frame) first")
        return self._trained
