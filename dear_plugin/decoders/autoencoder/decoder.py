"""Autoencoder: the paper's decoder, one conditional autoencoder per set, trained as one module.

`v = e(x)`, `x_hat = g(v, x_S)`; a residual connection adds x_S to its own output; categorical
blocks end in a softmax. The loss is reconstruction (MSE) + the Hessian penalty on d2 g / dv dx_S.
The paper's theory needs x_S independent of v, which the Hessian penalty does not enforce: the
encoder may copy all it needs into v, and the decoder then ignores x_S. Hence an independence
penalty with a weight of its own; 0 is the paper. With several members, each trained on a bootstrap
sample, a change is shrunk as far as it is sampling noise; one member is the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from dear_plugin._validation.settings import whole
from dear_plugin._validation.tensors import Shape, check_tensors
from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders.autoencoder.design import ACTIVATIONS, PAPER_LAYERS, Design
from dear_plugin.decoders.autoencoder.ensemble import shrunk_mean
from dear_plugin.decoders.autoencoder.jacobians import jacobians, latent_jacobians, mean_jacobians
from dear_plugin.decoders.autoencoder.networks import Networks
from dear_plugin.decoders.autoencoder.objective import Objective
from dear_plugin.decoders.autoencoder.remainder import MIDDLE, add_change, within_bounds
from dear_plugin.decoders.autoencoder.stack import by_set
from dear_plugin.decoders.autoencoder.training import History, Training, train
from dear_plugin.decoders.protocol import Decoder
from dear_plugin.decoders.redraws import JointRedraws, Redraws
from dear_plugin.decoders.registry import register
from dear_plugin.errors import NotFittedError
from dear_plugin.problem.action_sets import ActionSets

# Cells of the mixed derivatives that are in memory at a time.
CELLS = 2**24
# The training of the paper's networks, for which it gives no values.
RATE, PATIENCE, MOST_STEPS = 2e-3, 40, 10_000
# Networks trained on bootstrap samples, for redraws of a single network.
REDRAWS = 4


@register
class Autoencoder(Decoder):
    """Conditional autoencoders for all sets, trained together.

    Args:
        design: the networks and their losses.
        training: the loop.
        seed: of weights, batches and penalties; the global generators are left alone.

    Attributes:
        history: the losses by epoch, after `fit`.

    Example:
        >>> from dear_plugin import DEAR, Autoencoder, Schema, Training
        >>> from dear_plugin.datasets import load_loan
        >>> frame = load_loan(200).frame
        >>> schema = Schema.infer(frame, target="approved", immutable=["gender"])
        >>> model, quick = lambda rows: rows["savings"] / 60, Training(epochs=2)
        >>> dear = DEAR(model, schema, act_on=["savings"], decoder=Autoencoder(training=quick))
        >>> len(dear.fit(frame).decoder.history.epochs)
        2
    """

    def __init__(
        self,
        design: Design | None = None,
        training: Training | None = None,
        seed: int = 0,
    ) -> None:
        self.design = design or Design()
        self.training = training or Training()
        self.seed: int = whole(0)("Autoencoder: seed", seed)
        self.history = History()
        self._networks: Networks | None = None

    @classmethod
    def paper(cls, layers: Sequence[int] = PAPER_LAYERS["adult"], seed: int = 0) -> Autoencoder:
        """Exactly the paper: Hessian penalty only, its reconstruction, unscaled columns.

        It is trained at a constant rate until the loss on held-out rows has not improved for
        `PATIENCE` epochs, for at most `MOST_STEPS` steps; `history.stopped` says which. The paper
        gives the layers and the losses, and neither the weight of the Hessian penalty nor the
        training of the autoencoders.

        Args:
            layers: `PAPER_LAYERS` has those of the paper by data set.
            seed: of weights, batches and penalties.
        """
        design = Design(
            tuple(layers),
            hessian=0.1,
            independence=0.0,
            noise=0.0,
            standardise=False,
            reconstruct="paper",
            members=1,
        )
        training = Training(
            epochs=MOST_STEPS,
            rate=RATE,
            patience=PATIENCE,
            most_steps=MOST_STEPS,
            anneal=False,
        )
        return cls(design, training, seed)

    pair_features: ClassVar[int] = 5

    @property
    def keeps_factual(self) -> bool:
        """Whether the row's residual is kept; "paper" returns the reconstruction."""
        return self.design.reconstruct != "paper"

    def settings(self) -> dict[str, Any]:
        """The design, the training and the seed."""
        return {
            "design": asdict(self.design),
            "training": asdict(self.training),
            "seed": self.seed,
        }

    @classmethod
    def with_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The inverse of `settings`."""
        design = {**settings["design"], "layers": tuple(settings["design"]["layers"])}
        return cls(Design(**design), Training(**settings["training"]), settings["seed"])

    def tensors(self) -> dict[str, Tensor]:
        """The networks' parameters and buffers."""
        return dict(self.networks.state_dict())

    def load_state(
        self, tensors: Mapping[str, Tensor], encoder: Encoder, sets: ActionSets
    ) -> None:
        """Load trained networks.

        Raises:
            ValueError: tensors of another design, other features or other sets.
        """
        known = {size for tensor in tensors.values() for size in tensor.shape}
        if not known.issuperset(self.design.layers):  # or a bad file could ask for all memory
            raise ValueError(f"expected tensors with layers of {self.design.layers}, got others")
        networks = _untrained(self.design, encoder, sets, torch.Generator())
        own = networks.state_dict()
        check_tensors(tensors, {name: Shape.of(tensor) for name, tensor in own.items()}, {})
        of_sets = ("columns", "valid", "mask")
        if not all(torch.equal(tensors[name], own[name]) for name in of_sets):
            raise ValueError("expected tensors of the same sets, got those of other sets")
        networks.load_state_dict(dict(tensors))
        self._networks = networks.requires_grad_(False)

    def fit(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> None:
        """Train on rows, (n, p); an interrupt leaves the previous state."""
        generator, design = torch.Generator().manual_seed(self.seed), self.design
        x = encoder.expand(rows.float().cpu())
        networks = _untrained(design, encoder, sets, generator)
        if design.standardise:
            networks.gauge.fit(x, ~encoder.blocks[encoder.feature_of])
        objective = Objective(networks, design.hessian, design.independence, design.noise)
        history = train(
            objective,
            networks.parameters(),
            x,
            self.training,
            generator,
            members=design.members,
        )
        self._networks, self.history = networks.requires_grad_(False), history

    def redraws(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> Redraws:
        """Networks trained on bootstrap samples, in one batch; an ensemble's own members."""
        if self.networks.members > 1:
            return JointRedraws(self.apart, self.networks.members)
        return JointRedraws(partial(self._bootstrap_members, rows, encoder, sets), REDRAWS)

    def apart(self) -> tuple[Self, ...]:
        """The members of an ensemble as separate decoders.

        Each was trained on a bootstrap sample of its own, from other initial weights.

        Raises:
            NotFittedError: before `fit`.
        """
        return tuple(self._member(i) for i in range(self.networks.members))

    def encode(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The latents of rows and a tie per feature, (n, p) -> (n, s, e * k + p).

        A tie in [0, 1) decides whether a category flips and an integer is rounded up; without a
        generator it is the middle.
        """
        networks = self.networks
        v = networks.member_latents(networks.encoder.expand(rows)).transpose(0, 1)
        ties = v.new_full((*v.shape[:2], rows.shape[1]), MIDDLE)
        if generator is not None:
            ties = torch.rand(ties.shape, generator=generator).to(v)
        return torch.cat([v, ties], 2)

    def decode(self, x: Tensor, v: Tensor, values: Tensor, sets: Tensor) -> Tensor:
        """The rows that follow, (m, c, p); see `Decoder.decode`."""
        networks, factual = self.networks, x[:, None]
        encoder, e = networks.encoder, networks.members
        v, ties = v.split([e * networks.k, x.shape[1]], 1)
        positions = networks.sets.positions[sets][:, None].expand(values.shape)
        acted = factual.expand(-1, values.shape[1], -1).scatter(2, positions, values)
        encoded = encoder.expand(torch.cat([factual, acted], 1))
        outputs = by_set(networks.member_outputs, v, encoded, sets, len(networks.sets))
        outputs = outputs.unflatten(2, (e, -1))
        if not self.keeps_factual:
            reached = encoder.collapse(outputs[:, 1:].mean(2))
            return reached.scatter(2, positions, values)
        mean = shrunk_mean(outputs, encoder.feature_of)
        reached = add_change(networks, factual, mean, ties[:, None])
        unchanged = (acted == factual).all(2, keepdim=True)
        return torch.where(unchanged, factual, reached.scatter(2, positions, values))

    def follow(self, x: Tensor, v: Tensor, a: Tensor) -> Tensor:
        """The rows that follow, (s, n, d), differentiable in a; see `Decoder.follow`."""
        networks = self.networks
        e, own = networks.members, networks.mask[: len(networks.sets)].bool()
        v = v[..., : e * networks.k]
        outputs = networks.member_outputs(v, a).unflatten(2, (e, -1))
        if not self.keeps_factual:
            return torch.where(own, a, outputs.mean(2))
        both = torch.stack([networks.member_outputs(v, x).unflatten(2, (e, -1)), outputs], 2)
        start, end = shrunk_mean(both.flatten(0, 1), networks.encoder.feature_of).unbind(1)
        shift = (end - start).view(x.shape)
        return torch.where(own, a, within_bounds(x + shift, x))

    def entanglement(self, rows: Tensor) -> Tensor:
        """(n, s) mean size of `d2 g / dv dx_S` over outputs, latents and x_S, by autograd."""
        networks = self.networks
        x = networks.encoder.expand(rows)
        s, w = networks.columns.shape
        few = max(CELLS // (w * networks.k * s * x.shape[1]), 1)
        parts = [networks.entanglement(part.expand(s, -1, -1)) for part in x.split(few)]
        return torch.cat(parts, 1).view(networks.members, -1, len(x)).mean(0).T

    def jacobians(self, rows: Tensor, train: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Exact derivatives of g along the columns of each set; see `Decoder.jacobians`."""
        networks = self.networks
        x, base = networks.encoder.expand(rows), networks.encoder.expand(train)
        if networks.members == 1:
            return jacobians(networks, x, base)
        return mean_jacobians([jacobians(one.networks, x, base) for one in self.apart()])

    def latent_jacobians(self, rows: Tensor) -> list[Tensor]:
        """Exact derivatives of g along the latents of all members; see `Decoder`."""
        networks = self.networks
        x, e = networks.encoder.expand(rows), networks.members
        every = (self,) if e == 1 else self.apart()
        parts = [latent_jacobians(one.networks, x) for one in every]
        return list(torch.cat(parts, 3) / e)

    @property
    def networks(self) -> Networks:
        """The trained networks.

        Raises:
            NotFittedError: before `fit`.
        """
        if self._networks is None:
            raise NotFittedError("the autoencoder is not trained; call fit first")
        return self._networks

    def _bootstrap_members(
        self, rows: Tensor, encoder: Encoder, sets: ActionSets
    ) -> Sequence[Decoder]:
        ensemble = Autoencoder(replace(self.design, members=REDRAWS), self.training, self.seed)
        ensemble.fit(rows.clone(), encoder, sets)
        return ensemble.apart()

    def _member(self, i: int) -> Self:
        design, networks = replace(self.design, members=1), self.networks
        member = type(self)(design, self.training, self.seed)
        member.load_state(networks.member_state(i), networks.encoder, networks.sets)
        return member


def _untrained(
    design: Design, encoder: Encoder, sets: ActionSets, generator: torch.Generator
) -> Networks:
    return Networks(
        encoder,
        sets,
        layers=design.layers,
        activation=ACTIVATIONS[design.activation],
        use_asinh=design.standardise,
        generator=generator,
        members=design.members,
    )
