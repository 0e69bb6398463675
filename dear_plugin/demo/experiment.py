"""Experiment: a trained model and its rejected rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Schema
from dear_plugin.datasets import (
    Dataset,
    load_adult,
    load_compas,
    load_give_me_some_credit,
    load_loan,
)
from dear_plugin.demo.classifiers import accuracy, recipe, trained
from dear_plugin.errors import DataError
from dear_plugin.problem.constraints import Constraints

LOADERS: dict[str, Callable[[], Dataset]] = {
    "loan": load_loan,
    "adult": partial(load_adult, "full"),
    "compas": load_compas,
    "gmc": load_give_me_some_credit,
}
# Features acted on where these are not all actionable ones of the data set: hours, schooling and
# work rather than an investment that most rows do not have.
ACT_ON = {"adult": ("workclass", "education", "occupation", "hours-per-week")}
# What a person can reach: hours of a week, a degree to finish, jobs to change to; nobody is told
# that a marriage or an investment follows.
WITHIN = {
    "loan": Constraints(ranges={"education": (5, 16), "duration": (48, 84)}),
    "adult": Constraints(
        frozen=["marital-status", "relationship", "capital-gain", "capital-loss"],
        ranges={"hours-per-week": (20, 60)},
        categories={
            "workclass": ["Private"],
            "education": ["Bachelors", "Masters"],
            "occupation": ["Craft-repair", "Exec-managerial", "Sales", "Tech-support"],
        },
    ),
}
# No action changes an age; the loan data let the age change along with others.
IMMUTABLE = {"loan": ("gender", "age")}
MOST_TRAINING_ROWS = 40_000
FEWEST_REFUSED = 50
MOST_SEEDS = 20


@dataclass(frozen=True)
class Demo:
    """The settings of the demo.

    Attributes:
        dataset: a name of `LOADERS`.
        decoder: "transport", "autoencoder" or "paper".
        rows: the largest number of rejected rows.
        seed: of the split and the first classifier.
        figure: the path of the figure; None is `dear-demo-<dataset>.png`.
    """

    dataset: str = "loan"
    decoder: str = "transport"
    rows: int = 50
    seed: int = 0
    figure: Path | None = None


@dataclass(frozen=True)
class Experiment:
    """A trained model and its rejected rows.

    Attributes:
        data: the data set, with the features acted on.
        schema: its features.
        train: the training rows, or a sample of them.
        test: held-out rows.
        refused: the rejected test rows.
        within: what a person can reach.
        model: logits of the encoded tensor.
        summary: one sentence on the model.
    """

    data: Dataset
    schema: Schema
    train: pd.DataFrame
    test: pd.DataFrame
    refused: pd.DataFrame
    within: Constraints
    model: nn.Module
    summary: str


def make_experiment(demo: Demo) -> Experiment:
    """Load, split and train, with the first seed whose model rejects enough rows.

    Raises:
        DataError: no seed gives such a model.
    """
    data = _constrained(LOADERS[demo.dataset]())
    whole, test = data.split(seed=demo.seed)
    train = _sample(whole, demo.seed)
    for name in data.categorical:  # a rare category may be in the test rows alone
        test = test[test[name].isin(train[name].unique())]
    schema = Schema.infer(
        train,
        target=data.target,
        immutable=data.immutable,
        increasing=data.increasing,
        tiers=data.tiers,
    )
    encoder = Encoder(schema)
    x, x_test = encoder.encode(train), encoder.encode(test)
    labels, truth = (torch.tensor(f[data.target].to_numpy()) for f in (train, test))
    for seed in range(demo.seed, demo.seed + MOST_SEEDS):
        model = trained("ann", x, labels, recipe(data.name), seed)
        with torch.no_grad():
            refused = test[(model(x_test)[:, 0] <= 0).numpy()]
        if len(refused) >= FEWEST_REFUSED:
            summary = (
                f"{data.name}: the paper's network (seed {seed}), trained on {len(train):,} of"
                f" {len(whole):,} rows, has an accuracy of {accuracy(model, x_test, truth):.1%} on"
                f" {len(test):,} test rows and rejects {len(refused):,}."
            )
            chosen = refused.iloc[: demo.rows]
            within = WITHIN.get(data.name, Constraints())
            return Experiment(data, schema, train, test, chosen, within, model, summary)
    raise DataError(f"none of {MOST_SEEDS} models rejects {FEWEST_REFUSED} rows of {data.name}")


def _constrained(data: Dataset) -> Dataset:
    """The data set with the demo's actionable and immutable features."""
    immutable = IMMUTABLE.get(data.name, data.immutable)
    increasing = tuple(name for name in data.increasing if name not in immutable)
    act_on = ACT_ON.get(data.name, data.act_on)
    return replace(data, act_on=act_on, immutable=immutable, increasing=increasing)


def _sample(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    """At most `MOST_TRAINING_ROWS` rows, in order, drawn by a local generator."""
    drawn = np.random.default_rng(seed).permutation(len(rows))[:MOST_TRAINING_ROWS]
    return rows.iloc[np.sort(drawn)]
