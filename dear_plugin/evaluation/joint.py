"""Joint: the AUC of a classifier between generated and real rows."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

FOLDS = 3
# The number of bins of the trees. Finer ones would single out values that a decoder has tabulated
# and repeats, the more reliably the more rows there are.
LEVELS = 64
FEWEST = 10


def disjoint_moves(
    sources: Tensor, allowed: Tensor, rng: np.random.Generator, most: int
) -> tuple[Tensor, Tensor]:
    """Sets and moves, (k,) each, in random order, in which no row is used twice.

    A row is used as the source of a move or as its destination, whose x_S it takes. Copies of a
    row in a training and a test fold would be recognised, whatever the quality of the decoder.

    Args:
        sources: (s, m) the row that is moved; move i goes to the x_S of row `i % n`.
        allowed: (n,) bool, the rows that may be used.
        rng: of the order.
        most: the maximum number of moves.
    """
    to = torch.arange(sources.shape[1]) % len(allowed)
    pairs = (allowed[sources] & allowed[to] & (sources != to)).nonzero()
    pairs = pairs[torch.from_numpy(rng.permutation(len(pairs)))]
    moved, destinations = sources[pairs[:, 0], pairs[:, 1]].tolist(), to[pairs[:, 1]].tolist()
    used: set[int] = set()
    chosen: list[int] = []
    for i, (source, destination) in enumerate(zip(moved, destinations, strict=True)):
        if len(chosen) == most:
            break
        if source not in used and destination not in used:
            used |= {source, destination}
            chosen.append(i)
    return pairs[chosen, 0], pairs[chosen, 1]


def auc(real: Tensor, generated: Tensor, seed: int) -> float:
    """The cross-validated AUC of boosted trees; NaN with fewer than `FEWEST` rows in a sample.

    Args:
        real: (n, d) one sample.
        generated: (m, d) the other one.
        seed: of the classifier.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict

    if min(len(real), len(generated)) < FEWEST:
        return float("nan")
    x = torch.cat([real, generated]).numpy()
    y = np.repeat([0, 1], [len(real), len(generated)])
    trees = HistGradientBoostingClassifier(max_iter=50, max_bins=LEVELS, random_state=seed)
    probabilities = cross_val_predict(trees, x, y, cv=FOLDS, method="predict_proba")[:, 1]
    return float(roc_auc_score(y, probabilities))
