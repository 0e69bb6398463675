"""The search for the smallest change of x_S that reaches the target, for all rows and sets."""

from __future__ import annotations

from dear_plugin.search.credibility import Decoded, confidence, reliance
from dear_plugin.search.criteria import RowCriteria, criteria
from dear_plugin.search.problem import SearchProblem
from dear_plugin.search.ranks import Ranked
from dear_plugin.search.search import Answers
from dear_plugin.search.settings import DescentSchedule, Search
from dear_plugin.search.values import FeatureValues

__all__ = [
    "Answers",
    "Decoded",
    "DescentSchedule",
    "FeatureValues",
    "Ranked",
    "RowCriteria",
    "Search",
    "SearchProblem",
    "confidence",
    "criteria",
    "reliance",
]
