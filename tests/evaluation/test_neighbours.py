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
def index(mixed):
    """The training rows of a frame with features of every kind."""
    rows = mixed.encoder.rows(mixed.frame)
    return Neighbours(rows, mixed.encoder)


@pytest.fixture(scope="module")
def distances(index):
    """(40, n) double, the distances of 40 new rows from all training rows."""
    some = between(index)
    expand = index.encoder.expand
    return torch.cdist(
        expand(some).double(),
        expand(index.rows).double(),
        compute_mode="donot_use_mm_for_euclid_dist",
    )


def between(index):
    """(40, p) rows halfway between two training rows each, categories from the first."""
    one, other = index.rows[:40], index.rows[100:140]
    number = torch.tensor([not f.categories for f in index.encoder.schema])
    return torch.where(number, (one + other) / 2.0, one)


class TestNearest:
    def test_they_are_sorted_by_distance(self):
        neighbours, rows = line(2.1, 8.9)
        assert neighbours.nearest(rows, 3).tolist() == [[2, 3, 1], [9, 8, 10]]

    def test_they_equal_those_of_brute_force(self, index, distances):
        near = torch.from_numpy(index.nearest(between(index), 7))
        expected = distances.topk(7, largest=False).values
        # Ties may be in any order.
        torch.testing.assert_close(distances.gather(1, near), expected)

    def test_a_change_of_category_counts_as_in_the_encoding(self):
        frame = pd.DataFrame({"town": list("AABBC") * 4, "x": np.linspace(0.0, 1.0, 20)})
        encoder = Encoder(Schema.infer(frame))
        neighbours = Neighbours(encoder.rows(frame), encoder)
        row = encoder.rows(pd.DataFrame({"town": ["C"], "x": [0.0]}))
        assert frame["town"].iloc[neighbours.nearest(row, 4)[0]].tolist() == ["C"] * 4

    def test_with_fewer_rows_than_k_all_are_returned(self):
        neighbours, rows = line(5)
        assert sorted(neighbours.nearest(rows, 50)[0].tolist()) == list(range(11))


class TestDistance:
    def test_it_is_the_mean_over_the_nearest(self, index, distances):
        for k in (1, 5, 12):
            expected = distances.topk(k, largest=False).values.mean(1)
            torch.testing.assert_close(index.distance(between(index), k), expected)

    def test_skip_leaves_out_the_row_itself(self):
        neighbours, rows = line(*range(11))
        # Scaled to [0, 1]: a step is a tenth. The ends have neighbours on one side only.
        expected = [0.15, 0.1, *[0.1] * 7, 0.1, 0.15]
        found = neighbours.distance(rows, 2, skip=1)
        torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))

    def test_without_skip_a_training_row_is_its_own_neighbour(self):
        neighbours, rows = line(*range(11))
        assert neighbours.distance(rows, 1).tolist() == [0.0] * 11

    def test_with_a_single_row_it_is_the_distance_to_that_row(self):
        encoder = Encoder(Schema.infer(LINE))
        alone = Neighbours(encoder.rows(LINE.iloc[:1]), encoder)
        rows = encoder.rows(pd.DataFrame({"x": [0.0, 4.0]}))
        for skip in (0, 1):
            assert alone.distance(rows, 5, skip=skip).tolist() == pytest.approx([0.0, 0.4])


def test_results_do_not_depend_on_the_other_rows_of_a_batch(index):
    rows = between(index)
    near, means = index.nearest(rows), index.distance(rows)
    for i in range(0, 40, 7):
        assert (index.nearest(rows[[i]]) == near[[i]]).all()
        assert torch.equal(index.distance(rows[[i]]), means[[i]])
