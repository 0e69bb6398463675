"""Measures of recourses; each states the rows that it averages over.

Sources: Pawelczyk et al. 2021, "CARLA" (success rate, constraint violation, yNN);
the paper's section on evaluation measures (direct and indirect cost).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dear_plugin.evaluation.trained import NEIGHBOURS, Neighbours
from dear_plugin.models.classifier import Classifier
from dear_plugin.results.recourses import Recourses


def success_rate(recourses: Recourses) -> float:
    """The share of all rows whose counterfactual has the target decision of the model."""
    return float(recourses.actions["success"].mean())


def zero_actions(recourses: Recourses) -> float:
    """The share of successes whose action has size zero; NaN without success.

    The decoder's reconstruction of these rows alone is accepted (`Search(solver="paper")`).
    """
    done = recourses.actions["success"].to_numpy(dtype=bool)
    return float(recourses.actions["acted_on"].eq("")[done].mean()) if done.any() else float("nan")


def violations(recourses: Recourses, held: Iterable[str]) -> tuple[float, float]:
    """The share of rows with changes to features that should not change, and the mean count.

    Both are over successful rows.

    Args:
        recourses: the result.
        held: the features that should not change.
    """
    names = list(held)
    done = recourses.actions["success"].to_numpy()
    if not names or not done.any():
        return 0.0, 0.0
    before, after = recourses.factuals[names], recourses.counterfactuals[names]
    changed = (before.astype(object) != after.astype(object)).to_numpy()[done]
    return float(changed.any(1).mean()), float(changed.sum(1).mean())


def ynn(
    recourses: Recourses, everyone: Tensor, classifier: Classifier, k: int = NEIGHBOURS
) -> float:
    """`1 - mean |label(x_cf) - label(neighbour)|` over successful rows; see `neighbours`."""
    shares = neighbours(recourses, everyone, classifier, k)
    return float(np.nanmean(shares)) if np.isfinite(shares).any() else float("nan")


def neighbours(
    recourses: Recourses, everyone: Tensor, classifier: Classifier, k: int = NEIGHBOURS
) -> npt.NDArray[np.float64]:
    """(n,) the share of each counterfactual's neighbours with its label; NaN without success.

    Neighbours are the k nearest of all data, Euclidean on encoded columns, labelled by the model.
    An identical row does not count as its own neighbour.

    Args:
        recourses: the result, with two classes.
        everyone: (m, p) all rows, training and test.
        classifier: the model.
        k: the number of neighbours.
    """
    done = recourses.actions["success"].to_numpy(dtype=bool)
    shares = np.full(len(done), np.nan)
    if not done.any():
        return shares
    reached = recourses.proposal.rows[torch.tensor(done)]
    distances, near = Neighbours(everyone, classifier.encoder).query(reached, k + 1)
    # Drop the nearest if it is the row itself, else the farthest.
    identical = distances[:, :1] == 0.0
    near = torch.where(identical, near[:, 1:], near[:, :-1])
    labels, own = _labels(classifier, everyone), _labels(classifier, reached)
    shares[done] = 1.0 - (labels[near] - own[:, None]).abs().mean(1).numpy()
    return shares


def _labels(classifier: Classifier, rows: Tensor) -> Tensor:
    """(m,) the score columns of the predicted classes."""
    frame = classifier.encoder.frame(rows)
    return classifier.decided(frame, classifier.frame_scores(frame, rows)).float()
