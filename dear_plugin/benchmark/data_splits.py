"""Data splits: the data, models and rejected rows of `benchmark credible`, by split."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from dear_plugin.benchmark.bootstrap import retrained
from dear_plugin.benchmark.classifiers import recipe, trained
from dear_plugin.benchmark.forests import forest
from dear_plugin.benchmark.metrics import Accepts, decision
from dear_plugin.benchmark.protocol import LEAST_REFUSED, LOADERS, MOST_SEEDS
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Schema
from dear_plugin.datasets import Dataset, load_adult, load_loan
from dear_plugin.errors import DataError

RETRAININGS = 5
TREES = "trees"


@dataclass(frozen=True)
class Setting:
    """A data set and the features that may change.

    Attributes:
        name: of the setting.
        load: the data set.
        kinds: the classifiers: "lr" and "ann" of the paper, or boosted "trees".
        own: the data set's own act_on, immutable, increasing and tiers; else the paper's protocol,
            sex and race immutable, all else free and no tiers.
        weights: the prefix of its files of weights.
    """

    name: str
    load: Callable[[], Dataset]
    kinds: tuple[str, ...]
    own: bool
    weights: str

    @property
    def cells(self) -> tuple[str, ...]:
        """What the tables call its cells: data set, protocol and classifier."""
        return tuple(f"{self.name} {kind}" for kind in self.kinds)


NETWORKS = ("lr", "ann")
_ALL = (
    *(Setting(name, load, NETWORKS, False, name) for name, load in LOADERS.items()),
    *(Setting(f"{name}-own", load, NETWORKS, True, name) for name, load in LOADERS.items()),
    Setting("adult-full", lambda: load_adult("full"), (TREES,), True, "adult-full"),
    Setting("loan", load_loan, ("lr",), True, "loan"),
)
SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _ALL}
CELLS = tuple(cell for setting in _ALL for cell in setting.cells)


@dataclass(frozen=True)
class DataSplit:
    """One split of a setting.

    Attributes:
        setting: the data set and the features that may change.
        split: the seed of training and test rows.
        cache: a folder for trained weights.
    """

    setting: Setting
    split: int
    cache: Path

    @property
    def name(self) -> str:
        """The name of the setting."""
        return self.setting.name

    @cached_property
    def data(self) -> Dataset:
        """The data set."""
        return self.setting.load()

    @cached_property
    def parts(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Training and test rows; test rows with a category of no training row are left out."""
        train, test = self.data.split(seed=self.split)
        for name in self.data.categorical:
            test = test[test[name].isin(train[name].unique())]
        return train, test

    @cached_property
    def schema(self) -> Schema:
        """The features."""
        data, train = self.data, self.parts[0]
        if not self.setting.own:
            return Schema.infer(train, target=data.target, immutable=data.protected)
        return Schema.infer(
            train,
            target=data.target,
            immutable=data.immutable,
            increasing=data.increasing,
            tiers=data.tiers,
        )

    @property
    def act_on(self) -> list[str] | None:
        """The actionable features; None for all mutable ones."""
        return list(self.data.act_on) if self.setting.own else None

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder of the schema."""
        return Encoder(self.schema)

    def model(self, kind: str) -> ScoredModel:
        """The first model of `models`.

        Raises:
            DataError: no seed gives a model that rejects enough rows.
        """
        for model in self.models(kind):
            return model
        raise DataError(f"{self.name}: no {kind} refuses {LEAST_REFUSED} test rows")

    def models(self, kind: str) -> Iterator[ScoredModel]:
        """Models that reject enough rows, by seed, and each retrained on bootstrap samples."""
        train, test = self.parts
        labels = train[self.data.target]
        names = list(self.schema.names)
        for seed in range(MOST_SEEDS):
            model, others = (
                _trees(train[names], labels, seed)
                if kind == TREES
                else self._networks(kind, self.encoder.encode(train), labels, seed)
            )
            accepts = decision(model, self.schema)
            refused = test[~accepts(test)][names]
            if len(refused) >= LEAST_REFUSED:
                yield ScoredModel(kind, seed, model, accepts, others(self.schema), refused)

    def _networks(self, kind: Any, x: Tensor, labels: pd.Series, seed: int) -> _Made:
        y, how = torch.tensor(labels.to_numpy()), recipe(self.setting.weights)
        path = self.cache / f"{self.setting.weights}-{kind}-{self.split}-{seed}.safetensors"
        template = trained(kind, x[:1], y[:1], replace(how, epochs=0), seed)
        (model,) = _stored(path, template, lambda: [trained(kind, x, y, how, seed)])

        def _others(schema: Schema) -> tuple[Accepts, ...]:
            file = path.with_name(path.stem + "-again.safetensors")
            nets = _stored(
                file,
                template,
                lambda: retrained(kind, x, y, how, count=RETRAININGS, seed=seed),
            )
            return tuple(decision(net, schema) for net in nets)

        return model, _others


_Made = tuple[Any, Callable[[Schema], tuple[Accepts, ...]]]


@dataclass(frozen=True)
class ScoredModel:
    """A model, its retrained copies, and the test rows that it rejects.

    Attributes:
        kind: of classifier.
        seed: of its weights.
        model: as `DEAR` takes it.
        accepts: which rows of a frame it accepts.
        retrained: the same of the retrained models.
        refused: the rejected test rows.
    """

    kind: str
    seed: int
    model: Any
    accepts: Accepts
    retrained: tuple[Accepts, ...]
    refused: pd.DataFrame


def _stored(
    path: Path, template: nn.Sequential, make: Callable[[], list[nn.Sequential]]
) -> list[nn.Sequential]:
    """Networks from a file, which is written if it does not exist."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        nets = make()
        tensors = {
            f"{i}.{k}": v for i, net in enumerate(nets) for k, v in net.state_dict().items()
        }
        save_file(tensors, path)
    tensors = load_file(path)
    read = []
    for i in range(1 + max(int(name.partition(".")[0]) for name in tensors)):
        net = copy.deepcopy(template)
        own = {k.partition(".")[2]: v for k, v in tensors.items() if k.startswith(f"{i}.")}
        net.load_state_dict(own)
        read.append(net.eval())
    return read


def _trees(frame: pd.DataFrame, labels: pd.Series, seed: int) -> _Made:
    """Boosted trees of a frame, and the function that makes the retrained ones."""

    def _others(schema: Schema) -> tuple[Accepts, ...]:
        models = []
        for i in range(RETRAININGS):
            sample = frame.sample(len(frame), replace=True, random_state=1000 * (1 + seed) + i)
            models.append(_boosted(sample, labels.loc[sample.index], seed))
        return tuple(decision(model, schema) for model in models)

    return _boosted(frame, labels, seed), _others


def _boosted(frame: pd.DataFrame, labels: pd.Series, seed: int) -> Any:
    return forest("HistGradientBoosting", frame, labels, seed)
