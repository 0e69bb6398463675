"""Structural equations whose true effects are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.datasets import loan

# The names of tiers in results, and the text between the features of a pair.
WITHOUT, WITH, JOINED = "without tiers", "with tiers", " + "
TAIL = float("inf")
Values = npt.NDArray[np.float64]
Noise = Mapping[str, Values]
Equation = Callable[[Mapping[str, Values], Values], Values]


@dataclass(frozen=True)
class System:
    """Features in the order of their causes, each a function of earlier ones and of its noise.

    Attributes:
        tiers: all features, the earliest first.
        noise: a function that draws the noise of n rows.
        solve: a function from a noise to the features, in user units; an intervention may fix
            some.
        immutable: features that are not acted on.
        acted: the only action set; by default every mutable feature and every pair.
        rows: the largest number of training rows.
        steps: the sizes of actions on a number, in standard deviations; `TAIL` moves it into its
            outer tenth.
    """

    tiers: tuple[tuple[str, ...], ...]
    noise: Callable[[int, np.random.Generator], Noise]
    solve: Callable[[Noise, Mapping[str, pd.Series]], pd.DataFrame]
    immutable: tuple[str, ...] = ()
    acted: tuple[str, ...] = ()
    rows: int = 20_000
    steps: tuple[float, ...] = (0.5,)


@dataclass(frozen=True)
class Equations:
    """Equations on standard normal noise.

    Attributes:
        of: the equations by variable, in the order of causes.
        labels: the labels of categories, whose variables are codes.
        hidden: variables that are in no frame.
        grain: the step to which numbers are rounded, before later variables use them.
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
        codes = (
            column if labels is None else column.map(dict(zip(labels, range(99), strict=False)))
        )
        return np.asarray(codes, dtype=np.float64)

    def _show(self, name: str, values: Values) -> npt.NDArray[np.generic]:
        if name not in self.labels:
            return values
        return np.asarray(self.labels[name], dtype=object)[values.astype(np.int64)]


def itself(x: Mapping[str, Values], u: Values) -> Values:
    """The noise alone."""
    return u


def of_codes(codes: Values, *values: float) -> Values:
    """The value of each code."""
    return np.asarray(values, dtype=np.float64)[codes.astype(np.int64)]


def levels(values: Values, *ends: float) -> Values:
    """The code of the interval of each value."""
    return np.asarray(np.digitize(values, ends), dtype=np.float64)


WORK = Equations(
    {
        "region": lambda x, u: levels(u, 0.2),
        "school": lambda x, u: levels(0.6 * x["region"] + u, -0.4, 0.8),
        "hours": lambda x, u: 36 + 2 * x["region"] + of_codes(x["school"], 0, 1, 4) + 5 * u,
        "wage": lambda x, u: (
            10 + 3 * x["region"] + of_codes(x["school"], 0, 2, 6) + 0.3 * x["hours"] + 5 * u
        ),
        "housing": lambda x, u: levels(0.6 * x["region"] + 0.08 * (x["wage"] - 25) + u, 0.3),
    },
    {
        "region": ("north", "south"),
        "school": ("basic", "middle", "high"),
        "housing": ("owned", "rented"),
    },
)
HEALTH = Equations(
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
HIDDEN = Equations(
    {
        "talent": itself,
        "school": lambda x, u: 12 + 1.5 * x["talent"] + 1.5 * u,
        "wage": lambda x, u: 20 + 0.8 * (x["school"] - 12) + 3 * x["talent"] + 3 * u,
        "savings": lambda x, u: 5 + 0.9 * x["wage"] + 4 * u,
    },
    hidden=("talent",),
)


def _loan(noise: Noise, fixed: Mapping[str, pd.Series]) -> pd.DataFrame:
    """The loan data without their label."""
    return loan.solve(noise, fixed).drop(columns="approved")


def _system(equations: Equations, *tiers: tuple[str, ...]) -> System:
    return System(tiers, equations.noise, equations.solve)


SYSTEMS: Mapping[str, System] = {
    "loan": System(loan.TIERS, loan.noises, _loan, immutable=("gender",)),
    "work": _system(WORK, ("region",), ("school",), ("hours",), ("wage",), ("housing",)),
    "health": _system(
        HEALTH, ("age",), ("exercise", "salt"), ("weight",), ("pressure", "glucose"), ("costs",)
    ),
    "hidden cause": _system(HIDDEN, ("school",), ("wage",), ("savings",)),
}
