"""The engine's recourses as DiCE's native objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from dice_ml.counterfactual_explanations import CounterfactualExplanations
from dice_ml.diverse_counterfactuals import CounterfactualExamples

from dear_dice.model import Host
from dear_dice.options import logger
from dear_dice.query import Query, Request
from dear_plugin import Recourses

# `kind` of the best counterfactual of a row, and of alternatives that act on a set of their own.
FIRST = "first"
# The key of what DEAR adds to DiCE's JSON, in the metadata, which its schema leaves open.
KEY = "dear_examples"
# How the reason of an answer that is not credible begins.
LACKING = "no credible action was found; the nearest has "


class Examples(CounterfactualExamples):
    """The counterfactuals of one row in DiCE's form, with DEAR's actions.

    A row without recourse has no frames, but a `reason`. A pickle keeps texts and numbers.

    Attributes:
        actions: one row per row of `final_cfs_df`: the columns of `Recourses.actions` without
            `success`, and `kind`: "first", or how an alternative differs from the first. Indirect
            changes are associations in the data, unless tiers or causes are given. A cost of 1 is
            a changed category, or a change of a number by the range of its central training
            values (98 %): .07 is 7 % of it.
        acted: the same rows, with a bool per feature: whether it is acted on.
        reason: why the row has no counterfactual; "" if it has one.
        origin: the engine's result, and the positions in it of the rows of `final_cfs_df`; None
            when read back from JSON or a pickle.

    Example:
        >>> from dear_dice import Examples
        >>> issubclass(Examples, CounterfactualExamples)  # DiCE's own class
        True
    """

    actions: pd.DataFrame
    acted: pd.DataFrame
    reason: str = ""
    origin: tuple[Recourses, range] | None = None
    _texts: Sequence[str] = ()
    _supports: Sequence[float] = ()

    def __getstate__(self) -> dict[str, Any]:
        """The state, with what the engine would compute on first access."""
        texts, supports = self.describe(), self.support.tolist()
        return {**vars(self), "_texts": texts, "_supports": supports, "origin": None}

    @property
    def support(self) -> pd.Series:
        """Share of each counterfactual's 5 nearest training rows that get the wanted outcome.

        The first access computes it for all rows of the call.
        """
        values = self._supports
        if self.origin is not None:
            found, at = self.origin
            values = found.support.iloc[list(at)].tolist()
        index = self.actions.index[: len(values)]
        return pd.Series(values, index, dtype=float, name="support")

    def describe(self) -> list[str]:
        """A text per counterfactual: the action, the expected changes, their uncertainty.

        The text of one that is not credible begins with that.
        """
        if self.origin is None:
            return [*self._texts]
        found, at = self.origin
        return [found.describe_row(i) for i in at]

    def _visualize_internal(self, *args: Any, **kwargs: Any) -> None:
        """As in DiCE; the log says what each counterfactual acts on, or why there is none."""
        super()._visualize_internal(*args, **kwargs)
        acts = [_acted_on(str(at), row) for at, row in self.actions.iterrows()]
        logger.warning("\n".join(acts) or f"no counterfactual: {self.reason}")


class Explanations(CounterfactualExplanations):
    """DiCE's explanations, of which each example has DEAR's actions.

    `to_json` writes the actions into the metadata and `Explanations.from_json` reads them; DiCE's
    own `CounterfactualExplanations.from_json` reads the same text without them.

    Example:
        >>> from dear_dice import Explanations
        >>> issubclass(Explanations, CounterfactualExplanations)  # DiCE's own class
        True
    """

    def to_json(self) -> str:
        """DiCE's JSON, with the actions, what is said of them, and reasons in its metadata."""
        content = json.loads(super().to_json())
        content["metadata"][KEY] = [
            {
                "actions": json.loads(e.actions.to_json(orient="records", double_precision=15)),
                "acted": e.acted.to_numpy().tolist(),
                "reason": e.reason,
                "texts": e.describe(),
                "supports": e.support.tolist(),
            }
            for e in self.cf_examples_list
        ]
        return json.dumps(content)

    @staticmethod
    def from_json(json_str: str) -> Any:
        """Read DiCE's JSON, and the actions if it has them."""
        read: Any = CounterfactualExplanations.from_json(json_str)
        added = json.loads(json_str).get("metadata", {}).get(KEY)
        if added is not None:
            read.__class__ = Explanations
            for example, own in zip(read.cf_examples_list, added, strict=True):
                _restore(example, **own)
        return read


