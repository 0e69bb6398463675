"""Linear copies: columns that are equal in every row stay equal, in the tails too."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Schema, Search
from dear_plugin.decoders import Transport
from dear_plugin.decoders.transport.linear_copies import LinearCopies

N = 4000
KINDS = {
    "normal": lambda rng: rng.normal(size=N),
    "log-normal": lambda rng: np.exp(rng.normal(0, 1.2, N)),
    "geometric": lambda rng: rng.geometric(0.15, N),
    "Poisson": lambda rng: rng.poisson(3, N),
    "zero-inflated": lambda rng: np.where(rng.random(N) < 0.7, 0, np.exp(rng.normal(6, 1.3, N))),
}


def equal_columns(kind, seed=0):
    rng = np.random.default_rng(seed)
    a = KINDS[kind](rng)
    return pd.DataFrame({"a": a, "b": a, "c": rng.normal(size=N)})


@pytest.mark.parametrize("kind", KINDS)
def test_no_recourse_makes_equal_columns_differ(kind):
    frame = equal_columns(kind)

    def differ(rows):
        different = (rows["a"] - rows["b"]).abs() > 1e-5 * (1.0 + rows["a"].abs())
        return np.column_stack([~different, different]).astype(float)

    search = Search.cheapest(groups=False)  # a group may set both columns to different values
    dear = DEAR(differ, Schema.infer(frame), act_on=["a", "b"], search=search).fit(frame)
    assert not dear.generate(frame.iloc[:200]).actions["success"].any()


@pytest.fixture
def sample(training_sample):
    """b = 2 a + 1, d = -a, e is a with noise."""
    rng = np.random.default_rng(0)
    a = rng.poisson(3, N)
    frame = pd.DataFrame({"a": a, "b": 2 * a + 1, "d": -a, "e": a + rng.normal(0, 0.1, N)})
    return training_sample(frame, ["a", "e", ("a", "d")])


def test_an_exact_line_is_a_copy_and_a_noisy_one_is_not(sample):
    slope = LinearCopies.of(sample, torch.empty(0).long()).slope
    assert slope[0, 0].tolist() == [0.0, 1.0, -1.0, 0.0]
    assert not slope[1].any()


def test_a_copy_of_several_features_follows_one_of_them(sample):
    slope = LinearCopies.of(sample, torch.empty(0).long()).slope[2]
    assert (slope != 0.0).any(1).sum() == 1
    assert slope[:, [0, 2]].eq(0.0).all()


def test_given_features_are_no_copies(sample):
    assert not LinearCopies.of(sample, torch.tensor([1])).slope[..., 1].any()


def test_without_copies_there_is_none(training_sample):
    assert (
        LinearCopies.of(
            training_sample(equal_columns("normal")[["a", "c"]]), torch.empty(0).long()
        )
        is None
    )


def test_rows_are_unchanged_at_their_own_value_and_on_the_line_elsewhere(sample):
    decoder, rows = Transport(), sample.rows[:500]
    decoder.fit(sample.rows, sample.encoder, sample.sets)
    v = decoder.encode(rows)[:, 0]
    own = rows[:, None, sample.sets.positions[0]]
    sets = torch.zeros(500, dtype=torch.int64)
    assert torch.equal(decoder.decode(rows, v, own, sets)[:, 0], rows)
    made = decoder.decode(rows, v, own + 0.25, sets)[:, 0]
    torch.testing.assert_close(made[:, 1], made[:, 0])
    torch.testing.assert_close(made[:, 2], 1.0 - made[:, 0])
    loaded = Transport.with_settings(decoder.settings())
    loaded.load_state(decoder.tensors(), sample.encoder, sample.sets)
    assert torch.equal(loaded.decode(rows, v, own + 0.25, sets)[:, 0], made)
