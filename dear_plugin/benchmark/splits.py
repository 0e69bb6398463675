"""Splits of data sets with their constraints, trained models, and rejected rows.

Models are the paper's classifiers and tree ensembles, both retrained on bootstrap samples.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pandas as pd
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from dear_plugin.benchmark.metrics import Accepts, decision
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Schema
from dear_plugin.datasets import (
    Dataset,
    load_adult,
    load_compas,
    load_give_me_some_credit,
    load_loan,
)
from dear_plugin.demo.classifiers import HIDDEN, Kind, Recipe, recipe, trained
from dear_plugin.errors import DataError
from dear_plugin.paper.autoencoder.networks import StackedLinear, StackedMLP

LEAST_REFUSED = 50
MOST_SEEDS = 30
RETRAININGS = 5
# The offsets to the seeds of models that measure answers, and of copies for the search.
AGAIN = {"again": 0, "copies": MOST_SEEDS}
NETWORKS, TREES = ("lr", "ann"), "trees"


def own_rules(data: Dataset) -> dict[str, Any]:
    """The arguments of the data set's own protocol."""
    return {name: getattr(data, name) for name in ("immutable", "increasing", "tiers")}


def paper_rules(data: Dataset) -> dict[str, Any]:
    """The paper's protocol: only sex and race are immutable, no tiers, its unit of cost."""
    return {"immutable": data.protected, "central": 1.0}


@dataclass(frozen=True)
class Setting:
    """A data set and the features that may change.

    Attributes:
        name: the name of the setting.
        load: a function that loads the data set.
        kinds: the classifiers: "lr" and "ann" of the paper, or boosted "trees".
        rules: a function from the data set to arguments of `Schema.infer`.
        weights: the prefix of its files of weights.
    """

    name: str
    load: Callable[[], Dataset]
    kinds: tuple[str, ...]
    rules: Callable[[Dataset], dict[str, Any]]
    weights: str

    @property
    def own(self) -> bool:
        """Whether the protocol is that of the data set, with its `act_on`."""
        return self.rules is own_rules


PAPER: Mapping[str, Callable[[], Dataset]] = {
    "adult": load_adult,
    "compas": load_compas,
    "gmc": load_give_me_some_credit,
}
_ALL = (
    *(Setting(name, load, NETWORKS, paper_rules, name) for name, load in PAPER.items()),
    *(Setting(f"{name}-own", load, NETWORKS, own_rules, name) for name, load in PAPER.items()),
    Setting("adult-full", lambda: load_adult("full"), (TREES,), own_rules, "adult-full"),
    Setting("loan", load_loan, ("lr",), own_rules, "loan"),
)
SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _ALL}
# The setting and the classifier of each cell, by the name in tables and arguments.
CELLS: Mapping[str, tuple[str, str]] = {
    f"{s.name} {k}": (s.name, k) for s in _ALL for k in s.kinds
}


@dataclass(frozen=True, eq=False)
class ScoredModel:
    """A model, its retrained copies, and the test rows that it rejects.

    Attributes:
        kind: the kind of classifier.
        seed: the seed of its weights.
        model: the model for `DEAR`.
        accepts: a function that returns which rows of a frame it accepts.
        again: a function from a name of `AGAIN` to copies, retrained on bootstrap samples.
        refused: the rejected test rows.
        schema: the features.
    """

    kind: str
    seed: int
    model: Any
    accepts: Accepts
    again: Callable[[str], list[Any]]
    refused: pd.DataFrame
    schema: Schema

    @cached_property
    def retrained(self) -> tuple[Accepts, ...]:
        """For each retrained model, a function that returns which rows of a frame it accepts."""
        return tuple(decision(model, self.schema) for model in self.again("again"))

    @cached_property
    def copies(self) -> list[Any]:
        """Other retrained models, for `DEAR(copies=)`."""
        return self.again("copies")


