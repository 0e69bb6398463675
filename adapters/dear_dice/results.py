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
from dice_ml.explainer_interfaces.explainer_base import ExplainerBase

from dear_dice.model import Host
from dear_dice.query import Query, Request
from dear_plugin import Recourses

# The key of what DEAR adds to DiCE's JSON, in the metadata, which its schema leaves open.
KEY = "dear_examples"
# The least number of rows of global importances, as in DiCE.
FEWEST_ROWS = 10
# How the reason of an answer that is not credible begins.
LACKING = "no credible action was found; the nearest has "
# Of a picture's table, no cell or column of which is cut.
WHOLE = ("display.max_colwidth", None, "display.max_columns", None)
# What a picture calls the kinds of changes.
KINDS = {"direct": "action", "forced": "implied by a rule", "indirect": "what follows"}


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
        changes: what changes in these rows, a line for each feature, as in `Recourses.changes`:
            `kind` is "direct" for the action, "forced" for what a rule sets with it and "indirect"
            for what follows; `at` is the row of `final_cfs_df`.
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
    changes: pd.DataFrame
    reason: str = ""
    origin: tuple[Recourses, Sequence[int]] | None = None
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

    @property
    def told(self) -> pd.DataFrame:
        """What pictures show below these rows, a line for each change.

        Whether it is the action, implied by a rule or what follows, its values, and how sure that
        is. The index is the row of `final_cfs_df`.
        """
        out: list[tuple[Any, ...]] = []
        for at, action in self.actions.iterrows():
            lines = self.changes[self.changes["at"] == at].itertuples()
            whole = _sure(action)
            out += [(at, *_change(line, whole)) for line in lines] or [(at, "", "", "", "", whole)]
        columns = ["counterfactual", "what", "feature", "old", "new", "how sure"]
        return pd.DataFrame(out, columns=columns, dtype=object).set_index("counterfactual")

    def _visualize_internal(self, *args: Any, **kwargs: Any) -> None:
        """As in DiCE; below it what each counterfactual acts on, or why there is none."""
        super()._visualize_internal(*args, **kwargs)
        table = self.told if len(self.actions) else pd.DataFrame({"reason": [self.reason]})
        with pd.option_context(*WHOLE, "display.expand_frame_repr", False):
            self._dump_output(table, is_notebook_console=kwargs.get("is_notebook_console", False))

    def _dump_output(
        self, content: Any, show_only_changes: bool = False, is_notebook_console: bool = False
    ) -> None:
        """As in DiCE, whose own "-" hides changes of large numbers, and which fails on text."""
        if show_only_changes:
            new, old = (frame.to_numpy(object) for frame in (content, self.test_instance_df))
            cells = np.where(new.astype(str) == old.astype(str), "-", new)
            content = pd.DataFrame(cells, content.index, content.columns)
        super()._dump_output(content, False, is_notebook_console)


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
                "changes": json.loads(e.changes.to_json(orient="split", double_precision=15)),
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


class Importances(ExplainerBase):
    """DiCE's importances, of which DEAR's examples count what is acted on.

    What follows from an action is no way to the outcome: a feature that is never acted on would
    lead the importances if it follows from many actions.
    """

    def _find_features_having_missing_values(self, data: Any) -> list[str]:
        """None, for DiCE refuses these; `check_request` names those that cannot be."""
        return []

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
            return self.feature_importance(*given, **{**kwargs, "global_importance": False})
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
            return self.feature_importance(*given, **kwargs)
        return super().global_feature_importance(*given, *args, **kwargs)


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
    done, sizes = every.success.numpy(), np.array([*map(len, every.lines)], dtype=int)
    at, lines = np.flatnonzero(done), every.changes[np.repeat(done, sizes)]
    rows = (every.starts.cumsum() - 1)[at]  # of the query
    outcomes = every.scores[at, 0].numpy() if host.regression else query.wanted[rows]
    before, after = query.rows.copy(), query.written(every.counterfactuals.iloc[at]).copy()
    before[data.outcome_name] = host.labels(query.outcomes)
    after[data.outcome_name] = host.labels(outcomes)
    actions = every.actions.iloc[at].drop(columns=["success", "rank"], errors="ignore")
    actions["kind"] = np.where(every.rank == 0, "first", every.proposal.kinds)[at]
    wanted = host.labels(query.wanted).tolist() or [request.desired_class] * len(before)
    frames = after, actions, _acted(every, list(query.rows)).iloc[at]
    reasons, examples = every.reasons[every.starts].tolist(), []
    sizes, lines = sizes[at], lines.drop(columns=["row", "rank"])
    places = np.concatenate([[0], sizes.cumsum()])
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
        owner = np.repeat(np.arange(end - start), sizes[start:end])
        own_lines = lines.iloc[places[start] : places[end]].assign(at=owner)
        example.changes = own_lines.reset_index(drop=True)
        example.origin = every, at[start:end].tolist()
        examples.append(example)
    return examples


def _acted(found: Recourses, names: list[str]) -> pd.DataFrame:
    """(m, q) bool, the columns that answers act on and change."""
    encoder = found.encoder
    acted = encoder.schema.of_columns(found.proposal.direct & found.changed)
    acted &= encoder.cells(found.proposal.rows) != encoder.cells(found.x)
    return pd.DataFrame(acted, columns=names)


def _change(line: Any, whole: str) -> tuple[Any, ...]:
    """A line of changes with how sure it is, or, of the action, the whole counterfactual."""
    often = f"in {line.agree} of {line.redraws} resamples" if line.link and line.redraws else ""
    sure = whole if line.kind == "direct" else ", ".join(filter(None, [line.link, often]))
    return KINDS[line.kind], line.feature, line.old, line.new, sure


def _sure(action: pd.Series) -> str:
    """How sure a counterfactual is, or why there is no action."""
    if not action["acted_on"]:
        return str(action["reason"])
    weak = "" if action["credible"] else f"; weak answer: {action['reason'].removeprefix(LACKING)}"
    return f"confidence {action['confidence']:.2f}{weak}"


def _restore(example: Any, actions: Any, acted: Any, changes: Any = None, **own: Any) -> None:
    """Make what DiCE read of JSON one of DEAR's examples."""
    # JSON has null for NaN, which without copies is the whole column.
    known = pd.DataFrame(actions)
    known = known.astype({name: float for name in ("agreement",) if name in known})
    features = example.test_instance_df.columns[:-1]
    example.__class__ = Examples
    example.actions, example.acted = known, pd.DataFrame(acted, columns=features, dtype=bool)
    # What 0.5 wrote has no lines.
    lines = changes or {"data": [], "columns": ["at"]}
    example.changes = pd.DataFrame(lines["data"], columns=lines["columns"])
    example.reason = own["reason"]
    example._texts, example._supports = own["texts"], own["supports"]


def _are_own(examples: Any) -> bool:
    """Whether there are examples, and all are DEAR's."""
    return bool(examples) and all(isinstance(example, Examples) for example in examples)


def _shares(acted: pd.DataFrame) -> Any:
    """The share of counterfactuals, rows of a frame of bool, that act on each feature: a dict."""
    return acted.astype(float).mean().fillna(0.0).to_dict()
