"""Systems of one trait each, in which an effect is easily missed or stated wrongly.

Variables before x are immutable and held, x (and x2) is acted on, and later ones may follow.
Variables whose names begin with `hidden` are in no frame.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import ndtr
from scipy.stats import poisson

from dear_plugin.benchmark.systems import (
    TAIL,
    Equation,
    Equations,
    System,
    Values,
    itself,
    levels,
    of_codes,
)


def _group(x: Mapping[str, Values], u: Values) -> Values:
    """A flag that is 1 in half of the rows."""
    return (u > 0.0).astype(np.float64)


def _count(rate: Values, u: Values) -> Values:
    """The value of a Poisson distribution at the rank of a normal one."""
    return np.asarray(poisson.ppf(ndtr(u), rate), dtype=np.float64)


MANY = [f"h{i}" for i in range(10)]
HELD: Mapping[str, Equation] = {"h": itself, "x": lambda x, u: 0.7 * x["h"] + u}
LINEAR: Mapping[str, Equation] = {**HELD, "y": lambda x, u: 0.6 * x["x"] + 0.7 * x["h"] + u}
# x depends less on h; x depends on a group; two groups that x does not depend on; two numbers.
HALF: Mapping[str, Equation] = {"h": itself, "x": lambda x, u: 0.5 * x["h"] + u}
GROUPED: Mapping[str, Equation] = {"g": _group, "x": lambda x, u: x["g"] + u}
CROSSED: Mapping[str, Equation] = {"p": _group, "q": _group, "x": itself}
TWO: Mapping[str, Equation] = {"h": itself, "k": itself}
# Systems that are measured with smooth and with rounded columns.
OLDER: Mapping[str, Mapping[str, Equation]] = {
    "linear": LINEAR,
    "few rows": LINEAR,
    "spread by group": {
        "g": _group,
        "x": lambda x, u: 2 * x["g"] + u,
        "y": lambda x, u: 0.5 * x["x"] + of_codes(x["g"], 1, 0.3) * u,
        "z": lambda x, u: of_codes(x["g"], 1, 0.3) * u,
    },
    "heavy value": {
        "x": lambda x, u: np.where(np.abs(u) < 0.63, 0, 1.5 * u),
        "y": lambda x, u: 3 * (x["x"] == 0) + u,
    },
    "zero inflation": {
        "h": itself,
        "x": lambda x, u: np.maximum(0.7 * x["h"] + u, 0),
        "y": lambda x, u: 0.8 * (x["x"] > 0) + 0.4 * x["x"] + 0.7 * x["h"] + u,
        "z": lambda x, u: np.maximum(0.6 * x["x"] - 0.5 + u, 0),
    },
    "crossed confounding": {
        "p": _group,
        "q": _group,
        "x": lambda x, u: 2 * (x["p"] != x["q"]) + u,
        "y": lambda x, u: 2 * (x["p"] != x["q"]) + u,
    },
    "curved confounding": {
        "h": itself,
        "x": lambda x, u: x["h"] ** 2 + u,
        "y": lambda x, u: 0.5 * x["x"] + x["h"] ** 2 + u,
    },
    "product confounding": {
        **TWO,
        "x": lambda x, u: x["h"] * x["k"] + u,
        "y": lambda x, u: 0.5 * x["x"] + x["h"] * x["k"] + u,
    },
    "many held numbers": {
        **dict.fromkeys(MANY, itself),
        "x": lambda x, u: 0.4 * sum(x[h] for h in MANY) + u,
        "y": lambda x, u: x["x"] + 0.4 * sum(x[h] for h in MANY) + u,
    },
    "effect by group": {**GROUPED, "y": lambda x, u: of_codes(x["g"], -1, 2) * x["x"] + u},
    "effect by number": {**HALF, "y": lambda x, u: 0.5 * (1 + x["h"]) * x["x"] + u},
    "threshold": {**LINEAR, "y": lambda x, u: 3 * (x["x"] > 0.5) + 0.7 * x["h"] + u},
    "saturation": {**LINEAR, "y": lambda x, u: 2 * np.tanh(1.5 * x["x"]) + 0.7 * x["h"] + u},
    "counts": {
        "h": itself,
        "x": lambda x, u: _count(np.exp(1 + 0.3 * x["h"]), u),
        "y": lambda x, u: _count(np.exp(0.5 + 0.15 * x["x"] + 0.3 * x["h"]), u),
    },
    "counts by group": {
        "g": _group,
        "x": lambda x, u: _count(np.exp(1 + 0.3 * x["g"]), u),
        "y": lambda x, u: _count(np.exp(0.5 + 0.2 * x["g"] * x["x"]), u),
    },
    "long tail": {
        "h": itself,
        "x": lambda x, u: np.exp(0.5 * x["h"] + 0.7 * u),
        "y": lambda x, u: np.maximum(x["x"], 0.01) ** 0.4 * np.exp(0.5 * x["h"] + 0.6 * u),
    },
    "categories": {
        **LINEAR,
        "level": lambda x, u: levels(0.8 * x["x"] + 0.5 * x["h"] + u, -0.5, 1),
        "b": lambda x, u: (x["x"] - x["h"] + u > 0.5).astype(np.float64),
    },
}
# The effects of twelve towns.
TOWNS = np.array([1.5, -1.2, 0.8, -0.6, 1.1, -0.9, 0.3, -0.3, 0.7, -1.4, 1.3, -0.8])
# The effects of sixty cities.
CITIES = np.random.default_rng(60).normal(size=60)
# Systems that are measured with smooth columns.
NEWER: Mapping[str, Mapping[str, Equation]] = {
    "effect by crossing": {
        **CROSSED,
        "y": lambda x, u: np.where(x["p"] == x["q"], 1.0, -0.6) * x["x"] + u,
    },
    "effect by crossed numbers": {
        **TWO,
        **HALF,
        "y": lambda x, u: np.where(x["h"] * x["k"] > 0, 1.0, -0.5) * x["x"] + x["h"] + u,
    },
    "effect from a value on": {
        **LINEAR,
        "y": lambda x, u: 1.5 * (x["h"] > 0.7) * x["x"] + 0.7 * x["h"] + u,
    },
    "bend by group": {
        "g": _group,
        **HALF,
        "y": lambda x, u: np.where(x["g"] > 0, 1.0, -0.7) * np.abs(x["x"]) + x["h"] + u,
    },
    "counts of opposite effect": {
        "g": _group,
        **HALF,
        "y": lambda x, u: _count(np.exp(0.6 + np.where(x["g"] > 0, 0.4, -0.4) * x["x"]), u),
    },
    "flag by number": {**LINEAR, "y": lambda x, u: 1.0 * (x["h"] * x["x"] + u > 0.3)},
    "flag by crossing": {
        **CROSSED,
        "y": lambda x, u: 1.0 * (np.where(x["p"] == x["q"], 1.0, -0.6) * x["x"] + u > 0),
    },
    "count by value": {
        **LINEAR,
        "y": lambda x, u: _count(np.exp(0.5 + 0.5 * (x["h"] > 0.5) * x["x"]), u),
    },
    "rarely missing later": {
        "hidden": itself,
        **LINEAR,
        "y": lambda x, u: np.where(x["hidden"] < -0.8 * x["x"] - 0.5, np.nan, 0.9 * x["x"] + u),
    },
    "often missing later": {
        "hidden": itself,
        **LINEAR,
        "y": lambda x, u: np.where(x["hidden"] < 0.8 * x["x"] - 0.5, np.nan, 0.9 * x["x"] + u),
    },
    "many held levels": {
        "c": lambda x, u: levels(u, -2, -1.6, -1.3, -1, -0.7, -0.3, 0.1, 0.6, 1, 1.5, 2),
        "x": lambda x, u: TOWNS[x["c"].astype(int)] + u,
        "y": lambda x, u: 1.0 * (1.3 * TOWNS[x["c"].astype(int)] + u > 0),
        "z": lambda x, u: 0.5 * x["x"] + TOWNS[x["c"].astype(int)] + u,
    },
    "two that multiply": {
        **HALF,
        "x2": lambda x, u: 0.4 * x["x"] + 0.5 * x["h"] + u,
        "y": lambda x, u: 0.7 * x["x"] * x["x2"] + 0.5 * x["h"] + u,
        "z": lambda x, u: _count(np.exp(0.3 + 0.2 * x["x"] + 0.2 * x["x2"]), u),
    },
    "a count of three": {
        **HALF,
        "x2": lambda x, u: 0.4 * x["h"] + u,
        "x3": lambda x, u: 0.3 * x["x"] + u,
        "y": lambda x, u: _count(np.exp(0.4 + 0.2 * (x["h"] + x["x"] + x["x2"] + x["x3"])), u),
    },
    "a count beside sixty levels": {
        "t": lambda x, u: np.floor(60 * ndtr(u)),
        "x": lambda x, u: of_codes(x["t"], *CITIES) + u,
        "y": lambda x, u: _count(np.exp(0.5 + 0.3 * x["x"] + 0.2 * of_codes(x["t"], *CITIES)), u),
    },
    "edge": {**LINEAR, "y": lambda x, u: 3 * np.maximum(x["x"] - 1.8, 0) + 0.7 * x["h"] + u},
    "grades": {
        "h": itself,
        "x": lambda x, u: levels(0.7 * x["h"] + u, -1.5, -0.5, 0.5, 1.9),
        "y": lambda x, u: of_codes(x["x"], 0, 0.1, 0.2, 0.8, 2.5) + 0.7 * x["h"] + u,
    },
    "a flag acts": {
        "h": itself,
        "x": lambda x, u: 1.0 * (x["h"] + u > 0),
        "y": lambda x, u: 0.5 * x["x"] + 0.7 * x["h"] + u,
        "z": lambda x, u: 1.0 * (x["x"] + x["h"] + u > 0.5),
    },
    "a flag acts, few rows": {
        "h": itself,
        "x": lambda x, u: 1.0 * (0.7 * x["h"] + u > 0),
        "y": lambda x, u: 0.5 * x["x"] + 0.7 * x["h"] + u,
    },
    "small effect, few rows": {**LINEAR, "y": lambda x, u: 0.13 * x["x"] + 0.7 * x["h"] + u},
    "small counts": {**LINEAR, "y": lambda x, u: _count(np.exp(0.5 + 0.15 * x["x"]), u)},
    "spread by both": {
        **GROUPED,
        "y": lambda x, u: 0.5 * x["x"] + np.exp(0.4 * x["g"] * x["x"] - 0.2) * u,
    },
    "a count between": {
        **HELD,
        "m": lambda x, u: _count(np.exp(0.5 + 0.4 * x["x"]), u),
        "y": lambda x, u: 0.6 * x["m"] + 0.5 * x["h"] + 0.7 * u,
    },
    "a flag between": {
        **HELD,
        "m": lambda x, u: 1.0 * (x["x"] + u > 0.3),
        "y": lambda x, u: 2.0 * x["m"] + 0.5 * x["h"] + 0.7 * u,
    },
    "held and missing": {
        "hidden": itself,
        "h": lambda x, u: np.where(u > 0.8, np.nan, x["hidden"]),
        "x": lambda x, u: 0.8 * x["hidden"] + u,
        "y": lambda x, u: 0.5 * x["x"] + 0.9 * x["hidden"] + u,
        "z": lambda x, u: 1.0 * (0.4 * x["x"] + 0.9 * x["hidden"] + u > 0),
    },
    "ring": {
        **TWO,
        "x": lambda x, u: 2 * (np.abs(np.hypot(x["h"], x["k"]) - 1.2) < 0.5) + u,
        "y": lambda x, u: 0.5 * x["x"] + (np.abs(np.hypot(x["h"], x["k"]) - 1.2) < 0.5) * 2 + u,
    },
    "capped": {**LINEAR, "y": lambda x, u: np.minimum(0.8 * x["x"] + 0.7 * x["h"] + u, 0.8)},
    "a part of a whole": {**LINEAR, "z": lambda x, u: x["x"] + x["y"]},
    "correlated followers": {
        **LINEAR,
        "z": lambda x, u: 0.8 * x["y"] + 0.3 * x["x"] + 0.3 * u,
        "b": lambda x, u: 1.0 * (x["z"] + 0.5 * u > 0.5),
    },
}
# Systems that were written after the estimates were final; they have lines of their own in tables.
AFTERWARDS_COLUMNS = "afterwards"


def _often(x: Mapping[str, Values], u: Values) -> Values:
    return 1.0 * (u > 0.2)


START: Mapping[str, Equation] = {"h": itself, "x": lambda x, u: 0.6 * x["h"] + u}
AFTERWARDS: Mapping[str, Mapping[str, Equation]] = {
    "a dose that turns": {
        **START,
        "y": lambda x, u: 0.5 * x["h"] - 0.3 * (x["x"] - 1) ** 2 + 0.8 * u,
    },
    "effect by two groups and a number": {
        "h": itself,
        "g": _often,
        "k": _often,
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
        "g": _often,
        "h": itself,
        "x": lambda x, u: 0.5 * x["h"] + u,
        "y": lambda x, u: (0.5 + 1.5 * x["g"]) * np.tanh(x["x"]) + 0.5 * x["h"] + u,
    },
    "held and missing by group": {
        "hidden": itself,
        "g": _often,
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
# Systems whose effects such rows do not identify; they are not in the lines of all traits.
UNKNOWABLE: Mapping[str, Mapping[str, Equation]] = {
    "held with an error": {
        "hidden": itself,
        "h": lambda x, u: x["hidden"] + 0.5 * u,
        "x": lambda x, u: 0.8 * x["hidden"] + u,
        "y": lambda x, u: 0.5 * x["x"] + 0.9 * x["hidden"] + u,
    },
    "two groups": {
        "hidden": _group,
        "h": itself,
        "x": lambda x, u: x["hidden"] + 0.5 * x["h"] + u,
        "y": lambda x, u: np.where(x["hidden"] > 0, 1.2, -0.4) * x["x"] + x["h"] + u,
    },
}
ROWS = {"few rows": 300, "a flag acts, few rows": 300, "small effect, few rows": 500}
GRAINS = {"smooth": 0.0001, "rounded": 0.2}
LEVELS = {
    "level": ("low", "middle", "high"),
    "c": tuple("abcdefghijkl"),
    "t": tuple(f"city {i}" for i in range(60)),
}
# The name of these systems in results.
UNKNOWABLE_COLUMNS = "unknowable"
# The step that sets a flag; other steps are in standard deviations.
FLAG_STEP = 1.2


def _with_trait(trait: str, equations: Mapping[str, Equation], grain: float) -> System:
    hidden = tuple(name for name in equations if name.startswith("hidden"))
    names = [name for name in equations if name not in hidden]
    acted = tuple(name for name in names if name.startswith("x"))
    at, end = names.index(acted[0]), names.index(acted[-1]) + 1
    tiers = tuple(map(tuple, filter(None, (names[:at], acted, names[end:]))))
    drawn = Equations(equations, LEVELS, hidden, grain)
    step = FLAG_STEP if trait.startswith("a flag acts") else 1.0
    rows, held = ROWS.get(trait, 4_000), tuple(names[:at])
    return System(tiers, drawn.noise, drawn.solve, held, acted, rows, (step, TAIL))


WITH_TRAITS: Mapping[str, System] = {
    **{
        f"{trait}, {how}": _with_trait(trait, equations, grain)
        for trait, equations in OLDER.items()
        for how, grain in GRAINS.items()
    },
    **{
        f"{trait.replace(',', '')}, {how}": _with_trait(trait, equations, GRAINS["smooth"])
        for how, group in {
            "as it is": NEWER,
            AFTERWARDS_COLUMNS: AFTERWARDS,
            UNKNOWABLE_COLUMNS: UNKNOWABLE,
        }.items()
        for trait, equations in group.items()
    },
}
