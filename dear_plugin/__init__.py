"""DEAR: which feature to act on, by how much, and what is expected to change along with it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dear_plugin import errors
from dear_plugin._version import __version__
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.relations import Rule
from dear_plugin.data.schema import Feature, Kind, Schema
from dear_plugin.decoders import Decoder, Transport
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.dear import DEAR
from dear_plugin.models.copies import bootstrap_copies
from dear_plugin.models.foreign import evaluating, isolated, logits_of
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.feasible import Case
from dear_plugin.problem.goals import ClassGoal, RangeGoal, Target, per_row
from dear_plugin.results.proposal import Proposal
from dear_plugin.results.recourses import Recourses
from dear_plugin.search import DescentSchedule, Search

if TYPE_CHECKING:
    from dear_plugin.check.report import Report
    from dear_plugin.paper import Autoencoder, Design, History, Training
    from dear_plugin.rivals import Comparison, Vetted, Wrapped, compare
    from dear_plugin.tell.letter import LetterTemplate

__all__ = [
    "DEAR",
    "ActionSets",
    "Autoencoder",
    "Case",
    "ClassGoal",
    "Comparison",
    "Constraints",
    "Decoder",
    "DescentSchedule",
    "Design",
    "Encoder",
    "Feature",
    "History",
    "Kind",
    "LetterTemplate",
    "Proposal",
    "RangeGoal",
    "RecourseMethod",
    "Recourses",
    "Report",
    "Rule",
    "Schema",
    "Search",
    "Target",
    "Training",
    "Transport",
    "Vetted",
    "Wrapped",
    "__version__",
    "bootstrap_copies",
    "compare",
    "errors",
    "evaluating",
    "isolated",
    "logits_of",
    "per_row",
]

# What lies beside the kernel, by its module: imported at its first use.
_BESIDE = {
    "LetterTemplate": "tell.letter",
    "Report": "check.report",
    **dict.fromkeys(("Autoencoder", "Design", "History", "Training"), "paper"),
    **dict.fromkeys(("Comparison", "Vetted", "Wrapped", "compare"), "rivals"),
}


def __getattr__(name: str) -> Any:
    if name not in _BESIDE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_BESIDE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
