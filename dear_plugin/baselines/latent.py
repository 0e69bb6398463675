"""Latent: what the methods have in common that search among the people a VAE knows."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dear_plugin.baselines.base import Baseline, Config
from dear_plugin.baselines.candidate_pool import CandidatePool
from dear_plugin.baselines.gradients import rounded
from dear_plugin.baselines.vae import Vae, VaeDesign
from dear_plugin.data.schema import Schema
from dear_plugin.errors import NotFittedError, SchemaError
from dear_plugin.methods.base import Case
from dear_plugin.models.classifier import Output

# Of Adam: the memory of the gradient and of its square. A gradient smaller than STILL moves
# little, or rounding noise decides.
MEMORY, SQUARES, STILL = 0.9, 0.99, 1e-3

Loss = Callable[[Case, Tensor], Tensor]


class LatentMethod(Baseline[Config], ABC):
    """A method that needs a VAE, its own or one that several methods share.

    Args:
        model: see `RecourseMethod`.
        schema: the features.
        vae: a trained one, or how `fit` should train one.
        config: the method's settings; None are its usual ones.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        ModelError: a model that the method cannot take.
        SchemaError: a VAE trained for another schema.
    """

    def __init__(
        self,
        model: Any,
        schema: Schema,
        *,
        vae: Vae | VaeDesign | None = None,
        config: Config | None = None,
        output: Output | None = None,
        encode: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__(model, schema, config=config, output=output, encode=encode)
        if isinstance(vae, Vae) and vae.encoder.schema != schema:
            raise SchemaError("the VAE was trained for another schema; train it with Vae.fit")
        self.design = vae or VaeDesign()
        self._vae: Vae | None = None

    @property
    def vae(self) -> Vae:
        """The trained VAE.

        Raises:
            NotFittedError: before `fit`.
        """
        if self._vae is None:
            raise NotFittedError(f"{type(self).__name__} has no VAE yet; call fit(frame) first")
        return self._vae

    def _learn(self, rows: Tensor) -> None:
        given = self.design
        self._vae = given if isinstance(given, Vae) else Vae.learned(rows, self.encoder, given)


@dataclass(frozen=True)
class LatentConfig:
    """How to descend among latents.

    Attributes:
        weight: lambda, what l1 cost counts.
        steps: how many.
        rate: Adam's step.
        starts: how often those without a success start, ever farther from themselves: in the end
            where the model agrees.
        places: latents drawn from the prior to find such a place among.
        seed: of the draw; nothing global is seeded.
    """

    weight: float = 0.5
    steps: int = 300
    rate: float = 0.1
    starts: int = 4
    places: int = 128
    seed: int = 0


def descend(pool: CandidatePool, vae: Vae, loss: Loss, config: LatentConfig) -> None:
    """Minimise `loss(scores) + lambda ||x - x_cf||_1` over latents.

    Everybody starts from their own latents and takes all steps by themselves. Of the rows on the
    way, the success at which least was left to minimise is kept.

    Args:
        pool: who tries; it keeps the successes.
        vae: decodes the latents.
        loss: a case and scores, (m, classes), -> (m,).
        config: the weight, the steps, the starts.
    """
    for share, part in pool.attempts(config.starts):
        own = vae.encode(part.case.x)
        start = own if share == 0.0 else own + share * (_agreed(part, vae, own, config) - own)
        _Way(part, vae, loss, config.weight).walk(start, config)


def _agreed(pool: CandidatePool, vae: Vae, own: Tensor, config: LatentConfig) -> Tensor:
    """The nearest drawn latents, (m, k), at which the model agrees; where it never does, any."""
    rng = torch.Generator().manual_seed(config.seed)
    places = torch.randn(config.places, vae.k, generator=rng)
    rows = tried(pool, vae, places.expand(len(own), -1, -1))
    scores = pool.classifier.scores(rows.flatten(0, 1))
    whose = torch.arange(len(own)).repeat_interleave(config.places)
    agreed = pool.case.goal.accepts(scores, whose, pool.case.slack).view(rows.shape[:2])
    gap = torch.cdist(own, places)
    return places[torch.where(agreed, gap, torch.inf).argmin(1)]


@dataclass(frozen=True)
class _Way:
    """A descent: of whom, among what, on what."""

    pool: CandidatePool
    vae: Vae
    loss: Loss
    weight: float

    def walk(self, z: Tensor, config: LatentConfig) -> None:
        """Adam, from latents, (m, k), each person's by themselves."""
        mean, square = torch.zeros_like(z), torch.zeros_like(z)
        for step in range(1, config.steps + 1):
            place = z.clone().requires_grad_(True)
            with torch.enable_grad():
                total = self._look(place)
                (gradient,) = torch.autograd.grad(total.sum(), place)
            mean = MEMORY * mean + (1.0 - MEMORY) * gradient
            square = SQUARES * square + (1.0 - SQUARES) * gradient.square()
            size = (square / (1.0 - SQUARES**step)).sqrt() + STILL
            z = z - config.rate * mean / (1.0 - MEMORY**step) / size

    def _look(self, z: Tensor) -> Tensor:
        """Note who is at some latents; what is minimised there, (m,)."""
        pool, encoder = self.pool, self.vae.encoder
        soft = decoded(pool, self.vae, z)
        rows, shown = rounded(pool, soft)
        scores = pool.classifier.differentiable(shown)
        cost = ((soft - encoder.expand(pool.case.x)).abs() * encoder.weights).sum(1)
        total = self.loss(pool.case, scores) + self.weight * cost
        left = total.detach().float()[:, None]
        pool.update(rows[:, None], scores=scores.detach(), loss=left)
        return total


def decoded(pool: CandidatePool, vae: Vae, z: Tensor) -> Tensor:
    """The people at latents, (m, k) -> (m, d) encoded; what cannot change is as it was."""
    (low, high), x = pool.ends, vae.encoder.expand(pool.case.x)
    return torch.where(low < high, vae.decode(z, x), x)


def tried(pool: CandidatePool, vae: Vae, z: Tensor) -> Tensor:
    """The admissible rows at latents, (m, c, k) -> (m, c, p)."""
    everyone = torch.arange(len(z)).repeat_interleave(z.shape[1])
    crowd = CandidatePool.of(pool.case.select(everyone), pool.classifier)
    rows, _ = rounded(crowd, decoded(crowd, vae, z.flatten(0, 1)))
    return rows.view(*z.shape[:2], rows.shape[1])
