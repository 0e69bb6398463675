"""All that a validator needs to check an answer and to repeat it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from hashlib import sha256
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from dear_plugin._version import __version__
from dear_plugin.results.describe import describe
from dear_plugin.results.result import Result
from dear_plugin.search.settings import CRITERIA


def record(result: Result) -> dict[str, Any]:
    """The record of a result of one row, in values that JSON has; see `Recourses.record`."""
    question, schema = result.question, result.encoder.schema
    settings, goal = plain(question.method.settings), question.case.goal
    public = {n: e for n, e in vars(goal).items() if not (n.startswith("_") or callable(e))}
    digest = sha256(json.dumps(settings).encode()).hexdigest()
    found = {
        "version": __version__,
        "hashes": {**question.method.trained.digests, "settings": digest},
        "row": result.factuals.iloc[0].to_dict(),
        "target": {"kind": type(goal).__name__, **public},
        "limits": _limits(result),
        "answer": {
            "label": result.factuals.index[0],
            "counterfactual": result.counterfactuals.iloc[0].to_dict(),
            "actions": result.actions.to_dict("records")[0],
            "changes": result.changes.drop(columns="row").to_dict("records"),
            "text": describe(result, [0])[0],
        },
        "criteria": _criteria(result),
        "assumed": {
            "tiers": schema.tiers,
            "causes": dict(schema.causes),
            "relations": [relation.to_dict() for relation in schema.relations],
            "rules": question.case.feasible.rules.names,
            "costs": {feature.name: feature.cost for feature in schema if feature.cost != 1.0},
            "settings": settings,
        },
    }
    record: dict[str, Any] = plain(found)
    return record


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
    """Each criterion, and the margin, with its value, the required one, and whether it is met."""
    worth, out = result.credibility, {}
    columns = (each[0].tolist() for each in (worth.measured, worth.least, worth.lacks))
    for name, value, least, lacks in zip(CRITERIA, *columns, strict=True):
        if name == "reliance":
            out[name] = {"value": 1.0 - value, "at_most": 1.0 - least, "met": not lacks}
        else:
            out[name] = {"value": value, "at_least": least, "met": not lacks}
    ends = {"value": worth.margin[0], "at_least": worth.least_margin[0]}
    out["margin"] = {**ends, "met": not worth.near[0]}
    return out


def _limits(result: Result) -> dict[str, Any]:
    """What holds for the row, as the arguments of `Constraints`."""
    case, schema = result.question.case.feasible.limits, result.encoder.schema
    ranges = zip(schema.names, case.low[0].tolist(), case.high[0].tolist(), strict=True)
    limits: dict[str, Any] = {
        "frozen": [*compress(schema.names, case.floor[0] == case.ceiling[0])],
        "act_on": [*compress(schema.names, result.question.may_act[0])],
        "ranges": {name: ends for name, *ends in compress(ranges, case.ranged[0])},
        "categories": {},
    }
    every = [True] * case.encoder.d if case.allowed is None else case.allowed[0].tolist()
    starts = zip(schema, case.encoder.starts, strict=True)
    for feature, start in compress(starts, case.encoder.blocks.tolist()):
        may = every[start : start + feature.columns]
        if not all(may):
            limits["categories"][feature.name] = [*compress(feature.categories, may)]
    if case.costs is not None:
        limits["costs"] = dict(zip(schema.names, case.costs[0].tolist(), strict=True))
    return limits
