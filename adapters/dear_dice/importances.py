"""The importance of a feature: the share of counterfactuals that act on it."""

from __future__ import annotations

from typing import Any

import pandas as pd
from dice_ml.explainer_interfaces.explainer_base import ExplainerBase

from dear_dice.results import Examples, Explanations

# The least number of rows of global importances, as in DiCE.
FEWEST_ROWS = 10


class Importances(ExplainerBase):
    """DiCE's importances, of which DEAR's examples count what is acted on.

    What follows from an action is no way to the outcome: a feature that is never acted on would
    lead the importances if it follows from many actions.
    """

    def feature_importance(self, *args: Any, **kwargs: Any) -> Any:
        """As in DiCE, but only what is acted on counts, if all examples are DEAR's.

        Args:
            *args: as in DiCE.
            **kwargs: as in DiCE.
        """
        plain = super().feature_importance(*args, **kwargs)
        examples = plain.cf_examples_list
        if not _are_own(examples):
            return plain
        tables, local = [example.acted for example in examples], plain.local_importance
        summary = None if plain.summary_importance is None else _shares(pd.concat(tables))
        return Explanations(examples, local and [*map(_shares, tables)], summary)

    def local_feature_importance(
        self, query_instances: Any, cf_examples_list: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """As in DiCE; rows of DEAR's examples may have fewer than ten counterfactuals, or none.

        Args:
            query_instances: as in DiCE.
            cf_examples_list: as in DiCE.
            *args: as in DiCE.
            **kwargs: as in DiCE.
        """
        given = query_instances, cf_examples_list
        if _are_own(cf_examples_list):
            return self.feature_importance(*given, global_importance=False)
        return super().local_feature_importance(*given, *args, **kwargs)

    def global_feature_importance(
        self, query_instances: Any, cf_examples_list: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """As `local_feature_importance`, of ten rows or more.

        Args:
            query_instances: as in DiCE.
            cf_examples_list: as in DiCE.
            *args: as in DiCE.
            **kwargs: as in DiCE.
        """
        given = query_instances, cf_examples_list
        if _are_own(cf_examples_list) and len(cf_examples_list) >= FEWEST_ROWS:
            return self.feature_importance(*given)
        return super().global_feature_importance(*given, *args, **kwargs)


def _are_own(examples: Any) -> bool:
    """Whether there are examples, and all are DEAR's."""
    return bool(examples) and all(isinstance(example, Examples) for example in examples)


def _shares(acted: pd.DataFrame) -> dict[str, float]:
    """The share of counterfactuals, rows of a frame of bool, that act on each feature."""
    shares: dict[str, float] = acted.astype(float).mean().fillna(0.0).to_dict()
    return shares
