"""Copies of a model, trained again on bootstrap samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dear_plugin._validation import is_listed, whole
from dear_plugin.errors import ModelError
from dear_plugin.models.classifier import Classifier, share_of
from dear_plugin.problem.goals import Goal

# The largest number of draws until a bootstrap sample has every class.
DRAWS = 100


def bootstrap_copies(
    model: Any, X: Any, y: Any, *, n: int = 5, seed: int = 0, n_jobs: int | None = None
) -> list[Any]:
    """Copies of a scikit-learn estimator or pipeline, each fitted on a bootstrap sample.

    The copies vary as the model would if it were trained again on other rows of the same
    population. `DEAR(model, schema, copies=bootstrap_copies(model, X, y))` searches for answers
    that they accept. Every `random_state` among the parameters gets a new value.

    Args:
        model: an estimator with `fit` and `get_params`; it is not changed.
        X: (m, p) its training rows, a frame or an array.
        y: (m,) the labels or values.
        n: the number of copies.
        seed: the seed of the samples.
        n_jobs: the number of processes, as in joblib.

    Raises:
        ModelError: the model cannot be cloned, or no sample has every class.

    Example:
        >>> import numpy as np
        >>> from dear_plugin import bootstrap_copies
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = np.arange(40.0)[:, None], np.arange(40) > 20
        >>> copies = bootstrap_copies(LogisticRegression().fit(X, y), X, y, n=3)
        >>> [round(copy.predict_proba([[25.0]])[0, 1], 2) > 0.5 for copy in copies]
        [True, True, True]
    """
    # These imports take as long as the whole package.
    import joblib
    from sklearn.base import clone, is_classifier

    whole(1)("n", n)
    try:
        fresh = [_reseeded(clone(model), seed + i) for i in range(n)]
    except TypeError as error:
        raise ModelError(
            f"{type(model).__name__} cannot be cloned ({error}): train the copies yourself, on"
            " other samples and with other seeds, and pass copies=[...]"
        ) from error
    labels = np.asarray(y) if is_classifier(model) else None
    samples = [_sample(len(X), labels, np.random.default_rng([seed, i])) for i in range(n)]
    fit = joblib.delayed(_fitted)
    pairs = zip(fresh, samples, strict=True)
    return list(joblib.Parallel(n_jobs=n_jobs)(fit(copy, X, y, at) for copy, at in pairs))


def as_classifiers(
    copies: Sequence[Any], of: Classifier, **options: Any
) -> tuple[Classifier, ...]:
    """Copies of a model as classifiers.

    Args:
        copies: the copies.
        of: the model.
        options: the arguments of `Classifier`.

    Raises:
        ModelError: a copy has other classes than the model.
    """
    if not is_listed(copies):
        raise ModelError(f"copies must be a list of models, got a {type(copies).__name__}")
    found = tuple(Classifier(copy, of.encoder, **options) for copy in copies)
    for i, each in enumerate(found):
        own, wanted = ([*(one.classes or ())] for one in (each, of))
        if own and wanted and own != wanted:
            raise ModelError(f"copy {i} has the classes {own}, the model {wanted}")
    return found


def agreement(
    copies: Sequence[Classifier], reached: Tensor, goal: Goal, idx: Tensor, least: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The share of the copies that accept rows; each copy is called once.

    It also returns the shortfall: by how much the margin is too small in the copy that decides
    whether the share `least` is reached, or 0 if it is.

    Args:
        copies: at least one copy of the model.
        reached: (r, p) rows.
        goal: the targets of n rows.
        idx: (r,) or (m, r), the position of the target of each row; results have this shape.
        least: the required share.
    """
    times, at = idx.numel() // max(len(reached), 1), idx.flatten()
    scores = [copy.scores(reached).repeat(times, 1) for copy in copies]
    margins = torch.stack([goal.margin(each, at).float() for each in scores], -1)
    accepted = torch.stack([goal.accepts(each, at) for each in scores], -1)
    share, missing = share_of(margins, accepted, least)
    return share.view(idx.shape), missing.view(idx.shape)


def _sample(
    m: int, labels: npt.NDArray[Any] | None, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """(m,) the positions of a bootstrap sample that has every class."""
    for _ in range(DRAWS):
        at = rng.integers(0, m, m)
        if labels is None or len(np.unique(labels[at])) == len(np.unique(labels)):
            return at
    raise ModelError(f"no bootstrap sample of {m} rows had every class: join rare classes")


def _reseeded(model: Any, seed: int) -> Any:
    """A model with a new seed in each `random_state`."""
    names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    return model.set_params(**dict.fromkeys(names, seed))


def _fitted(model: Any, X: Any, y: Any, at: npt.NDArray[np.int64]) -> Any:
    return model.fit(*(_rows_of(each, at) for each in (X, y)))


def _rows_of(data: Any, at: npt.NDArray[np.int64]) -> Any:
    """The rows of a frame, a series or an array at positions (m,)."""
    return data.iloc[at] if hasattr(data, "iloc") else np.asarray(data)[at]
