"""The paper's classifiers: ANN d-18-9-3-1 with ReLU, and logistic regression (appendix tables)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from dear_plugin import isolated
from dear_plugin._threads import one_thread

Kind = Literal["ann", "lr"]
HIDDEN: dict[str, tuple[int, ...]] = {"ann": (18, 9, 3), "lr": ()}


@dataclass(frozen=True)
class Recipe:
    """The training settings of a classifier.

    Attributes:
        batch: the rows of a step.
        epochs: the number of passes over the rows.
        rate: the learning rate of Adam; the paper does not name an optimiser.
    """

    batch: int = 64
    epochs: int = 15
    rate: float = 2e-3


_PAPER = {
    "adult": Recipe(512, 50, 0.002),
    "compas": Recipe(32, 40, 0.002),
    "gmc": Recipe(64, 30, 0.001),
}


def recipe(dataset: str) -> Recipe:
    """The paper's recipe for a data set, or the default one."""
    return _PAPER.get(dataset, Recipe())


def trained(kind: Kind, x: Tensor, labels: Tensor, recipe: Recipe, seed: int = 0) -> nn.Sequential:
    """Train a classifier that returns logits, (m, d) -> (m, 1).

    Args:
        kind: "ann" or "lr".
        x: (n, d) encoded training rows.
        labels: (n,) 0 or 1.
        recipe: the recipe.
        seed: the seed of weights and batches; global generators are restored.
    """
    with isolated(seed), one_thread():
        widths = pairwise((x.shape[1], *HIDDEN[kind], 1))
        layers = [layer for a, b in widths for layer in (nn.Linear(a, b), nn.ReLU())]
        net = nn.Sequential(*layers[:-1])
        optimiser = torch.optim.Adam(net.parameters(), lr=recipe.rate)
        y, loss_of = labels.float()[:, None], nn.BCEWithLogitsLoss()
        for _ in range(recipe.epochs):
            for batch in torch.randperm(len(x)).split(recipe.batch):
                optimiser.zero_grad(set_to_none=True)
                loss_of(net(x[batch]), y[batch]).backward()
                optimiser.step()
    return net.eval()


def accuracy(net: nn.Module, x: Tensor, labels: Tensor) -> float:
    """The share of rows that a logit model classifies as labelled."""
    with torch.no_grad():
        predicted = net(x)[:, 0] > 0
    return float((predicted == (labels == 1)).float().mean())
