"""Replication: whether an action still succeeds with a decoder fitted on other rows."""

from __future__ import annotations

from dear_plugin.benchmark.metrics.decision import Floats, solved, where
from dear_plugin.methods.dear import DEAR
from dear_plugin.results.recourses import Recourses


def replicated(answers: Recourses, other: DEAR) -> Floats:
    """(n,) 1 where an answer succeeds with another fit, 0 where it does not.

    The same actions are applied to the same rows, and decoded by a method that was fitted on other
    rows. Its mean is an estimate without the optimism of the search, as a test error is of a
    model. Without sampling error it is 1.

    Args:
        answers: of a method that was fitted on one half of the rows.
        other: the same method, fitted on the other half, with the same model.
    """
    applied = other.apply(answers.factuals, answers.direct)
    return where(solved(answers), applied.actions["success"])
