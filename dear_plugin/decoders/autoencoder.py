"""Autoencoder: the paper's decoder, one conditional autoencoder per set, trained as one module.

`v = e(x)`, `x_hat = g(v, x_S)`; a residual skip adds x_S to its own output; a softmax closes every
categorical block. The loss is reconstruction (MSE) + the Hessian penalty on d2 g / dv dx_S. The
paper's theory wants x_S independent of v, which the Hessian penalty does not give: the encoder
stays free to copy into v all it needs, and the decoder then ignores x_S. So there is an
independence weight too; 0 is the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn

from dear_plugin.actions import ActionSets
from dear_plugin.decoders.penalties import hessian_penalty, independence_penalty
from dear_plugin.decoders.protocol import Decoder
from dear_plugin.decoders.stack import StackedMLP
from dear_plugin.decoders.training import History, Training, train
from dear_plugin.encoding import Encoder
from dear_plugin.errors import DearError, NotFittedError, unknown

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "softplus": nn.Softplus,
}
PAPER_LAYERS = {"adult": (16, 32, 10), "compas": (8, 10, 5), "gmc": (8, 10, 5)}


@dataclass(frozen=True)
class Design:
    """What the networks look like and what they are trained for.

    Attributes:
        layers: widths of the encoder after its input, the last one is k; the decoder mirrors it.
        activation: "tanh", "relu" or "softplus"; mixed derivatives of ReLU say nothing.
        hessian: weight of the Hessian penalty.
        independence: weight of the independence penalty; 0 is the paper.
        standardise: train on columns of variance 1, so that heavy-tailed ones are not ignored.
        reconstruct: "remainder" keeps the person's own, `x + g(v, a) - g(v, x_S)`; "paper" is
            `g(v, a)`, whose reconstruction error is paid as indirect cost.
    """

    layers: tuple[int, ...] = (16, 32, 10)
    activation: str = "tanh"
    hessian: float = 1e-3
    independence: float = 1.0
    standardise: bool = True
    reconstruct: Literal["remainder", "paper"] = "remainder"


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
        self.seed = seed
        self.history = History()
        self._networks: Networks | None = None
        if self.design.activation not in ACTIVATIONS:
            raise DearError(unknown("activation", [self.design.activation], ACTIVATIONS))

    @classmethod
    def paper(cls, layers: Sequence[int] = PAPER_LAYERS["adult"], seed: int = 0) -> Autoencoder:
        """The paper to the letter: Hessian penalty only, its own reconstruction, raw columns.

        Args:
            layers: `PAPER_LAYERS` has the paper's own per data set.
            seed: of weights, batches and penalties.
        """
        design = Design(
            tuple(layers), hessian=0.1, independence=0.0, standardise=False, reconstruct="paper"
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

    def adopt(self, tensors: Mapping[str, Tensor], encoder: Encoder, sets: ActionSets) -> None:
        """Take over trained networks."""
        networks = Networks(self.design, encoder, sets, torch.Generator())
        networks.load_state_dict(dict(tensors))
        self._networks = networks.requires_grad_(False)

    def fit(self, rows: Tensor, encoder: Encoder, sets: ActionSets) -> None:
        """Train on rows, (n, p)."""
        generator = torch.Generator().manual_seed(self.seed)
        x = encoder.expand(rows.float().cpu())
        networks = Networks(self.design, encoder, sets, generator)
        if self.design.standardise:
            networks.scale_to(x)
        losses = _Losses(networks, self.design)
        self.history = train(losses, networks.parameters(), x, self.training, generator)
        self._networks = networks.requires_grad_(False)

    def encode(self, rows: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The latents of rows, (n, p) -> (n, s, k); there are no ties to break."""
        networks = self.networks
        x = networks.encoder.expand(rows)
        return networks.latents(x.expand(len(networks.mask), *x.shape)).transpose(0, 1)

    def decode(self, x: Tensor, v: Tensor, values: Tensor, sets: Tensor) -> Tensor:
        """Where people end up, (m, c, p); see `Decoder.decode`."""
        networks = self.networks
        positions = networks.sets.positions[sets][:, None].expand(values.shape)
        there = x[:, None].expand(-1, values.shape[1], -1).scatter(2, positions, values)
        here = networks.encoder.expand(x)[:, None]
        wide = torch.cat([here, networks.encoder.expand(there)], 1)
        made = _by_set(networks.generate, v, wide, sets, len(networks.mask))
        if self.design.reconstruct == "paper":
            moved = made[:, 1:]
        else:
            moved = here + made[:, 1:] - made[:, :1]
        return networks.encoder.collapse(moved).scatter(2, positions, values)

    def follow(self, x: Tensor, v: Tensor, a: Tensor) -> Tensor:
        """Where people end up, (s, n, d), differentiable in a; see `Decoder.follow`."""
        networks = self.networks
        made = networks.generate(v, a)
        if self.design.reconstruct == "remainder":
            made = x + made - networks.generate(v, x)
        return torch.where(networks.mask.bool(), a, made)

    def entanglement(self, rows: Tensor) -> Tensor:
        """(n, s) mean absolute `d2 g / dv dx_S` over outputs, latents and x_S, by autograd."""
        networks = self.networks
        x = networks.encoder.expand(rows).expand(len(networks.mask), -1, -1)
        return mixed_derivatives(networks, x).abs().mean((0, 1, 4)).T

    @property
    def networks(self) -> Networks:
        """The trained networks.

        Raises:
            NotFittedError: before `fit`.
        """
        if self._networks is None:
            raise NotFittedError("the autoencoder is not trained; call fit first")
        return self._networks


