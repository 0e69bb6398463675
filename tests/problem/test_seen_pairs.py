"""Possible: nobody is told to become what nobody is."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Encoder, Schema
from dear_plugin.decoders import Transport
from dear_plugin.problem.seen_pairs import SeenPairs

N = 3000
AGE, ROLE, MARRIED, SEX, PAY = range(5)


def people(seed=0):
    """Husbands are married men, wives are married women, and nobody under 20 is either."""
    rng = np.random.default_rng(seed)
    age = rng.integers(15, 75, N)
    sex = rng.choice(["f", "m"], N)
    married = (age >= 25) & (rng.random(N) < 0.3 + 0.006 * age)
    role = np.where(married, np.where(sex == "m", "husband", "wife"), "single")
    pay = (20.0 + 15 * married + 0.4 * age + rng.normal(0, 5, N)).round(1)
    return pd.DataFrame(
        {
            "age": age,
            "role": role,
            "married": np.where(married, "yes", "no"),
            "sex": sex,
            "pay": pay,
        }
    )


@pytest.fixture(scope="module")
def frame():
    return people()


@pytest.fixture(scope="module")
def case(frame):
    encoder = Encoder(Schema.infer(frame))
    return SeenPairs.of(encoder.rows(frame), encoder), encoder, encoder.rows(frame)


def unseen(possible, rows, x):
    """(m,) how many pairs of each row no training row has, but for those that x has."""
    codes, own = possible.codes(rows), possible.codes(x)
    pairs = possible.unseen[codes[:, :, None], codes[:, None]]
    known = (codes == own)[:, :, None] & (codes == own)[:, None]
    return (pairs & ~known).sum((1, 2)) // 2


def acting_on(feature, rows):
    return (torch.arange(rows.shape[1]) == feature).expand(rows.shape)


def test_real_rows_are_left_alone(case):
    possible, _, rows = case
    other = rows.flip(0)
    whole = torch.ones_like(rows, dtype=torch.bool)
    assert torch.equal(possible.mended(rows, other[:, None].clone(), ~whole)[:, 0], other)


def test_a_change_that_nobody_has_the_like_of_is_undone(case):
    possible, encoder, rows = case
    single = rows[(rows[:, MARRIED] == 0)][:50]
    husband = float(encoder.schema.features[ROLE].categories.index("husband"))
    moved = single.clone()
    moved[:, ROLE], moved[:, PAY] = husband, moved[:, PAY] + 0.01
    made = possible.mended(single, moved[:, None].clone(), acting_on(AGE, single))[:, 0]
    assert torch.equal(made[:, ROLE], single[:, ROLE])
    assert torch.equal(made[:, PAY], moved[:, PAY])


def test_changes_that_go_together_stand(case):
    possible, encoder, rows = case
    man = (rows[:, SEX] == 1) & (rows[:, MARRIED] == 0)
    man &= ((rows[:, AGE] - 0.6).abs() < 0.2) & ((rows[:, PAY] - 0.5).abs() < 0.1)
    single = rows[man][:50]
    moved = single.clone()
    moved[:, ROLE] = float(encoder.schema.features[ROLE].categories.index("husband"))
    moved[:, MARRIED] = 1.0
    made = possible.mended(single, moved[:, None].clone(), acting_on(AGE, single))[:, 0]
    assert torch.equal(made, moved)


def test_random_changes_leave_no_pair_that_nobody_has(case):
    possible, _, rows = case
    rng = torch.Generator().manual_seed(0)
    moved = torch.stack([column[torch.randperm(N, generator=rng)] for column in rows.T], 1)
    moved[:, AGE] = rows[:, AGE]
    assert unseen(possible, moved, rows).sum() > 500
    made = possible.mended(rows, moved[:, None].clone(), acting_on(AGE, rows))[:, 0]
    assert not unseen(possible, made, rows).any()
    assert ((made == moved) | (made == rows)).all()
    assert (made != rows).float().mean() > 0.2


def test_what_is_acted_on_stays(case):
    possible, encoder, rows = case
    moved = rows[:, None].clone()
    moved[..., ROLE] = float(encoder.schema.features[ROLE].categories.index("wife"))
    assert torch.equal(possible.mended(rows, moved.clone(), acting_on(ROLE, rows)), moved)


def test_an_odd_person_may_stay_odd(case):
    possible, encoder, rows = case
    odd = rows[:20].clone()
    odd[:, SEX], odd[:, MARRIED] = 0.0, 0.0
    odd[:, ROLE] = float(encoder.schema.features[ROLE].categories.index("husband"))
    made = possible.mended(odd, odd[:, None].clone(), acting_on(AGE, odd))[:, 0]
    assert torch.equal(made, odd)


def test_numbers_alone_are_not_looked_at():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(500, 3)), columns=list("abc"))
    encoder = Encoder(Schema.infer(frame))
    assert SeenPairs.of(encoder.rows(frame), encoder) is None


@pytest.mark.parametrize("decoder", ["transport", Transport(given=())])
def test_no_answer_has_such_a_pair(frame, case, decoder):
    possible, encoder, _ = case

    def rich(rows):
        score = 1.0 / (
            1.0 + np.exp(-(rows["pay"] - 55.0) / 4.0 - 2.0 * (rows["role"] == "husband"))
        )
        return np.column_stack([1.0 - score, score])

    schema = Schema.infer(frame, immutable=["sex"])
    dear = DEAR(rich, schema, act_on=["age", "pay", "married"], decoder=decoder).fit(frame)
    refused = frame[rich(frame)[:, 1] < 0.5].iloc[:200]
    recourses = dear.generate(refused)
    done = torch.as_tensor(recourses.actions["success"].to_numpy(bool))
    assert done.float().mean() > 0.5
    x, made = encoder.rows(refused), encoder.rows(recourses.counterfactuals)
    acted = recourses.proposal.direct
    codes, own = possible.codes(made), possible.codes(x)
    pairs = possible.unseen[codes[:, :, None], codes[:, None]]
    followed = (codes != own) & ~acted[:, possible.features]
    assert not (pairs & followed[:, :, None])[done].any()
