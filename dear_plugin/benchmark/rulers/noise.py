"""Noise: are people told that something follows which has nothing to do with their action?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dear_plugin.benchmark.rulers.decision import Truths
from dear_plugin.results.recourses import Recourses

STREAM = 20_261_122
NOISE = ("noise age", "noise number", "noise coin", "noise kind")


def with_noise(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The frame with four more columns that are independent of all others and of each other.

    Whole numbers from 18 to 80, standard normal numbers with two decimals, a fair coin, and four
    kinds of unequal frequency.

    Args:
        frame: n rows.
        seed: of the draw.
    """
    # A stream of its own: the rows may have been drawn with the same seed.
    rng, n = np.random.default_rng([STREAM, seed]), len(frame)
    age = rng.integers(18, 81, n)
    number = rng.normal(0.0, 1.0, n).round(2)
    coin = np.where(rng.random(n) < 0.5, "heads", "tails").astype(object)
    kind = rng.choice(np.array(list("ABCD"), dtype=object), n, p=[0.4, 0.3, 0.2, 0.1])
    return frame.assign(**dict(zip(NOISE, (age, number, coin, kind), strict=True)))


def noise_told(recourses: Recourses, names: tuple[str, ...] = NOISE) -> Truths:
    """(n,) bool: who is told that an independent feature moves, or leans.

    Read off the words themselves, `describe_row`: "noise age is then expected to move from 40 to
    44", or an expected share that shifts. A method that knows what depends on what tells nobody.

    Args:
        recourses: answers or what-ifs about rows with such features, none of them acted on.
        names: these features.
    """
    told = recourses.describe()
    return np.array([any(name in words for name in names) for words in told])
