"""Rulers: what answers are worth, measured by what no search optimises.

Plain functions on frames, results and fitted methods. Each says what its numbers mean; where a row
has no answer they are NaN. Indirect changes are associations in the data, not causal effects.
"""

from dear_plugin.benchmark.rulers.decision import Accepts, decision
from dear_plugin.benchmark.rulers.intervals import Estimate, estimate, paired
from dear_plugin.benchmark.rulers.neighbourhood import Neighbourhood
from dear_plugin.benchmark.rulers.noise import noise_told, with_noise
from dear_plugin.benchmark.rulers.pairs import Pairs
from dear_plugin.benchmark.rulers.reliance import alone, reliance
from dear_plugin.benchmark.rulers.replication import replicated
from dear_plugin.benchmark.rulers.robustness import invalidated, still_accepted

__all__ = [
    "Accepts",
    "Estimate",
    "Neighbourhood",
    "Pairs",
    "alone",
    "decision",
    "estimate",
    "invalidated",
    "noise_told",
    "paired",
    "reliance",
    "replicated",
    "still_accepted",
    "with_noise",
]
