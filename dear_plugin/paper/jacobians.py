"""The Jacobians of Proposition 1 and Lemma 1, and the alignment, for any decoder.

They are exact where the decoder gives them (autoencoders), else finite differences over one step.
`dv / dx_S` is one matrix for all rows, the least-squares slope of v on x_S over the training rows.
It is the slope of E[v | x_S] only where that is linear in x_S. The encoder's partial derivative at
fixed x_Sc is not meant: with exact reconstruction it cancels the elasticity, so that every
indirect cost is zero.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.decoders import Decoder, Decoders, Members
from dear_plugin.errors import DearError
from dear_plugin.models.classifier import Classifier
from dear_plugin.paper.autoencoder.decoder import Autoencoder
from dear_plugin.paper.closed_forms import Parts, alignment
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.goals import Goal

STEP = 1.0 / 64.0


def parts(
    decoders: Decoders, encoder: Encoder, sets: ActionSets, rows: Tensor, train: Tensor
) -> list[Parts]:
    """Proposition 1's Jacobians of every set.

    Args:
        decoders: of the sets.
        encoder: expands rows.
        sets: the s sets.
        rows: (n, p) the rows at which the Jacobians are evaluated.
        train: (m, p) training rows, for the least-squares slope of v on x_S.

    Returns:
        One `Parts` per set, with n rows and the set's q encoded columns.
    """
    out = []
    for members in sets.members:
        decoder, own = decoders.of(members), torch.isin(encoder.feature_of, torch.tensor(members))
        if isinstance(decoder, Autoencoder):
            out.append(Parts(own, *decoder.jacobians(rows, train)))
        else:
            out.append(_differences(decoder, encoder, members, rows))
    return out


def latent_jacobians(decoder: Decoder, rows: Tensor) -> Tensor:
    """Lemma 1's Jacobians along the latents, `dg / dv`, (n, d, k).

    Args:
        decoder: fitted on one set, with derivatives.
        rows: (n, p) the rows at which the Jacobians are evaluated.

    Raises:
        DearError: the decoder has no derivatives.
    """
    if not isinstance(decoder, Autoencoder):
        raise DearError(
            f"expected a decoder with derivatives, got {type(decoder).__name__}, whose latents are"
            " ranks; use decoder='autoencoder'"
        )
    return decoder.latent_jacobians(rows)


def alignments(every: list[Parts], classifier: Classifier, goal: Goal, rows: Tensor) -> Tensor:
    """(n, s) cosine of the decoder's Jacobian `dg / dx_S` with the model's gradient.

    The paper's guide to the choice of S: the higher, the more the score changes per unit of cost.

    Args:
        every: one `Parts` per set.
        classifier: the model; a torch module.
        goal: the target, whose margin is f.
        rows: (n, p) the same rows.

    Raises:
        ModelError: a black box has no gradient.
    """
    x = classifier.encoder.expand(rows).requires_grad_(True)
    (gradient,) = torch.autograd.grad(goal.margin(classifier.differentiable(x)).sum(), x)
    return torch.stack([alignment(part.given, gradient) for part in every], 1)


def _differences(decoder: Decoder, encoder: Encoder, members: Members, rows: Tensor) -> Parts:
    """Finite differences over one step at fixed v, which is independent of x_S by construction."""
    v, before, columns = decoder.encode(rows), rows[:, list(members)], []
    for after, size in _steps(encoder, members, before):
        made = decoder.decode(rows, v, torch.stack([before, after], 1))
        difference = encoder.expand(made[:, 1]) - encoder.expand(made[:, 0])
        columns.append(difference / size[:, None].float())
    given = torch.stack(columns, 2)
    own = torch.isin(encoder.feature_of, torch.tensor(members))
    return Parts(own, given, torch.zeros(given.shape))


def _steps(encoder: Encoder, members: Members, before: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Per encoded column of S: the values of x_S after a step, (n, w), and its size, (n,)."""
    for place, j in enumerate(members):
        feature, value = encoder.schema.features[j], before[:, place]
        block, amounts = bool(encoder.blocks[j]), encoder.amounts(value, at=j)
        ends = [torch.where(amounts, value + STEP * feature.width, 1.0 - value)]
        if block:
            ends = [torch.full_like(value, c) for c in range(feature.columns)]
        for end in ends:
            after = before.index_copy(1, torch.tensor([place]), end[:, None])
            size = torch.ones_like(value) if block else (end - value) / feature.width
            yield after, size
