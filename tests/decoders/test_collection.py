"""Decoders: which are in memory, and what a second call has to fit."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Schema, Transport
from dear_plugin.decoders import collection

COLUMNS = 12


@pytest.fixture
def many() -> pd.DataFrame:
    """Correlated numbers of few values, which are looked up in tables."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(600, 1))
    values = (3 * (common + rng.normal(size=(600, COLUMNS)))).round()
    return pd.DataFrame(values, columns=[f"x{i}" for i in range(COLUMNS)])


def _fitted(frame: pd.DataFrame) -> DEAR:
    schema = Schema.infer(frame)
    return DEAR(lambda rows: 1.0 / (1.0 + np.exp(3.0 - rows["x0"])), schema).fit(frame)


def _in_memory(dear: DEAR) -> int:
    """The entries of the tables that decoders hold, counted one by one, and of the bins."""
    total = 0
    for decoder in dear.decoders._fitted.values():
        assert isinstance(decoder, Transport)
        estimate = decoder._fitted
        total += estimate.axis.bins.numel()
        for tables, *_ in [estimate.point, *estimate._draws.values.values()]:
            total += tables.base.size + tables.ratio.size
            total += 0 if tables._every is None else tables._every.size
    return total


def test_a_second_call_fits_nothing_again(
    many: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    dear = _fitted(many)
    room = 4 * _in_memory(dear)  # for all decoders, and both groups of resamples of one
    monkeypatch.setattr(collection, "most_entries", lambda: room)
    row, fits = many[many["x0"] < 0].head(1), []
    dear.generate(row).actions  # noqa: B018
    fit = Transport.fit
    monkeypatch.setattr(Transport, "fit", lambda *args: (fits.append(args), fit(*args)))
    dear.generate(row).actions  # noqa: B018
    assert fits == []


def test_resamples_are_bounded_as_well(
    many: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    dear = _fitted(many)
    room = 3 * _in_memory(dear)
    monkeypatch.setattr(collection, "most_entries", lambda: room)
    rows = dear.encoder.rows(many.head(3))
    for j in range(COLUMNS):
        dear.decoders.resample((j,), rows, rows[:, j, None] + 0.1, torch.arange(1, 17))
        assert _in_memory(dear) <= room
    assert 0 < len(dear.decoders._fitted) < COLUMNS


def test_the_log_of_a_fit_says_about_how_long_a_row_will_take(many, caplog):
    with caplog.at_level("INFO", "dear_plugin.methods.dear"):
        _fitted(many)
    told = caplog.messages[-1]
    assert re.search(r"12 action sets .* 600 rows in .* s; a row alone will take about .* s", told)
