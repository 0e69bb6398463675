"""Search: for each row, the cheapest actions on sets of features that meet all criteria."""

from __future__ import annotations

from dear_plugin.search.asking import answered, together
from dear_plugin.search.credibility import Decoded, by_share
from dear_plugin.search.criteria import RowCriteria, criteria
from dear_plugin.search.problem import SearchProblem
from dear_plugin.search.search import SearchRun
from dear_plugin.search.settings import DescentSchedule, Search
from dear_plugin.search.values import FeatureValues

__all__ = [
    "Decoded",
    "DescentSchedule",
    "FeatureValues",
    "RowCriteria",
    "Search",
    "SearchProblem",
    "SearchRun",
    "answered",
    "by_share",
    "criteria",
    "together",
]
