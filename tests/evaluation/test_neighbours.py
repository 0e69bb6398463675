"""Neighbours: the nearest training rows of a row, Euclidean on the encoding."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.evaluation.neighbours import Neighbours

LINE = pd.DataFrame({"x": np.arange(11.0)})


def line(*values):
    """Rows on a line from 0 to 10, and neighbours among eleven of them."""
    encoder = Encoder(Schema.infer(LINE))
    rows = encoder.rows(pd.DataFrame({"x": [float(v) for v in values]}))
    return Neighbours(encoder.rows(LINE), encoder), rows


@pytest.fixture(scope="module")
def crowd(mixed):
    """All training rows of a frame of every kind."""
    rows = mixed.encoder.rows(mixed.frame)
    return Neighbours(rows, mixed.encoder)


@pytest.fixture(scope="module")
def gaps(crowd):
    """(40, n) double, how far 40 rows that nobody has are from every training row."""
    some = between(crowd)
    expand = crowd.encoder.expand
    return torch.cdist(
        expand(some).double(),
        expand(crowd.rows).double(),
        compute_mode="donot_use_mm_for_euclid_dist",
    )


def between(crowd):
    """(40, p) rows halfway between two training rows each, categories from the first."""
    one, other = crowd.rows[:40], crowd.rows[100:140]
    number = torch.tensor([not f.categories for f in crowd.encoder.schema])
    return torch.where(number, (one + other) / 2.0, one)


class TestNearest:
    def test_they_come_nearest_first(self):
        neighbours, rows = line(2.1, 8.9)
        assert neighbours.nearest(rows, 3).tolist() == [[2, 3, 1], [9, 8, 10]]

    def test_they_are_those_of_brute_force(self, crowd, gaps):
        near = torch.from_numpy(crowd.nearest(between(crowd), 7))
        expected = gaps.topk(7, largest=False).values
        # Of rows at the same distance any may come.
        torch.testing.assert_close(gaps.gather(1, near), expected)

    def test_a_change_of_category_counts_as_it_does_in_the_encoding(self):
        frame = pd.DataFrame({"town": list("AABBC") * 4, "x": np.linspace(0.0, 1.0, 20)})
        encoder = Encoder(Schema.infer(frame))
        neighbours = Neighbours(encoder.rows(frame), encoder)
        row = encoder.rows(pd.DataFrame({"town": ["C"], "x": [0.0]}))
        assert frame["town"].iloc[neighbours.nearest(row, 4)[0]].tolist() == ["C"] * 4

    def test_with_fewer_rows_than_asked_for_all_of_them_come(self):
        neighbours, rows = line(5)
        assert sorted(neighbours.nearest(rows, 50)[0].tolist()) == list(range(11))


class TestDistance:
    def test_it_is_the_mean_over_the_nearest(self, crowd, gaps):
        for k in (1, 5, 12):
            expected = gaps.topk(k, largest=False).values.mean(1)
            torch.testing.assert_close(crowd.distance(between(crowd), k), expected)

    def test_the_nearest_may_be_left_out_as_training_rows_leave_themselves(self):
        neighbours, rows = line(*range(11))
        # Scaled to [0, 1]: a step is a tenth. The ends have neighbours on one side only.
        expected = [0.15, 0.1, *[0.1] * 7, 0.1, 0.15]
        came = neighbours.distance(rows, 2, skip=1)
        torch.testing.assert_close(came, torch.tensor(expected, dtype=torch.float64))

    def test_of_a_training_row_it_is_zero_where_it_is_its_own_neighbour(self):
        neighbours, rows = line(*range(11))
        assert neighbours.distance(rows, 1).tolist() == [0.0] * 11

    def test_with_a_single_row_it_is_the_distance_to_that_row(self):
        encoder = Encoder(Schema.infer(LINE))
        alone = Neighbours(encoder.rows(LINE.iloc[:1]), encoder)
        rows = encoder.rows(pd.DataFrame({"x": [0.0, 4.0]}))
        for skip in (0, 1):
            assert alone.distance(rows, 5, skip=skip).tolist() == pytest.approx([0.0, 0.4])


class TestWithin:
    def test_it_is_whether_the_nearest_lies_within_reach(self, crowd, gaps):
        least = gaps.amin(1)
        scale = torch.linspace(0.5, 1.5, 40, dtype=torch.float64)
        reach = least * scale
        assert torch.equal(crowd.within(between(crowd), reach), least <= reach)

    def test_exactly_as_far_is_within(self):
        neighbours, rows = line(*range(0, 11, 2))
        assert neighbours.within(rows, torch.zeros(6, dtype=torch.float64)).all()

    @pytest.mark.parametrize(
        ("reach", "expected"), [(torch.inf, True), (0.0, False), (1e-12, False)]
    )
    def test_of_any_size(self, reach, expected):
        neighbours, rows = line(2.5, 3.5)
        limit = torch.full((2,), reach, dtype=torch.float64)
        assert neighbours.within(rows, limit).tolist() == [expected] * 2

    def test_every_row_has_its_own_reach(self, crowd):
        rows = between(crowd)
        reach = torch.logspace(-4, 1, 40, dtype=torch.float64)
        together = crowd.within(rows, reach)
        assert 0 < together.sum() < 40
        alone = [crowd.within(rows[[i]], reach[[i]]).item() for i in range(40)]
        assert together.tolist() == alone

    def test_of_nobody(self, crowd):
        nobody = between(crowd)[:0]
        assert crowd.within(nobody, torch.zeros(0, dtype=torch.float64)).tolist() == []


def test_what_a_row_gets_does_not_depend_on_the_others(crowd):
    rows = between(crowd)
    near, away = crowd.nearest(rows), crowd.distance(rows)
    for i in range(0, 40, 7):
        assert (crowd.nearest(rows[[i]]) == near[[i]]).all()
        assert torch.equal(crowd.distance(rows[[i]]), away[[i]])
