"""Search: the smallest change of x_S that reaches the target, for all rows and sets at once."""

from __future__ import annotations

from dear_plugin.search.candidates import Grids
from dear_plugin.search.credibility import Actions, Evidence, confidence, reliance
from dear_plugin.search.criteria import criteria
from dear_plugin.search.gradient import gradient_search
from dear_plugin.search.group import group_search, start_search
from dear_plugin.search.incumbent import Found
from dear_plugin.search.line import line_search
from dear_plugin.search.problem import Answer, Question, Search
from dear_plugin.search.vetting import Candidates, Choice, choose, lacking, tighten, vet

__all__ = [
    "Actions",
    "Answer",
    "Candidates",
    "Choice",
    "Evidence",
    "Found",
    "Grids",
    "Question",
    "Search",
    "choose",
    "confidence",
    "criteria",
    "gradient_search",
    "group_search",
    "lacking",
    "line_search",
    "reliance",
    "start_search",
    "tighten",
    "vet",
]
