"""Search: the smallest change of x_S that reaches the target, for all rows and sets at once."""

from __future__ import annotations

from dear_plugin.search.candidates import CandidateGrids
from dear_plugin.search.credibility import Actions, Evidence, confidence, reliance
from dear_plugin.search.criteria import criteria
from dear_plugin.search.descent import descent_search
from dear_plugin.search.evaluation import Evaluation
from dear_plugin.search.group import group_search, start_search
from dear_plugin.search.incumbent import Incumbents
from dear_plugin.search.line import line_search
from dear_plugin.search.problem import Search, SearchProblem
from dear_plugin.search.row_criteria import RowCriteria
from dear_plugin.search.schedule import DescentSchedule
from dear_plugin.search.vetting import Choice, RankedCandidates, choose, missing_text, tighten, vet

__all__ = [
    "Actions",
    "CandidateGrids",
    "Choice",
    "DescentSchedule",
    "Evaluation",
    "Evidence",
    "Incumbents",
    "RankedCandidates",
    "RowCriteria",
    "Search",
    "SearchProblem",
    "choose",
    "confidence",
    "criteria",
    "descent_search",
    "group_search",
    "line_search",
    "missing_text",
    "reliance",
    "start_search",
    "tighten",
    "vet",
]
