"""Search: the smallest change of x_S that reaches the target, for all rows and sets at once."""

from __future__ import annotations

from dear_plugin.search.found import Found
from dear_plugin.search.gradient import gradient_search
from dear_plugin.search.grids import Grids
from dear_plugin.search.group import group_search, start_search
from dear_plugin.search.line import line_search
from dear_plugin.search.question import Answer, Question, Search
from dear_plugin.search.supported import Choice, supported_search

__all__ = [
    "Answer",
    "Choice",
    "Found",
    "Grids",
    "Question",
    "Search",
    "gradient_search",
    "group_search",
    "line_search",
    "start_search",
    "supported_search",
]
