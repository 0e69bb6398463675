"""Jacobians: Proposition 1's parts and the alignment, for any decoder.

Autoencoders are differentiated exactly; for ranks the derivative is a difference over one grid
step. `dv / dx_S` is the slope of E[v | x_S] over the training rows, not the encoder's partial at
fixed x_Sc: with exact reconstruction that partial cancels the elasticity and makes every indirect
cost zero.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Kind
from dear_plugin.decoders import Decoder
from dear_plugin.evaluation.costs import Parts, alignment
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.action_sets import ActionSets
from dear_plugin.problem.target import Goal

STEP = 1.0 / 64.0


def parts(
    decoder: Decoder, encoder: Encoder, sets: ActionSets, rows: Tensor, train: Tensor
) -> list[Parts]:
    """Proposition 1's Jacobians of every set.

    Args:
        decoder: fitted on the sets.
        encoder: the gate.
        sets: the s sets.
        rows: (n, p) where to take them.
        train: (m, p) training rows, for the slope of E[v | x_S].

    Returns:
        One `Parts` per set, with n rows and the set's q encoded columns.
    """
    exact = decoder.jacobians(rows, train)
    if exact is not None:
        masks = sets.masks[:, encoder.feature_of]
        return [Parts(own, *both) for own, both in zip(masks, exact, strict=True)]
    return [_differences(decoder, encoder, sets, i, rows) for i in range(len(sets))]


def alignments(every: list[Parts], classifier: Classifier, goal: Goal, rows: Tensor) -> Tensor:
    """(n, s) cosine of the decoder's Jacobian `dg / dx_S` with the model's gradient.

    The paper's guide to S: where it is high, acting on S makes most progress.

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
    out = []
    for part in every:
        slope = torch.einsum("ndq,nd->nq", part.given, gradient)
        out.append(alignment(slope, part.given, gradient))
    return torch.stack(out, 1)


def _differences(
    decoder: Decoder, encoder: Encoder, sets: ActionSets, which: int, rows: Tensor
) -> Parts:
    """Finite differences over one grid step; v is held, and independent of x_S by construction."""
    at, positions = torch.full((len(rows),), which), sets.positions[which]
    v, here = decoder.encode(rows)[:, which], rows[:, positions]
    columns = []
    for there, size in _steps(encoder, positions, here):
        made = decoder.decode(rows, v, torch.stack([here, there], 1), at)
        gap = encoder.expand(made[:, 1]) - encoder.expand(made[:, 0])
        columns.append(gap / size[:, None])
    given = torch.stack(columns, 2)
    own = sets.masks[which, encoder.feature_of]
    return Parts(own, given, torch.zeros(given.shape))


def _steps(encoder: Encoder, positions: Tensor, here: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Per encoded column of S: values (n, w) one step away, and the size of the step, (n,)."""
    for j in positions.unique().tolist():
        feature = encoder.schema.features[j]
        # A shorter set repeats its first feature: all its places move together.
        places = (positions == j).nonzero()[:, 0]
        own = here[:, places[0]]
        ends = {
            Kind.NUMERIC: [own + STEP],
            Kind.BINARY: [1.0 - own],
            Kind.CATEGORICAL: [torch.full_like(own, c) for c in range(feature.columns)],
        }
        for end in ends[feature.kind]:
            there = here.index_copy(1, places, end[:, None].expand(-1, len(places)))
            size = end - own if feature.kind is not Kind.CATEGORICAL else torch.ones_like(own)
            yield there, size
