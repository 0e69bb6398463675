"""What both hosts' tables share: one model, the people whom it refuses, and marks to meet."""

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
class Scene:
    """One model and the people whom it refuses.

    Attributes:
        name: of the data set.
        target: the column of labels.
        schema: the features; what is held comes with each call.
        train: the rows, labels among them, that everything is fitted on.
        refused: the test rows that ask for recourse, features alone.
        model: logits of the encoded tensor.
        accuracy: of the model, on all test rows.
        act_on: what a person can act on.
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
class Mark:
    """A mark to meet.

    Attributes:
        mark: what is measured.
        wanted: what it should be.
        measured: what it is.
        met: whether it is that.
    """

    mark: str
    wanted: str
    measured: str
    met: bool

    @property
    def row(self) -> dict[str, Any]:
        """A line of a table."""
        return {**vars(self), "met": "met" if self.met else "NOT MET"}


def scene(data: Dataset, rows: int, *, without: Sequence[str] = (), seed: int = 0) -> Scene:
    """Split, train the paper's network, and keep some of the test rows that it refuses.

    Args:
        data: the data set.
        rows: how many refused rows, at most.
        without: columns to leave out.
        seed: of the split and the network.

    Raises:
        DataError: nobody is refused.
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
        raise DataError(f"the model refuses none of {len(test)} test rows of {data.name}")
    right = accuracy(model, x_test, truth)
    act_on = tuple(name for name in data.act_on if name in schema.names)
    return Scene(data.name, data.target, schema, train, refused, model, right, act_on)


@contextmanager
def silent() -> Iterator[None]:
    """No warnings, progress bars and messages of a host for a while."""
    with (
        warnings.catch_warnings(),
        redirect_stdout(StringIO()),
        redirect_stderr(StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


def lines(marks: Iterable[Mark]) -> list[dict[str, Any]]:
    """Marks as the lines of a table."""
    return [mark.row for mark in marks]


def _schema(everyone: pd.DataFrame, train: pd.DataFrame, target: str) -> Schema:
    """The training rows' bounds, and every category of the data, as a host is told them."""
    seen = Schema.infer(train, target=target)
    known = Schema.infer(everyone, target=target)
    pairs = zip(seen, known, strict=True)
    features = tuple(s if s.kind is Kind.NUMERIC else k for s, k in pairs)
    return dataclasses.replace(seen, features=features)
