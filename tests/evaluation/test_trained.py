"""Trained: the nearest training rows of a row, its plausibility and its support."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema, Target
from dear_plugin.evaluation.trained import COMPARED_ROWS as MOST_ROWS
from dear_plugin.evaluation.trained import MOST_COLUMNS, Neighbours, Trained, robust_units
from dear_plugin.models.classifier import Classifier

LINE = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0]})


def facts(rows, encoder, model=lambda f: np.zeros(len(f))):
    return Trained(rows, Classifier(model, encoder))


def wide_frame(extreme):
    """900 rows of 200 levels and a number, some of them equal, one number perhaps extreme."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"level": [f"l{i}" for i in rng.integers(0, 200, 900)]})
    frame["number"] = rng.integers(0, 50, 900).astype(float)
    frame.loc[0, "number"] = extreme
    return frame


def test_of_equally_near_rows_the_first_are_found():
    """A product rounds differently in batches of another size; ties must not depend on it."""
    frame = pd.concat([wide_frame(49.0).head(60)] * 20, ignore_index=True)
    encoder = Encoder(Schema.infer(frame))
    near = Neighbours(encoder.rows(frame), encoder)
    distances, _ = near.query(near.rows[:60])
    assert float(distances.abs().max()) == 0.0


@pytest.fixture(scope="module")
def rows(mixed):
    return mixed.encoder.rows(mixed.frame)


@pytest.fixture(scope="module")
def plausibility(mixed, rows):
    return facts(rows, mixed.encoder).plausibility


def on_lines(rows, encoder):
    """(120, p) rows on the lines through two training rows each, between and beyond them."""
    one, other = rows[:120], rows[200:320]
    number = torch.tensor([not f.categories for f in encoder.schema])
    share = torch.linspace(-1.0, 3.0, 120)[:, None]
    return torch.where(number, one + share * (other - one), one)


def by_definition(rows, train, encoder, k=5):
    """(m,) `(1 + #{i: d_i >= d}) / (n + 1)` from all distances."""
    units = robust_units(train, encoder)
    far = {"compute_mode": "donot_use_mm_for_euclid_dist"}
    x, base = (encoder.expand(each).double() / units for each in (rows, train))
    own = torch.cdist(base, base, **far).fill_diagonal_(torch.inf)
    expected = own.topk(k, largest=False).values.mean(1)
    distances = torch.cdist(x, base, **far).topk(k, largest=False).values.mean(1)
    # Sums of the same distances may be rounded differently.
    farther = (expected >= distances[:, None] - 1e-12).sum(1)
    return (1.0 + farther) / (len(train) + 1.0)


class TestPlausibility:
    def test_it_is_the_share_of_training_rows_at_least_as_far(self, mixed, rows, plausibility):
        queries = on_lines(rows, mixed.encoder)
        found = plausibility(queries)
        expected = by_definition(queries, rows, mixed.encoder).to(found)
        torch.testing.assert_close(found, expected, atol=2.0 / len(rows), rtol=0.0)
        assert found.min() < 0.01
        assert found.max() > 0.3

    @pytest.mark.parametrize("extreme", [49.0, 1e7])
    def test_so_it_is_of_wide_rows_whose_neighbours_a_product_of_matrices_finds(self, extreme):
        frame = wide_frame(extreme)
        encoder = Encoder(Schema.infer(frame, central=1.0))
        assert encoder.d > MOST_COLUMNS
        rows = encoder.rows(frame)
        queries, plausibility = on_lines(rows, encoder), facts(rows, encoder).plausibility
        found = plausibility(queries)
        alone = torch.cat([plausibility(row[None]) for row in queries[::12]])
        assert torch.equal(found[::12], alone)
        expected = by_definition(queries, rows, encoder).to(found)
        torch.testing.assert_close(found, expected, atol=2.0 / len(rows), rtol=0.0)

    def test_a_known_result(self):
        """Ten rows on a line, symmetric about the middle."""
        frame = pd.DataFrame({"x": np.arange(10.0)})
        encoder = Encoder(Schema.infer(frame))
        plausibility = facts(encoder.rows(frame), encoder).plausibility
        # Means of the five nearest, themselves left out, in steps of 1: 3, 11/5, 9/5, 9/5, 9/5
        # and back; of a row at 4.5 it is 13/10, beyond the end, at 11, it is 4.
        at = encoder.rows(pd.DataFrame({"x": [4.5, 11.0]}))
        assert plausibility(at).tolist() == pytest.approx([1.0, 1 / 11])

    def test_of_new_rows_of_the_same_distribution_a_share_p_is_at_most_p(self, mixed, rows):
        """The defining property of a p-value."""
        odd, even = rows[1::2], rows[::2]
        found = facts(even, mixed.encoder).plausibility(odd)
        for p in (0.05, 0.2, 0.5):
            assert p - 0.1 <= (found <= p).double().mean() <= p + 0.03