class Networks(nn.Module):
    """e and g of all s sets.

    Args:
        design: layers and activation.
        encoder: the gate, for the categorical blocks.
        sets: the s sets.
        generator: of the initial weights.
    """

    mask: Tensor
    centre: Tensor
    spread: Tensor

    def __init__(
        self, design: Design, encoder: Encoder, sets: ActionSets, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.encoder, self.sets = encoder, sets
        s, d, k = len(sets), encoder.d, design.layers[-1]
        act = ACTIVATIONS[design.activation]
        self.e = StackedMLP(s, (d, *design.layers), act, generator)
        self.g = StackedMLP(s, (k + d, *design.layers[-2::-1], d), act, generator)
        self.register_buffer("mask", sets.masks[:, encoder.feature_of][:, None].float())
        self.register_buffer("centre", torch.zeros(d))
        self.register_buffer("spread", torch.ones(d))

    def scale_to(self, x: Tensor) -> None:
        """Standardise by encoded training rows, (n, d), one-hot blocks left alone."""
        number = ~self.encoder.blocks[self.encoder.feature_of]
        self.centre.copy_(torch.where(number, x.mean(0), 0.0))
        self.spread.copy_(torch.where(number, x.std(0).clamp_min(1e-3), 1.0))

    def latents(self, x: Tensor) -> Tensor:
        """`v = e(x)`, (s, n, d) -> (s, n, k)."""
        v: Tensor = self.e((x - self.centre) / self.spread)
        return v

    def generate(self, v: Tensor, x_s: Tensor) -> Tensor:
        """`g(v, x_S)`, (s, n, k) and (s, n, d) -> (s, n, d); only the columns of S are read."""
        seen = (x_s - self.centre) / self.spread * self.mask
        raw = self.g(torch.cat([v, seen], 2)) + seen
        return self._close(raw) * self.spread + self.centre

    def _close(self, raw: Tensor) -> Tensor:
        """A softmax over every categorical block."""
        out = list(raw.split([f.columns for f in self.encoder.schema], -1))
        for j in self.encoder.blocks.nonzero()[:, 0].tolist():
            out[j] = out[j].softmax(-1)
        return torch.cat(out, -1)


@dataclass
class _Losses:
    """The weighted terms of a batch."""

    networks: Networks
    design: Design
    weights: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.weights = 1.0 / self.networks.spread**2

    def __call__(self, x: Tensor, generator: torch.Generator) -> dict[str, Tensor]:
        networks, design = self.networks, self.design
        wide = x.expand(len(networks.mask), *x.shape)
        v = networks.latents(wide)
        x_s = wide * networks.mask
        error = (networks.generate(v, x_s) - wide).square() * self.weights
        terms = {"reconstruction": error.mean((1, 2)).sum()}
        if design.hessian:
            mixed = hessian_penalty(networks.generate, v, x_s, networks.mask, generator)
            terms["hessian"] = design.hessian * mixed.sum()
        if design.independence:
            dependence = independence_penalty(v, x_s, networks.mask, generator)
            terms["independence"] = design.independence * dependence.sum()
        return terms


def mixed_derivatives(networks: Networks, x: Tensor) -> Tensor:
    """`d2 g / dv dx_S`, (w, k, s, n, d): w columns of S (the widest set's), k latents.

    Args:
        networks: e and g.
        x: (s, n, d) rows.
    """
    with torch.no_grad():
        v = networks.latents(x)
    x_s = x * networks.mask
    tangents = column_tangents(networks.mask).to(x)
    latents = torch.eye(v.shape[2]).to(v)

    def by_x(w: Tensor, there: Tensor) -> Tensor:
        made: Tensor = torch.func.jvp(
            lambda a: networks.generate(there, a), (x_s,), (w.expand(x_s.shape),)
        )[1]
        return made

    def mixed(w: Tensor, u: Tensor) -> Tensor:
        out: Tensor = torch.func.jvp(lambda t: by_x(w, t), (v,), (u.expand(v.shape),))[1]
        return out

    return torch.stack([torch.stack([mixed(w, u) for u in latents]) for w in tangents])


def column_tangents(mask: Tensor) -> Tensor:
    """(w, s, 1, d) unit directions: the i-th column of every set, zero where it has fewer."""
    order = mask.cumsum(2) * mask
    return torch.stack([(order == i + 1).float() for i in range(int(mask.sum(2).max()))])


def _by_set(
    generate: Callable[[Tensor, Tensor], Tensor], v: Tensor, x_s: Tensor, sets: Tensor, s: int
) -> Tensor:
    """Run m people, each through the network of its own set, in one padded batch.

    Args:
        generate: (s, n, k), (s, n, d) -> (s, n, d).
        v: (m, k) latents.
        x_s: (m, c, d) the values to generate at.
        sets: (m,) whose network.
        s: how many there are.

    Returns:
        (m, c, d).
    """
    m, c, d = x_s.shape
    counts = torch.bincount(sets, minlength=s)
    order = sets.argsort(stable=True)
    rank = torch.empty_like(sets)
    rank[order] = torch.arange(m) - (counts.cumsum(0) - counts)[sets[order]]
    most = int(counts.max())
    slot = sets * most + rank
    latents = v.new_zeros(s * most, v.shape[1]).index_copy(0, slot, v)
    places = x_s.new_zeros(s * most, c, d).index_copy(0, slot, x_s)
    wide = latents.view(s, most, 1, v.shape[1]).expand(-1, -1, c, -1)
    made = generate(wide.reshape(s, most * c, v.shape[1]), places.view(s, most * c, d))
    return made.view(s * most, c, d)[slot]
