"""Experiment: a model and its rejected rows, for comparisons with the hosts; requirements."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

import pandas as pd
import torch
from torch import nn

from dear_plugin.benchmark.classifiers import accuracy, recipe, trained
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind, Schema
from dear_plugin.datasets import Dataset
from dear_plugin.errors import DataError


@dataclass(frozen=True)
class Experiment:
    """A model and its rejected rows.

    Attributes:
        name: of the data set.
        target: the column of labels.
        schema: the features; frozen ones are an argument of each call.
        train: the training rows, with labels.
        refused: the rejected test rows, without labels.
        model: logits of the encoded tensor.
        accuracy: of the model, on all test rows.
        act_on: the actionable features.
    """

    name: str
    target: str
    schema: Schema
    train: pd.DataFrame
    refused: pd.DataFrame
    model: nn.Module
    accuracy: float
    act_on: tuple[str, ...]

    @property
    def numbers(self) -> list[str]:
        """The numeric features."""
        return [f.name for f in self.schema if f.kind is Kind.NUMERIC]


@dataclass(frozen=True)
class Requirement:
    """A requirement set before the run.

    Attributes:
        requirement: what is measured.
        required: the required value.
        measured: the measured value.
        met: whether it is met.
    """

    requirement: str
    required: str
    measured: str
    met: bool

    @property
    def row(self) -> dict[str, Any]:
        """The row of a table."""
        return {**vars(self), "met": "met" if self.met else "NOT MET"}


def make_experiment(
    data: Dataset, rows: int, *, without: Sequence[str] = (), seed: int = 0
) -> Experiment:
    """Split the data, train the paper's network, and select rejected test rows.

    Args:
        data: the data set.
        rows: the largest number of rejected rows.
        without: columns to leave out.
        seed: of the split and the network.

    Raises:
        DataError: no row is rejected.
    """
    train, test = (part.drop(columns=list(without)) for part in data.split(seed=seed))
    schema = _schema(pd.concat([train, test]), train, data.target)
    encoder = Encoder(schema)
    x, x_test = encoder.encode(train), encoder.encode(test)
    labels, truth = (torch.tensor(part[data.target].to_numpy()) for part in (train, test))
    model = trained("ann", x, labels, recipe(data.name), seed)
    with torch.no_grad():
        refused = test[(model(x_test)[:, 0] <= 0).numpy()][list(schema.names)].iloc[:rows]
    if not len(refused):
        raise DataError(f"the model rejects none of {len(test)} test rows of {data.name}")
    right = accuracy(model, x_test, truth)
    act_on = tuple(name for name in data.act_on if name in schema.names)
    return Experiment(data.name, data.target, schema, train, refused, model, right, act_on)


@contextmanager
def silent() -> Iterator[None]:
    """Suppress the warnings, progress bars and messages of a host."""
    with (
        warnings.catch_warnings(),
        redirect_stdout(StringIO()),
        redirect_stderr(StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


def lines(requirements: Iterable[Requirement]) -> list[dict[str, Any]]:
    """The rows of a table of requirements."""
    return [requirement.row for requirement in requirements]


def _schema(all_rows: pd.DataFrame, train: pd.DataFrame, target: str) -> Schema:
    """A schema with the bounds of training rows and the categories of all rows, as hosts need."""
    seen = Schema.infer(train, target=target)
    known = Schema.infer(all_rows, target=target)
    pairs = zip(seen, known, strict=True)
    features = tuple(s if s.kind is Kind.NUMERIC else k for s, k in pairs)
    return dataclasses.replace(seen, features=features)
