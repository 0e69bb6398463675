"""A call decodes few times: at most half of the decodes of version 0.2 (commit 374ad21)."""

import pandas as pd
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from dear_plugin import DEAR, Schema
from dear_plugin.benchmark.splits import data_split, scored_model
from dear_plugin.datasets import load_loan
from dear_plugin.search import SearchProblem


def decodes(monkeypatch, dear, rows):
    """How often a warm `generate` of one chunk decodes."""
    dear.generate(rows)
    calls, decode = [], SearchProblem.decode

    def counted(self, *actions):
        calls.append(1)
        return decode(self, *actions)

    monkeypatch.setattr(SearchProblem, "decode", counted)
    assert dear.generate(rows).actions["success"].all()
    return len(calls)


def test_trees_on_loan(monkeypatch):
    data = load_loan(5000)
    features = data.frame.drop(columns=data.target)
    columns = pd.get_dummies(features).astype(float)
    trees = HistGradientBoostingClassifier(random_state=0)
    trees.fit(columns, data.frame[data.target])

    def model(rows):
        coded = pd.get_dummies(rows[features.columns]).reindex(columns=columns.columns)
        return trees.predict_proba(coded.fillna(0).astype(float))[:, 1]

    schema = Schema.infer(
        data.frame, target=data.target, immutable=data.immutable, increasing=data.increasing
    )
    dear = DEAR(model, schema).fit(data.frame.iloc[:4000])
    rows = features[model(features) < 0.5].iloc[:100]
    assert decodes(monkeypatch, dear, rows) <= 145 / 2


class Capped(torch.nn.Module):
    """A model whose scores end at .29."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x).clamp_max(0.29)


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize(
    ("data", "kind", "wrapped", "count", "before"),
    [
        ("adult", "ann", torch.nn.Sequential, 1000, 171),
        ("adult", "ann", Capped, 100, 450),
        ("gmc", "lr", torch.nn.Sequential, 105, 48),
    ],
    ids=["Adult", "Adult, capped scores", "Give Me Some Credit"],
)
def test_modules_on_real_data(monkeypatch, tmp_path, data, kind, wrapped, count, before):
    split = data_split(tmp_path, data)
    case = scored_model(split, kind)
    dear = DEAR(wrapped(case.model), split.schema).fit(split.parts[0])
    rows = case.refused.iloc[:count]
    assert decodes(monkeypatch, dear, rows) <= before / 2
