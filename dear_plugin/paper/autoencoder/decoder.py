"""The paper's decoder, a conditional autoencoder of one action set.

`v = e(x)`, `x_hat = g(v, x_S)`; a residual connection adds x_S to its own output; categorical
blocks end in a softmax. The loss is reconstruction (MSE) + the Hessian penalty on d2 g / dv dx_S.
The paper's theory needs x_S independent of v, which the Hessian penalty does not enforce: the
encoder may copy all it needs into v, and the decoder then ignores x_S. Hence an independence
penalty with a weight of its own; 0 is the paper. The networks of several sets, and of bootstrap
samples, are trained together in one stack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from dear_plugin._validation import check_tensor, whole
from dear_plugin.data.schema import Schema
from dear_plugin.decoders.protocol import MIDDLE, Decoder, Fit, Members, Sample
from dear_plugin.errors import NotFittedError
from dear_plugin.paper.autoencoder import derivatives
from dear_plugin.paper.autoencoder.design import PAPER_LAYERS, Design
from dear_plugin.paper.autoencoder.networks import Networks
from dear_plugin.paper.autoencoder.objective import Objective
from dear_plugin.paper.autoencoder.remainder import add_change
from dear_plugin.paper.autoencoder.scaling import ColumnScaler
from dear_plugin.paper.autoencoder.training import History, Training, train

# Cells of the mixed derivatives that are in memory at a time.
CELLS = 2**24
# The training of the paper's networks, for which it gives no values.
RATE, PATIENCE, MOST_STEPS = 2e-3, 40, 10_000


class Autoencoder(Decoder):
    """A conditional autoencoder.

    Args:
        design: the networks and their losses.
        training: the loop.
        seed: of weights, batches and penalties; the global generators are left alone.

    Attributes:
        history: the losses by epoch of all networks that were trained together, after `fit`; on
            the decoder whose `fitted` was called, those of its last training.

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

    joint: ClassVar[bool] = True
    pair_features: ClassVar[int] = 5

    def __init__(
        self, design: Design | None = None, training: Training | None = None, seed: int = 0
    ) -> None:
        self.design = design or Design()
        self.training = training or Training()
        self.seed: int = whole(0)("Autoencoder: seed", seed)
        self.history = History()
        self._networks: Networks | None = None
        self._acted: list[int] = []

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
        )
        training = Training(
            epochs=MOST_STEPS, rate=RATE, patience=PATIENCE, most_steps=MOST_STEPS, anneal=False
        )
        return cls(design, training, seed)

    @property
    def keeps_factual(self) -> bool:
        """Whether the row's residual is kept; "paper" returns the reconstruction."""
        return self.design.reconstruct != "paper"

    def held(self, schema: Schema, acted: Members) -> Members:
        """None: constraints put back what does not move."""
        return ()

    def conditioned(self, schema: Schema, acted: Members) -> Members:
        """None: it conditions on nothing but x_S and v."""
        return ()

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

    def load_state(self, tensors: Mapping[str, Tensor], fit: Fit) -> None:
        """Load trained networks; nothing is trained.

        Raises:
            ValueError: tensors of another design, other features or another set.
        """
        known = {size for tensor in tensors.values() for size in tensor.shape}
        if not known.issuperset(self.design.layers):  # or a bad file could ask for all memory
            raise ValueError(f"expected tensors with layers of {self.design.layers}, got others")
        encoder = fit.sample.encoder
        scaler = ColumnScaler(encoder.d, self.design.standardise)
        networks = Networks(encoder, [fit.acted], scaler, self.design, torch.Generator())
        own = networks.state_dict()
        if missing := own.keys() - tensors.keys():
            raise ValueError(f"expected tensors with {sorted(missing)}, got none of these names")
        for name, each in own.items():
            finite = bool(each.isfinite().all())
            check_tensor(
                name, tensors[name], tuple(each.shape), dtype=each.dtype, is_finite=finite
            )
        if not torch.equal(tensors["columns"], own["columns"]):
            raise ValueError("expected tensors of the same set, got those of another set")
        networks.load_state_dict({name: tensors[name] for name in own})
        self._networks, self._acted = networks.requires_grad_(False), list(fit.acted)

    def fit(self, sample: Sample, acted: Members, held: Members) -> None:
        """Train on the rows of a sample; an interrupt leaves the previous state."""
        (one,) = self.fitted([Fit(sample, acted, held)])
        self._networks, self._acted = one.networks, one._acted

    def fitted(self, fits: Sequence[Fit]) -> list[Self]:
        """Trained copies; those on equally many rows are trained together, in one stack."""
        decoders = [self.clone_unfitted() for _ in fits]
        for size in dict.fromkeys(len(fit.sample) for fit in fits):
            some = [i for i, fit in enumerate(fits) if len(fit.sample) == size]
            networks, history = self._train([fits[i] for i in some])
            for slot, i in enumerate(some):
                decoders[i].load_state(networks.state_of(slot), fits[i])
                decoders[i].history = history
            self.history = history
        return decoders

    def encode(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The latents of rows and a tie per feature, (m, p) -> (m, k + p).

        A tie in [0, 1) decides whether a category flips and an integer is rounded up; without a
        generator it is the middle.
        """
        v = self.networks.latents(self.networks.encoded(x))[0]
        ties = v.new_full(x.shape, MIDDLE)
        if generator is not None:
            ties = torch.rand(ties.shape, generator=generator).to(v)
        return torch.cat([v, ties], 1)

    def decode(self, x: Tensor, v: Tensor, values: Tensor) -> Tensor:
        """The rows that follow, (m, c, p); see `Decoder.decode`."""
        factual, networks = x[:, None], self.networks
        acted = factual.repeat(1, values.shape[1], 1)
        acted[..., self._acted] = values
        outputs = self._outputs(torch.cat([factual, acted], 1), v)
        if self.keeps_factual:
            reached = add_change(networks, factual, outputs, v[:, None, networks.k :])
            reached = torch.where((acted == factual).all(2, keepdim=True), factual, reached)
        else:
            reached = networks.encoder.collapse(outputs[:, 1:], factual)
        reached[..., self._acted] = values
        return reached

    def follow(self, x: Tensor, v: Tensor, a: Tensor) -> Tensor:
        """The rows that follow, (n, d), differentiable in a; see `Decoder.follow`."""
        networks, own = self.networks, self.networks.mask[0].bool()
        v = v[None, :, : networks.k]
        reached = networks.generate(v, a)[0]
        if self.keeps_factual:
            reached = x + (reached - networks.generate(v, x)[0])
            reached = torch.clamp(reached, x.clamp_max(0.0), x.clamp_min(1.0))
        return torch.where(own, a, reached)

    def entanglement(self, rows: Tensor) -> Tensor:
        """See `Decoder.entanglement`; by autograd."""
        x, networks = self.networks.encoded(rows), self.networks
        few = max(CELLS // (networks.columns.shape[1] * networks.k * x.shape[1]), 1)
        return torch.cat([derivatives.entanglement(networks, part) for part in x.split(few)])

    def jacobians(self, rows: Tensor, train: Tensor) -> tuple[Tensor, Tensor]:
        """Exact derivatives of g along the q encoded columns of S.

        Args:
            rows: (n, p) where to take them.
            train: (m, p) training rows, for the least-squares slope of v on x_S.

        Returns:
            `dg / dx_S` at fixed v and `dg / dv` times that slope, (n, d, q) each.
        """
        encoded = self.networks.encoded
        return derivatives.jacobians(self.networks, encoded(rows), encoded(train))

    def latent_jacobians(self, rows: Tensor) -> Tensor:
        """Exact derivatives of g along the latents, (n, d, k)."""
        return derivatives.latent_jacobians(self.networks, self.networks.encoded(rows))

    @property
    def networks(self) -> Networks:
        """The trained networks.

        Raises:
            NotFittedError: before `fit`.
        """
        if self._networks is None:
            raise NotFittedError("the autoencoder is not trained; call fit first")
        return self._networks

    def _outputs(self, rows: Tensor, v: Tensor) -> Tensor:
        """(m, c, d) the outputs of g for rows, (m, c, p)."""
        m, c, _ = rows.shape
        x = self.networks.encoded(rows).view(m * c, -1)
        latents = v[:, : self.networks.k].repeat_interleave(c, 0)[None]
        return self.networks.generate(latents, x).view(m, c, -1)

    def _train(self, fits: Sequence[Fit]) -> tuple[Networks, History]:
        """The trained networks of fits on equally many rows."""
        design, generator = self.design, torch.Generator().manual_seed(self.seed)
        samples = list({id(fit.sample): fit.sample for fit in fits}.values())
        which = [samples.index(fit.sample) for fit in fits]
        encoder = samples[0].encoder
        every = [encoder.expand(sample.rows) for sample in samples]
        scalers = [ColumnScaler(encoder.d, design.standardise) for _ in samples]
        if design.standardise:
            for one, x in zip(scalers, every, strict=True):
                one.fit(x, ~encoder.blocks[encoder.feature_of])
        scaler = ColumnScaler.stacked([scalers[i] for i in which])
        networks = Networks(encoder, [fit.acted for fit in fits], scaler, design, generator)
        weights = design.hessian, design.independence, design.noise
        objective = Objective(networks, torch.tensor(which), *weights)
        rows = torch.cat([one.read(x) for one, x in zip(scalers, every, strict=True)])
        return networks, train(objective, networks.parameters(), rows, self.training, generator)
