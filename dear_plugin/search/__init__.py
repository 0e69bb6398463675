"""Search: for each row, the cheapest actions on sets of features that meet all criteria."""

from __future__ import annotations

from dear_plugin.search.credibility import Decoded, by_share
from dear_plugin.search.criteria import RowCriteria, criteria
from dear_plugin.search.problem import SearchProblem
from dear_plugin.search.ranks import Ranked
from dear_plugin.search.search import SearchRun
from dear_plugin.search.settings import DescentSchedule, Search
from dear_plugin.search.values import FeatureValues

__all__ = [
    "Decoded",
    "DescentSchedule",
    "FeatureValues",
    "Ranked",
    "RowCriteria",
    "Search",
    "SearchProblem",
    "SearchRun",
    "by_share",
    "criteria",
]
