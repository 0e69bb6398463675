"""Vae: a conditional variational autoencoder of rows, for REVISE, C-CHVAE and CLUE.

Kingma and Welling, "Auto-Encoding Variational Bayes", ICLR 2014, conditional on the immutable
features and heterogeneous as in Pawelczyk, Broelemann and Kasneci, "Learning Model-Agnostic
Counterfactual Explanations for Tabular Data", WWW 2020: numbers are Gaussian on standardised
columns, so that none is ignored for its scale, binary features Bernoulli, others categorical.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Self

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from dear_plugin._threads import one_thread
from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Schema
from dear_plugin.paper.autoencoder.networks import StackedMLP, map_blocks
from dear_plugin.paper.autoencoder.training import History, Training, train

VAE_TRAINING = Training(epochs=200, batch=512, rate=2e-2, patience=30, most_steps=2000)


@dataclass(frozen=True)
class VaeDesign:
    """The shape of the networks and the settings of their training.

    Attributes:
        layers: the widths of the encoder after its input; the last one is k. The decoder mirrors
            it.
        beta: the weight of the divergence from the prior. 1 is the evidence lower bound; a smaller
            weight keeps different rows from collapsing to one output.
        training: the settings of the training.
        seed: the seed of weights, batches and latents; global generators are not used.

    Example:
        >>> from dear_plugin.rivals import VaeDesign
        >>> small = VaeDesign(seed=1)
    """

    layers: tuple[int, ...] = (16, 32, 10)
    beta: float = 0.3
    training: Training = VAE_TRAINING
    seed: int = 0


@dataclass(frozen=True)
class Vae:
    """A trained variational autoencoder of rows.

    Attributes:
        encoder: the encoder of the schema.
        networks: the trained networks.
        history: the losses by epoch.

    Example:
        >>> from dear_plugin import Schema, Training
        >>> from dear_plugin.rivals import Vae, VaeDesign
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> Vae.fit(frame, schema, VaeDesign(training=Training(epochs=2))).k
        10
    """

    encoder: Encoder
    networks: Networks
    history: History

    @classmethod
    def fit(cls, frame: pd.DataFrame, schema: Schema, design: VaeDesign | None = None) -> Self:
        """A `Vae` trained on a frame, which several methods can share.

        Args:
            frame: n training rows, in user units.
            schema: the features.
            design: the networks and their training.

        Raises:
            InputError: rows do not fit the schema.
        """
        encoder = Encoder(schema)
        return cls.fit_rows(encoder.rows(frame), encoder, design or VaeDesign())

    @classmethod
    @one_thread()
    def fit_rows(cls, rows: Tensor, encoder: Encoder, design: VaeDesign) -> Self:
        """Train on rows, (n, p)."""
        generator = torch.Generator().manual_seed(design.seed)
        x = encoder.expand(rows)
        networks = Networks(design, encoder, x, generator)
        loss = partial(_loss, networks, encoder, design.beta)
        history = train(loss, networks.parameters(), x, design.training, generator)
        return cls(encoder, networks.requires_grad_(False), history)

    @property
    def k(self) -> int:
        """The number of latents."""
        return self.networks.k

    def encode(self, rows: Tensor) -> Tensor:
        """The expected latents of rows, (m, p) -> (m, k)."""
        return self.networks.posterior(self.encoder.expand(rows))[0]

    def decode(self, z: Tensor, x: Tensor) -> Tensor:
        """The expected rows, (m, d) encoded, differentiable in the latents.

        Args:
            z: (m, k) latents.
            x: (m, d) encoded factual rows, whose immutable columns are conditioned on and kept.
        """
        networks, blocks = self.networks, self.encoder.blocks[self.encoder.feature_of]
        raw = networks.natural(z, x)
        numbers = raw * networks.spread + networks.centre
        out = torch.where(networks.numeric, numbers, raw.sigmoid())
        out = torch.where(blocks, log_probabilities(self.encoder, raw).exp(), out)
        return torch.where(networks.immutable, x, out)


class Networks(nn.Module):
    """The encoder and the decoder.

    Args:
        design: the layers.
        encoder: the encoder of the schema.
        x: (n, d) encoded training rows, by which numbers are standardised.
        generator: the generator of the initial weights.
    """

    numeric: Tensor
    immutable: Tensor
    given: Tensor
    centre: Tensor
    spread: Tensor

    def __init__(
        self, design: VaeDesign, encoder: Encoder, x: Tensor, generator: torch.Generator
    ) -> None:
        super().__init__()
        d, self.k = encoder.d, design.layers[-1]
        inner = design.layers[:-1]
        self.e = StackedMLP(1, (d, *inner, 2 * self.k), nn.Tanh, generator)
        self.g = StackedMLP(1, (self.k + d, *inner[::-1], d), nn.Tanh, generator)
        immutable = torch.tensor([f.immutable for f in encoder.schema])
        given = immutable & (encoder.shares > 0.0)
        masks = {"numeric": ~encoder.labelled, "immutable": immutable, "given": given}
        for name, mask in masks.items():
            self.register_buffer(name, mask[encoder.feature_of])
        self.register_buffer("centre", torch.where(self.numeric, x.mean(0), 0.0))
        scale = x.std(0, correction=0).clamp_min(1e-3)
        self.register_buffer("spread", torch.where(self.numeric, scale, 1.0))

    def standard(self, x: Tensor) -> Tensor:
        """Encoded rows with standardised numbers, (m, d)."""
        return (x - self.centre) / self.spread

    def posterior(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log-variance of the latents, (m, k) each, of encoded rows, (m, d)."""
        mean, log_variance = self.e(self.standard(x)[None])[0].chunk(2, -1)
        return mean, log_variance

    def natural(self, z: Tensor, x: Tensor) -> Tensor:
        """Means of standardised numbers and logits of categories, (m, d)."""
        given = self.standard(x) * self.given
        out: Tensor = self.g(torch.cat([z, given.expand(len(z), -1)], -1)[None])[0]
        return out


def _loss(
    networks: Networks, encoder: Encoder, beta: float, x: Tensor, generator: torch.Generator
) -> dict[str, Tensor]:
    """The parts of the negative evidence lower bound of a batch, (m, d)."""
    mean, log_variance = networks.posterior(x)
    noise = torch.randn(mean.shape, generator=generator)
    raw = networks.natural(mean + noise * (log_variance / 2.0).exp(), x)
    numbers = (raw - networks.standard(x)).square() / 2.0
    binary = binary_cross_entropy_with_logits(raw, x.clamp(0, 1), reduction="none")
    blocks = encoder.blocks[encoder.feature_of]
    categories = torch.where(blocks, -x * log_probabilities(encoder, raw), binary)
    divergence = (mean.square() + log_variance.exp() - log_variance - 1.0).sum(1) / 2.0
    return {
        "numbers": (numbers * (networks.numeric & ~networks.immutable)).sum(1).mean(),
        "categories": (categories * ~(networks.numeric | networks.immutable)).sum(1).mean(),
        "divergence": beta * divergence.mean(),
    }


def log_probabilities(encoder: Encoder, raw: Tensor) -> Tensor:
    """Log-probabilities of the categories in every one-hot block, raw elsewhere, (m, d)."""
    return map_blocks(encoder, raw, lambda block: block.log_softmax(-1))
