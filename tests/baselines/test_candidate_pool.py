"""Trial: what people may become when every feature is acted on by itself."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from dear_plugin import Constraints, Encoder, Schema, Target
from dear_plugin.baselines.candidate_pool import CandidatePool
from dear_plugin.methods.base import Case
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.constraints import feasible

FRAME = pd.DataFrame(
    {
        "age": [20, 30, 60],
        "income": [10.0, 20.5, 60.0],
        "debt": [0.0, 5.0, 10.0],
        "member": ["no", "yes", "no"],
        "town": ["A", "B", "C"],
    }
)
AGE, INCOME, DEBT, MEMBER, TOWN = range(5)


class Income(nn.Module):
    """Accepts an income above the middle of its range."""

    def forward(self, x):
        return x[:, [INCOME]] - 0.5


@pytest.fixture
def schema():
    return Schema.infer(FRAME, immutable=["age"], decreasing=["debt"])


def trial_of(schema, within=None, frame=FRAME):
    encoder = Encoder(schema)
    x = encoder.rows(frame)
    box = feasible(within, x, encoder, encoder.units.resolutions(frame))
    goal = Target.of_class(1).resolve(len(x), None)
    case = Case(x, goal, box, 1e-4, torch.arange(len(x)))
    return CandidatePool.of(case, Classifier(Income(), encoder))


def project(pool, feature, value):
    """What becomes of everybody when one feature is to take a value."""
    moved = pool.case.x.clone()
    moved[:, feature] = value
    return pool.project(moved[:, None])[:, 0]


def test_what_cannot_change_stays_bit_for_bit(schema):
    pool = trial_of(schema, Constraints(frozen=["income"]))
    assert torch.equal(project(pool, AGE, 0.9), pool.case.x)
    assert torch.equal(project(pool, INCOME, 0.9), pool.case.x)


def test_what_may_not_be_acted_on_stays_too(schema):
    pool = trial_of(schema, Constraints(act_on=["income"]))
    assert torch.equal(project(pool, DEBT, 0.0), pool.case.x)


def test_numbers_end_in_whole_steps_inside_their_range(schema):
    pool = trial_of(schema, Constraints(ranges={"income": (15.0, 40.0)}))
    assert project(pool, INCOME, 0.9)[:, INCOME].tolist() == pytest.approx([0.6] * 3)
    assert project(pool, INCOME, 0.1201)[0, INCOME].item() == pytest.approx(0.12)


def test_who_is_outside_a_range_and_does_not_move_stays_outside(schema):
    pool = trial_of(schema, Constraints(ranges={"income": (15.0, 40.0)}))
    assert torch.equal(pool.project(pool.case.x[:, None])[:, 0], pool.case.x)


def test_directions_are_kept(schema):
    pool = trial_of(schema)
    assert torch.equal(project(pool, DEBT, 1.0), pool.case.x)
    assert project(pool, DEBT, 0.0)[:, DEBT].tolist() == [0.0, 0.0, 0.0]


def test_half_a_step_is_no_step(schema):
    pool = trial_of(schema)
    little = pool.case.x[:, INCOME] + 0.4 * pool.case.feasible.steps[INCOME]
    assert torch.equal(project(pool, INCOME, little), pool.case.x)


def test_a_binary_feature_is_one_or_the_other(schema):
    pool = trial_of(schema)
    assert project(pool, MEMBER, 0.7)[:, MEMBER].tolist() == [1.0, 1.0, 1.0]
    assert project(pool, MEMBER, 0.3)[:, MEMBER].tolist() == [0.0, 0.0, 0.0]


def test_no_category_is_taken_that_is_not_allowed(schema):
    pool = trial_of(schema, Constraints(categories={"town": ["A", "B"]}))
    assert project(pool, TOWN, 1.0)[:, TOWN].tolist() == [1.0, 1.0, 1.0]
    assert torch.equal(project(pool, TOWN, 2.0), pool.case.x)


@pytest.mark.parametrize(
    "within",
    [
        None,
        Constraints(frozen=["income"], categories={"town": ["A", "C"]}),
        Constraints(ranges={"income": (15.0, 40.0)}, act_on=["income", "town"]),
    ],
)
def test_a_row_fits_when_nothing_about_it_would_be_changed(schema, within):
    pool = trial_of(schema, within)
    rows = torch.cartesian_prod(
        *[torch.tensor(v) for v in ([0.0, 0.25], [0.0, 0.3, 1.0], [0.0, 0.5], [0.0, 1.0])],
        torch.arange(3.0),
    )
    kept = pool.project(rows.expand(3, -1, -1))
    same = ((kept - rows).abs() < pool.case.feasible.steps / 2).all(2)
    assert torch.equal(pool.feasible_mask(rows), same)
    assert pool.feasible_mask(pool.case.x).diagonal().all()


@pytest.mark.parametrize("within", [None, Constraints(categories={"town": ["A", "B"]})])
def test_the_ends_hold_all_that_is_admissible_and_the_factual(schema, within):
    pool = trial_of(schema, within)
    low, high = pool.ends
    wide = pool.classifier.encoder.expand
    generator = torch.Generator().manual_seed(0)
    moved = pool.project(
        torch.rand(3, 50, 5, generator=generator) * torch.tensor([1, 1, 1, 1, 2.9])
    )
    for rows in (pool.case.x, *moved.unbind(1)):
        assert (wide(rows) >= low - 1e-6).all()
        assert (wide(rows) <= high + 1e-6).all()


def test_the_cheapest_success_is_kept_and_else_the_nearest_miss(schema):
    pool = trial_of(schema)
    rows = pool.case.x[:, None].repeat(1, 3, 1)
    rows[:2, :, INCOME] = torch.tensor([[0.9, 0.6, 0.3], [0.3, 0.45, 0.4]])
    won = pool.update(rows)
    assert won.tolist() == [True, False, True]
    assert pool.rows[:, INCOME].tolist() == pytest.approx([0.6, 0.45, 1.0])
    assert pool.proposal("no").reasons == ["", "no", ""]


def test_a_method_may_mind_more_than_cost(schema):
    pool = trial_of(schema)
    rows = pool.case.x[:, None].repeat(1, 2, 1)
    rows[:, :, INCOME] = torch.tensor([0.6, 0.9])
    pool.update(rows, loss=torch.tensor([[2.0, 1.0]] * 3))
    assert np.allclose(pool.rows[:, INCOME], 0.9)


def test_attempts_are_for_those_without_a_success(schema):
    pool, asked = trial_of(schema), []
    for share, part in pool.attempts(3):
        asked.append((share, len(part.case)))
        rows = part.case.x[:, None].clone()
        rows[:1, 0, INCOME] = 0.8
        part.update(rows)
    assert asked == [(0.0, 3), (0.5, 1)]
    assert pool.solved.all()
