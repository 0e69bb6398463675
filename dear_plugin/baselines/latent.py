"""Latent: the base of methods that search among the latents of a VAE, and their descent."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dear_plugin.baselines.base import Baseline, Config
from dear_plugin.baselines.candidate_pool import CandidatePool
from dear_plugin.baselines.gradients import straight_through
from dear_plugin.baselines.vae import Vae, VaeDesign
from dear_plugin.data.schema import Schema
from dear_plugin.errors import NotFittedError, SchemaError
from dear_plugin.methods.base import Case
from dear_plugin.models.classifier import Output

# Of Adam. Gradients far below EPSILON move little, or rounding errors would decide.
BETA_1, BETA_2, EPSILON = 0.9, 0.99, 1e-3

Loss = Callable[[Case, Tensor], Tensor]


class LatentMethod(Baseline[Config], ABC):
    """A method that needs a VAE, its own or one that several methods share.

    Args:
        model: see `RecourseMethod`.
        schema: the features.
        vae: a trained one, or the design of the one that `fit` trains.
        config: the method's settings; None for the defaults.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        ModelError: a model that the method cannot use.
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
        self._params |= {"vae": vae}
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
        self._vae = given if isinstance(given, Vae) else Vae.fit_rows(rows, self.encoder, given)


@dataclass(frozen=True)
class LatentConfig:
    """The settings of a descent among latents.

    Attributes:
        weight: lambda, the weight of the l1 cost.
        steps: how many.
        rate: Adam's learning rate.
        starts: how often rows without a success start, each time farther from their own latents
            and at last from latents that the model accepts.
        places: latents drawn from the prior, among which accepted ones are looked up.
        seed: of the draw; the global generators are left alone.
    """

    weight: float = 0.5
    steps: int = 300
    rate: float = 0.1
    starts: int = 4
    places: int = 128
    seed: int = 0


def descend(pool: CandidatePool, vae: Vae, loss: Loss, config: LatentConfig) -> None:
    """Minimise `loss(scores) + lambda ||x - x_cf||_1` over latents.

    Each row starts from its own latents and takes all steps independently of the others. Of the
    rows along the descent, the success of least total loss is kept.

    Args:
        pool: the rows; it keeps the successes.
        vae: decodes the latents.
        loss: a case and scores, (m, classes), -> (m,).
        config: the weight, the steps, the starts.
    """
    for share, part in pool.restarts(config.starts):
        start = own = vae.encode(part.case.x)
        if share > 0.0:
            start = own + share * (_nearest_accepted(part, vae, own, config) - own)
        _LatentDescent(part, vae, loss, config).run(start)


def _nearest_accepted(pool: CandidatePool, vae: Vae, own: Tensor, config: LatentConfig) -> Tensor:
    """The nearest drawn latents, (m, k), that the model accepts; the first if it accepts none."""
    rng = torch.Generator().manual_seed(config.seed)
    drawn = torch.randn(config.places, vae.k, generator=rng)
    rows = project_latents(pool, vae, drawn.expand(len(own), -1, -1))
    scores = pool.classifier.scores(rows.flatten(0, 1))
    owner = torch.arange(len(own)).repeat_interleave(config.places)
    accepted = pool.case.goal.accepts(scores, owner, pool.case.slack).view(rows.shape[:2])
    return drawn[torch.where(accepted, torch.cdist(own, drawn), torch.inf).argmin(1)]


@dataclass(frozen=True)
class _LatentDescent:
    """Adam on the latents of the rows of a pool."""

    pool: CandidatePool
    vae: Vae
    loss: Loss
    config: LatentConfig

    def run(self, z: Tensor) -> None:
        """Descend from latents, (m, k), with moments of each latent by itself."""
        mean, square = torch.zeros_like(z), torch.zeros_like(z)
        for step in range(1, self.config.steps + 1):
            at = z.clone().requires_grad_(True)
            with torch.enable_grad():
                (gradient,) = torch.autograd.grad(self._evaluate(at).sum(), at)
            mean = BETA_1 * mean + (1.0 - BETA_1) * gradient
            square = BETA_2 * square + (1.0 - BETA_2) * gradient.square()
            size = (square / (1.0 - BETA_2**step)).sqrt() + EPSILON
            z = z - self.config.rate * mean / (1.0 - BETA_1**step) / size

    def _evaluate(self, z: Tensor) -> Tensor:
        """Add the rows at some latents to the pool; the total loss there, (m,)."""
        pool, encoder = self.pool, self.vae.encoder
        soft = decode_latents(pool, self.vae, z)
        rows, encoded = straight_through(pool, soft)
        scores = pool.classifier.differentiable(encoded)
        cost = ((soft - encoder.expand(pool.case.x)).abs() * encoder.weights).sum(1)
        total = self.loss(pool.case, scores) + self.config.weight * cost
        pool.update(rows[:, None], scores=scores.detach(), loss=total.detach().float()[:, None])
        return total


def decode_latents(pool: CandidatePool, vae: Vae, z: Tensor) -> Tensor:
    """The decoded rows, (m, k) -> (m, d) encoded; columns that cannot change are the factual's."""
    (low, high), x = pool.bounds, vae.encoder.expand(pool.case.x)
    return torch.where(low < high, vae.decode(z, x), x)


def project_latents(pool: CandidatePool, vae: Vae, z: Tensor) -> Tensor:
    """The feasible rows nearest to decoded latents, (m, c, k) -> (m, c, p)."""
    m, c, _ = z.shape
    repeated = pool.select(torch.arange(m).repeat_interleave(c))
    rows, _ = straight_through(repeated, decode_latents(repeated, vae, z.flatten(0, 1)))
    return rows.view(m, c, rows.shape[1])
