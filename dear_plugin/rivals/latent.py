"""Methods that search among the latents of a VAE: REVISE, CLUE and C-CHVAE."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor
from torch.nn.functional import softplus

from dear_plugin._threads import lazy
from dear_plugin.data.schema import Schema
from dear_plugin.errors import ModelError, NotFittedError, SchemaError
from dear_plugin.methods.base import Case
from dear_plugin.models.classifier import Output
from dear_plugin.results.proposal import Proposal
from dear_plugin.rivals.base import Baseline, Config
from dear_plugin.rivals.candidate_pool import CandidatePool
from dear_plugin.rivals.vae import Vae, VaeDesign
from dear_plugin.rivals.weights import straight_through

# Of Adam. Gradients far below EPSILON move little, or rounding errors would decide.
BETA_1, BETA_2, EPSILON = 0.9, 0.99, 1e-3
# Steps whose rows are added to a pool together.
STEPS_A_TIME = 50

Loss = Callable[[Case, Tensor], Tensor]


class LatentMethod(Baseline[Config], ABC):
    """A method that needs a VAE, its own or one that several methods share.

    Args:
        model: see `RecourseMethod`.
        schema: the features.
        vae: a trained `Vae`, or the design of the one that `fit` trains.
        config: the method's settings; None for the defaults.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        ModelError: the method does not support the model.
        SchemaError: the VAE was trained for another schema.
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
        weight: lambda, the weight of the l1 cost; None for the default of the method.
        steps: the number of steps.
        rate: Adam's learning rate.
        starts: the number of starts of rows without a success, each farther from their own
            latents, and the last from latents that the model accepts; 1 for no restart.
        places: the number of latents drawn from the prior, to find accepted ones.
        seed: the seed of the draw; global generators are not used.

    Example:
        >>> from dear_plugin.rivals import LatentConfig
        >>> quick = LatentConfig(steps=50)
    """

    weight: float | None = None
    steps: int = 500
    rate: float = 0.1
    starts: int = 4
    places: int = 128
    seed: int = 0


@dataclass(frozen=True)
class Objective:
    """The objective of a descent among latents: `loss(scores) + lambda ||x - x_cf||_1`.

    Attributes:
        loss: a function from a case and scores, (m, classes), to the loss, (m,).
        weights: (w,) lambdas each, one descent for each of them; further ones are for rows without
            a success.
        by_cost: whether the success with the lowest cost is kept, or with the lowest total loss.
    """

    loss: Loss
    weights: Sequence[Tensor]
    by_cost: bool = False


class LatentDescent(LatentMethod[LatentConfig], ABC):
    """A method that minimises an objective over latents; arguments as of `LatentMethod`."""

    default_config = LatentConfig()
    needs_gradient = True

    def _descend(self, case: Case, objective: Objective) -> CandidatePool:
        """The rows with the best success along their descents.

        Each row starts from its own latents and takes all steps independently of the others.
        """
        pool = CandidatePool.of(case, self.classifier)
        for share, part in pool.restarts(self.config.starts):
            start = own = self.vae.encode(part.case.x)
            if share > 0.0:
                start = own + share * (self._nearest_accepted(part, own) - own)
            for weights, idx, open_part in part.attempts(objective.weights):
                _Adam(open_part, self.vae, objective, weights).run(start[idx], self.config)
        return pool

    def _nearest_accepted(self, pool: CandidatePool, own: Tensor) -> Tensor:
        """The nearest drawn latents, (m, k), that the model accepts; without any, the first."""
        count, rng = self.config.places, torch.Generator().manual_seed(self.config.seed)
        drawn = torch.randn(count, self.vae.k, generator=rng)
        rows = project_latents(pool, self.vae, drawn.expand(len(own), -1, -1))
        scores = pool.classifier.scores(rows.flatten(0, 1))
        owner = torch.arange(len(own)).repeat_interleave(count)
        reached = pool.case.reaches(scores, owner)
        distance = torch.cdist(own, drawn)
        return drawn[distance.where(reached.view(distance.shape), torch.inf).argmin(1)]


@dataclass(frozen=True)
class _Adam:
    """Adam on the latents of the rows of a pool, once for each of w lambdas.

    Attributes:
        pool: m rows.
        vae: decodes the latents.
        objective: what is minimised.
        weights: (w,) the lambdas.
    """

    pool: CandidatePool
    vae: Vae
    objective: Objective
    weights: Tensor

    @lazy
    def _each(self) -> CandidatePool:
        """The rows, each of them w times."""
        idx = torch.arange(len(self.pool.case))
        return self.pool.select(idx.repeat_interleave(len(self.weights)))

    def run(self, z: Tensor, config: LatentConfig) -> None:
        """Descend from latents, (m, k), with moments of each latent by itself."""
        z = z.repeat_interleave(len(self.weights), 0)
        mean, square = torch.zeros_like(z), torch.zeros_like(z)
        seen: list[tuple[Tensor, Tensor, Tensor]] = []
        for step in range(1, config.steps + 1):
            at = z.clone().requires_grad_(True)
            with torch.enable_grad():
                total, rows, scores = self._evaluate(at)
                (gradient,) = torch.autograd.grad(total.sum(), at)
            seen.append((rows, scores, total.detach().float()))
            if len(seen) == STEPS_A_TIME or step == config.steps:
                self._add(seen)
                seen = []
            mean = BETA_1 * mean + (1.0 - BETA_1) * gradient
            square = BETA_2 * square + (1.0 - BETA_2) * gradient.square()
            size = (square / (1.0 - BETA_2**step)).sqrt() + EPSILON
            z = z - config.rate * mean / (1.0 - BETA_1**step) / size

    def _evaluate(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The total loss at latents, (m w, k): (m w,); the rows there, and their scores."""
        each, encoder = self._each, self.vae.encoder
        soft = decode_latents(each, self.vae, z)
        rows, encoded = straight_through(each, soft)
        scores = each.classifier.differentiable(encoded)
        cost = ((soft - encoder.expand(each.case.x)).abs() * encoder.weights).sum(1)
        weights = self.weights.repeat(len(self.pool.case))
        return self.objective.loss(each.case, scores) + weights * cost, rows, scores.detach()

    def _add(self, seen: Sequence[tuple[Tensor, Tensor, Tensor]]) -> None:
        """Add the rows of some steps, with their scores and losses, to the pool."""
        m = len(self.pool.case)
        parts = [torch.stack(part, 1) for part in zip(*seen, strict=True)]
        rows, scores, total = (part.reshape(m, -1, *part.shape[2:]) for part in parts)
        loss = None if self.objective.by_cost else total
        self.pool.update(rows, scores=scores.flatten(0, 1), loss=loss, descent=True)


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


