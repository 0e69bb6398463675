"""Metrics: evaluations of answers by quantities that no search optimises.

Functions of frames, results and fitted methods; NaN for rows without an answer. Indirect changes
are associations in the data; see `Schema.tiers` for more.
"""

from dear_plugin.benchmark.metrics.decision import Accepts, decision
from dear_plugin.benchmark.metrics.neighbourhood import Neighbourhood
from dear_plugin.benchmark.metrics.noise import noise_reported, with_noise
from dear_plugin.benchmark.metrics.pairs import Pairs
from dear_plugin.benchmark.metrics.reliance import alone, reliance
from dear_plugin.benchmark.metrics.replication import replicated
from dear_plugin.benchmark.metrics.robustness import invalidated, still_accepted
from dear_plugin.evaluation.intervals import Estimate, estimate, paired

__all__ = [
    "Accepts",
    "Estimate",
    "Neighbourhood",
    "Pairs",
    "alone",
    "decision",
    "estimate",
    "invalidated",
    "noise_reported",
    "paired",
    "reliance",
    "replicated",
    "still_accepted",
    "with_noise",
]
