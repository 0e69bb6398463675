"""Vetting: the best candidate that meets a requirement, with few evaluations."""

import pytest
import torch

from dear_plugin.problem.case import Requirement
from dear_plugin.rivals.vetting import Vetting

M, C = 6, 500


class Above(Requirement):
    """Counterfactuals whose first value is at least a limit; it counts what it evaluates."""

    def __init__(self, limit):
        self.limit, self.count = limit, 0

    def met(self, reached, rows):
        self.count += len(rows)
        return reached[:, 0] >= self.limit[rows]

    def mask(self, reached):
        return reached[:, 0] >= self.limit[:, None]

    def select(self, rows):
        return Above(self.limit[rows])


def candidates(seed=0):
    rng = torch.Generator().manual_seed(seed)
    rows = torch.rand(M, C, 2, generator=rng)
    loss = torch.rand(M, C, generator=rng)
    return rows, torch.where(torch.rand(M, C, generator=rng) < 0.3, torch.inf, loss)


def brute_force(rows, loss, limit):
    loss = torch.where(rows[..., 0] >= limit[:, None], loss, torch.inf)
    least, at = loss.min(1)
    return torch.where(least.isfinite(), at, -1)


LIMIT = torch.tensor([0.0, 0.5, 0.9, 0.99, 0.999, 2.0])


@pytest.mark.parametrize("rows_of_case", [1, 2], ids=["every row", "some rows"])
def test_it_is_the_cheapest_of_all(rows_of_case):
    rows, loss = candidates()
    owner = torch.arange(M) * rows_of_case
    requirement = Above(LIMIT.repeat_interleave(rows_of_case))
    best = Vetting.of(requirement, rows, owner, loss).best(some=False)
    assert torch.equal(best, brute_force(rows, loss, LIMIT))
    assert best[-1] == -1
    assert (best[:3] >= 0).all()