def examples_of(
    every: Recourses, query: Query, request: Request, host: Host, data: Any
) -> list[Examples]:
    """DiCE's object for each row of a query; a row without a counterfactual has no frames.

    Args:
        every: the engine's answers to the n rows.
        query: the rows.
        request: the arguments of the call.
        host: the model.
        data: DiCE's data interface.
    """
    rows = (every.starts.cumsum() - 1)[every.success.numpy()]  # of the query
    found = every.select(every.success.nonzero()[:, 0])
    outcomes = found.scores[:, 0].numpy() if host.regression else query.wanted[rows]
    before, after = query.rows.copy(), query.written(found.counterfactuals).copy()
    before[data.outcome_name] = host.labels(query.outcomes)
    after[data.outcome_name] = host.labels(outcomes)
    actions = found.actions.drop(columns=["success", "rank"], errors="ignore")
    actions["kind"] = np.where(found.rank == 0, FIRST, found.proposal.kinds)
    wanted = host.labels(query.wanted).tolist() or [request.desired_class] * len(before)
    frames = after, actions, _acted(found, list(query.rows))
    reasons, examples = every.reasons[every.starts].tolist(), []
    ends = np.searchsorted(rows, np.arange(len(before) + 1)).tolist()
    for row, (start, end) in enumerate(pairwise(ends)):
        own, *more = (each.iloc[start:end].reset_index(drop=True) for each in frames)
        example = Examples(
            data_interface=data,
            final_cfs_df=own if len(own) else None,
            test_instance_df=before.iloc[row : row + 1].reset_index(drop=True),
            final_cfs_df_sparse=own.copy() if len(own) else None,
            posthoc_sparsity_param=request.posthoc_sparsity_param,
            desired_range=request.desired_range,
            # Of a type that DiCE's JSON schema accepts.
            desired_class=int(w) if isinstance(w := wanted[row], bool) else w,
            model_type=host.interface.model_type,
        )
        example.actions, example.acted = more
        example.reason = "" if len(own) else reasons[row]
        example.origin = found, range(start, end)
        examples.append(example)
    return examples


def _acted(found: Recourses, names: list[str]) -> pd.DataFrame:
    """(m, q) bool, the columns that answers act on and change."""
    encoder = found.encoder
    acted = encoder.schema.of_columns(found.proposal.direct & found.changed)
    acted &= encoder.cells(found.proposal.rows) != encoder.cells(found.x)
    return pd.DataFrame(acted, columns=names)


def _acted_on(at: str, action: pd.Series) -> str:
    """What a counterfactual acts on: "0 acts on savings"."""
    names, reason = action["acted_on"], action["reason"]
    text = f"{at} acts on {names}" if names else f"{at}: {reason}"
    return text if action["credible"] else f"{text}; weak answer: {reason.removeprefix(LACKING)}"


def _restore(example: Any, actions: Any, acted: Any, **own: Any) -> None:
    """Make what DiCE read of JSON one of DEAR's examples."""
    known = pd.DataFrame(actions)
    # JSON has null for NaN, which without copies is the whole column.
    known = known.astype({name: float for name in ("agreement",) if name in known})
    features = example.test_instance_df.columns[:-1]
    example.__class__ = Examples
    example.actions, example.acted = known, pd.DataFrame(acted, columns=features, dtype=bool)
    example.reason = own["reason"]
    example._texts, example._supports = own["texts"], own["supports"]
