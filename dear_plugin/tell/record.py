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
import torch
from torch import Tensor

from dear_plugin._version import __version__
from dear_plugin.results.changes import frame
from dear_plugin.results.recourses import Recourses
from dear_plugin.search.settings import CRITERIA
from dear_plugin.tell.describe import describe


def record(result: Recourses, at: int) -> dict[str, Any]:
    """The record of the answer at a position, in values that JSON has; see `Recourses.record`."""
    question, schema = result.question, result.encoder.schema
    settings, goal = plain(question.settings), question.case.goal.select(torch.tensor([at]))
    public = {n: e for n, e in vars(goal).items() if not (n.startswith("_") or callable(e))}
    digest = sha256(json.dumps(settings).encode()).hexdigest()
    found: dict[str, Any] = {
        "version": __version__,
        "hashes": {**question.trained.digests, "settings": digest},
        "row": result.factuals.iloc[at].to_dict(),
        "target": {"kind": type(goal).__name__, **public},
        "limits": _limits(result, at),
        "answer": {
            "label": result.factuals.index[at],
            "counterfactual": result.counterfactuals.iloc[at].to_dict(),
            "actions": result.actions.iloc[[at]].to_dict("records")[0],
            "changes": frame(result.lines[at]).drop(columns="row").to_dict("records"),
            "text": describe(result, at),
        },
        "criteria": _criteria(result, at),
        "assumed": {
            "tiers": schema.tiers,
            "causes": dict(schema.causes),
            "relations": [relation.to_dict() for relation in schema.relations],
            "rules": question.case.feasible.rules.names,
            "costs": {feature.name: feature.cost for feature in schema if feature.cost != 1.0},
            "settings": settings,
        },
    }
    return {name: plain(each) for name, each in found.items()}


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


def _criteria(result: Recourses, at: int) -> dict[str, Any]:
    """Each criterion, and the margin, with its value, the required one, and whether it is met."""
    worth, out = result.worth, {}
    columns = (each[at].tolist() for each in (worth.measured, worth.required, worth.lacks))
    for name, value, least, lacks in zip(CRITERIA, *columns, strict=True):
        if name == "reliance":
            out[name] = {"value": 1.0 - value, "at_most": 1.0 - least, "met": not lacks}
        else:
            out[name] = {"value": value, "at_least": least, "met": not lacks}
    value, least = (float(each[at]) for each in (worth.margin, worth.least_margin))
    out["margin"] = {"value": value, "at_least": least, "met": not worth.near[at]}
    return out


def _limits(result: Recourses, at: int) -> dict[str, Any]:
    """What holds for the row, as the arguments of `Constraints`."""
    case, schema = result.question.case.feasible.limits, result.encoder.schema
    of_all = case.low, case.high, case.floor, case.ceiling, case.ranged, result.question.may_act
    low, high, floor, ceiling, ranged, may_act = (each.numpy()[at].tolist() for each in of_all)
    fixed = [least == most for least, most in zip(floor, ceiling, strict=True)]
    ranges = compress(zip(schema.names, low, high, strict=True), ranged)
    limits: dict[str, Any] = {
        "frozen": [*compress(schema.names, fixed)],
        "act_on": [*compress(schema.names, may_act)],
        "ranges": {name: ends for name, *ends in ranges},
        "categories": {},
    }
    every = [True] * case.encoder.d if case.allowed is None else case.allowed.numpy()[at].tolist()
    starts = zip(schema, case.encoder.starts, strict=True)
    for feature, start in compress(starts, case.encoder.blocks.numpy().tolist()):
        may = every[start : start + feature.columns]
        if not all(may):
            limits["categories"][feature.name] = [*compress(feature.categories, may)]
    if case.costs is not None:
        limits["costs"] = dict(zip(schema.names, case.costs.numpy()[at].tolist(), strict=True))
    return limits
