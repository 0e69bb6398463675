"""Importances: the shares of counterfactuals that act on each feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from dear_dice.results import Examples, Explanations


def of_actions(plain: Any) -> Any:
    """DiCE's explanations with the importances of actions, if all examples are DEAR's.

    Args:
        plain: explanations with DiCE's importances, which count every changed feature.
    """
    examples = plain.cf_examples_list
    if not all(isinstance(example, Examples) for example in examples):
        return plain
    local, summary = _shares(examples)
    return Explanations(
        examples,
        None if plain.local_importance is None else local,
        None if plain.summary_importance is None else summary,
    )


def _shares(examples: Sequence[Examples]) -> tuple[list[dict[str, float]], dict[str, float]]:
    """The shares per row, and over all rows."""
    tables = [example.acted.astype(float) for example in examples]
    local, summary = (
        [table.mean().fillna(0.0).to_dict() for table in each]
        for each in (tables, [pd.concat(tables)])
    )
    return local, summary[0]
