"""The settings of the autoencoder's networks and of their losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from dear_plugin._validation import boolean, number, one_of, setting, several, validated, whole


class Tanh(nn.Module):
    """The hyperbolic tangent as a sigmoid, which torch computes several times faster on a CPU."""

    def forward(self, x: Tensor) -> Tensor:
        """Entry by entry."""
        return 2.0 * torch.sigmoid(2.0 * x) - 1.0


ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": Tanh, "relu": nn.ReLU, "softplus": nn.Softplus}
PAPER_LAYERS = {"adult": (16, 32, 10), "compas": (8, 10, 5), "gmc": (8, 10, 5)}


@validated
@dataclass(frozen=True)
class Design:
    """The shape of the networks and the weights of their losses.

    Attributes:
        layers: widths of the encoder after its input, the last one is k; the decoder mirrors it.
        activation: "tanh", "relu" or "softplus"; the mixed derivatives of ReLU are zero almost
            everywhere.
        hessian: weight of the Hessian penalty.
        independence: weight of the penalties on the dependence of v and x_S; 0 is the paper.
        noise: standard deviation of the noise on the latents in training, in units of their own.
        standardise: train on columns of variance 1 and let the networks read them through asinh,
            so that heavy-tailed columns are not ignored.
        reconstruct: "remainder" keeps the row's residual, `x + g(v, a) - g(v, x_S)`; "paper" is
            `g(v, a)`, whose reconstruction error counts as indirect cost.

    Raises:
        SettingError: a value that a setting cannot have.

    Example:
        >>> from dear_plugin import Autoencoder, Design
        >>> few_latents = Autoencoder(Design(layers=(16, 32, 4)))
    """

    layers: tuple[int, ...] = setting((16, 32, 10), several(whole(1)))
    activation: str = setting("tanh", one_of(*ACTIVATIONS))
    hessian: float = setting(1e-2, number())
    independence: float = setting(20.0, number())
    noise: float = setting(0.1, number())
    standardise: bool = setting(True, boolean)
    reconstruct: Literal["remainder", "paper"] = setting("remainder", one_of("remainder", "paper"))
