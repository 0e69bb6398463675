"""A trained model and the rows that it rejects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from dear_plugin import Constraints, Encoder, Schema, datasets
from dear_plugin.demo.classifiers import accuracy, recipe, trained
from dear_plugin.errors import DataError

# Data sets, the constraints that the demo changes, and the values that an applicant can reach:
# hours of a week, a degree to finish, jobs to change to.
EXAMPLES: dict[str, tuple[Callable[[], datasets.Dataset], dict[str, Any], Constraints]] = {
    "loan": (
        datasets.load_loan,
        # The data set lets age change indirectly; here it is immutable.
        {"immutable": ("gender", "age"), "increasing": ("education", "income", "savings")},
        Constraints(ranges={"education": (5, 16), "duration": (48, 84)}),
    ),
    "adult": (
        partial(datasets.load_adult, "full"),
        # Hours, schooling and work rather than an investment that most rows do not have.
        {"act_on": ("workclass", "education", "occupation", "hours-per-week")},
        Constraints(
            # No text should expect a marriage or an investment.
            frozen=["marital-status", "relationship", "capital-gain", "capital-loss"],
            ranges={"hours-per-week": (20, 60)},
            categories={
                "workclass": ["Private"],
                "education": ["Bachelors", "Masters"],
                "occupation": ["Craft-repair", "Exec-managerial", "Sales", "Tech-support"],
            },
        ),
    ),
    "compas": (datasets.load_compas, {}, Constraints()),
    "gmc": (datasets.load_give_me_some_credit, {}, Constraints()),
}
MOST_TRAINING_ROWS = 40_000
FEWEST_REFUSED = 50
MOST_SEEDS = 20


@dataclass(frozen=True)
class Demo:
    """The settings of the demo.

    Attributes:
        dataset: a name of `EXAMPLES`.
        decoder: "transport" or "autoencoder".
        rows: the largest number of rejected rows.
        seed: the seed of the split and the first classifier.
        figure: the path of the figure; None for `dear-demo-<dataset>.png`.
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
        within: the constraints of the answers.
        model: a module that returns logits of the encoded tensor.
        how: the arguments of DEAR in Python and in the hosts.
        summary: one sentence on the model.
    """

    data: datasets.Dataset
    schema: Schema
    train: pd.DataFrame
    test: pd.DataFrame
    refused: pd.DataFrame
    within: Constraints
    model: nn.Module
    how: dict[str, Any]
    summary: str


def make_experiment(demo: Demo) -> Experiment:
    """The experiment with the first seed whose model rejects enough rows.

    Raises:
        DataError: no seed has such a model.
    """
    load, changes, within = EXAMPLES[demo.dataset]
    data = replace(load(), **changes)
    whole, test = data.split(seed=demo.seed)
    train = _sample(whole, demo.seed)
    for name in data.categorical:  # a rare category may be in the test rows alone
        test = test[test[name].isin(train[name].unique())]
    marks = ("target", "immutable", "increasing", "tiers", "labels", "units")
    schema = Schema.infer(train, **{name: getattr(data, name) for name in marks})
    (x, labels), (x_test, truth) = (
        (Encoder(schema).encode(rows), torch.tensor(rows[data.target].to_numpy()))
        for rows in (train, test)
    )
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
            how = {"act_on": list(data.act_on), "decoder": demo.decoder}
            return Experiment(data, schema, train, test, chosen, within, model, how, summary)
    raise DataError(
        f"none of {MOST_SEEDS} models rejects at least {FEWEST_REFUSED} rows of {data.name}: use"
        " another seed"
    )


def _sample(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    """At most `MOST_TRAINING_ROWS` rows, in order, drawn by a local generator."""
    drawn = np.random.default_rng(seed).permutation(len(rows))[:MOST_TRAINING_ROWS]
    return rows.iloc[np.sort(drawn)]
