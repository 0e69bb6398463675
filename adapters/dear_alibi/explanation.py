"""Explanation: the engine's result in the layout of `CounterfactualRLTabular`, and more."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from dear_alibi.table import Array, Table
from dear_alibi.verdict import Verdict
from dear_plugin import Recourses

DEFAULT_DATA_DEAR: dict[str, Any] = {
    "orig": None,
    "cf": None,
    "target": None,
    "condition": None,
    "success": None,
    "confidence": None,
    "reliance": None,
    "plausibility": None,
    "credible": None,
    "action": None,
}
"""Default data of an explanation.

- `orig`: `X` (n, p) as given, `class` (n, 1) int64, `proba` (n, c).
- `cf`: the same of the counterfactuals; a failed row is the last attempt, and its class is what
  the predictor says of it.
- `target`: (n, 1) int64.
- `condition`: the `C` that the user gave.
- `success`: (n, 1) bool, whether `cf["class"]` is the target.
- `confidence`, `reliance`, `plausibility` (n, 1) float64 and `credible` (n, 1) bool, as in
  `Recourses.actions`: what the answers are worth; a failed row has 0, 1, 0 and False.
- `action`: `direct_features` (the features acted on, a list per row), `direct` and `indirect`
  (n, p) (the change of `X` in what was acted on and in the rest; codes change by whole numbers),
  `cost`, `direct_cost`, `indirect_cost`, `suppressed_cost` (n, 1) in min-max scaled units, a
  changed category counting 1, and `reason` (a string per row: why it failed, or
  what an answer that is not credible lacks).
"""

# What an answer that there is not is worth.
WORST = {"confidence": 0.0, "reliance": 1.0, "plausibility": 0.0}
_COSTS = ("cost", "direct_cost", "indirect_cost", "suppressed_cost")


def data_of(
    table: Table,
    X: Array,
    recourses: Recourses,
    verdicts: tuple[Verdict, Verdict],
    target: Array,
) -> dict[str, Any]:
    """The data of n rows.

    Args:
        table: what the columns mean.
        X: (n, p) the rows as given.
        recourses: the engine's result on them.
        verdicts: the predictor's answer on them, before and after.
        target: (n, 1) the wanted classes.
    """
    before, after = verdicts
    written = table.array(recourses.counterfactuals, X.dtype)
    X_cf = np.where(recourses.changed.numpy(), written, X)
    return copy.deepcopy(DEFAULT_DATA_DEAR) | {
        "orig": _seen(X.copy(), before),
        "cf": _seen(X_cf, after),
        "target": target,
        "success": after.classes == target,
        **_worth(recourses),
        "action": _action(recourses, X_cf.astype(np.float64) - X.astype(np.float64)),
    }


def joined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The data of consecutive rows as one."""
    return {key: _join([part[key] for part in parts]) for key in parts[0]}


def _seen(X: Array, verdict: Verdict) -> dict[str, Any]:
    return {"X": X, "class": verdict.classes, "proba": verdict.proba}


def _worth(recourses: Recourses) -> dict[str, Any]:
    """What the answers are worth, (n, 1) each; numbers also of failures, as JSON needs them."""
    actions = recourses.actions
    worth = {
        name: actions[name].fillna(worst).to_numpy(dtype=np.float64)[:, None]
        for name, worst in WORST.items()
    }
    return worth | {"credible": actions[["credible"]].to_numpy(dtype=bool)}


def _action(recourses: Recourses, moved: Array) -> dict[str, Any]:
    direct = (recourses.proposal.direct & recourses.changed).numpy()
    names = np.array(recourses.encoder.schema.names, dtype=object)
    costs = recourses.actions[list(_COSTS)].to_numpy(dtype=np.float64)
    return {
        "direct_features": [names[row].tolist() for row in direct],
        "direct": np.where(direct, moved, 0.0),
        "indirect": np.where(direct, 0.0, moved),
        **{name: costs[:, [i]] for i, name in enumerate(_COSTS)},
        "reason": recourses.actions["reason"].tolist(),
    }


def _join(values: Sequence[Any]) -> Any:
    if len(values) == 1 or values[0] is None:
        return values[0]
    if isinstance(values[0], dict):
        return joined(values)
    if isinstance(values[0], list):
        return [item for part in values for item in part]
    return np.concatenate(values)
