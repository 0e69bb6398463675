"""Plausibility: the conformal p-value of a row among the training rows."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.evaluation.plausibility import MOST_ROWS, Plausibility, robust_units


@pytest.fixture(scope="module")
def rows(mixed):
    return mixed.encoder.rows(mixed.frame)


@pytest.fixture(scope="module")
def plausibility(mixed, rows):
    return Plausibility(rows, mixed.encoder)


@pytest.fixture(scope="module")
def queries(mixed, rows):
    """(120, p) rows on the lines through two training rows each, between and beyond them."""
    one, other = rows[:120], rows[200:320]
    number = torch.tensor([not f.categories for f in mixed.schema])
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


class TestDefinition:
    def test_it_is_the_share_of_training_rows_at_least_as_far(
        self, mixed, rows, plausibility, queries
    ):
        found = plausibility.of(queries)
        expected = by_definition(queries, rows, mixed.encoder).to(found)
        torch.testing.assert_close(found, expected, atol=2.0 / len(rows), rtol=0.0)
        assert found.min() < 0.01
        assert found.max() > 0.3

    def test_a_known_result(self):
        """Ten rows on a line, symmetric about the middle."""
        frame = pd.DataFrame({"x": np.arange(10.0)})
        encoder = Encoder(Schema.infer(frame))
        plausibility = Plausibility(encoder.rows(frame), encoder)
        # Means of the five nearest, themselves left out, in steps of 1: 3, 11/5, 9/5, 9/5, 9/5
        # and back; of a row at 4.5 it is 13/10, beyond the end, at 11, it is 4.
        at = encoder.rows(pd.DataFrame({"x": [4.5, 11.0]}))
        assert plausibility.of(at).tolist() == pytest.approx([1.0, 1 / 11])

    def test_of_new_rows_of_the_same_distribution_a_share_p_is_at_most_p(self, mixed, rows):
        """The defining property of a p-value."""
        odd, even = rows[1::2], rows[::2]
        found = Plausibility(even, mixed.encoder).of(odd)
        for p in (0.05, 0.2, 0.5):
            assert p - 0.1 <= (found <= p).double().mean() <= p + 0.03


class TestUnits:
    """Numbers in units of their central range, so that one outlier does not hide the others."""

    def test_a_number_counts_in_units_of_its_central_nine_tenths(self):
        frame = pd.DataFrame({"x": np.arange(101.0), "long": [*np.arange(100.0), 1e6]})
        encoder = Encoder(Schema.infer(frame))
        units = robust_units(encoder.rows(frame), encoder)
        assert units.tolist() == pytest.approx([0.9, 90.0 / 1e6], rel=1e-3)


class TestManyRows:
    def test_a_fixed_subsample_is_used(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(MOST_ROWS + 3000, 2)), columns=["x", "y"])
        encoder = Encoder(Schema.infer(frame))
        rows = encoder.rows(frame)
        new = encoder.rows(pd.DataFrame(rng.normal(size=(200, 2)), columns=["x", "y"]))
        one, other = Plausibility(rows, encoder), Plausibility(rows, encoder)
        assert len(one._calibration) == MOST_ROWS
        assert torch.equal(one.of(rows[:50]), other.of(rows[:50]))
        whole = by_definition(new, rows, encoder)
        assert (one.of(new) - whole).abs().mean() <= 0.1
        assert torch.corrcoef(torch.stack([one.of(new).double(), whole.double()]))[0, 1] > 0.8


def test_where_all_rows_have_copies_only_copies_are_plausible():
    """All distances between training rows are 0."""
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (300, 2)), columns=["p", "q"])
    frame["r"] = frame["p"]
    encoder = Encoder(Schema.infer(frame))
    plausibility = Plausibility(encoder.rows(frame), encoder)
    rows = encoder.rows(pd.DataFrame({"p": [0, 1, 1], "q": [0, 0, 1], "r": [0, 1, 0]}))
    expected = [1.0, 1.0, 1.0 / 301.0]
    assert plausibility.of(rows).tolist() == pytest.approx(expected)
