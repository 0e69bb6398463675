"""Protocol: data sets, classifiers and rejected rows of the paper's experiment, by cell."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from dear_plugin.benchmark.classifiers import Kind, Recipe, accuracy, recipe, trained
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Schema
from dear_plugin.datasets import Dataset, load_adult, load_compas, load_give_me_some_credit
from dear_plugin.models.classifier import Classifier

LOADERS: dict[str, Callable[[], Dataset]] = {
    "adult": load_adult,
    "compas": load_compas,
    "gmc": load_give_me_some_credit,
}
LEAST_REFUSED = 50
MOST_SEEDS = 30

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cell:
    """One data set, one classifier, one seed: the paper's setting.

    Only the protected features (sex, race) are immutable.

    Attributes:
        dataset: "adult", "compas" or "gmc".
        kind: "lr" or "ann".
        seed: of the split's classifier.
        schema: the features.
        train: the training rows.
        test: the test rows.
        refused: the test rows that the model rejects.
        model: logits.
        accuracy: on the test rows.
        plateau: share of refused rows where the model's gradient is exactly zero.
        protected: the immutable features.
    """

    dataset: str
    kind: Kind
    seed: int
    schema: Schema
    train: pd.DataFrame
    test: pd.DataFrame
    refused: pd.DataFrame
    model: nn.Module
    accuracy: float
    plateau: float
    protected: tuple[str, ...]

    @property
    def key(self) -> str:
        """The name of the cell in files."""
        return f"{self.dataset}-{self.kind}-{self.seed}"

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder of the schema."""
        return Encoder(self.schema)

    @cached_property
    def classifier(self) -> Classifier:
        """The model on encoded rows."""
        return Classifier(self.model, self.encoder)

    @cached_property
    def all_rows(self) -> torch.Tensor:
        """(m, p) all rows, training and test."""
        return torch.cat([self.encoder.rows(part) for part in (self.train, self.test)])


def cells(
    dataset: str, kind: Kind, count: int, cache: Path | None = None, *, split: int = 0
) -> Iterator[Cell]:
    """The first seeds from 0 upward whose classifier rejects at least 50 test rows.

    Args:
        dataset: a name of `LOADERS`.
        kind: the classifier.
        count: the number of cells.
        cache: a folder of trained weights; None trains every time.
        split: the seed of training and test rows.
    """
    data = LOADERS[dataset]()
    train, test = data.split(seed=split)
    schema = Schema.infer(train, target=data.target, immutable=data.protected)
    encoder = Encoder(schema)
    x, x_test = encoder.encode(train), encoder.encode(test)
    labels, truth = (torch.tensor(f[data.target].to_numpy()) for f in (train, test))
    found = 0
    for seed in range(MOST_SEEDS):
        path = None if cache is None else cache / f"{dataset}-{kind}-{split}-{seed}.safetensors"
        model = _model(x, labels, kind, recipe(dataset), seed, path)
        with torch.no_grad():
            refused = test[(model(x_test)[:, 0] <= 0).numpy()]
        if len(refused) < LEAST_REFUSED:
            logger.info(
                "%s %s seed %d rejects %d rows: skipped", dataset, kind, seed, len(refused)
            )
            continue
        flat = _plateau(model, encoder.encode(refused))
        right = accuracy(model, x_test, truth)
        yield Cell(
            dataset,
            kind,
            seed,
            schema,
            train,
            test,
            refused,
            model,
            right,
            flat,
            tuple(data.protected),
        )
        found += 1
        if found == count:
            return


def _model(
    x: torch.Tensor, labels: torch.Tensor, kind: Kind, how: Recipe, seed: int, path: Path | None
) -> nn.Module:
    """A trained model, read from its file if it exists."""
    if path is not None and path.exists():
        model = trained(kind, x[:1], labels[:1], replace(how, epochs=0), seed)
        model.load_state_dict(load_file(path))
        return model
    model = trained(kind, x, labels, how, seed)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(model.state_dict(), path)
    return model


def _plateau(model: nn.Module, x: torch.Tensor) -> float:
    """The share of rows with gradient exactly zero: dead ReLUs."""
    x = x.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(model(x).sum(), x)
    return float((gradient == 0).all(1).float().mean())
