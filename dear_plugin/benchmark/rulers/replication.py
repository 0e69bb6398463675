"""Replication: is an answer one again when the dependence is learned from other people?"""

from __future__ import annotations

from dear_plugin.benchmark.rulers.decision import Floats, solved, where
from dear_plugin.methods.dear import DEAR
from dear_plugin.results.recourses import Recourses


def replicated(promised: Recourses, other: DEAR) -> Floats:
    """(n,) 1 where an answer is an answer again for another fit, 0 where not.

    The same people take the same actions, and what follows is decoded by a method that learned on
    other rows. The mean is the replication of DESIGN, section 8: to the answers of a search what a
    test set is to a training loss. A decoder without sampling error has 1.

    Args:
        promised: answers of a method that was fitted on one half of the rows.
        other: the same method, fitted on the other half, with the same model.
    """
    again = other.apply(promised.factuals, promised.direct)
    return where(solved(promised), again.actions["success"])
