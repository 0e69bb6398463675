"""The engine's result as Alibi's `Explanation`, in the layout of `CounterfactualRLTabular`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from dear_alibi.table import Array, Table
from dear_plugin import DEAR, Recourses, __version__

_META: dict[str, Any] = {"type": ["whitebox"], "explanations": ["local"], "params": {}}
DEFAULT_META_DEAR = {"name": None, **_META, "version": None}
"""Default metadata; `version` is Alibi's own, ours is `params["dear_version"]`."""

_KEYS = ("orig", "cf", "target", "target_proba", "condition", "success")
_CREDIBILITY = ("confidence", "reliance", "plausibility", "consistency", "agreement", "credible")
DEFAULT_DATA_DEAR: dict[str, Any] = dict.fromkeys((*_KEYS, *_CREDIBILITY, "action", "changes"))
"""Default data of an explanation.

- `orig`: `X` (n, p) as given, `class` (n, 1) int64, `proba` (n, c).
- `cf`: the same of the counterfactuals; a failed row is the last attempt, with its own class.
- `target`: (n, 1) int64.
- `target_proba`, `condition`: the user's `target_proba` and `C`.
- `success`: (n, 1) bool, whether `cf["class"]` is the target, and has `target_proba` if given.
- `confidence`, `reliance`, `plausibility`, `consistency`, `agreement` (n, 1) float64 and
  `credible` (n, 1) bool, as in `Recourses.actions`; a failed row has 0, 1, 0, 0, 0 and False, and
  without copies `agreement` is None.
- `action`: `direct_features` (the features acted on, a list per row), `direct`, `forced` and
  `indirect` (n, p) (the change of `X` in these, in what a rule between columns sets with them, and
  in the others; codes change by integers), `association`, the part of `indirect` that is no effect
  by the stated order of causes, `cost`,
  `direct_cost`, `indirect_cost`, `suppressed_cost` (n, 1), where 1 is a changed category, or a
  change of a number by the range of its central 98 % training values, and `reason` (a string per
  row: why it failed, or what a counterfactual that is not credible lacks).
- `changes`: a list per row, of a dict per feature that changes: the columns of
  `Recourses.changes`, in the category map's strings, with None for no value. `kind` is "direct"
  for the action, "forced" for what a rule sets with it and "indirect" for what follows; `link`
  says whether that is an "effect" or an "association", `agree` in how many of the `redraws` it
  is there, `low` and `high` how far it goes.
"""

# The values of rows without a counterfactual.
WORST = {**dict.fromkeys(_CREDIBILITY[:-1], 0.0), "reliance": 1.0}
_COSTS = ("cost", "direct_cost", "indirect_cost", "suppressed_cost")


def metadata_of(predictor: Any, table: Table, params: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of an explainer; `params` are its other parameters."""
    own = {
        "feature_names": list(table.declared.names),
        "category_map": {str(j): labels for j, labels in table.category_map.items()},
        "ordered": [feature.name for feature in table.declared if feature.ordered],
        "dear_version": __version__,
    }
    plain = json.loads(json.dumps(params, default=_plain))
    return DEFAULT_META_DEAR | {"type": type_of(predictor), "params": own | plain}


def type_of(predictor: Any) -> list[str]:
    """The `type` of the metadata: a torch module is a white box."""
    return ["whitebox" if isinstance(predictor, nn.Module) else "blackbox"]


def _plain(value: Any) -> Any:
    """What JSON does not have as a list or a number; of anything else, its type's name."""
    return value.tolist() if hasattr(value, "tolist") else type(value).__name__


def data_of(
    table: Table, engine: DEAR, recourses: Recourses, orig: Mapping[str, Array], target: Array
) -> dict[str, Any]:
    """The data, without the condition, of n rows, `orig`, and their targets.

    What belongs to the rows may be of one row, of which there are n answers.
    """
    X, model, scores = orig["X"], engine.classifier, recourses.scores
    written = table.array(recourses.counterfactuals, X.dtype)
    X_cf = np.where(recourses.encoder.schema.of_columns(recourses.changed), written, X)
    decided = model.decided(recourses.counterfactuals, scores)[:, None].numpy()
    after = {"class": decided, "proba": model.in_units(scores).numpy()}
    worth = {
        name: recourses.actions[name].fillna(worst).to_numpy(dtype=np.float64)[:, None]
        for name, worst in WORST.items()
    }
    return {
        "orig": dict(orig),
        "cf": {"X": X_cf, **after},
        "target": np.broadcast_to(target, decided.shape).copy(),
        **worth,
        **{n: recourses.actions[[n]].to_numpy(dtype=bool) for n in ("success", "credible")},
        "action": _action(recourses, X_cf.astype(np.float64) - X.astype(np.float64)),
        "changes": _changes(recourses),
    }


def _changes(recourses: Recourses) -> list[list[dict[str, Any]]]:
    """The lines of each answer."""
    lines = recourses.changes.drop(columns=["row", "rank"]).astype(object)
    each = iter(lines.where(lines.notna(), None).to_dict("records"))
    return [[next(each) for _ in own] for own in recourses.lines]


def _action(recourses: Recourses, moved: Array) -> dict[str, Any]:
    schema = recourses.encoder.schema
    direct = schema.of_columns(recourses.proposal.direct) & (moved != 0.0)
    forced = ~direct & schema.of_columns(recourses.proposal.rows == recourses.alone)
    along = torch.from_numpy(schema.causal_order.mates(recourses.proposal.direct.numpy()))
    mates = schema.of_columns(along) & ~(direct | forced)
    names = np.array(schema.column_names, dtype=object)
    costs = recourses.actions[list(_COSTS)].to_numpy(dtype=np.float64)
    return {
        "direct_features": [names[row].tolist() for row in direct],
        "direct": np.where(direct, moved, 0.0),
        "forced": np.where(forced, moved, 0.0),
        "indirect": np.where(direct | forced, 0.0, moved),
        "association": np.where(mates, moved, 0.0),
        **{name: costs[:, [i]] for i, name in enumerate(_COSTS)},
        "reason": recourses.actions["reason"].tolist(),
    }
