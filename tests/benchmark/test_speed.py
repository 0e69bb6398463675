"""Speed on the loan data: a few rows, both searches."""

import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.benchmark import frugality, speed
from dear_plugin.benchmark.protocol import Cell
from dear_plugin.datasets import load_loan


@pytest.fixture(scope="module")
def cell():
    data = load_loan(1500)
    train, test = data.split(seed=0)
    schema = Schema.infer(train, target=data.target, immutable=data.immutable)
    model = torch.nn.Linear(Encoder(schema).d, 1)
    with torch.no_grad():
        model.weight.fill_(1.0)
        model.bias.fill_(-2.5)
    refused = test[(model(Encoder(schema).encode(test)) <= 0).numpy()]
    return Cell("loan", "lr", 0, schema, train, test, refused, model, 0.5, 0.0, data.immutable)


def test_every_configuration_has_both_searches():
    for name in speed.CONFIGURATIONS:
        if "support" not in name:
            assert name.replace("default", "cheapest") in speed.CONFIGURATIONS
    assert set(speed.SIZED) <= set(speed.CONFIGURATIONS)


@pytest.mark.slow
def test_a_line_has_times_of_many_rows_and_of_one(cell, monkeypatch):
    monkeypatch.setattr(speed, "REPEATS", 1)
    monkeypatch.setattr(speed, "SINGLE_ROWS", 2)
    row = speed._configuration(
        cell, "DEAR, cheapest, pairs from the start", speed.refused_rows(cell, 5)
    )
    assert row["rows"] == 5 and row["success"] == 1.0
    assert row["one_row_cpu_ms"] > 0.0 and row["warm_cpu_ms"] > 0.0


@pytest.mark.ci
def test_evaluations_of_both_searches(cell, monkeypatch):
    monkeypatch.setattr(frugality, "ROWS", 4)
    monkeypatch.setattr(frugality, "SINGLES", 1)
    frame = speed.refused_rows(cell, 4)
    counting = frugality.CountingModel(cell.model)
    table = pd.DataFrame(frugality._evaluations(cell, counting, frame)).set_index("quantity")
    default, cheapest = (
        table.loc[f"evaluations of a black box, {name}, per row", "value"]
        for name in ("default", "cheapest")
    )
    assert 0.0 < cheapest < default
