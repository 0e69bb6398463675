"""Value trees: distributions as shares at splits, and back."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.decoders.transport.supports import Supports
from dear_plugin.decoders.transport.value_tree import ValueTree


@pytest.fixture(scope="module")
def supports():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "count": rng.poisson(2, 3000),
            "town": rng.choice(list("ABCDE"), 3000, p=[0.05, 0.1, 0.5, 0.3, 0.05]),
            "sex": rng.choice(["f", "m"], 3000),
        }
    )
    encoder = Encoder(Schema.infer(frame))
    return Supports.of(encoder.rows(frame), encoder, torch.empty(0).long()), encoder.rows(frame)


@pytest.fixture(scope="module")
def counts(supports):
    codes = supports[0].codes(supports[1]).flatten()
    return torch.bincount(codes, minlength=len(supports[0].values)).double()


def test_the_shares_at_the_splits_give_the_distribution(supports, counts):
    tree = ValueTree.of(counts, supports[0])
    left, total = tree.counts(counts)
    torch.testing.assert_close(tree.probabilities(left / total), counts / 3000)


def test_any_shares_give_a_distribution(supports, counts):
    tree = ValueTree.of(counts, supports[0])
    left = torch.rand(7, len(tree.cut), generator=torch.Generator().manual_seed(0)).double()
    left[0], left[1] = 0.0, 1.0
    made = tree.probabilities(left)
    assert (made >= 0.0).all()
    for j in range(3):
        whole = made[:, supports[0].segment(j)].sum(1)
        torch.testing.assert_close(whole, torch.ones(7).double())


def test_there_is_one_split_fewer_than_values(supports, counts):
    tree = ValueTree.of(counts, supports[0])
    sizes = torch.bincount(tree.feature, minlength=3)
    assert torch.equal(sizes, supports[0].sizes - 1)


def test_frequent_values_are_separated_first(supports, counts):
    """Half the rows have town C: it is alone on one side of the first split."""
    tree = ValueTree.of(counts, supports[0])
    first = (tree.feature == 1).nonzero()[0, 0]
    left, total = tree.counts(counts)
    assert total[first] == 3000
    assert tree.cut[first] - tree.low[first] == 1
    assert left[first].item() == pytest.approx(1500, abs=100)
