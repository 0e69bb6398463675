"""Arguments of DiCE's other methods, which say how these search and mean nothing to DEAR."""

from __future__ import annotations

import logging
from collections.abc import Iterable

import dear_plugin

logger = logging.getLogger("dear_dice")

# What "random", "genetic", "kdtree" and "gradient" take besides what all methods take.
OF_OTHERS = frozenset(
    {
        "algorithm",
        "categorical_penalty",
        "diversity_loss_type",
        "diversity_weight",
        "feature_weights",
        "features_weights",
        "init_near_query_instance",
        "initialization",
        "learning_rate",
        "limit_steps_ls",
        "loss_converge_maxiter",
        "loss_diff_thres",
        "max_iter",
        "maxiterations",
        "min_iter",
        "optimizer",
        "project_iter",
        "proximity_weight",
        "sample_size",
        "sparsity_weight",
        "thresh",
        "tie_random",
        "yloss_type",
    }
)


def without_effect(given: Iterable[str], own: Iterable[str]) -> None:
    """Name arguments of other methods in the log, and refuse those of none.

    Args:
        given: the names of arguments that DEAR does not take.
        own: those that it takes.

    Raises:
        ArgumentError: an argument that no method takes; it is a `TypeError`.
    """
    names = list(given)
    strange = [name for name in names if name not in OF_OTHERS]
    if strange:
        raise dear_plugin.errors.ArgumentError(
            dear_plugin.errors.unknown("arguments", strange, [*own, *sorted(OF_OTHERS)])
        )
    if names:
        logger.warning("method 'dear' takes no account of %s: other methods do", ", ".join(names))
