"""Semi-synthetic loan applications from published structural equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dear_plugin.datasets.dataset import Dataset
from dear_plugin.errors import InputError

_Draws = NDArray[np.float64]


@dataclass(frozen=True)
class _Unit:
    """The unit of a published variable z: shift + scale * z, rounded."""

    shift: float
    scale: float
    decimals: int
    unit: str

    def shown(self, z: _Draws) -> NDArray[np.float64] | NDArray[np.int64]:
        """The column of a published variable."""
        shown: _Draws = np.round(self.shift + self.scale * z, self.decimals)
        return shown if self.decimals else shown.astype(np.int64)

    def read(self, shown: _Draws) -> _Draws:
        """The published variable of a column."""
        return (shown - self.shift) / self.scale


_UNITS: Mapping[str, _Unit] = {
    "age": _Unit(42.5, 0.7, 0, "years"),
    "education": _Unit(12.0, 16.0, 0, "years of schooling"),
    "loan_amount": _Unit(30.0, 0.5, 2, "thousand euros"),
    "duration": _Unit(60.0, 1.0, 0, "months"),
    "income": _Unit(36.0, 3.0, 2, "thousand euros a year"),
    "savings": _Unit(30.0, 1.0, 2, "thousand euros"),
}

LABELS: Mapping[str, str] = {
    "gender": "the gender",
    "age": "the age",
    "education": "the education",
    "loan_amount": "the loan",
    "duration": "the term",
    "income": "the income",
    "savings": "the savings",
}

# An education at an end of its range would have infinite noise.
EDGE = 1e-9
# No feature has a cause in its own or a later tier, by the equations below.
TIERS = (("gender", "age"), ("education",), ("loan_amount", "income"), ("duration", "savings"))


def load_loan(n: int = 10_000, seed: int = 0) -> Dataset:
    r"""Draw loan applications from the system of Karimi et al. (2020).

    The structural equations and noises are the published ones, constant for constant (normal
    distributions by mean and variance, the gamma by shape and scale):

    .. math::
        G &\sim \mathrm{Bernoulli}(0.5) \\
        A &= -35 + U_A, & U_A &\sim \mathrm{Gamma}(10, 3.5) \\
        E &= -0.5 + \sigma(-1 + 0.5 G + \sigma(0.1 A) + U_E), & U_E &\sim N(0, 0.25) \\
        L &= 1 + 0.01 (A - 5)(5 - A) + G + U_L, & U_L &\sim N(0, 4) \\
        D &= -1 + 0.1 A + 2 G + L + U_D, & U_D &\sim N(0, 9) \\
        I &= -4 + 0.1 (A + 35) + 2 G + G E + U_I, & U_I &\sim N(0, 4) \\
        S &= -4 + 1.5 \cdot 1_{I > 0} I + U_S, & U_S &\sim N(0, 25) \\
        Y &\sim \mathrm{Bernoulli}(\sigma(0.3 (-L - D + I + S + I S)))

    These variables are centred near zero. An affine map converts each to a readable unit, and then
    it is rounded. The label is drawn from the unrounded values:

    ============ ==================== ============================ =========
    column       shown as             unit                         rounded to
    ============ ==================== ============================ =========
    gender       G = 1 as "male"      "female" or "male"
    age          18 + 0.7 (A + 35)    years                        1
    education    12 + 16 E            years of schooling (4 to 20) 1
    loan_amount  30 + 0.5 L           thousand euros               0.01
    duration     60 + D               months                       1
    income       36 + 3 I             thousand euros a year        0.01
    savings      30 + S               thousand euros               0.01
    approved     Y                    1 = approved
    ============ ==================== ============================ =========

    Every applicant is 18 or older. Amounts are positive, except in about one row in a million.
    Savings depend only on income above 36 thousand. The labels of gender are an assumption. 52 %
    of the rows are approved.

    `Dataset.tiers` follows from the equations: no feature has a cause in its own or a later tier.

    True values, such as conditional means, can be estimated from `load_loan(1_000_000, seed)`.

    Args:
        n: the number of rows.
        seed: the seed; global generators are not used.

    Returns:
        A `Dataset` with 7 features, target `approved`.

    Raises:
        InputError: n is below 1.

    Example:
        >>> load_loan(500).frame.shape
        (500, 8)

    References:
        A.-H. Karimi, J. von Kügelgen, B. Schölkopf, I. Valera: Algorithmic recourse under
        imperfect causal knowledge: a probabilistic approach. NeurIPS 2020, appendix.
        https://arxiv.org/abs/2006.06831
    """
    if n < 1:
        raise InputError(f"n must be a positive number of rows, got {n!r}")
    return Dataset(
        name="loan",
        frame=solve(noises(n, np.random.default_rng(seed))),
        target="approved",
        immutable=("gender",),
        # The label depends on I S: if both are low, a model approves a lower income, which no
        # answer should recommend.
        increasing=("age", "education", "income", "savings"),
        act_on=("education", "loan_amount", "duration", "income", "savings"),
        tiers=TIERS,
        protected=("gender",),
        labels=LABELS,
        units={name: unit.unit for name, unit in _UNITS.items()},
        description="One row is one simulated loan application; approved = 1.",
        source="Karimi et al., NeurIPS 2020, https://arxiv.org/abs/2006.06831",
    )


def noises(n: int, rng: np.random.Generator) -> dict[str, _Draws]:
    """The noise of each variable and of the label, (n,), by the name of its column."""
    return {
        "gender": rng.integers(0, 2, n).astype(np.float64),
        "age": rng.gamma(10, 3.5, n),
        "education": rng.normal(0, np.sqrt(0.25), n),
        "loan_amount": rng.normal(0, np.sqrt(4), n),
        "duration": rng.normal(0, np.sqrt(9), n),
        "income": rng.normal(0, np.sqrt(4), n),
        "savings": rng.normal(0, np.sqrt(25), n),
        "approved": rng.random(n),
    }


# The published equations, in the published scale: a variable from earlier ones and its noise.
EQUATIONS: Mapping[str, Callable[[Mapping[str, _Draws], _Draws], _Draws]] = {
    "gender": lambda x, u: u,
    "age": lambda x, u: -35 + u,
    "education": lambda x, u: (
        -0.5 + _sigmoid(-1 + 0.5 * x["gender"] + _sigmoid(0.1 * x["age"]) + u)
    ),
    "loan_amount": lambda x, u: 1 + 0.01 * (x["age"] - 5) * (5 - x["age"]) + x["gender"] + u,
    "duration": lambda x, u: -1 + 0.1 * x["age"] + 2 * x["gender"] + x["loan_amount"] + u,
    "income": lambda x, u: (
        -4 + 0.1 * (x["age"] + 35) + 2 * x["gender"] + x["gender"] * x["education"] + u
    ),
    "savings": lambda x, u: -4 + 1.5 * np.maximum(x["income"], 0) + u,
    "approved": lambda x, u: (u < _sigmoid(0.3 * _balance(x))).astype(np.float64),
}


def _balance(x: Mapping[str, _Draws]) -> _Draws:
    """The score of the label without its factor."""
    i, s = x["income"], x["savings"]
    return -x["loan_amount"] - x["duration"] + i + s + i * s


def solve(noise: Mapping[str, _Draws], fixed: Mapping[str, _Draws] | None = None) -> pd.DataFrame:
    """The rows of a noise; an intervention may fix some columns, in user units."""
    given, x = fixed or {}, dict[str, _Draws]()
    for name, equation in EQUATIONS.items():
        x[name] = _UNITS[name].read(given[name]) if name in given else equation(x, noise[name])
    return _show(x).assign(**given)


def noise_of(frame: pd.DataFrame) -> dict[str, _Draws]:
    """The noise with which `solve` returns the given rows; that of the label is 0.

    Rounded values have the noise of their rounded equations.

    Args:
        frame: n rows with all features, in user units.
    """
    x = {name: unit.read(frame[name].to_numpy(np.float64)) for name, unit in _UNITS.items()}
    x["gender"] = (frame["gender"] == "male").to_numpy(np.float64)
    zero = np.zeros(len(frame))
    # All noise is additive, except that of education.
    noise = {name: x[name] - EQUATIONS[name](x, zero) for name in x}
    share = np.clip(x["education"] + 0.5, EDGE, 1.0 - EDGE)
    mean = -1 + 0.5 * x["gender"] + _sigmoid(0.1 * x["age"])
    return {**noise, "education": np.log(share / (1.0 - share)) - mean, "approved": zero}


def _show(drawn: Mapping[str, _Draws]) -> pd.DataFrame:
    gender = pd.Series(np.where(drawn["gender"] == 1, "male", "female"), dtype=object)
    numbers = {name: unit.shown(drawn[name]) for name, unit in _UNITS.items()}
    return pd.DataFrame(
        {"gender": gender, **numbers, "approved": drawn["approved"].astype(np.int64)}
    )


def _sigmoid(z: _Draws) -> _Draws:
    # The tanh form: exp(-z) overflows in the tail of the label's score (i * s reaches hundreds).
    half: _Draws = 0.5 + 0.5 * np.tanh(0.5 * z)
    return half
