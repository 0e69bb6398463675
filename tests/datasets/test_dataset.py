from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dear_plugin.datasets import Dataset, load_loan
from dear_plugin.errors import InputError, SchemaError


@pytest.fixture
def small() -> Dataset:
    frame = pd.DataFrame({"a": range(10), "b": list("xy" * 5), "y": [0, 1] * 5})
    frame.index = pd.Index(range(100, 110))
    return Dataset(name="small", frame=frame, target="y", immutable=("b",), act_on=("a",))


def test_split_covers_every_row_once_in_order(small):
    train, test = small.split(test=0.3, seed=1)
    assert (len(train), len(test)) == (7, 3)
    assert train.index.is_monotonic_increasing
    assert test.index.is_monotonic_increasing
    pd.testing.assert_frame_equal(pd.concat([train, test]).sort_index(), small.frame)


def test_split_depends_on_its_seed_and_uses_no_global_generator():
    data = load_loan(200)
    np.random.seed(0)
    state = np.random.get_state()[1].copy()
    first, again, other = data.split(seed=3)[1], data.split(seed=3)[1], data.split(seed=4)[1]
    assert first.index.equals(again.index)
    assert not first.index.equals(other.index)
    assert (np.random.get_state()[1] == state).all()


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 2.0, 0.01])
def test_split_with_an_empty_part_is_an_error(small, share):
    with pytest.raises(InputError, match=str(share)):
        small.split(test=share)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "z"}, "unknown target: 'z'"),
        ({"increasing": ("aa",)}, "unknown features: 'aa'; known are: a, b"),
        ({"act_on": ("y",)}, "unknown features: 'y'"),
        ({"tiers": (("a",), ("c",))}, "unknown features: 'c'"),
        ({"labels": {"c": "the length"}}, "unknown features: 'c'"),
        ({"units": {"c": "metres"}}, "unknown features: 'c'"),
        ({"special": {"c": (-9,)}}, "unknown features: 'c'"),
        ({"act_on": ("a", "b")}, "both immutable and in act_on: b"),
    ],
)
def test_names_that_contradict_the_frame_are_errors(small, change, message):
    arguments = {"name": "bad", "frame": small.frame, "target": "y", "immutable": ("b",)}
    with pytest.raises(SchemaError, match=message):
        Dataset(**(arguments | change))
