"""DiCE's and Alibi's own methods for a model and a schema, to compare them with DEAR."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pandas as pd
from torch import nn

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.feature import with_cells
from dear_plugin.data.schema import Schema
from dear_plugin.demo.cfrl import Example, Rows, explainer, networks, train
from dear_plugin.demo.wrappings import OnAlibi, OnDice
from dear_plugin.methods.base import RecourseMethod

# Probability columns of each method of DiCE (some misinterpret a single one), and its fastest
# sparsity option. `gradient` has none, as it takes 20 seconds per row with one.
DICE: Mapping[str, tuple[int, Mapping[str, Any]]] = {
    "random": (1, {"posthoc_sparsity_algorithm": "binary"}),
    "genetic": (2, {"posthoc_sparsity_algorithm": "binary"}),
    "kdtree": (2, {"posthoc_sparsity_algorithm": "binary"}),
    "gradient": (1, {"posthoc_sparsity_param": None}),
}
# `genetic` may never end the search of its first generation.
MOST_CPU_S = 20.0


def of_dice(
    method: str, model: Any, schema: Schema, frame: pd.DataFrame, *, target: str
) -> RecourseMethod:
    """A fitted method of DiCE with the constraints of a schema.

    Args:
        method: "random", "genetic", "kdtree" or, for torch modules, "gradient".
        model: a module that returns logits, or an object with `predict_proba`.
        schema: the features.
        frame: n training rows.
        target: the column of decisions.
    """
    import dice_ml

    import dear_dice

    columns, arguments = DICE[method]
    names = [*schema.column_names, target]
    numbers = {"continuous_features": [*schema.numbers], "outcome_name": target}
    data = dice_ml.Data(dataframe=frame[names], **numbers)
    if isinstance(model, nn.Module):
        module = OnDice(model, schema, columns)
        host = dice_ml.Model(model=module, backend="PYT", func="ohe-min-max")
    else:
        host = dice_ml.Model(model=_on_text(model, schema), backend="sklearn")
    rules = {**_rules(schema), "decreasing": [c.name for c in schema.columns if c.direction < 0]}
    rules["ranges"] = {c.name: c.limits for c in schema.columns if c.limits}
    limited = Limited(dice_ml.Dice(data, host, method=method))
    return dear_dice.wrap_dice(limited, **rules, **arguments).fit(frame)


def of_alibi(
    model: Any, schema: Schema, frame: pd.DataFrame, *, steps: int = 10_000
) -> RecourseMethod:
    """A CounterfactualRLTabular with its autoencoder, trained as in Alibi's Adult example.

    Args:
        model: see `of_dice`.
        schema: the features.
        frame: n training rows.
        steps: the number of training steps, of 10 to 30 CPU milliseconds each.
    """
    import dear_alibi

    kind = OnAlibi if isinstance(model, nn.Module) else FramesOnAlibi
    predictor, rows_of = kind(model, schema), frame[list(schema.column_names)]
    whole = [c.name for c in schema.columns if c.precision == 0]
    rows = Rows(predictor.array(rows_of), list(rows_of), predictor.category_map, whole)
    how = Example(steps=steps)
    nets = networks(rows, how)
    train(nets, rows, how)
    agent = explainer(rows, predictor, nets, how, **_rules(schema))
    agent.fit(rows.X)
    return dear_alibi.wrap_alibi(agent, schema).fit(rows_of)


def _on_text(model: Any, schema: Schema) -> Any:
    """A model of frames whose categories are text; the model itself if they are text already."""
    categories = [c for f in schema.columns for c in f.categories if c is not None]
    return model if all(isinstance(c, str) for c in categories) else OnText(model, schema)


def _rules(schema: Schema) -> dict[str, Any]:
    """The constraints that both hosts support."""
    return {
        "immutable": [c.name for c in schema.columns if c.immutable],
        "increasing": [c.name for c in schema.columns if c.direction > 0],
    }


class FramesOnAlibi(OnAlibi):
    """A model of frames as a function of label-encoded rows; for arguments see `OnAlibi`."""

    def __init__(self, model: Any, schema: Schema) -> None:
        super().__init__(model, schema)
        self.predicts = model
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_

    def __call__(self, x: Any) -> Any:
        """The probabilities of both classes, (n, 2), of rows, (n, p)."""
        return self.predicts.predict_proba(self.frame(x))


class OnText:
    """A model of frames whose categories are text, as in DiCE.

    Args:
        model: a model of frames, with `predict_proba`.
        schema: the features, with the categories of the model's frames.
    """

    def __init__(self, model: Any, schema: Schema) -> None:
        self.model, self.encoder = model, Encoder(schema)
        self.own = {
            column.name: {str(each): each for each in column.choices}
            for column in schema.columns
            if column.name not in schema.numbers
        }

    def __getattr__(self, name: str) -> Any:
        """An attribute of the model; its functions get frames in the model's own values."""
        found = getattr(self.__dict__["model"], name)
        return (lambda frame: found(self.frame(frame))) if name.startswith("predict") else found

    def frame(self, text: pd.DataFrame) -> pd.DataFrame:
        """The frame, (n, p), in the model's own values and dtypes."""
        own = {n: [at.get(c, c) for c in text[n]] for n, at in self.own.items()}
        return self.encoder.typed(with_cells(text, own))


@dataclass(frozen=True)
class Limited:
    """An explainer of DiCE whose calls raise `TimeoutError` after some CPU seconds.

    Attributes:
        explainer: the explainer.
    """

    explainer: Any

    def __getattr__(self, name: str) -> Any:
        """An attribute of the explainer."""
        return getattr(self.explainer, name)

    def generate_counterfactuals(self, query: pd.DataFrame, **arguments: Any) -> Any:
        """The explainer's answer for one row."""
        with at_most(MOST_CPU_S):
            return self.explainer.generate_counterfactuals(query, **arguments)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """A context that raises `TimeoutError` after some CPU seconds, if the platform can."""
    main = threading.current_thread() is threading.main_thread()
    if not (main and hasattr(signal, "setitimer")):
        yield
        return

    def _late(*_: Any) -> None:
        raise TimeoutError(f"no answer within {seconds:g} CPU seconds")

    before = signal.signal(signal.SIGVTALRM, _late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