@dataclass(frozen=True)
class DataSplit:
    """The training and test rows of a setting.

    Attributes:
        setting: the data set and the features that may change.
        cache: a folder for trained weights.
    """

    setting: Setting
    cache: Path

    @cached_property
    def data(self) -> Dataset:
        """The data set."""
        return self.setting.load()

    @cached_property
    def parts(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Training and test rows, without test rows whose category no training row has."""
        train, test = self.data.split(seed=0)
        for name in self.data.categorical:
            test = test[test[name].isin(train[name].unique())]
        return train, test

    @cached_property
    def schema(self) -> Schema:
        """The features."""
        rules = self.setting.rules(self.data)
        return Schema.infer(self.parts[0], target=self.data.target, **rules)

    @property
    def act_on(self) -> list[str] | None:
        """The actionable features; None for all mutable ones."""
        return list(self.data.act_on) if self.setting.own else None

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder of the schema."""
        return Encoder(self.schema)

    @cached_property
    def rows(self) -> Tensor:
        """(n, p) the training rows."""
        return self.encoder.rows(self.parts[0])

    def model(self, kind: str) -> ScoredModel:
        """The first model, by seed, that rejects enough rows.

        Raises:
            DataError: there is none.
        """
        train, test = self.parts
        names, labels = list(self.schema.names), train[self.data.target]
        make = self._trees if kind == TREES else self._network
        for seed in range(MOST_SEEDS):
            model, again = make(kind, train[names], labels, seed)
            accepts = decision(model, self.schema)
            refused = test[~accepts(test)][names]
            if len(refused) >= LEAST_REFUSED:
                return ScoredModel(kind, seed, model, accepts, again, refused, self.schema)
        raise DataError(
            f"{self.setting.name}: expected a {kind} classifier that rejects {LEAST_REFUSED} test"
            f" rows, got fewer with each of {MOST_SEEDS} seeds"
        )

    def _network(self, kind: Any, frame: pd.DataFrame, labels: pd.Series, seed: int) -> _Made:
        x, y = self.encoder.encode(frame), torch.tensor(labels.to_numpy())
        path = self.cache / f"{self.setting.weights}-{kind}-{seed}.safetensors"
        how = recipe(self.data.name)
        model = network(path, how, kind, x, y, seed)

        def _again(name: str) -> list[Any]:
            own, other = path.with_name(f"{path.stem}-{name}.safetensors"), seed + AGAIN[name]
            return list(networks_again(own, how, kind, x, y, other, RETRAININGS))

        return model, _again

    def _trees(self, kind: str, frame: pd.DataFrame, labels: pd.Series, seed: int) -> _Made:
        model = forest("HistGradientBoosting", frame, labels, seed)
        return model, lambda name: boosted_again(frame, labels, seed + AGAIN[name], RETRAININGS)


_Made = tuple[Any, Callable[[str], list[Any]]]


@lru_cache(maxsize=1)
def data_split(cache: Path, name: str) -> DataSplit:
    """The split of a setting by name; the last one is cached."""
    return DataSplit(SETTINGS[name], cache)


@lru_cache(maxsize=2)
def scored_model(data: DataSplit, kind: str) -> ScoredModel:
    """See `DataSplit.model`; the last ones are cached."""
    return data.model(kind)


def case_of(folder: Path, cell: str) -> tuple[DataSplit, ScoredModel]:
    """The data split and the model of a cell, by a name of `CELLS`."""
    name, kind = CELLS[cell]
    data = data_split(folder, name)
    return data, scored_model(data, kind)


# The class of each ensemble, and its arguments besides the seed.
FORESTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "RandomForest": ("sklearn.ensemble:RandomForestClassifier", {}),
    "HistGradientBoosting": (
        "sklearn.ensemble:HistGradientBoostingClassifier",
        {"early_stopping": False},
    ),
    "XGBoost": ("xgboost:XGBClassifier", {"n_jobs": 1}),
    "LightGBM": ("lightgbm:LGBMClassifier", {"n_jobs": 1, "verbose": -1}),
}


def network(
    path: Path, recipe: Recipe, kind: Kind, x: Tensor, labels: Tensor, seed: int
) -> nn.Sequential:
    """A trained classifier, read from its file if that exists.

    Args:
        path: the file of its weights.
        recipe: the recipe.
        kind: "ann" or "lr".
        x: (n, d) encoded training rows.
        labels: (n,) 0 or 1.
        seed: the seed of weights and batches.
    """
    like = trained(kind, x[:1], labels[:1], replace(recipe, epochs=0), seed)
    (found,) = _stored(path, like, lambda: [trained(kind, x, labels, recipe, seed)])
    return found


