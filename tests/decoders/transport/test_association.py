"""Association: tests keep their error rate, and detect the associations there are."""

import numpy as np
import pytest
import torch

from dear_plugin.decoders.transport import association
from dear_plugin.decoders.transport.association import associated

TRIALS = 1000


def tables(n, rows, columns, strata=1, link=0.0, seed=0):
    """(trials, k, 1, r, c) counts of n rows per stratum with margins in these proportions."""
    rng = np.random.default_rng(seed)
    r, c = len(rows), len(columns)
    shares = np.outer(np.array(rows) / sum(rows), np.array(columns) / sum(columns))
    tilt = np.outer(np.linspace(-1, 1, r), np.linspace(-1, 1, c))
    shares *= 1.0 + link * tilt
    counts = rng.multinomial(n, (shares / shares.sum()).ravel(), (TRIALS, strata))
    return torch.from_numpy(counts).view(TRIALS, strata, 1, r, c)


def found(counts):
    return associated(list(counts), 1).float().mean().item()


@pytest.mark.parametrize(
    ("n", "rows", "columns", "strata"),
    [
        (300, [3, 3, 3, 1], [5, 3, 1.5, 0.5], 1),
        (1000, [1] * 5, [95, 3, 2], 1),
        (500, [1] * 60, [7, 2, 1], 1),
        (200, [1] * 8, [4, 1], 20),
    ],
)
def test_the_error_rate_is_kept_for_independent_features(n, rows, columns, strata, monkeypatch):
    monkeypatch.setattr(association, "ERROR", 0.02)
    assert found(tables(n, rows, columns, strata)) <= 0.035


def test_a_trend_is_detected(monkeypatch):
    assert found(tables(1000, [1] * 8, [1] * 5, link=0.6)) >= 0.95


def test_many_small_strata_have_the_power_of_a_large_one():
    assert found(tables(50, [1] * 8, [1] * 5, strata=20, link=0.6)) >= 0.9


def test_more_features_need_more_evidence():
    counts = list(tables(1000, [1] * 8, [1] * 5, link=0.25))
    assert associated(counts, 1000).sum() < associated(counts, 1).sum()


def test_an_empty_table_shows_no_association():
    assert not associated([torch.zeros(1, 1, 3, 3)], 1).any()
