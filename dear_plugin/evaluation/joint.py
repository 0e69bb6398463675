"""Judged: how well a classifier tells generated rows from real ones."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

FOLDS = 3
# The levels of a column that trees tell apart: single values are not the question. One that was
# tabulated recurs in generated rows and would give them away, and the more rows, the surer.
LEVELS = 64
FEWEST = 10


def once(
    people: Tensor, kept: Tensor, rng: np.random.Generator, most: int
) -> tuple[Tensor, Tensor]:
    """(k,) sets and (k,) moves in random order: no row is in two, as a person or as their x_S.

    Two copies of a person, one in a fold that a classifier learns from and one in a fold that it
    is asked about, are recognised, and so called generated, whatever became of the rest.

    Args:
        people: (s, m) who was moved; move i goes to the x_S of row `i % n`.
        kept: (n,) bool, the rows that may be used.
        rng: of the order.
        most: how many moves, at most.
    """
    to = torch.arange(people.shape[1]) % len(kept)
    pairs = (kept[people] & kept[to] & (people != to)).nonzero()
    pairs = pairs[torch.from_numpy(rng.permutation(len(pairs)))]
    who, where = people[pairs[:, 0], pairs[:, 1]].tolist(), to[pairs[:, 1]].tolist()
    used: set[int] = set()
    found: list[int] = []
    for i, (person, row) in enumerate(zip(who, where, strict=True)):
        if len(found) == most:
            break
        if person not in used and row not in used:
            used |= {person, row}
            found.append(i)
    return pairs[found, 0], pairs[found, 1]


def auc(real: Tensor, made: Tensor, seed: int) -> float:
    """The cross-validated AUC of boosted trees; NaN where there are fewer than `FEWEST` rows.

    Args:
        real: (n, d) one sample.
        made: (m, d) the other one.
        seed: of the classifier.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict

    if min(len(real), len(made)) < FEWEST:
        return float("nan")
    x, y = torch.cat([real, made]).numpy(), np.repeat([0, 1], [len(real), len(made)])
    judge = HistGradientBoostingClassifier(max_iter=50, max_bins=LEVELS, random_state=seed)
    guess = cross_val_predict(judge, x, y, cv=FOLDS, method="predict_proba")[:, 1]
    return float(roc_auc_score(y, guess))
