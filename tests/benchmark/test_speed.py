"""Speed, made small: loans, a few people, both searches."""

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


def test_the_cheapest_stands_beside_the_default():
    for name in speed.WAYS:
        if "support" not in name:
            assert name.replace("default", "cheapest") in speed.WAYS
    assert set(speed.SIZED) <= set(speed.WAYS)


def test_a_line_tells_of_many_and_of_one(cell, monkeypatch):
    monkeypatch.setattr(speed, "REPEATS", 1)
    monkeypatch.setattr(speed, "ALONE", 2)
    row = speed._way(cell, "DEAR, cheapest, pairs from the start", speed.people_of(cell, 5))
    assert row["rows"] == 5 and row["success"] == 1.0
    assert row["one_person_cpu_ms"] > 0.0 and row["warm_cpu_ms"] > 0.0


def test_evaluations_are_told_for_both_searches(cell, monkeypatch):
    monkeypatch.setattr(frugality, "PEOPLE", 4)
    monkeypatch.setattr(frugality, "SINGLES", 1)
    people = speed.people_of(cell, 4)
    counted = frugality.Counts(cell.model)
    told = pd.DataFrame(frugality._evaluations(cell, counted, people)).set_index("what")
    default, cheapest = (
        told.loc[f"evaluations of a black box, {name}, a person", "measured"]
        for name in ("default", "cheapest")
    )
    assert 0.0 < cheapest < default
