"""Coupling: categories whose probabilities change; as few rows as possible change theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# The place of a row among those of the same category, without a random draw.
MIDDLE = 0.5
# A probability is 0 below `TINY`, and a tie is at the middle within `NEAR` of it.
TINY, NEAR = 1e-9, 1e-6


def maximal_coupling(shares: Array, here: Array, there: Array, code: Array, tie: Array) -> Array:
    """(l,) categories by the maximal coupling: a row keeps its own, or takes one that gains.

    A category is kept if the tie is at most the ratio of its probabilities, after to before.

    Args:
        shares: (u, t) the probability of each category in each of u distributions.
        here: (l,) the rows' own distributions.
        there: (l,) the distributions after the change.
        code: (l,) the rows' own categories.
        tie: (l,) the place among rows of the same category; the middle gives the category with
            the largest increase.
    """
    out, middle = code.copy(), np.abs(tie - MIDDLE) < NEAR
    kept = (shares[there, code] + TINY) / (shares[here, code] + TINY)
    # Otherwise rounding would decide for a tie at the middle when a probability exactly halves.
    row = (kept < np.where(middle, MIDDLE - NEAR, tie)).nonzero()[0]
    gain, kept = np.maximum(shares[there[row]] - shares[here[row]], 0.0), kept[row]
    drawn = (tie[row] - kept) / np.maximum(1.0 - kept, TINY)
    cumulative = gain.cumsum(1) / np.maximum(gain.sum(1, keepdims=True), TINY)
    random = np.minimum((cumulative < drawn[:, None]).sum(1), gain.shape[1] - 1)
    out[row] = np.where(middle[row], gain.argmax(1), random)
    return out
