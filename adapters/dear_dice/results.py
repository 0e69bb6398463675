"""Results: the engine's recourses as counterfactuals per row, and as DiCE's native objects."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import torch
from dice_ml.counterfactual_explanations import CounterfactualExplanations
from dice_ml.diverse_counterfactuals import CounterfactualExamples

from dear_dice.model import Host, Outcomes
from dear_dice.query import Query, Request, Rows
from dear_plugin import Recourses

logger = logging.getLogger("dear_dice")

# `kind` of the best counterfactual of a row, and of alternatives that act on a set of their own.
FIRST = "first"
# The key of what DEAR adds to DiCE's JSON, in the metadata, which its schema leaves open.
KEY = "dear_examples"
# How the reason of an answer that is not credible begins.
LACKING = "no credible action was found; the nearest has "
UNCONFIRMED = "the model, called through DiCE, does not give the wanted outcome for DEAR's answer"

Origin = tuple[Recourses, int]


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
        origins: per row of `final_cfs_df`, the engine's result and the position in it; empty when
            read back from JSON or a pickle.

    Example:
        >>> from dear_dice import Examples
        >>> issubclass(Examples, CounterfactualExamples)  # DiCE's own class
        True
    """

    _texts: Sequence[str] = ()
    _supports: Sequence[float] = ()

    def __init__(
        self,
        actions: pd.DataFrame,
        acted: pd.DataFrame,
        reason: str = "",
        origins: Sequence[Origin] = (),
        **fields: Any,
    ) -> None:
        super().__init__(**fields)
        self.actions, self.acted = actions, acted
        self.reason, self.origins = reason, tuple(origins)

    def __getstate__(self) -> dict[str, Any]:
        """The state, with what the engine would compute on first access."""
        texts, supports = self.describe(), self.support.tolist()
        return {**vars(self), "_texts": texts, "_supports": supports, "origins": ()}

    @property
    def support(self) -> pd.Series:
        """Share of each counterfactual's 5 nearest training rows that get the wanted outcome.

        The first access computes it for all rows of the call.
        """
        values = [float(result.support.iloc[at]) for result, at in self.origins] or self._supports
        index = self.actions.index[: len(values)]
        return pd.Series(values, index, dtype=float, name="support")

    def describe(self) -> list[str]:
        """A text per counterfactual: the action, the expected changes, their uncertainty.

        The text of one that is not credible begins with that.
        """
        return [result.describe_row(at) for result, at in self.origins] or [*self._texts]

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
        """DiCE's JSON, with the actions and reasons in its metadata."""
        content = json.loads(super().to_json())
        content["metadata"][KEY] = [
            {
                "actions": json.loads(e.actions.to_json(orient="records", double_precision=15)),
                "acted": e.acted.to_numpy().tolist(),
                "reason": e.reason,
            }
            for e in self.cf_examples_list
        ]
        return json.dumps(content)

    @staticmethod
    def from_json(json_str: str) -> Any:
        """Read DiCE's JSON, and the actions if it has them."""
        plain = CounterfactualExplanations.from_json(json_str)
        added = json.loads(json_str).get("metadata", {}).get(KEY)
        if added is None:
            return plain
        pairs = zip(plain.cf_examples_list, added, strict=True)
        return Explanations(
            [_with_actions(example, **own) for example, own in pairs],
            local_importance=plain.local_importance,
            summary_importance=plain.summary_importance,
            version=plain.metadata["version"],
        )


