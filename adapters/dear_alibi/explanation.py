"""Explanation: the engine's result in the layout of `CounterfactualRLTabular`, and metadata."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from dear_alibi.predictor import Prediction
from dear_alibi.table import Array, Table
from dear_plugin import Recourses, __version__

DEFAULT_META_DEAR: dict[str, Any] = {
    "name": None,
    "type": ["whitebox"],
    "explanations": ["local"],
    "params": {},
    "version": None,
}
"""Default metadata; `version` is Alibi's own, ours is `params["dear_version"]`."""

_KEYS = ("orig", "cf", "target", "condition", "success")
_CREDIBILITY = ("confidence", "reliance", "plausibility", "credible")
DEFAULT_DATA_DEAR: dict[str, Any] = dict.fromkeys((*_KEYS, *_CREDIBILITY, "action"))
"""Default data of an explanation.

- `orig`: `X` (n, p) as given, `class` (n, 1) int64, `proba` (n, c).
- `cf`: the same of the counterfactuals; a failed row is the last attempt, with its own class.
- `target`: (n, 1) int64.
- `condition`: the user's `C`.
- `success`: (n, 1) bool, whether `cf["class"]` is the target.
- `confidence`, `reliance`, `plausibility` (n, 1) float64 and `credible` (n, 1) bool, as in
  `Recourses.actions`; a failed row has 0, 1, 0 and False.
- `action`: `direct_features` (the features acted on, a list per row), `direct` and `indirect`
  (n, p) (the change of `X` in these and in the others; codes change by integers), `cost`,
  `direct_cost`, `indirect_cost`, `suppressed_cost` (n, 1) in min-max scaled units, where a changed
  category counts 1, and `reason` (a string per row: why it failed, or what a counterfactual that
  is not credible lacks).
"""

# The values of rows without a counterfactual.
WORST = {"confidence": 0.0, "reliance": 1.0, "plausibility": 0.0}
_COSTS = ("cost", "direct_cost", "indirect_cost", "suppressed_cost")


def metadata_of(predictor: Any, table: Table, params: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of an explainer; `params` are its other parameters, as plain values."""
    meta = copy.deepcopy(DEFAULT_META_DEAR)
    meta["type"] = type_of(predictor)
    meta["params"] = {
        "feature_names": list(table.declared.names),
        "category_map": {str(j): labels for j, labels in table.category_map.items()},
        "tiers": [list(tier) for tier in table.declared.tiers],
        **params,
        "dear_version": __version__,
    }
    return meta


def type_of(predictor: Any) -> list[str]:
    """The `type` of the metadata: a torch module is a white box."""
    return ["whitebox" if isinstance(predictor, nn.Module) else "blackbox"]


def plain(value: Any) -> Any:
    """A parameter as JSON has it: numbers, strings, lists; of anything else, its type's name."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return type(value).__name__


def data_of(
    table: Table,
    X: Array,
    recourses: Recourses,
    before: Prediction,
    after: Prediction,
    target: Array,
) -> dict[str, Any]:
    """The data of n rows X, (n, p), with their predictions and targets, (n, 1)."""
    written = table.array(recourses.counterfactuals, X.dtype)
    X_cf = np.where(recourses.changed.numpy(), written, X)
    worth = {
        name: recourses.actions[name].fillna(worst).to_numpy(dtype=np.float64)[:, None]
        for name, worst in WORST.items()
    }
    return copy.deepcopy(DEFAULT_DATA_DEAR) | {
        "orig": {"X": X.copy(), "class": before.classes, "proba": before.proba},
        "cf": {"X": X_cf, "class": after.classes, "proba": after.proba},
        "target": target,
        "success": after.classes == target,
        **worth,
        "credible": recourses.actions[["credible"]].to_numpy(dtype=bool),
        "action": _action(recourses, X_cf.astype(np.float64) - X.astype(np.float64)),
    }


def joined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The data of consecutive batches as one."""
    return {key: _join([part[key] for part in parts]) for key in parts[0]}


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
