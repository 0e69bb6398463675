"""Systems: structural equations whose true effects are known; rows and interventions out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtr
from scipy.stats import poisson

from dear_plugin.datasets import loan

# How results name tiers, and the features of a pair.
WITHOUT, WITH, JOINED = "without tiers", "with tiers", " + "
Values = npt.NDArray[np.float64]
Noise = Mapping[str, Values]
Equation = Callable[[Mapping[str, Values], Values], Values]


@dataclass(frozen=True)
class System:
    """Features in the order of their causes, each a function of earlier ones and of its noise.

    Attributes:
        tiers: all features, the earliest first.
        noise: draws the noise of n rows.
        solve: the features of a noise, of which an intervention fixes some, in user units; the
            same noise gives the same rows with and without it.
        immutable: features that are not acted on.
        acted: the only features acted on; by default every mutable one, and every pair of them.
        rows: the largest number of training rows.
        step: the size of an action on a number, in standard deviations.
    """

    tiers: tuple[tuple[str, ...], ...]
    noise: Callable[[int, np.random.Generator], Noise]
    solve: Callable[[Noise, Mapping[str, pd.Series]], pd.DataFrame]
    immutable: tuple[str, ...] = ()
    acted: tuple[str, ...] = ()
    rows: int = 20_000
    step: float = 0.5


@dataclass(frozen=True)
class _Equations:
    """Equations on standard normal noise.

    Attributes:
        of: by variable, in the order of causes.
        labels: of categories, whose variables are codes.
        hidden: variables that no frame has.
        grain: numbers are rounded to its multiples; later variables follow from the rounded ones.
    """

    of: Mapping[str, Equation]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    grain: float = 0.01

    def noise(self, n: int, rng: np.random.Generator) -> Noise:
        """The noise of n rows."""
        return {name: rng.normal(size=n) for name in self.of}

    def solve(self, noise: Noise, fixed: Mapping[str, pd.Series]) -> pd.DataFrame:
        """The features of a noise."""
        x: dict[str, Values] = {}
        for name, equation in self.of.items():
            if name in fixed:
                x[name] = self._read(fixed[name])
            else:
                x[name] = np.round(np.round(equation(x, noise[name]) / self.grain) * self.grain, 4)
        return pd.DataFrame({n: self._show(n, v) for n, v in x.items() if n not in self.hidden})

    def _read(self, column: pd.Series) -> Values:
        labels = self.labels.get(str(column.name))
        codes = column if labels is None else column.map(dict(zip(labels, range(9), strict=False)))
        return np.asarray(codes, dtype=np.float64)

    def _show(self, name: str, values: Values) -> npt.NDArray[np.generic]:
        if name not in self.labels:
            return values
        return np.asarray(self.labels[name], dtype=object)[values.astype(np.int64)]


def _of(codes: Values, *values: float) -> Values:
    """The value of each code."""
    return np.asarray(values, dtype=np.float64)[codes.astype(np.int64)]


def _levels(values: Values, *ends: float) -> Values:
    """The code of the interval of each value."""
    return np.asarray(np.digitize(values, ends), dtype=np.float64)


WORK = _Equations(
    {
        "region": lambda x, u: _levels(u, 0.2),
        "school": lambda x, u: _levels(0.6 * x["region"] + u, -0.4, 0.8),
        "hours": lambda x, u: 36 + 2 * x["region"] + _of(x["school"], 0, 1, 4) + 5 * u,
        "wage": lambda x, u: (
            10 + 3 * x["region"] + _of(x["school"], 0, 2, 6) + 0.3 * x["hours"] + 5 * u
        ),
        "housing": lambda x, u: _levels(0.6 * x["region"] + 0.08 * (x["wage"] - 25) + u, 0.3),
    },
    {
        "region": ("north", "south"),
        "school": ("basic", "middle", "high"),
        "housing": ("owned", "rented"),
    },
)
HEALTH = _Equations(
    {
        "age": lambda x, u: 50 + 12 * u,
        "exercise": lambda x, u: 4.0 * np.exp(0.4 * u - 0.012 * (x["age"] - 50)),
        "salt": lambda x, u: 9 + 2 * np.tanh((x["age"] - 50) / 15) + 2 * u,
        "weight": lambda x, u: (
            78 + 0.15 * (x["age"] - 50) - 9 * np.tanh((x["exercise"] - 4) / 3) + 8 * u
        ),
        "pressure": lambda x, u: (
            118
            + 0.01 * (x["age"] - 30) ** 2
            + 1.2 * x["salt"]
            + 0.012 * (x["weight"] - 50) ** 2
            + 8 * u
        ),
        "glucose": lambda x, u: 90 + 8 * np.log1p(np.exp((x["weight"] - 80) / 6)) + 7 * u,
        "costs": lambda x, u: (
            2.0 * np.exp(0.012 * (x["pressure"] - 140) + 0.015 * (x["glucose"] - 100) + 0.3 * u)
        ),
    }
)
# Talent, which no frame has, is a cause of both schooling and wage.
HIDDEN = _Equations(
    {
        "talent": lambda x, u: u,
        "school": lambda x, u: 12 + 1.5 * x["talent"] + 1.5 * u,
        "wage": lambda x, u: 20 + 0.8 * (x["school"] - 12) + 3 * x["talent"] + 3 * u,
        "savings": lambda x, u: 5 + 0.9 * x["wage"] + 4 * u,
    },
    hidden=("talent",),
)


def _loan(noise: Noise, fixed: Mapping[str, pd.Series]) -> pd.DataFrame:
    """The loan data without their label."""
    return loan.solve(noise, fixed).drop(columns="approved")


def _system(equations: _Equations, *tiers: tuple[str, ...]) -> System:
    return System(tiers, equations.noise, equations.solve)


SYSTEMS: Mapping[str, System] = {
    "loan": System(loan.TIERS, loan.noises, _loan, immutable=("gender",)),
    "work": _system(WORK, ("region",), ("school",), ("hours",), ("wage",), ("housing",)),
    "health": _system(
        HEALTH, ("age",), ("exercise", "salt"), ("weight",), ("pressure", "glucose"), ("costs",)
    ),
    "hidden cause": _system(HIDDEN, ("school",), ("wage",), ("savings",)),
}


def _noise(x: Mapping[str, Values], u: Values) -> Values:
    return u


def _group(x: Mapping[str, Values], u: Values) -> Values:
    """Half of the rows 1, the others 0."""
    return (u > 0.0).astype(np.float64)


def _count(rate: Values, u: Values) -> Values:
    """The value of a Poisson distribution at the rank of a normal one."""
    return np.asarray(poisson.ppf(ndtr(u), rate), dtype=np.float64)


MANY = [f"h{i}" for i in range(10)]
LINEAR: Mapping[str, Equation] = {
    "h": _noise,
    "x": lambda x, u: 0.7 * x["h"] + u,
    "y": lambda x, u: 0.6 * x["x"] + 0.7 * x["h"] + u,
}
# What precedes x is immutable, x is acted on, the others may follow.
TRAITS: Mapping[str, Mapping[str, Equation]] = {
    "linear": LINEAR,
    "few rows": LINEAR,
    "spread by group": {
        "g": _group,
        "x": lambda x, u: 2 * x["g"] + u,
        "y": lambda x, u: 0.5 * x["x"] + _of(x["g"], 1, 0.3) * u,
        "z": lambda x, u: _of(x["g"], 1, 0.3) * u,
    },
    "heavy value": {
        "x": lambda x, u: np.where(np.abs(u) < 0.63, 0, 1.5 * u),
        "y": lambda x, u: 3 * (x["x"] == 0) + u,
    },
    "zero inflation": {
        "h": _noise,
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
        "h": _noise,
        "x": lambda x, u: x["h"] ** 2 + u,
        "y": lambda x, u: 0.5 * x["x"] + x["h"] ** 2 + u,
    },
    "product confounding": {
        "h": _noise,
        "k": _noise,
        "x": lambda x, u: x["h"] * x["k"] + u,
        "y": lambda x, u: 0.5 * x["x"] + x["h"] * x["k"] + u,
    },
    "many held numbers": {
        **dict.fromkeys(MANY, _noise),
        "x": lambda x, u: 0.4 * sum(x[h] for h in MANY) + u,
        "y": lambda x, u: x["x"] + 0.4 * sum(x[h] for h in MANY) + u,
    },
    "effect by group": {
        "g": _group,
        "x": lambda x, u: x["g"] + u,
        "y": lambda x, u: _of(x["g"], -1, 2) * x["x"] + u,
    },
    "effect by number": {
        "h": _noise,
        "x": lambda x, u: 0.5 * x["h"] + u,
        "y": lambda x, u: 0.5 * (1 + x["h"]) * x["x"] + u,
    },
    "threshold": {**LINEAR, "y": lambda x, u: 3 * (x["x"] > 0.5) + 0.7 * x["h"] + u},
    "saturation": {**LINEAR, "y": lambda x, u: 2 * np.tanh(1.5 * x["x"]) + 0.7 * x["h"] + u},
    "counts": {
        "h": _noise,
        "x": lambda x, u: _count(np.exp(1 + 0.3 * x["h"]), u),
        "y": lambda x, u: _count(np.exp(0.5 + 0.15 * x["x"] + 0.3 * x["h"]), u),
    },
    "counts by group": {
        "g": _group,
        "x": lambda x, u: _count(np.exp(1 + 0.3 * x["g"]), u),
        "y": lambda x, u: _count(np.exp(0.5 + 0.2 * x["g"] * x["x"]), u),
    },
    "long tail": {
        "h": _noise,
        "x": lambda x, u: np.exp(0.5 * x["h"] + 0.7 * u),
        "y": lambda x, u: np.maximum(x["x"], 0.01) ** 0.4 * np.exp(0.5 * x["h"] + 0.6 * u),
    },
    "categories": {
        **LINEAR,
        "level": lambda x, u: _levels(0.8 * x["x"] + 0.5 * x["h"] + u, -0.5, 1),
        "b": lambda x, u: (x["x"] - x["h"] + u > 0.5).astype(np.float64),
    },
}
GRAINS = {"smooth": 0.0001, "rounded": 0.2}
LEVELS = {"level": ("low", "middle", "high")}


def _with_trait(trait: str, grain: float) -> System:
    equations, names = TRAITS[trait], list(TRAITS[trait])
    at = names.index("x")
    tiers = tuple(map(tuple, filter(None, (names[:at], ["x"], names[at + 1 :]))))
    drawn = _Equations(equations, LEVELS, grain=grain)
    rows = 300 if trait == "few rows" else 4_000
    return System(tiers, drawn.noise, drawn.solve, tuple(names[:at]), ("x",), rows, step=1.0)


WITH_TRAITS: Mapping[str, System] = {
    f"{trait}, {how}": _with_trait(trait, grain)
    for trait in TRAITS
    for how, grain in GRAINS.items()
}
