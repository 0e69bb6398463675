"""Examples: DiCE's native results, with the direct / indirect split travelling along."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pandas as pd
from dice_ml.counterfactual_explanations import CounterfactualExplanations
from dice_ml.diverse_counterfactuals import CounterfactualExamples

from dear_plugin import Recourses

# Where the split stands in DiCE's JSON: its schema leaves the metadata open.
KEY = "dear"

Origin = tuple[Recourses, int]


class Examples(CounterfactualExamples):
    """The counterfactuals of one row, as DiCE has them, and what DEAR knows about each.

    Attributes:
        actions: one row per row of `final_cfs_df`: `reason` (where a counterfactual is not
            credible, what it lacks), `acted_on`, `direct_cost`, `indirect_cost`, `cost`,
            `suppressed_cost`, `score_before`, `score_after`, `confidence`, `reliance`,
            `plausibility` and `credible`, as in `Recourses.actions`, and `kind`: "first", or how
            an alternative differs from the first. What moves indirectly is an association in the
            data.
        origins: per row of `final_cfs_df`, the engine's result and the position in it; empty when
            read back from JSON.
    """

    def __init__(
        self, actions: pd.DataFrame, origins: Sequence[Origin] = (), **fields: Any
    ) -> None:
        super().__init__(**fields)
        self.actions = actions
        self.origins = tuple(origins)

    @property
    def support(self) -> pd.Series:
        """Share of each counterfactual's 5 nearest training rows that get the wanted outcome.

        It is computed when first asked for, for all rows of the call together.
        """
        values = [float(result.support.iloc[at]) for result, at in self.origins]
        return pd.Series(values, index=self.actions.index[: len(values)], name="support")

    def describe(self) -> list[str]:
        """Each counterfactual in plain words: what to do, what is expected to follow, how sure.

        One that is not credible says so first.
        """
        return [result.describe_row(at) for result, at in self.origins]

    def visualize_as_dataframe(
        self,
        display_sparse_df: bool = True,
        show_only_changes: bool = False,
        show_actions: bool = False,
    ) -> None:
        """DiCE's view; `show_actions` adds the direct / indirect split below it."""
        super().visualize_as_dataframe(display_sparse_df, show_only_changes)
        if show_actions:
            from IPython import display

            show: Any = display.display
            show(self.actions)


class Explanations(CounterfactualExplanations):
    """DiCE's explanations whose examples carry the direct / indirect split.

    `to_json` writes the split into the metadata, which DiCE's schema leaves open, and
    `Explanations.from_json` reads it again; DiCE's own `CounterfactualExplanations.from_json`
    reads the same text and drops the split.
    """

    def visualize_as_dataframe(
        self,
        display_sparse_df: bool = True,
        show_only_changes: bool = False,
        show_actions: bool = False,
    ) -> None:
        """DiCE's view; `show_actions` adds the direct / indirect split below each table."""
        for examples in self.cf_examples_list:
            examples.visualize_as_dataframe(display_sparse_df, show_only_changes, show_actions)

    def direct_importance(self) -> pd.DataFrame:
        """The share of each row's counterfactuals that act on a feature.

        DiCE's own importances count whatever changed, indirect changes included.
        """
        acted = [e.actions["acted_on"] for e in self.cf_examples_list]
        shares = pd.DataFrame([a.value_counts(normalize=True) for a in acted])
        return shares.fillna(0.0).reset_index(drop=True)

    def to_json(self) -> str:
        """DiCE's JSON, with the split in its metadata."""
        content = json.loads(super().to_json())
        content["metadata"][KEY] = [
            json.loads(e.actions.to_json(orient="records", double_precision=15))
            for e in self.cf_examples_list
        ]
        return json.dumps(content)

    @staticmethod
    def from_json(json_str: str) -> Any:
        """Read DiCE's JSON, and the split where it is there."""
        plain = CounterfactualExplanations.from_json(json_str)
        splits = json.loads(json_str).get("metadata", {}).get(KEY)
        if splits is None:
            return plain
        pairs = zip(plain.cf_examples_list, splits, strict=True)
        return Explanations(
            [_restored(example, split) for example, split in pairs],
            local_importance=plain.local_importance,
            summary_importance=plain.summary_importance,
            version=plain.metadata["version"],
        )


def _restored(example: Any, split: list[dict[str, Any]]) -> Examples:
    names = (
        "data_interface",
        "final_cfs_df",
        "test_instance_df",
        "final_cfs_df_sparse",
        "posthoc_sparsity_param",
        "desired_range",
        "desired_class",
        "model_type",
    )
    return Examples(pd.DataFrame(split), **{name: getattr(example, name) for name in names})
