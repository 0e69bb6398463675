"""Arguments of DiCE's other methods, which DEAR ignores."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from dear_plugin import errors

logger = logging.getLogger("dear_dice")

# Of "random", "genetic", "kdtree" and "gradient".
_OF_OTHERS = """
    algorithm categorical_penalty diversity_loss_type diversity_weight
    features_weights init_near_query_instance initialization learning_rate limit_steps_ls
    loss_converge_maxiter loss_diff_thres max_iter maxiterations min_iter optimizer project_iter
    proximity_weight random_seed sample_size sparsity_weight thresh tie_random yloss_type
"""
IGNORED = tuple(_OF_OTHERS.split())


def check_ignored(given: Collection[str], own: Iterable[str]) -> None:
    """Log given arguments of DiCE's other methods, and refuse those that are not its `own`."""
    errors.check_arguments(given, [*own, *IGNORED])
    if given:
        logger.warning("method 'dear' ignores %s: only other methods use them", ", ".join(given))
