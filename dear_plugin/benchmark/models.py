"""The paper's classifiers, tree ensembles, and both retrained on bootstrap samples."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pandas as pd
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from dear_plugin.demo.classifiers import HIDDEN, Kind, Recipe, trained
from dear_plugin.paper.autoencoder.networks import StackedLinear, StackedMLP

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
