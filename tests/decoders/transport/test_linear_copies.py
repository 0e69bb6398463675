"""Copies: two columns that are equal in every row stay equal, in tails too."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Schema, Search
from dear_plugin.decoders import Transport
from dear_plugin.decoders.transport.linear_copies import Copies

N = 4000
KINDS = {
    "normal": lambda rng: rng.normal(size=N),
    "log-normal": lambda rng: np.exp(rng.normal(0, 1.2, N)),
    "geometric": lambda rng: rng.geometric(0.15, N),
    "Poisson": lambda rng: rng.poisson(3, N),
    "zero-inflated": lambda rng: np.where(rng.random(N) < 0.7, 0, np.exp(rng.normal(6, 1.3, N))),
}


def twins(kind, seed=0):
    rng = np.random.default_rng(seed)
    a = KINDS[kind](rng)
    return pd.DataFrame({"a": a, "b": a, "c": rng.normal(size=N)})


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_is_solved_by_parting_twins(kind):
    frame = twins(kind)

    def parted(rows):
        apart = (rows["a"] - rows["b"]).abs() > 1e-5 * (1.0 + rows["a"].abs())
        return np.column_stack([~apart, apart]).astype(float)

    search = Search.cheapest(groups=False)  # who sets both by hand may part them
    dear = DEAR(parted, Schema.infer(frame), act_on=["a", "b"], search=search).fit(frame)
    assert not dear.generate(frame.iloc[:200]).actions["success"].any()


@pytest.fixture
def crowd(gather):
    """b doubles a and adds one, d turns it round, e is a with noise."""
    rng = np.random.default_rng(0)
    a = rng.poisson(3, N)
    frame = pd.DataFrame({"a": a, "b": 2 * a + 1, "d": -a, "e": a + rng.normal(0, 0.1, N)})
    return gather(frame, ["a", "e", ("a", "d")])


def test_a_line_is_a_copy_and_a_noisy_one_is_not(crowd):
    slope = Copies.of(crowd, torch.empty(0).long()).slope
    assert slope[0, 0].tolist() == [0.0, 1.0, -1.0, 0.0]
    assert not slope[1].any()


def test_a_copy_of_several_members_follows_one_of_them(crowd):
    slope = Copies.of(crowd, torch.empty(0).long()).slope[2]
    assert (slope != 0.0).any(1).sum() == 1
    assert slope[:, [0, 2]].eq(0.0).all()


def test_what_is_given_copies_nothing(crowd):
    assert not Copies.of(crowd, torch.tensor([1])).slope[..., 1].any()


def test_where_there_are_none_nothing_is_kept(gather):
    assert Copies.of(gather(twins("normal")[["a", "c"]]), torch.empty(0).long()) is None


def test_at_ones_own_value_one_is_oneself_and_elsewhere_on_the_line(crowd):
    decoder, rows = Transport(), crowd.rows[:500]
    decoder.fit(crowd.rows, crowd.encoder, crowd.sets)
    v = decoder.encode(rows)[:, 0]
    own = rows[:, None, crowd.sets.positions[0]]
    sets = torch.zeros(500, dtype=torch.int64)
    assert torch.equal(decoder.decode(rows, v, own, sets)[:, 0], rows)
    made = decoder.decode(rows, v, own + 0.25, sets)[:, 0]
    torch.testing.assert_close(made[:, 1], made[:, 0])
    torch.testing.assert_close(made[:, 2], 1.0 - made[:, 0])
    heir = Transport.with_settings(decoder.settings())
    heir.load_state(decoder.tensors(), crowd.encoder, crowd.sets)
    assert torch.equal(heir.decode(rows, v, own + 0.25, sets)[:, 0], made)
