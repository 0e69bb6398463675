"""`Subject`: a fitted method and its result, which laws are checked on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.methods.base import RecourseMethod
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.feasible import Reason
from dear_plugin.problem.goals import Label, Target
from dear_plugin.results.recourses import Recourses

Accepts = Callable[[pd.DataFrame], npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class Subject:
    """A fitted method and its answer to a query, which the laws are checked on.

    Attributes:
        method: the fitted method.
        query: m rows, some of them accepted already.
        result: the answer to the query.
        accepts: a function from a frame of m rows to the decisions of the model, (m,) bool.
        target: the wanted decision.
        descends: whether the method follows the gradient of the model.
    """

    method: RecourseMethod
    query: pd.DataFrame
    result: Recourses
    accepts: Accepts
    target: Target | Label | None = None
    descends: bool = False

    @classmethod
    def of(
        cls,
        method: RecourseMethod,
        query: pd.DataFrame,
        accepts: Accepts | None = None,
        target: Target | Label | None = None,
        descends: bool = False,
    ) -> Subject:
        """The subject of a method and a query; for arguments see the attributes.

        Without `accepts`, a row counts as accepted if the method reports it as accepted already.
        """

        def _unchanged(frame: pd.DataFrame) -> npt.NDArray[np.bool_]:
            answer = method.generate(frame, target).actions
            accepted: npt.NDArray[np.bool_] = (answer["reason"] == Reason.ACCEPTED).to_numpy()
            return accepted

        result = method.generate(query, target)
        return cls(method, query, result, accepts or _unchanged, target, descends)

    def generate(self, query: pd.DataFrame, within: Constraints | None = None) -> Recourses:
        """The answer to another query."""
        return self.method.generate(query, self.target, within=within)
