"""A model as DiCE and as Alibi call it."""

import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.datasets import load_loan
from dear_plugin.demo.wrappings import OnAlibi, OnDice
from tests.rounding import near


@pytest.fixture(scope="module")
def schema():
    return Schema.infer(load_loan(300).features)


@pytest.fixture(scope="module")
def model(schema):
    return torch.nn.Linear(Encoder(schema).d, 1)


def test_on_dice_accepts_one_row_or_many_and_returns_one_column_or_two(model, schema):
    x = torch.rand(5, len(schema.names) + 1)  # gender takes two columns in DiCE
    one, two = (OnDice(model, schema, columns) for columns in (1, 2))
    assert one(x).shape == (5, 1) and two(x).shape == (5, 2) and one(x[0]).shape == (1,)
    torch.testing.assert_close(two(x)[:, 1:], one(x))
    torch.testing.assert_close(two(x).sum(1), torch.ones(5))


def test_on_alibi_round_trip(model, schema):
    frame, predictor = load_loan(300).features, OnAlibi(model, schema)
    rows = predictor.array(frame)
    pd.testing.assert_frame_equal(predictor.frame(rows, frame.index), frame, check_dtype=False)
    assert torch.equal(predictor.rows(rows.astype(object)), predictor.encoder.rows(frame))
    with torch.no_grad():
        expected = torch.sigmoid(model(predictor.encoder.encode(frame)))[:, 0].numpy()
    assert predictor(rows)[:, 1] == near(expected)
