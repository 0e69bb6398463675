"""Judged: two samples that share nobody, and a classifier that is to tell them apart."""

import numpy as np
import pytest
import torch

from dear_plugin.evaluation import joint

N = 300


def drawn(s=3, copies=4, seed=0):
    people = torch.randint(N, (s, copies * N), generator=torch.Generator().manual_seed(seed))
    kept = torch.arange(N) % 3 > 0
    at, move = joint.once(people, kept, np.random.default_rng(seed), N)
    return people[at, move], move % N, kept


class TestOnce:
    def test_nobody_is_in_two_moves(self):
        who, where, _ = drawn()
        rows = torch.cat([who, where])
        assert len(rows.unique()) == len(rows)

    def test_all_are_kept_rows_and_most_of_them_are_used(self):
        who, where, kept = drawn()
        assert kept[who].all()
        assert kept[where].all()
        assert len(who) > 0.45 * int(kept.sum())

    def test_no_more_than_asked(self):
        people = torch.randint(N, (2, 4 * N), generator=torch.Generator().manual_seed(1))
        everybody = torch.ones(N, dtype=torch.bool)
        at, move = joint.once(people, everybody, np.random.default_rng(0), 7)
        assert at.shape == move.shape == (7,)

    def test_nobody_to_move(self):
        people = torch.arange(N)[None]
        at, move = joint.once(people, torch.ones(N, dtype=torch.bool), np.random.default_rng(0), N)
        assert at.shape == move.shape == (0,)


class TestAuc:
    def test_samples_of_one_law_are_not_told_apart(self):
        x = torch.randn(10, 2, 400, 3, generator=torch.Generator().manual_seed(0))
        found = [joint.auc(a, b, seed) for seed, (a, b) in enumerate(x)]
        assert np.mean(found) == pytest.approx(0.5, abs=0.02)

    def test_another_law_is(self):
        x = torch.randn(2, 400, 3, generator=torch.Generator().manual_seed(0))
        assert joint.auc(x[0], x[1] + 2.0, 0) > 0.95

    def test_values_that_recur_give_nobody_away(self):
        """Tabulated at 300 quantiles, a sample is still one of the same law."""
        x = torch.randn(4, 2, 3000, 3, generator=torch.Generator().manual_seed(0))
        grid = torch.special.ndtri((torch.arange(300) + 0.5) / 300)
        near = grid[(x[:, 1, ..., None] - grid).abs().argmin(-1)]
        found = [
            joint.auc(a, b, seed) for seed, (a, b) in enumerate(zip(x[:, 0], near, strict=True))
        ]
        assert np.mean(found) == pytest.approx(0.5, abs=0.02)

    def test_too_few_rows_say_nothing(self):
        assert np.isnan(joint.auc(torch.zeros(9, 2), torch.zeros(400, 2), 0))
