"""The search: for each row, the cheapest actions that meet all criteria."""

from __future__ import annotations

from dear_plugin.search.problem import SearchProblem
from dear_plugin.search.search import SearchRun
from dear_plugin.search.settings import DescentSchedule, Search

__all__ = ["DescentSchedule", "Search", "SearchProblem", "SearchRun"]