@dataclass(frozen=True)
class Results:
    """m counterfactuals of n rows, ordered by row and rank.

    Attributes:
        rows: (m,) the row of the query that each belongs to, ascending.
        frame: the features, in the query's own values and dtypes.
        outcomes: (m,) the outcomes as DiCE reads them.
        actions: see `Examples.actions`.
        acted: see `Examples.acted`.
        origins: the engine's result of each, and the position in it.
        reasons: (n,) why a row has no counterfactual, if it has none.
    """

    rows: Rows
    frame: pd.DataFrame
    outcomes: Outcomes
    actions: pd.DataFrame
    acted: pd.DataFrame
    origins: Sequence[Origin]
    reasons: Sequence[str]

    @classmethod
    def of(cls, ranked: Sequence[Recourses], query: Query, host: Host) -> Results:
        """The counterfactuals of every row, each confirmed by the model through DiCE.

        `ranked` are the engine's results over the query's n rows, one per rank.
        """
        n = len(query.rows)
        every = Recourses.joined(ranked, [torch.arange(n)] * len(ranked))
        # Positions, by row and then by rank.
        rows, at = np.tile(np.arange(n), len(ranked)), np.flatnonzero(every.outcome["success"])
        at = at[np.argsort(rows[at], kind="stable")]
        frame = query.written(every.counterfactuals.iloc[at].reset_index(drop=True))
        new = np.flatnonzero(~frame.assign(**{"": rows[at]}).duplicated().to_numpy(dtype=bool))
        at, frame = at[new], frame.iloc[new].reset_index(drop=True)
        kept, outcomes = _confirmed(frame, rows[at], query, host)
        at, first = at[kept], ranked[0].outcome
        found = every.select(torch.from_numpy(at))
        actions = found.actions.drop(columns="success").reset_index(drop=True)
        owner = list(found.encoder.schema.owner)
        acted = (found.proposal.direct & found.changed).numpy()[:, owner]
        acted &= found.encoder.cells(found.proposal.rows) != found.encoder.cells(found.x)
        return cls(
            rows[at],
            frame.iloc[kept].reset_index(drop=True),
            outcomes[kept],
            actions.assign(kind=actions["kind"].where(at >= n, FIRST)),
            pd.DataFrame(acted, columns=list(query.rows)),
            [(found, i) for i in range(len(at))],
            first["reason"].where(~first["success"], UNCONFIRMED).tolist(),
        )

    def slices(self, n: int) -> list[slice]:
        """The counterfactuals of each of n rows."""
        ends = np.searchsorted(self.rows, np.arange(n + 1))
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def _confirmed(frame: pd.DataFrame, rows: Rows, query: Query, host: Host) -> tuple[Rows, Outcomes]:
    """Positions with the desired outcome, and (m,) the outcomes of all."""
    if not len(frame):
        return rows, rows
    taken = query.dear.encoder.typed(frame)
    scores = host.scores(taken)
    outcomes = host.outcomes(taken, scores)
    return np.flatnonzero(query.desired.met(scores, outcomes, rows)), outcomes


def to_dice(
    query: Query, results: Results, request: Request, host: Host, data: Any
) -> list[Examples]:
    """DiCE's object for each row of a query; a row without a counterfactual has no frames.

    `data` is DiCE's data interface.
    """
    name = data.outcome_name
    before = query.rows.assign(**{name: host.labels(query.outcomes)})
    final = results.frame.assign(**{name: host.labels(results.outcomes)})
    examples = []
    for row, span in enumerate(results.slices(len(before))):
        found = _part(final, span)
        solved = len(found) > 0
        examples.append(
            Examples(
                _part(results.actions, span),
                _part(results.acted, span),
                "" if solved else results.reasons[row],
                results.origins[span],
                data_interface=data,
                final_cfs_df=found if solved else None,
                test_instance_df=_part(before, slice(row, row + 1)),
                final_cfs_df_sparse=found.copy() if solved else None,
                posthoc_sparsity_param=request.posthoc_sparsity_param,
                desired_range=request.desired_range,
                desired_class=_desired_class(query, row, request, host),
                model_type=host.interface.model_type,
            )
        )
    if request.verbose:
        for index, example in zip(query.rows.index, examples, strict=True):
            texts = example.describe() or [f"no counterfactual found: {example.reason}"]
            # A level that is shown unless it is switched off, for it was asked for.
            logger.warning("\n".join(f"query {index}: {text}" for text in texts))
    return examples


def _acted_on(at: str, action: pd.Series) -> str:
    """What a counterfactual acts on: "0 acts on savings"."""
    names, reason = action["acted_on"], action["reason"]
    text = f"{at} acts on {names}" if names else f"{at}: {reason}"
    return text if action["credible"] else f"{text}; weak answer: {reason.removeprefix(LACKING)}"


def _part(frame: pd.DataFrame, span: slice) -> pd.DataFrame:
    return frame.iloc[span].reset_index(drop=True)


def _desired_class(query: Query, row: int, request: Request, host: Host) -> Any:
    """The wanted class as the model's own label, of a type that DiCE's JSON schema accepts."""
    if host.regression:
        return request.desired_class
    label = host.labels(query.desired.classes[row : row + 1])[0]
    plain = label.item() if isinstance(label, np.generic) else label
    return int(plain) if isinstance(plain, bool) else plain


def _with_actions(
    example: CounterfactualExamples, actions: Any, acted: Any, reason: str
) -> Examples:
    names = list(inspect.signature(CounterfactualExamples).parameters)
    features = example.test_instance_df.columns[:-1]
    known = pd.DataFrame(actions)
    # JSON has null for NaN, which without copies is the whole column.
    worth = {name: float for name in ("agreement",) if name in known}
    return Examples(
        known.astype(worth),
        pd.DataFrame(acted, columns=features, dtype=bool),
        reason,
        **{name: getattr(example, name) for name in names},
    )
