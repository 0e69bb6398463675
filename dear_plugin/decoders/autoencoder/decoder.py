"""Autoencoder: the paper's decoder, one conditional autoencoder per set, trained as one module.

`v = e(x)`, `x_hat = g(v, x_S)`; a residual skip adds x_S to its own output; a softmax closes every
categorical block. The loss is reconstruction (MSE) + the Hessian penalty on d2 g / dv dx_S. The
paper's theory wants x_S independent of v, which the Hessian penalty does not give: the encoder
stays free to copy into v all it needs, and the decoder then ignores x_S. So there is an
independence weight too; 0 is the paper. Several members, each trained on a bootstrap sample, say
how far a change is more than sampling noise; one member is the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn

from dear_plugin._validation.settings import boolean, number, one_of, several, validate, whole
from dear_plugin._validation.tensors import Shape, check_tensors
from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders.autoencoder.agreement import agreed
from dear_plugin.decoders.autoencoder.networks import Networks
from dear_plugin.decoders.autoencoder.objective import Objective
from dear_plugin.decoders.autoencoder.remainder import MIDDLE, moved, within_bounds
from dear_plugin.decoders.autoencoder.stack import Tanh, by_set
from dear_plugin.decoders.autoencoder.training import History, Training, train
from dear_plugin.decoders.protocol import Decoder
from dear_plugin.decoders.redraws import JointRedraws, Redraws
from dear_plugin.errors import NotFittedError
from dear_plugin.problem.action_sets import ActionSets

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "tanh": Tanh,
    "relu": nn.ReLU,
    "softplus": nn.Softplus,
}
PAPER_LAYERS = {"adult": (16, 32, 10), "compas": (8, 10, 5), "gmc": (8, 10, 5)}
CELLS = 2**24
# Networks that stand for what other rows might have given.
REDRAWS = 4


@dataclass(frozen=True)
class Design:
    """What the networks look like and what they are trained for.

    Attributes:
        layers: widths of the encoder after its input, the last one is k; the decoder mirrors it.
        activation: "tanh", "relu" or "softplus"; mixed derivatives of ReLU say nothing.
        hessian: weight of the Hessian penalty.
        independence: weight of the penalties on what v and x_S know of each other; 0 is the paper.
        noise: what training adds to the latents, in their own standard deviations.
        standardise: train on columns of variance 1 and squash what the networks read of them, so
            that heavy-tailed ones are not ignored.
        reconstruct: "remainder" keeps the person's own, `x + g(v, a) - g(v, x_S)`; "paper" is
            `g(v, a)`, whose reconstruction error is paid as indirect cost.
        members: how many networks each set has, trained on bootstrap samples; their mean change
            is shrunk as far as they disagree. 1 is the paper; of several, a step's rows are
            shared out among them, and few rows (some thousands) then show less dependence.

    Raises:
        SettingError: a value that a setting cannot have.
    """

    layers: tuple[int, ...] = (16, 32, 10)
    activation: str = "tanh"
    hessian: float = 1e-2
    independence: float = 20.0
    noise: float = 0.1
    standardise: bool = True
    reconstruct: Literal["remainder", "paper"] = "remainder"
    members: int = 1

    def __post_init__(self) -> None:
        """Refuse what is no setting."""
        validate(
            self,
            layers=several(whole(1)),
            activation=one_of(*ACTIVATIONS),
            hessian=number(),
            independence=number(),
            noise=number(),
            standardise=boolean,
            reconstruct=one_of("remainder", "paper"),
            members=whole(1),
        )


class Autoencoder(Decoder):
    """Conditional autoencoders for all sets, trained together.

    Args:
        design: the networks and their losses.
        training: the loop.
        seed: of weights, batches and penalties; nothing global is seeded.

    Attributes:
        history: the losses by epoch, after `fit`.
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
        """The paper to the letter: Hessian penalty only, its own reconstruction, raw columns.

        Args:
            layers: `PAPER_LAYERS` has the paper's own per data set.
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
        return cls(design, Training(), seed)

    pair_features: ClassVar[int] = 5

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
        """Take over trained networks.

        Raises:
            ValueError: tensors that are not those of such networks, features and sets.
        """
        known = {size for tensor in tensors.values() for size in tensor.shape}
        if not known.issuperset(self.design.layers):  # or a bad file could ask for all memory
            raise ValueError(f"the tensors have no layers of {self.design.layers}")
        networks = _untrained(self.design, encoder, sets, torch.Generator())
        own = networks.state_dict()
        check_tensors(tensors, {name: Shape.of(tensor) for name, tensor in own.items()}, {})
        told = ("columns", "valid", "mask")  # by the sets, whatever was learned
        if not all(torch.equal(tensors[name], own[name]) for name in told):
            raise ValueError("the tensors are those of other sets")
        networks.load_state_dict(dict(tensors))
        self._networks = networks.requires_grad_(False)

    def fit(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> None:
        """Train on rows, (n, p); an interrupt leaves what was fitted before."""
        generator, design = torch.Generator().manual_seed(self.seed), self.design
        x = encoder.expand(rows.float().cpu())
        networks = _untrained(design, encoder, sets, generator)
        if design.standardise:
            networks.gauge.set_by(x, ~encoder.blocks[encoder.feature_of])
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
        """Networks trained on bootstrap samples, all in one batch; those of an ensemble."""
        if self.networks.members > 1:
            return JointRedraws(self.apart, self.networks.members)
        return JointRedraws(partial(self._drawn_again, rows, encoder, sets), REDRAWS)

    def _drawn_again(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> Sequence[Decoder]:
        several = Autoencoder(replace(self.design, members=REDRAWS), self.training, self.seed)
        several.fit(rows.clone(), encoder, sets)
        return several.apart()

    def apart(self) -> tuple[Self, ...]:
        """The members of an ensemble as decoders of their own.

        Each was trained on a bootstrap sample, from other weights, and takes no account of the
        other members.

        Raises:
            NotFittedError: before `fit`.
        """
        return tuple(self._member(which) for which in range(self.networks.members))

    def encode(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The latents of rows and a tie per feature, (n, p) -> (n, s, e * k + p).

        A tie in [0, 1) decides whether a category flips and an integer is rounded up; without a
        generator it is the middle.
        """
        networks = self.networks
        v = networks.known(networks.encoder.expand(rows)).transpose(0, 1)
        ties = v.new_full((*v.shape[:2], rows.shape[1]), MIDDLE)
        if generator is not None:
            ties = torch.rand(ties.shape, generator=generator).to(v)
        return torch.cat([v, ties], 2)

    def decode(self, x: Tensor, v: Tensor, values: Tensor, sets: Tensor) -> Tensor:
        """Where people end up, (m, c, p); see `Decoder.decode`."""
        networks = self.networks
        e, k = networks.members, networks.k
        v, ties = v.split([e * k, x.shape[1]], 1)
        positions = networks.sets.positions[sets][:, None].expand(values.shape)
        there = x[:, None].expand(-1, values.shape[1], -1).scatter(2, positions, values)
        wide = networks.encoder.expand(torch.cat([x[:, None], there], 1))
        made = by_set(networks.made, v, wide, sets, len(networks.sets)).unflatten(2, (e, -1))
        if self.design.reconstruct == "paper":
            there = networks.encoder.collapse(made[:, 1:].mean(2))
            return there.scatter(2, positions, values)
        made = agreed(made, networks.encoder.feature_of)
        reached = moved(networks, x[:, None], made, ties[:, None]).scatter(2, positions, values)
        stays = (there == x[:, None]).all(2, keepdim=True)
        return torch.where(stays, x[:, None], reached)

    def follow(self, x: Tensor, v: Tensor, a: Tensor) -> Tensor:
        """Where people end up, (s, n, d), differentiable in a; see `Decoder.follow`."""
        networks = self.networks
        e, own = networks.members, networks.mask[: len(networks.sets)].bool()
        v = v[..., : e * networks.k]
        made = networks.made(v, a).unflatten(2, (e, -1))
        if self.design.reconstruct == "paper":
            return torch.where(own, a, made.mean(2))
        both = torch.stack([networks.made(v, x).unflatten(2, (e, -1)), made], 2)
        start, there = agreed(both.flatten(0, 1), networks.encoder.feature_of).unbind(1)
        shift = (there - start).view(x.shape)
        return torch.where(own, a, within_bounds(x + shift, x))

    def entanglement(self, rows: Tensor) -> Tensor:
        """(n, s) mean size of `d2 g / dv dx_S` over outputs, latents and x_S, by autograd."""
        networks = self.networks
        x = networks.encoder.expand(rows)
        s, w = networks.columns.shape
        few = max(CELLS // (w * networks.k * s * x.shape[1]), 1)
        found = [networks.entangled(part.expand(s, -1, -1)) for part in x.split(few)]
        return torch.cat(found, 1).view(networks.members, -1, len(x)).mean(0).T

    @property
    def networks(self) -> Networks:
        """The trained networks.

        Raises:
            NotFittedError: before `fit`.
        """
        if self._networks is None:
            raise NotFittedError("the autoencoder is not trained; call fit first")
        return self._networks

    def _member(self, which: int) -> Self:
        """One member as a decoder of its own."""
        own, networks = replace(self.design, members=1), self.networks
        other = type(self)(own, self.training, self.seed)
        other.load_state(networks.alone(which), networks.encoder, networks.sets)
        return other


def _untrained(
    design: Design, encoder: Encoder, sets: ActionSets, generator: torch.Generator
) -> Networks:
    return Networks(
        encoder,
        sets,
        layers=design.layers,
        activation=ACTIVATIONS[design.activation],
        squashing=design.standardise,
        generator=generator,
        members=design.members,
    )