# The lambdas of the search: for all rows, then for those without a success.
WEIGHTS = (
    (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
    (0.001, 0.002, 0.004, 0.008, 0.016, 0.03, 0.06, 0.12),
)


@final
class Revise(LatentDescent):
    """REVISE: descent among latents; the decoder is conditioned on the immutable features.

    Joshi, Koyejo, Vijitbenjaronk, Kim and Ghosh, "Towards Realistic Individual Recourse and
    Actionable Explanations in Black-Box Decision Making Systems", arXiv 1907.09615: minimise over
    z `loss(f(g(z)), y') + lambda ||x - g(z)||_1`, started from the row's own latents. The largest
    lambda with a success gives the cheapest counterfactual, so several are tried at once.

    Args:
        model: a torch module.
        schema: the features.
        vae: a trained `Vae`, or the design of the one that `fit` trains.
        config: the settings; without a weight, several are tried, and the cheapest success is the
            counterfactual.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        ModelError: a black box has no gradient.
        SchemaError: the VAE was trained for another schema.

    Example:
        >>> from dear_plugin import Encoder, Schema, Training
        >>> from dear_plugin.rivals import Revise, VaeDesign
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> model = torch.nn.Linear(Encoder(schema).d, 1)  # logits
        >>> Revise(model, schema, vae=VaeDesign(training=Training(epochs=2))).fit(frame)
        Revise(7 features, model Linear, fitted on 200 rows)
    """

    def _propose(self, case: Case) -> Proposal:
        given = self.config.weight
        weights = WEIGHTS if given is None else ((given,),)
        objective = Objective(target_loss, [torch.tensor(each) for each in weights], given is None)
        pool = self._descend(case, objective)
        return pool.proposal("no row along the descent among latents reaches the target")


def target_loss(case: Case, scores: Tensor) -> Tensor:
    """The logistic loss of the margin of the target, (m,), past the aim."""
    return softplus(case.aim - case.goal.margin(scores))


@final
class Clue(LatentDescent):
    """CLUE for a single model instead of an ensemble: descent to certain predictions.

    Antoran, Bhatt, Adel, Weller and Hernandez-Lobato, "Getting a CLUE: A Method for Explaining
    Uncertainty Estimates", ICLR 2021: minimise over z `H(y | g(z)) + d(g(z), x)`, started from the
    row's own latents. The target is not part of the loss. The counterfactual is a row along the
    descent that meets it. Rows without one start again nearer to latents that the model accepts.

    Args:
        model: a torch module that classifies.
        schema: the features.
        vae: a trained `Vae`, or the design of the one that `fit` trains.
        config: the settings; without a weight it is 4 / d, as in the authors' code.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        ModelError: a black box, which has no gradient, or a regression, which has no entropy.
        SchemaError: the VAE was trained for another schema.

    Example:
        >>> from dear_plugin import Encoder, Schema, Training
        >>> from dear_plugin.rivals import Clue, VaeDesign
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> model = torch.nn.Linear(Encoder(schema).d, 1)  # logits
        >>> Clue(model, schema, vae=VaeDesign(training=Training(epochs=2))).fit(frame)
        Clue(7 features, model Linear, fitted on 200 rows)
    """

    follows_margin = False

    def _check_model(self) -> None:
        super()._check_model()
        if self.classifier.output == "values":
            raise ModelError("Clue lowers the entropy of a classifier; output='values' has none")

    def _propose(self, case: Case) -> Proposal:
        weight = 4.0 / self.encoder.d if self.config.weight is None else self.config.weight
        pool = self._descend(case, Objective(entropy, [torch.tensor([weight])]))
        return pool.proposal("no row along the descent of the entropy is accepted")


def entropy(case: Case, scores: Tensor) -> Tensor:
    """The entropy of the model's probabilities, (m,), from its scores, (m, classes)."""
    if scores.shape[1] == 1:
        scores = torch.cat([torch.zeros_like(scores), scores], 1)
    log_p = scores.log_softmax(1)
    return -(log_p.exp() * log_p).sum(1)


LATENTS_A_TIME = 1 << 16


@dataclass(frozen=True)
class CCHVAEConfig:
    """The settings of C-CHVAE.

    Attributes:
        width: the width of a shell, in l1 of the latents.
        count: the largest number of shells.
        draws: the number of latents per shell.
        seed: the seed of the draws; global generators are not used.

    Example:
        >>> from dear_plugin.rivals import CCHVAEConfig
        >>> thorough = CCHVAEConfig(draws=1_000)
    """

    width: float = 0.1
    count: int = 200
    draws: int = 300
    seed: int = 0


@final
class CCHVAE(LatentMethod[CCHVAEConfig]):
    """C-CHVAE, for any model: random search among latents, in shells of growing radius.

    Pawelczyk, Broelemann and Kasneci, "Learning Model-Agnostic Counterfactual Explanations for
    Tabular Data", WWW 2020. Latents are drawn from a shell around the row's own and decoded given
    the immutable features. The counterfactual is the nearest success in the first shell that has
    one.

    All rows search the same directions, so that no result depends on the other rows of a call.

    Args:
        model: see `RecourseMethod`.
        schema: the features.
        vae: a trained `Vae`, or the design of the one that `fit` trains.
        config: the settings.
        output: see `RecourseMethod`.
        encode: see `RecourseMethod`.

    Raises:
        SchemaError: the VAE was trained for another schema.

    Example:
        >>> from dear_plugin import Schema, Training
        >>> from dear_plugin.rivals import CCHVAE, VaeDesign
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> model = lambda rows: rows["savings"] / 60
        >>> CCHVAE(model, schema, vae=VaeDesign(training=Training(epochs=2))).fit(frame)
        CCHVAE(7 features, model function, fitted on 200 rows)
    """

    follows_margin = False

    default_config = CCHVAEConfig()

    def _propose(self, case: Case) -> Proposal:
        pool = CandidatePool.of(case, self.classifier)
        rng = torch.Generator().manual_seed(self.config.seed)
        for shell, _, unsolved in pool.attempts(range(self.config.count)):
            steps = self._draw(shell, rng)
            for idx, part in unsolved.parts(LATENTS_A_TIME // self.config.draws):
                z = self.vae.encode(part.case.x)[:, None] + steps
                unsolved.update(project_latents(part, self.vae, z), idx)
        return pool.proposal("no row decoded from the latents within reach is accepted")

    def _draw(self, shell: int, rng: torch.Generator) -> Tensor:
        """Steps from the centre into a shell, (c, k)."""
        size = (self.config.draws, self.vae.k)
        direction = torch.randn(size, generator=rng)
        length = (shell + torch.rand(size[0], 1, generator=rng)) * self.config.width
        return length * direction / direction.abs().sum(1, keepdim=True)
