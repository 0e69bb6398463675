"""Systems with known effects that were written after the estimates were final.

They have the form of those of `traits`, and lines of their own in tables.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dear_plugin.benchmark.systems import Equation, Values, itself

AFTERWARDS_COLUMNS = "afterwards"


def _flag(x: Mapping[str, Values], u: Values) -> Values:
    return 1.0 * (u > 0.2)


START: Mapping[str, Equation] = {"h": itself, "x": lambda x, u: 0.6 * x["h"] + u}
AFTERWARDS: Mapping[str, Mapping[str, Equation]] = {
    "a dose that turns": {
        **START,
        "y": lambda x, u: 0.5 * x["h"] - 0.3 * (x["x"] - 1) ** 2 + 0.8 * u,
    },
    "effect by two groups and a number": {
        "h": itself,
        "g": _flag,
        "k": _flag,
        "x": lambda x, u: 0.5 * x["h"] + 0.5 * x["g"] + u,
        "y": lambda x, u: (0.3 + 0.8 * x["g"] - 0.6 * x["k"] + 0.2 * x["h"]) * x["x"] + u,
    },
    "skewed noise": {**START, "y": lambda x, u: 0.6 * x["x"] + 0.5 * x["h"] + np.exp(0.7 * u)},
    "a floor": {**START, "y": lambda x, u: np.floor(np.exp(0.4 + 0.35 * x["x"] + 0.5 * u))},
    "missing and counted": {
        "hidden": itself,
        **START,
        "y": lambda x, u: np.where(
            x["hidden"] > 1.2 - 0.4 * x["x"],
            np.nan,
            np.floor(np.exp(0.8 + 0.3 * x["x"] + 0.4 * u)),
        ),
    },
    "three stages": {
        **START,
        "m": lambda x, u: 0.7 * x["x"] + 0.6 * u,
        "n": lambda x, u: 1.0 * (x["m"] + 0.7 * u > 0.2),
        "y": lambda x, u: 1.2 * x["n"] + 0.4 * x["m"] + 0.5 * x["h"] + 0.7 * u,
    },
    "saturation by group": {
        "g": _flag,
        "h": itself,
        "x": lambda x, u: 0.5 * x["h"] + u,
        "y": lambda x, u: (0.5 + 1.5 * x["g"]) * np.tanh(x["x"]) + 0.5 * x["h"] + u,
    },
    "held and missing by group": {
        "hidden": itself,
        "g": _flag,
        "h": lambda x, u: np.where(u > 1, np.nan, x["hidden"]),
        "x": lambda x, u: 0.6 * x["hidden"] + u,
        "y": lambda x, u: (0.2 + 0.7 * x["g"]) * x["x"] + 0.7 * x["hidden"] + u,
    },
    "spread that grows": {
        **START,
        "y": lambda x, u: 0.5 * x["x"] + 0.4 * x["h"] + 0.7 * np.exp(0.3 * x["x"]) * u,
    },
    "whole numbers": {**START, "y": lambda x, u: np.round(1.1 * x["x"] + 0.6 * x["h"] + u)},
}
