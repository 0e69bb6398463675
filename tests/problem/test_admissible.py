"""Admissible: one projection applies all of A_d, in the order that its docstring states."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Constraints, Encoder, Schema
from dear_plugin.data.numbers import known
from dear_plugin.problem.constraints import admissible
from dear_plugin.problem.rules import Rules

N = 2000


@pytest.fixture(scope="module")
def frame():
    """Bills that are paid in part, a code, dummies, and husbands who are married."""
    rng = np.random.default_rng(0)
    total = rng.gamma(3, 10, N).round(1)
    married = rng.random(N) < 0.5
    job = rng.integers(0, 3, N)
    return pd.DataFrame(
        {
            "total": total,
            "paid": (total * rng.beta(2, 2, N)).round(1),
            "months": np.where(rng.random(N) < 0.3, -7, rng.integers(0, 80, N)),
            "role": np.where(married, rng.choice(["husband", "wife"], N), "single"),
            "married": np.where(married, "yes", "no"),
            **{f"job_{level}": (job == i).astype(int) for i, level in enumerate("abc")},
            "age": rng.integers(18, 80, N),
        }
    )


@pytest.fixture(scope="module")
def world(frame):
    """What is admissible, the rows, and what other rows have: where a decoder might move them."""
    schema = Schema.infer(frame, special={"months": [-7]}, increasing=["age"])
    schema = schema.replace("months", leave_special=True, enter_special=True)
    encoder = Encoder(schema)
    x = encoder.rows(frame)
    within = Constraints(frozen=["job_a"], ranges={"total": (5.0, 60.0)})
    rules = Rules.of(encoder, x.numpy())
    feasible = admissible(within, x, encoder, encoder.held(frame), rules)
    rng = torch.Generator().manual_seed(0)
    moved = torch.stack([column[torch.randperm(N, generator=rng)] for column in x.T], 1)
    return schema, feasible, x, moved


def projected(world, acted=(), held=()):
    schema, feasible, x, moved = world
    at = [torch.zeros_like(x, dtype=torch.bool) for _ in range(2)]
    for mask, names in zip(at, (acted, held), strict=True):
        mask[:, list(schema.index(names))] = True
    return feasible.project(x, moved[:, None].clone(), torch.arange(N), *at)[:, 0]


def test_everything_holds_at_once(world):
    schema, feasible, x, _ = world
    (total, paid, months, *_, age), every = range(len(schema)), torch.arange(N)
    out = projected(world)
    assert feasible.keeps_rules(out, every).all()
    assert (out[:, paid] <= out[:, total]).all()
    (job,) = schema.index(["job_a"])
    assert torch.equal(out[:, job], x[:, job])
    assert (
        (out[:, total] == x[:, total]) | out[:, total].clamp(5.0, 60.0).eq(out[:, total])
    ).all()
    assert (out[:, age] >= x[:, age]).all()
    special = ~known(x[:, months])
    assert torch.equal(~known(out[:, months]), special)
    assert not feasible.creates_impossible(x, out).any()
    assert (out != x).any(0).sum() > 5


def test_what_is_held_or_acted_on_is_not_adapted(world):
    schema, _, x, moved = world
    (total, paid) = schema.index(["total", "paid"])
    out = projected(world, acted=["paid"], held=["total"])
    assert torch.equal(out[:, total], x[:, total])
    assert torch.equal(out[:, paid], moved[:, paid])
    assert (out[:, paid] > out[:, total]).any()


def test_what_is_acted_on_may_be_special_where_the_schema_allows_it(world):
    schema, _, x, moved = world
    (months,), out = schema.index(["months"]), projected(world, acted=["months"])
    other = known(x[:, months]) != known(moved[:, months])
    assert torch.equal(out[other, months], moved[other, months])


def test_without_what_is_acted_on_every_change_is_meant(world):
    """A row of another package is not adapted: no pair is undone, and no order is repaired."""
    _, feasible, x, moved = world
    out = feasible.project(x, moved[:, None].clone(), torch.arange(N))[:, 0]
    assert (out[:, 1] > out[:, 0]).any()
    assert feasible.creates_impossible(x, out).any()
