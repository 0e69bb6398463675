"""Record: a result of one row in; what a validator needs to check and to repeat it out."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from dear_plugin._version import __version__
from dear_plugin.results.describe import describe
from dear_plugin.results.result import Result
from dear_plugin.search.settings import CRITERIA

# Decimals of the scores by which a model is known: those of other batches differ by less.
PLACES = 4


def record(result: Result) -> dict[str, Any]:
    """The record of a result of one row, in values that JSON has; see `Recourses.record`."""
    question, (row,) = result.question, result.actions.to_dict("records")
    trained, schema = question.method.trained, result.encoder.schema
    settings = plain(question.method.settings)
    return {
        "version": __version__,
        "hashes": {
            "data": _hash((trained.rows + 0.0).numpy().tobytes()),
            "model": _hash(json.dumps(plain(trained.scores.double().numpy().round(PLACES) + 0.0))),
            "settings": _hash(json.dumps(settings)),
        },
        "row": plain(result.factuals.iloc[0].to_dict()),
        "target": plain(_fields(question.case.goal)),
        "limits": _limits(result),
        "answer": {
            "label": plain(result.factuals.index[0]),
            "counterfactual": plain(result.counterfactuals.iloc[0].to_dict()),
            "actions": plain(row),
            "changes": plain(result.changes.drop(columns="row").to_dict("records")),
            "text": describe(result, [0])[0],
        },
        "criteria": _criteria(result),
        "assumed": {
            "tiers": plain(schema.tiers),
            "causes": {name: list(causes) for name, causes in schema.causes},
            "relations": [plain(relation.to_dict()) for relation in schema.relations],
            "rules": list(question.case.feasible.rules.names),
            "costs": {feature.name: feature.cost for feature in schema if feature.cost != 1.0},
            "settings": settings,
        },
    }


def plain(value: Any) -> Any:
    """A value as JSON has it: a missing or infinite number is None."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, Tensor | np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple | frozenset):
        return [plain(each) for each in value]
    if (isinstance(value, float) and not math.isfinite(value)) or value is pd.NA:
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _criteria(result: Result) -> dict[str, Any]:
    """Each criterion with its value, the required one, and whether it is met."""
    worth, out = result.credibility, {}
    for c, name in enumerate(CRITERIA):
        value, least = float(worth.measured[0, c]), float(worth.least[0, c])
        if name == "reliance":
            value, least = 1.0 - value, 1.0 - least
        met = not bool(worth.lacks[0, c])
        bound = "at_most" if name == "reliance" else "at_least"
        out[name] = {"value": plain(value), bound: plain(least), "met": met}
    return out


def _limits(result: Result) -> dict[str, Any]:
    """What holds for the row, as the arguments of `Constraints`."""
    case, schema = result.question.case.feasible.limits, result.encoder.schema
    still = (case.floor[0] == case.ceiling[0]).tolist()
    ranged, low, high = (each[0].tolist() for each in (case.ranged, case.low, case.high))
    ends = dict(zip(schema.names, zip(low, high, strict=True), strict=True))
    limits: dict[str, Any] = {
        "frozen": [*compress(schema.names, still)],
        "act_on": [*compress(schema.names, (~case.not_actionable[0]).tolist())],
        "ranges": {name: plain(ends[name]) for name in compress(schema.names, ranged)},
        "categories": {},
    }
    for j, feature in enumerate(schema):
        if case.allowed is not None and bool(case.encoder.blocks[j]):
            start = case.encoder.starts[j]
            may = case.allowed[0, start : start + len(feature.categories)].tolist()
            if not all(may):
                limits["categories"][feature.name] = plain([*compress(feature.categories, may)])
    if case.costs is not None:
        limits["costs"] = dict(zip(schema.names, case.costs[0].tolist(), strict=True))
    return limits


def _fields(goal: Any) -> dict[str, Any]:
    """The attributes of a goal."""
    public = {name: each for name, each in vars(goal).items() if not name.startswith("_")}
    return {"kind": type(goal).__name__} | {n: e for n, e in public.items() if not callable(e)}


def _hash(content: str | bytes) -> str:
    """A SHA-256 of text or bytes."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
