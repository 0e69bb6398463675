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
from dear_plugin.decoders import Autoencoder, Decoder
from dear_plugin.decoders.autoencoder.derivatives import along, column_tangents
from dear_plugin.decoders.autoencoder.networks import Networks
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
    if isinstance(decoder, Autoencoder):
        x, base = encoder.expand(rows), encoder.expand(train)
        every = [decoder.networks]
        if decoder.networks.members > 1:
            every = [member.networks for member in decoder.apart()]
        return _mean([_exact(networks, x, base) for networks in every])
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


def _exact(networks: Networks, x: Tensor, train: Tensor) -> list[Parts]:
    s = len(networks.mask)
    wide, base = x.expand(s, *x.shape), train.expand(s, *train.shape)
    with torch.no_grad():
        v, x_s = networks.latents(wide), wide * networks.mask
        slopes = _slopes(networks.latents(base), base * networks.mask)
    tangents = column_tangents(networks.mask).to(x)
    given, entangled = [], []
    for tangent in tangents:
        given.append(along(lambda a: networks.generate(v, a), x_s, tangent))
        # The columns of S select the slope along this tangent.
        slope = torch.bmm(tangent, slopes)
        entangled.append(along(lambda u: networks.generate(u, x_s), v, slope))
    both = torch.stack(given, 3), torch.stack(entangled, 3)
    own = networks.mask[:, 0].bool()
    return [
        Parts(own[i], both[0][i, ..., : int(own[i].sum())], both[1][i, ..., : int(own[i].sum())])
        for i in range(s)
    ]


def _mean(members: list[list[Parts]]) -> list[Parts]:
    """The Jacobians of the members' mean, set by set; one member's are its own."""
    if len(members) == 1:
        return members[0]
    return [
        Parts(
            same[0].own,
            torch.stack([part.given for part in same]).mean(0),
            torch.stack([part.entangled for part in same]).mean(0),
        )
        for same in zip(*members, strict=True)
    ]


def _slopes(v: Tensor, x_s: Tensor) -> Tensor:
    """(s, d, k) the least-squares slope of v on the columns of S, zero off them."""
    a = x_s - x_s.mean(1, keepdim=True)
    b = v - v.mean(1, keepdim=True)
    gram = torch.bmm(a.transpose(1, 2), a) / a.shape[1]
    ridge = 1e-8 * torch.eye(a.shape[2])
    cross = torch.bmm(a.transpose(1, 2), b) / a.shape[1]
    # Columns off S are zero throughout: the ridge leaves their slope at zero.
    slopes: Tensor = torch.linalg.solve(gram + ridge, cross)
    return slopes


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
