"""Modifiers (step 3): groups of rows in which x_S may have another effect; a tree of what is held.

Where `y' = x' beta + e` are what the held features leave of a follower and of x_S (Robinson 1988),
`x' e` has mean 0 in every group of rows of the same effect (Nie and Wager 2021; Athey, Tibshirani
and Wager 2019). A tree predicts it for all followers at once, on one half of the rows. Whether
effects differ between its leaves is for the other half to say.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dear_plugin.decoders.protocol import Members
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.balance import Balance, plain
from dear_plugin.decoders.transport.leaves import Leaves
from dear_plugin.decoders.transport.regression import Regression
from dear_plugin.decoders.transport.terms import Terms, standardised, winsorised

# Leaves, their least rows and share, and rows that the tree is grown on.
LEAVES, MIN_LEAF, LEAF_SHARE, ROWS = 6, 150, 16, 10_000
# Held columns whose products are inputs, too: a tree does not see a crossing alone.
CROSSED = 10


def grows(n: int) -> Tensor:
    """(n,) bool, the rows that the tree is grown on; the others test it."""
    return torch.arange(n) % 2 == 0


class Modifiers:
    """The groups of the held features of one set by which effects may differ.

    Args:
        sample: the training rows.
        acted: the features of S.
        held: the held features, at least one.
        followers: the features that may follow.
    """

    def __init__(self, sample: Sample, acted: Members, held: Members, followers: Members) -> None:
        self._at, self._terms = list(held), sample.shared(Terms, held)
        rows = sample.shared(winsorised)[grows(len(sample))]
        rows = rows[:: -(-len(rows) // ROWS)]
        more = sample.shared(Balance, acted, held).more(rows)
        regression = Regression(more, sample.shared(plain, held, 2, ROWS))
        own, rest = (regression(standardised(sample, s, rows))[1] for s in (acted, followers))
        # Bends may differ where lines do not.
        own = torch.cat([own, regression(own.square())[1]], 1)
        effect = (own[:, :, None] * Regression(own)(rest)[1][:, None]).flatten(1)
        self._middle = self._columns(rows).mean(0)
        least = max(MIN_LEAF, len(rows) // LEAF_SHARE)
        self._leaves = Leaves(self._inputs(rows), effect, least, LEAVES)

    def __len__(self) -> int:
        """The number of groups."""
        return len(self._leaves)

    def __call__(self, rows: Tensor) -> Tensor:
        """(m,) int64, the group of scaled rows, (m, p)."""
        return self._leaves(self._inputs(rows))

    def _columns(self, rows: Tensor) -> Tensor:
        return self._terms(rows[:, self._at])[:, self._terms.straight]

    def _inputs(self, rows: Tensor) -> Tensor:
        columns = self._columns(rows)
        some = (columns - self._middle)[:, :CROSSED]
        one, other = torch.triu_indices(some.shape[1], some.shape[1], 1)
        return torch.cat([columns, some[:, one] * some[:, other]], 1)
