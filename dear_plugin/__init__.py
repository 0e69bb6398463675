"""DEAR: which feature to act on, by how much, and what else is expected to move along with it."""

from __future__ import annotations

from dear_plugin._version import __version__
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Feature, Kind, Schema
from dear_plugin.decoders import Autoencoder, Decoder, Design, History, Training, Transport
from dear_plugin.evaluation.report import Report
from dear_plugin.methods import options as options  # the hosts read it
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.dear import DEAR
from dear_plugin.models.eval_mode import evaluating
from dear_plugin.models.output_kind import logits_of
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.target import Target
from dear_plugin.results.recourses import Recourses
from dear_plugin.search import Search

__all__ = [
    "DEAR",
    "ActionSets",
    "Autoencoder",
    "Constraints",
    "Decoder",
    "Design",
    "Encoder",
    "Feature",
    "History",
    "Kind",
    "RecourseMethod",
    "Recourses",
    "Report",
    "Schema",
    "Search",
    "Target",
    "Training",
    "Transport",
    "__version__",
    "evaluating",
    "logits_of",
]