class TestUnits:
    """Numbers in units of their central range, so that one outlier does not hide the others."""

    def test_a_number_counts_in_units_of_its_central_nine_tenths(self):
        frame = pd.DataFrame({"x": np.arange(101.0), "long": [*np.arange(100.0), 1e6]})
        encoder = Encoder(Schema.infer(frame))
        units = robust_units(encoder.rows(frame), encoder)
        assert units.tolist() == pytest.approx([0.9, 90.0 / 1e6], rel=1e-3)

    def test_numbers_whose_squares_overflow_have_a_deviation(self):
        frame = pd.DataFrame({"x": np.repeat(np.linspace(-1e299, 1e299, 20), 3)})
        encoder = Encoder(Schema.infer(frame))
        (deviation,) = facts(encoder.rows(frame), encoder).deviations
        assert 0.0 < float(deviation) < 1.0


def test_of_many_rows_a_fixed_subsample_is_used():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(MOST_ROWS + 3000, 2)), columns=["x", "y"])
    encoder = Encoder(Schema.infer(frame))
    rows = encoder.rows(frame)
    new = encoder.rows(pd.DataFrame(rng.normal(size=(200, 2)), columns=["x", "y"]))
    one, other = (facts(rows, encoder).plausibility for _ in range(2))
    assert torch.equal(one(rows[:50]), other(rows[:50]))
    counts = one(rows[:50]) * (MOST_ROWS + 1)
    torch.testing.assert_close(counts, counts.round(), atol=1e-2, rtol=0.0)
    whole = by_definition(new, rows, encoder)
    assert (one(new) - whole).abs().mean() <= 0.1
    assert torch.corrcoef(torch.stack([one(new).double(), whole.double()]))[0, 1] > 0.8


def test_where_all_rows_have_copies_only_copies_are_plausible():
    """All distances between training rows are 0."""
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (300, 2)), columns=["p", "q"])
    frame["r"] = frame["p"]
    encoder = Encoder(Schema.infer(frame))
    plausibility = facts(encoder.rows(frame), encoder).plausibility
    rows = encoder.rows(pd.DataFrame({"p": [0, 1, 1], "q": [0, 0, 1], "r": [0, 1, 0]}))
    expected = [1.0, 1.0, 1.0 / 301.0]
    assert plausibility(rows).tolist() == pytest.approx(expected)


def support(values, target=1):
    """The support of rows on a line, where x >= 5 is accepted."""
    encoder = Encoder(Schema.infer(LINE))
    known = facts(encoder.rows(LINE), encoder, lambda f: np.where(f["x"] >= 5, 0.9, 0.1))
    goal = Target.of_class(target).resolve(len(values), None)
    rows = encoder.rows(pd.DataFrame({"x": values}))
    return known.support(rows, goal, torch.arange(len(rows))).tolist()


class TestSupport:
    """The share of a row's five nearest training rows with the target decision."""

    def test_it_is_the_share_of_the_nearest_that_are_accepted(self):
        expected = [0.0, 2 / 5, 3 / 5, 1.0]
        assert support([0.0, 4.1, 4.9, 9.0]) == pytest.approx(expected)

    def test_every_row_has_its_own_goal(self):
        assert support([9.0, 9.0], target=[1, 0]) == [1.0, 0.0]

    def test_neighbours_are_euclidean_on_the_encoding(self, mixed):
        encoder = mixed.encoder
        rows = encoder.rows(mixed.frame)
        some = rows[:20]
        distances = torch.cdist(encoder.expand(some).double(), encoder.expand(rows).double())
        near = distances.argsort(dim=1, stable=True)[:, :5]
        accepted = (mixed.net(encoder.expand(rows))[:, 0] > 0).float()
        goal = Target.of_class(1).resolve(20, None)
        found = facts(rows, encoder, mixed.net).support(some, goal, torch.arange(20))
        assert torch.allclose(found, accepted[near].mean(1))
