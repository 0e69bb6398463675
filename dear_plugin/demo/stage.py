"""The stage: a trained model and the people it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
from torch import nn

from dear_plugin.benchmark.classifiers import accuracy, recipe, trained
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Schema
from dear_plugin.datasets import (
    Dataset,
    load_adult,
    load_compas,
    load_give_me_some_credit,
    load_loan,
)
from dear_plugin.errors import DataError

LOADERS: dict[str, Callable[[], Dataset]] = {
    "loan": load_loan,
    "adult": load_adult,
    "compas": load_compas,
    "gmc": load_give_me_some_credit,
}
FEWEST_REFUSED = 50
MOST_SEEDS = 20


@dataclass(frozen=True)
class Demo:
    """What to show.

    Attributes:
        dataset: a name of `LOADERS`.
        decoder: "transport", "autoencoder" or "paper".
        rows: how many refused rows to explain, at most.
        seed: of the split and the first classifier.
        figure: where the picture goes; None is `dear-demo-<dataset>.png` here.
    """

    dataset: str = "loan"
    decoder: str = "transport"
    rows: int = 500
    seed: int = 0
    figure: Path | None = None


@dataclass(frozen=True)
class Stage:
    """A trained model and the people it refuses.

    Attributes:
        data: the data set.
        schema: its features.
        train: the rows everything was fitted on.
        test: held-out rows.
        refused: the test rows to explain.
        model: logits of the encoded tensor.
        story: one sentence on it.
    """

    data: Dataset
    schema: Schema
    train: pd.DataFrame
    test: pd.DataFrame
    refused: pd.DataFrame
    model: nn.Module
    story: str


def stage(plan: Demo) -> Stage:
    """Load, split and train; the first seed whose model refuses enough people is taken.

    Raises:
        DataError: no seed does.
    """
    data = LOADERS[plan.dataset]()
    train, test = data.split(seed=plan.seed)
    schema = Schema.infer(
        train, target=data.target, immutable=data.immutable, increasing=data.increasing
    )
    encoder = Encoder(schema)
    x, x_test = encoder.encode(train), encoder.encode(test)
    labels, truth = (torch.tensor(f[data.target].to_numpy()) for f in (train, test))
    for seed in range(plan.seed, plan.seed + MOST_SEEDS):
        model = trained("ann", x, labels, recipe(data.name), seed)
        with torch.no_grad():
            refused = test[(model(x_test)[:, 0] <= 0).numpy()]
        if len(refused) >= FEWEST_REFUSED:
            story = (
                f"{data.name}: {len(train):,} training rows; the paper's network (seed {seed}) is"
                f" right on {accuracy(model, x_test, truth):.1%} of {len(test):,} test rows and"
                f" refuses {len(refused):,}."
            )
            chosen = refused.iloc[: plan.rows]
            return Stage(data, schema, train, test, chosen, model, story)
    raise DataError(f"none of {MOST_SEEDS} models refuses {FEWEST_REFUSED} rows of {data.name}")
