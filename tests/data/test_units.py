"""Units: no rounding errors of float32 in a user's frame."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Encoder, Schema
from dear_plugin.data.writing import patch


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "share": rng.random(600) * 4.0,  # without a precision
            "assets": rng.choice([1e6, 1e8, 4e8, 2.5e9, 123456.7], 600),  # to one decimal
            "pay": rng.normal(50, 9, 600).round(2),
        }
    )


def written(frame: pd.DataFrame, **changes: float) -> pd.Series:
    """The first row with changes, as the encoder writes it."""
    encoder, before = Encoder(Schema.infer(frame)), frame.head(1)
    after = before.assign(**changes)
    return patch(encoder, before, encoder.rows(before), rows=encoder.rows(after))[0].iloc[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [("share", 0.41), ("share", 3.3), ("assets", 1e9), ("assets", 2.5e8), ("pay", 41.07)],
)
def test_a_value_is_written_as_it_was_asked_for(frame, name, value):
    row = written(frame, **{name: value})
    assert row[name] == value
    unchanged = [other for other in frame if other != name]
    assert row[unchanged].equals(frame.iloc[0][unchanged])


def test_rows_read_back_are_the_rows_that_were_written(frame):
    encoder, rng = Encoder(Schema.infer(frame)), torch.Generator().manual_seed(0)
    x = encoder.rows(frame)
    moved = encoder.units.rounded(torch.rand(x.shape, generator=rng))
    seen = patch(encoder, frame, x, rows=moved)[1]
    assert torch.equal(seen[:, 0], moved[:, 0])
    assert torch.allclose(seen, moved, atol=1e-6)


def test_what_if_answers_with_the_values_that_were_set(frame):
    def model(rows):
        return (rows["pay"] / 100).clip(0, 1)

    dear = DEAR(model, Schema.infer(frame)).fit(frame)
    result = dear.apply(frame.head(3), {"share": 0.41})
    assert result.counterfactuals["share"].tolist() == [0.41] * 3
    assert result.direct["share"].tolist() == [0.41] * 3
