"""Alibi's CounterfactualRLTabular in PyTorch, with the settings of its Adult example."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from dear_plugin._threads import one_thread


@dataclass(frozen=True)
class Example:
    """The settings of Alibi's Adult example.

    Attributes:
        hidden: the width of the autoencoder's hidden layer.
        latent: the width of its latent layer.
        epochs: the number of passes over the training rows.
        batch: the rows of a training step of the autoencoder.
        rate: the learning rate of Adam.
        steps: the number of training steps of the actor and the critic.
        rows: the rows of such a step.
        sparsity: the weight of the sparsity loss.
        consistency: the weight of the consistency loss.
        seed: the seed of all generators.
    """

    hidden: int = 128
    latent: int = 15
    epochs: int = 50
    batch: int = 128
    rate: float = 1e-3
    steps: int = 10_000
    rows: int = 100
    sparsity: float = 0.5
    consistency: float = 0.5
    seed: int = 0


@dataclass(frozen=True)
class Rows:
    """Training rows in Alibi's format.

    Attributes:
        X: (n, p) label-encoded rows.
        names: the names of the columns.
        maps: the categories of every categorical column, by code.
        whole: the numeric features with integer values.
    """

    X: Any
    names: Sequence[str]
    maps: Mapping[int, Sequence[str]]
    whole: Sequence[str]

    @property
    def numbers(self) -> int:
        """The number of numeric columns."""
        return len(self.names) - len(self.maps)

    def preprocessor(self) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        """Alibi's preprocessor (standardised numbers, one-hot categories) and its inverse."""
        from alibi.explainers.backends.cfrl_tabular import get_he_preprocessor

        kinds = dict.fromkeys(self.whole, int)
        forth, back = get_he_preprocessor(
            X=self.X, feature_names=self.names, category_map=self.maps, feature_types=kinds
        )
        return forth, back


def networks(rows: Rows, example: Example) -> tuple[nn.Module, nn.Module]:
    """The untrained encoder and decoder of Alibi's heterogeneous autoencoder.

    Args:
        rows: the training rows.
        example: the settings.
    """
    from alibi.models.pytorch import ADULTDecoder, ADULTEncoder

    sizes = [rows.numbers, *map(len, rows.maps.values())]
    width = torch.zeros(2, sum(sizes))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(example.seed)
        encoder = ADULTEncoder(example.hidden, example.latent)
        decoder = ADULTDecoder(example.hidden, sizes)
        decoder(encoder(width))  # the first call sets the width of its layers
    return encoder, decoder


@one_thread()
def train(nets: tuple[nn.Module, nn.Module], rows: Rows, example: Example) -> None:
    """Train the autoencoder as in the example.

    Args:
        nets: from `networks`.
        rows: the training rows.
        example: the settings.
    """
    encoder, decoder = nets
    rng = torch.Generator().manual_seed(example.seed)
    x = torch.from_numpy(rows.preprocessor()[0](rows.X)).float()
    codes = torch.from_numpy(np.asarray(rows.X)[:, list(rows.maps)]).long()
    weights = [*encoder.parameters(), *decoder.parameters()]
    optimiser = torch.optim.Adam(weights, lr=example.rate)
    for _ in range(example.epochs):
        for at in torch.randperm(len(x), generator=rng).split(example.batch):
            optimiser.zero_grad(set_to_none=True)
            heads = decoder(encoder(x[at]))
            _loss(heads, x[at, : rows.numbers], codes[at]).backward()
            optimiser.step()


def explainer(
    rows: Rows,
    predictor: Callable[[Any], Any],
    nets: tuple[nn.Module, nn.Module],
    example: Example,
    *,
    immutable: Sequence[str],
    increasing: Sequence[str],
) -> Any:
    """A CounterfactualRLTabular that is not fitted; it seeds the global generators.

    Args:
        rows: the training rows.
        predictor: a function from label-encoded rows to probabilities.
        nets: the trained encoder and decoder.
        example: the settings.
        immutable: features that never change.
        increasing: numeric features that may only increase.
    """
    from alibi.explainers import CounterfactualRLTabular

    forth, back = rows.preprocessor()
    return CounterfactualRLTabular(
        predictor=predictor,
        encoder=nets[0],
        decoder=nets[1],
        latent_dim=example.latent,
        encoder_preprocessor=forth,
        decoder_inv_preprocessor=back,
        coeff_sparsity=example.sparsity,
        coeff_consistency=example.consistency,
        category_map=dict(rows.maps),
        feature_names=list(rows.names),
        ranges={name: [0.0, 1.0] for name in increasing},
        immutable_features=list(immutable),
        train_steps=example.steps,
        batch_size=example.rows,
        # The CPU time of worker processes is not measured.
        num_workers=0,
        backend="pytorch",
        seed=example.seed,
    )


def _loss(heads: Sequence[Tensor], numbers: Tensor, codes: Tensor) -> Tensor:
    """The squared error of numbers plus the mean cross-entropy of categories."""
    loss = functional.mse_loss(heads[0], numbers)
    for j, head in enumerate(heads[1:]):
        loss = loss + functional.cross_entropy(head, codes[:, j]) / codes.shape[1]
    return loss
