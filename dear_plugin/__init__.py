"""DEAR: which feature to act on, by how much, and what else is expected to move along with it."""

from __future__ import annotations

from dear_plugin import options as options  # the hosts read it
from dear_plugin._version import __version__
from dear_plugin.actions import ActionSets
from dear_plugin.constraints import Constraints
from dear_plugin.dear import DEAR
from dear_plugin.decoders import Autoencoder, Decoder, Design, History, Training, Transport
from dear_plugin.diagnostics import Report
from dear_plugin.encoding import Encoder
from dear_plugin.ending import logits_of
from dear_plugin.evaluation import evaluating
from dear_plugin.method import RecourseMethod
from dear_plugin.recourses import Recourses
from dear_plugin.schema import Feature, Kind, Schema
from dear_plugin.search import Search
from dear_plugin.target import Target

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
