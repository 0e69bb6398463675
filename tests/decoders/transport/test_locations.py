"""Locations: conditional means of atom-free features given x_S and covariates."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.decoders.transport.locations import (
    Planes,
    category_location,
    hinges,
    numeric_location,
    terciles,
    winsorised,
)

N = 3000
NONE = torch.empty(N, 0, dtype=torch.float64)
ALL = torch.ones(1, dtype=torch.bool)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class TestHinges:
    def test_by_hand(self):
        x = torch.tensor([[0.2, 0.9]])
        kinks = torch.tensor([[0.1, 0.5], [0.3, 1.0]])
        expected = [1.0, 0.2, 0.9, 0.1, 0.6, 0.0, 0.0]
        torch.testing.assert_close(hinges(x, kinks)[0], torch.tensor(expected))

    def test_kinks_are_at_terciles(self):
        x = torch.arange(9.0)[:, None]
        assert terciles(x).tolist() == [[3.0, 6.0]]

    def test_kinks_are_distinct_and_not_at_the_ends(self):
        x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [1.0, 2.0]])
        assert terciles(x).tolist() == [[torch.inf, torch.inf], [1.0, torch.inf]]


def test_outer_values_are_winsorised():
    y = torch.arange(1001.0)[:, None]
    assert winsorised(y)[:, 0].aminmax() == (5.0, 995.0)


class TestNumeric:
    def test_a_kink_at_a_tercile_is_fitted_exactly(self):
        a = torch.rand(N, generator=torch.Generator().manual_seed(0))
        kink = terciles(a[:, None])[0, 0]
        y = 2 * a + 5 * (a - kink).clamp_min(0.0)
        location = numeric_location(a, a[:100], winsorised(y[:, None]), NONE, ALL)
        torch.testing.assert_close(location.at_grid[0], y[:100], atol=1e-5, rtol=0.0)
        torch.testing.assert_close(location.at_rows[:, 0], y, atol=1e-5, rtol=0.0)

    def test_it_is_extrapolated_linearly(self):
        a = normal(N)
        location = numeric_location(
            a, torch.tensor([5.0, 6.0, 7.0]), winsorised((3.0 * a)[:, None]), NONE, ALL
        )
        assert location.at_grid[0].tolist() == pytest.approx([15.0, 18.0, 21.0], abs=1e-3)

    def test_covariates_are_held_fixed(self):
        """y = 2 a - 3 h, where a follows h: the slope along a is the partial one, 2."""
        h = normal(N)
        a = h + normal(N, seed=1)
        location = numeric_location(
            a,
            torch.tensor([-1.0, 1.0]),
            (2 * a - 3 * h)[:, None].double(),
            h[:, None].double(),
            ALL,
        )
        assert location.at_grid.diff().item() == pytest.approx(4.0, abs=0.05)
        assert location.covariate_weights.item() == pytest.approx(-3.0, abs=0.05)


class TestInsignificant:
    """An insignificant slope or kink is left out: the location is then exactly constant."""

    def test_an_independent_feature_is_constant(self):
        location = numeric_location(
            normal(N), torch.linspace(-3, 3, 9), normal(N, 1, seed=1).double(), NONE, ALL
        )
        assert (location.at_grid == location.at_grid[0, 0]).all()

    def test_a_straight_line_has_no_kinks(self):
        a = normal(N)
        y = (2.0 * a + normal(N, seed=1))[:, None].double()
        slopes = numeric_location(a, torch.linspace(-3, 3, 9), y, NONE, ALL).at_grid[0].diff()
        torch.testing.assert_close(slopes, slopes[:1].expand(8))

    def test_a_feature_that_is_not_linked_is_constant(self):
        a = normal(N)
        location = numeric_location(a, a[:5], a[:, None].double(), NONE, ~ALL)
        assert (location.at_grid == location.at_grid[0, 0]).all()


def test_equal_columns_stay_equal_far_outside_the_range():
    """Outliers that are winsorised on one side only would tilt the line."""
    a = normal(N).mul(2.0).exp()
    y = winsorised(a[:, None])
    made = numeric_location(a, torch.tensor([1.0, 100.0, 10_000.0]), y, NONE, ALL).at_grid[0]
    assert made.tolist() == pytest.approx([1.0, 100.0, 10_000.0], rel=1e-3)


class TestCategory:
    level = torch.arange(N) % 3

    def test_each_category_has_its_mean(self):
        y = normal(N, 1).double() + self.level[:, None]
        location = category_location(self.level.float(), 3, y, NONE, ALL)
        expected = [y[self.level == c].mean().item() for c in range(3)]
        assert location.at_grid[0].tolist() == pytest.approx(expected, abs=2e-3)

    def test_insignificant_differences_are_zero(self):
        y = normal(N, 1).double()
        location = category_location(self.level.float(), 3, y, NONE, ALL)
        assert location.at_grid[0].tolist() == pytest.approx([y.mean().item()] * 3, abs=1e-6)

    def test_an_empty_category_has_the_overall_mean(self):
        y = normal(N, 1).double()
        location = category_location(self.level.float(), 4, y, NONE, ALL)
        assert location.at_grid[0, 3].item() == pytest.approx(y.mean().item(), abs=1e-6)

    def test_covariates_are_held_fixed(self):
        """y = 3 level - 2 h, where h follows the level: at equal h, y is 0, 3, 6."""
        h = self.level + normal(N)
        location = category_location(
            self.level.float(),
            3,
            (3 * self.level - 2 * h)[:, None].double(),
            h[:, None].double(),
            ALL,
        )
        level = location.at_grid[0]
        assert (level - level[0]).tolist() == pytest.approx([0.0, 3.0, 6.0], abs=1e-3)


class TestPlanes:
    """The locations of groups are linear in numbers with kinks and in categories."""

    @pytest.fixture(scope="class")
    @classmethod
    def frame(cls):
        rng = np.random.default_rng(0)
        a, b, c = rng.normal(size=6000), rng.normal(size=6000), rng.integers(0, 10, 6000)
        town = rng.choice(list("ABC"), 6000)
        y = 0.5 * a - 0.3 * b + 0.1 * c + (town == "B") + 0.2 * rng.normal(size=6000)
        return pd.DataFrame({"a": a, "b": b, "c": c, "y": y, "town": town.astype(object)})

    @staticmethod
    def located(frame, own):
        """The fitted y, in the user's units, and the weights of the plane."""
        encoder = Encoder(Schema.infer(frame))
        x, feature = encoder.encode(frame), encoder.schema.features[3]
        columns = torch.tensor([f.name in own for f in encoder.schema])[encoder.feature_of]
        planes = Planes.of(x, encoder)
        location, weights = planes.fit(x, columns, x[:, 3:4], torch.empty(len(x), 0).double(), ALL)
        made = planes.basis(x) @ weights
        torch.testing.assert_close(made, location.at_rows, atol=1e-4, rtol=0.0)
        return pd.Series(made[:, 0].numpy() * feature.width + feature.bounds[0]), weights

    def test_they_are_the_conditional_means(self, frame):
        made, _ = self.located(frame, ["a", "b"])
        plane = 0.5 * frame["a"] - 0.3 * frame["b"] + 0.1 * 4.5 + 1 / 3
        assert (made - plane).abs().mean() <= 0.03

    def test_a_category_has_a_level_of_its_own(self, frame):
        made, _ = self.located(frame, ["c", "town"])
        by_town = made.groupby(frame["town"]).mean()
        assert by_town["B"] - by_town["A"] == pytest.approx(1.0, abs=0.05)
        assert by_town["C"] == pytest.approx(by_town["A"], abs=0.05)
        within = frame["town"] == "A"
        slope = np.polyfit(frame["c"][within], made[within], 1)[0]
        assert slope == pytest.approx(0.1, abs=0.01)

    def test_other_columns_have_no_weight(self, frame):
        """A constant, four numbers with two kinks each, three towns: b has three columns."""
        _, weights = self.located(frame, ["b"])
        assert weights[:, 0].nonzero()[:, 0].tolist() == [0, 2, 6, 10]