def networks_again(
    path: Path, recipe: Recipe, kind: Kind, x: Tensor, labels: Tensor, seed: int, count: int
) -> list[nn.Sequential]:
    """`count` classifiers trained on bootstrap samples; for other arguments see `network`."""
    like = trained(kind, x[:1], labels[:1], replace(recipe, epochs=0), seed)
    return _stored(path, like, lambda: retrained(kind, x, labels, recipe, count=count, seed=seed))


def retrained(
    kind: Kind, x: Tensor, labels: Tensor, recipe: Recipe, *, count: int, seed: int
) -> list[nn.Sequential]:
    """Classifiers of a recipe trained on bootstrap samples, with other initial weights.

    They are trained as one stack, as most of the time of small networks is overhead of calls.

    Args:
        kind: "ann" or "lr".
        x: (n, d) encoded training rows.
        labels: (n,) 0 or 1.
        recipe: the recipe.
        count: the number of classifiers (r).
        seed: the seed of samples, weights and batches; global generators are not used.
    """
    rng = torch.Generator().manual_seed(seed)
    stack = StackedMLP(count, (x.shape[1], *HIDDEN[kind], 1), nn.ReLU, rng)
    optimiser = torch.optim.Adam(stack.parameters(), lr=recipe.rate)
    n = len(x)
    rows = torch.randint(n, (count, n), generator=rng)
    y, loss_of = labels.float(), nn.BCEWithLogitsLoss(reduction="none")
    for _ in range(recipe.epochs):
        order = torch.rand(count, n, generator=rng).argsort(1)
        for batch in rows.gather(1, order).split(recipe.batch, 1):
            optimiser.zero_grad(set_to_none=True)
            # The gradients of networks do not interact in the sum of their mean losses.
            loss_of(stack(x[batch])[..., 0], y[batch]).mean(1).sum().backward()
            optimiser.step()
    like = trained(kind, x[:1], labels[:1], replace(recipe, epochs=0))
    return [_network(stack, i, like) for i in range(count)]


def _network(stack: StackedMLP, at: int, like: nn.Sequential) -> nn.Sequential:
    """One of the networks of a stack as a separate network."""
    net = copy.deepcopy(like)
    with torch.no_grad():
        for layer, own in zip(stack, net, strict=True):
            if isinstance(layer, StackedLinear) and isinstance(own, nn.Linear):
                own.weight.copy_(layer.weight[at].T)
                own.bias.copy_(layer.bias[at, 0])
    return net


def _stored(
    path: Path, like: nn.Sequential, make: Callable[[], list[nn.Sequential]]
) -> list[nn.Sequential]:
    """Networks from a file, which is written if it does not exist."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        save_file(nn.ModuleList(make()).state_dict(), part)
        part.replace(path)
    weights = load_file(path)
    count = len({name.partition(".")[0] for name in weights})
    nets = [copy.deepcopy(like) for _ in range(count)]
    nn.ModuleList(nets).eval().load_state_dict(weights)
    return nets


def forest(kind: str, frame: pd.DataFrame, labels: pd.Series, seed: int) -> Any:
    """A fitted pipeline of category codes and a tree ensemble.

    Args:
        kind: a name of `FORESTS`.
        frame: n training rows, without labels.
        labels: (n,) 0 or 1.
        seed: the seed of the ensemble.

    Raises:
        ModuleNotFoundError: its package is not installed.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    categorical = list(frame.select_dtypes(exclude="number").columns)
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer((codes, categorical), remainder="passthrough")
    # LightGBM requires the column names of the fit.
    columns.set_output(transform="pandas")
    name, options = FORESTS[kind]
    trees = resolve_name(name)(random_state=seed, **options)
    if "categorical_features" in trees.get_params():
        trees.set_params(categorical_features=[*range(len(categorical))])
    return make_pipeline(columns, trees).fit(frame, labels)


def boosted_again(frame: pd.DataFrame, labels: pd.Series, seed: int, count: int) -> list[Any]:
    """`count` boosted trees fitted on bootstrap samples; for other arguments see `forest`."""
    states = range(1000 * (1 + seed), 1000 * (1 + seed) + count)
    samples = [frame.sample(len(frame), replace=True, random_state=state) for state in states]
    return [forest("HistGradientBoosting", x, labels.loc[x.index], seed) for x in samples]
