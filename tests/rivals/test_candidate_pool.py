"""CandidatePool: projection to the feasible set, and the best candidate of each row."""

import pandas as pd
import pytest
import torch
from torch import nn

from dear_plugin import Constraints, Encoder, Schema, Target
from dear_plugin.methods.base import Case
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.constraints import admissible
from dear_plugin.rivals.candidate_pool import CandidatePool

FRAME = pd.DataFrame(
    {
        "age": [20, 30, 60],
        "income": [10.0, 20.5, 60.0],
        "debt": [0.0, 5.0, 10.0],
        "member": ["no", "yes", "no"],
        "town": ["A", "B", "C"],
    }
)
INCOME = 1


class Income(nn.Module):
    """Accepts an income above the middle of its range."""

    def forward(self, x):
        return x[:, [INCOME]] - 0.5


@pytest.fixture
def schema():
    return Schema.infer(FRAME, immutable=["age"], decreasing=["debt"])


def pool_of(schema, within=None, frame=FRAME):
    encoder = Encoder(schema)
    x = encoder.rows(frame)
    feasible = admissible(within, x, encoder, encoder.held(frame))
    goal = Target.of_class(1).resolve(len(x), None)
    case = Case(x, goal, feasible, goal.aim(1e-4))
    return CandidatePool.of(case, Classifier(Income(), encoder))


@pytest.mark.parametrize(
    "within",
    [
        None,
        Constraints(frozen=["income"], categories={"town": ["A", "C"]}),
        Constraints(ranges={"income": (15.0, 40.0)}, act_on=["income", "town"]),
    ],
)
def test_a_row_is_feasible_if_the_projection_does_not_change_it(schema, within):
    pool = pool_of(schema, within)
    rows = torch.cartesian_prod(
        *map(torch.tensor, ([20.0, 30.0], [10.0, 25.0, 60.0], [0.0, 5.0], [0.0, 1.0])),
        torch.arange(3.0),
    )
    rows = rows.double()
    kept = pool.project(rows.expand(3, -1, -1))
    same = pool.case.feasible.limits.stays(kept, rows).all(2)
    assert torch.equal(pool.feasible_mask(rows), same)
    assert pool.feasible_mask(pool.case.x).diagonal().all()


def test_the_cheapest_success_is_kept_or_the_largest_margin(schema):
    pool = pool_of(schema)
    rows = pool.case.x[:, None].repeat(1, 3, 1)
    rows[:2, :, INCOME] = torch.tensor([[55.0, 40.0, 25.0], [25.0, 32.5, 30.0]]).double()
    success = pool.update(rows)
    assert success.tolist() == [True, False, True]
    assert pool.best[:, INCOME].tolist() == [40.0, 32.5, 60.0]
    assert pool.proposal("no").reasons.tolist() == ["", "no", ""]


def test_a_method_may_minimise_another_loss_than_cost(schema):
    pool = pool_of(schema)
    rows = pool.case.x[:, None].repeat(1, 2, 1)
    rows[:, :, INCOME] = torch.tensor([40.0, 55.0])
    pool.update(rows, loss=torch.tensor([[2.0, 1.0]] * 3))
    assert pool.best[:, INCOME].tolist() == [55.0] * 3


def test_restarts_have_only_rows_without_a_success(schema):
    pool, restarts = pool_of(schema), []
    for share, part in pool.restarts(3):
        restarts.append((share, len(part.case)))
        rows = part.case.x[:, None].clone()
        rows[:1, 0, INCOME] = 50.0
        part.update(rows)
    assert restarts == [(0.0, 3), (0.5, 1)]
    assert pool.solved.all()
