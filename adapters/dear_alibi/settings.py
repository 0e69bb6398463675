"""Settings: an explainer's parameters as the JSON-safe metadata that Alibi shows and saves."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

import dear_plugin
from dear_alibi.conditions import AlibiConstraints
from dear_alibi.table import Table

DEFAULT_META_DEAR: dict[str, Any] = {
    "name": None,
    "type": ["whitebox"],
    "explanations": ["local"],
    "params": {},
    "version": None,
}
"""Default metadata; `version` is Alibi's own, ours is `params["dear_version"]`."""


def kind(predictor: Any) -> list[str]:
    """Alibi's word for a predictor: a torch module is a white box."""
    return ["whitebox" if isinstance(predictor, nn.Module) else "blackbox"]


def metadata(predictor: Any, table: Table, params: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of an explainer.

    Args:
        predictor: what predicts.
        table: what the columns mean.
        params: the other parameters, in plain values.
    """
    meta = copy.deepcopy(DEFAULT_META_DEAR)
    meta["type"] = kind(predictor)
    meta["params"] = {
        "feature_names": list(table.declared.names),
        "category_map": {str(j): labels for j, labels in table.category_map.items()},
        **params,
        "dear_version": dear_plugin.__version__,
    }
    return meta


def conditions_params(conditions: AlibiConstraints) -> dict[str, Any]:
    """What may change, in plain values."""
    ranges = {name: list(pair) for name, pair in (conditions.ranges or {}).items()}
    return {"immutable_features": list(conditions.immutable), "ranges": ranges}


def plain(value: Any) -> Any:
    """A parameter in plain values: numbers, words, lists; of anything else, its type's name."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return type(value).__name__
