"""Noise: whether answers report changes of features that are independent of all others."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dear_plugin.benchmark.metrics.decision import Truths
from dear_plugin.results.recourses import Recourses

STREAM = 20_261_122
NOISE = ("noise age", "noise number", "noise coin", "noise kind")


def with_noise(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The frame with four more columns, independent of all others and of each other.

    Whole numbers from 18 to 80, standard normal numbers with two decimals, a fair coin, and four
    categories of unequal frequency.

    Args:
        frame: n rows.
        seed: of the draw.
    """
    # A separate stream: the rows may have been drawn with the same seed.
    rng, n = np.random.default_rng([STREAM, seed]), len(frame)
    age = rng.integers(18, 81, n)
    number = rng.normal(0.0, 1.0, n).round(2)
    coin = np.where(rng.random(n) < 0.5, "heads", "tails").astype(object)
    kind = rng.choice(np.array(list("ABCD"), dtype=object), n, p=[0.4, 0.3, 0.2, 0.1])
    return frame.assign(**dict(zip(NOISE, (age, number, coin, kind), strict=True)))


def noise_reported(recourses: Recourses, names: tuple[str, ...] = NOISE) -> Truths:
    """(n,) bool, whether an answer reports a change of an independent feature.

    It is a change of the row, or of a probability that the text of `describe_row` names. The ideal
    is False for all rows.

    Args:
        recourses: answers or what-ifs of rows with such features, none of them acted on.
        names: the independent features.
    """
    moves = recourses.changed[:, list(recourses.encoder.schema.index(names))].any(1).numpy()
    texts = recourses.describe()
    told: Truths = moves | np.array([any(name in text for name in names) for text in texts])
    return told
