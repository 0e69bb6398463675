"""Locations: where an atom-free feature lies given x_S and what is held."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.decoders.transport.locations import (
    Planes,
    by_level,
    by_number,
    hinges,
    terciles,
    winsorised,
)

N = 3000
NOTHING = torch.empty(N, 0, dtype=torch.float64)
ALL = torch.ones(1, dtype=torch.bool)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class TestHinges:
    def test_by_hand(self):
        x = torch.tensor([[0.2, 0.9]])
        kinks = torch.tensor([[0.1, 0.5], [0.3, 1.0]])
        expected = [1.0, 0.2, 0.9, 0.1, 0.6, 0.0, 0.0]
        torch.testing.assert_close(hinges(x, kinks)[0], torch.tensor(expected))

    def test_a_number_bends_at_its_terciles(self):
        x = torch.arange(9.0)[:, None]
        assert terciles(x).tolist() == [[3.0, 6.0]]

    def test_not_at_its_ends_and_not_twice_at_one_value(self):
        x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [1.0, 2.0]])
        assert terciles(x).tolist() == [[torch.inf, torch.inf], [1.0, torch.inf]]


def test_the_outer_values_are_pulled_in():
    y = torch.arange(1001.0)[:, None]
    assert winsorised(y)[:, 0].aminmax() == (5.0, 995.0)


class TestByNumber:
    def test_a_bend_at_a_tercile_is_followed_exactly(self):
        a = torch.rand(N, generator=torch.Generator().manual_seed(0))
        kink = terciles(a[:, None])[0, 0]
        y = 2 * a + 5 * (a - kink).clamp_min(0.0)
        location = by_number(a, a[:100], winsorised(y[:, None]), NOTHING, ALL)
        torch.testing.assert_close(location.at_grid[0], y[:100], atol=1e-5, rtol=0.0)
        torch.testing.assert_close(location.at_rows[:, 0], y, atol=1e-5, rtol=0.0)

    def test_beyond_the_range_it_goes_on_in_a_straight_line(self):
        a = normal(N)
        location = by_number(
            a, torch.tensor([5.0, 6.0, 7.0]), winsorised((3.0 * a)[:, None]), NOTHING, ALL
        )
        assert location.at_grid[0].tolist() == pytest.approx([15.0, 18.0, 21.0], abs=1e-3)

    def test_what_is_held_takes_its_own_part(self):
        """y = 2 a - 3 h, where a follows h: the slope along a is the partial one, 2."""
        h = normal(N)
        a = h + normal(N, seed=1)
        location = by_number(
            a,
            torch.tensor([-1.0, 1.0]),
            (2 * a - 3 * h)[:, None].double(),
            h[:, None].double(),
            ALL,
        )
        assert location.at_grid.diff().item() == pytest.approx(4.0, abs=0.05)
        assert location.beside.item() == pytest.approx(-3.0, abs=0.05)


class TestWhatIsNotThere:
    """A slope, or a bend, that chance makes as well is left out: nothing moves by a little."""

    def test_a_feature_of_its_own_is_level(self):
        location = by_number(
            normal(N), torch.linspace(-3, 3, 9), normal(N, 1, seed=1).double(), NOTHING, ALL
        )
        assert (location.at_grid == location.at_grid[0, 0]).all()

    def test_a_straight_line_has_no_bends(self):
        a = normal(N)
        y = (2.0 * a + normal(N, seed=1))[:, None].double()
        slopes = by_number(a, torch.linspace(-3, 3, 9), y, NOTHING, ALL).at_grid[0].diff()
        torch.testing.assert_close(slopes, slopes[:1].expand(8))

    def test_what_is_not_linked_is_level_whatever_its_slope(self):
        a = normal(N)
        location = by_number(a, a[:5], a[:, None].double(), NOTHING, ~ALL)
        assert (location.at_grid == location.at_grid[0, 0]).all()


def test_two_equal_columns_stay_equal_far_beyond_what_people_have():
    """Pulled in on one side only, outliers would tilt the line."""
    a = normal(N).mul(2.0).exp()
    y = winsorised(a[:, None])
    made = by_number(a, torch.tensor([1.0, 100.0, 10_000.0]), y, NOTHING, ALL).at_grid[0]
    assert made.tolist() == pytest.approx([1.0, 100.0, 10_000.0], rel=1e-3)


class TestByLevel:
    level = torch.arange(N) % 3

    def test_each_category_has_its_mean(self):
        y = normal(N, 1).double() + self.level[:, None]
        location = by_level(self.level.float(), 3, y, NOTHING, ALL)
        expected = [y[self.level == c].mean().item() for c in range(3)]
        assert location.at_grid[0].tolist() == pytest.approx(expected, abs=2e-3)

    def test_all_have_the_same_where_they_differ_by_chance_alone(self):
        y = normal(N, 1).double()
        location = by_level(self.level.float(), 3, y, NOTHING, ALL)
        assert location.at_grid[0].tolist() == pytest.approx([y.mean().item()] * 3, abs=1e-6)

    def test_one_that_nobody_has_has_everyones(self):
        y = normal(N, 1).double()
        location = by_level(self.level.float(), 4, y, NOTHING, ALL)
        assert location.at_grid[0, 3].item() == pytest.approx(y.mean().item(), abs=1e-6)

    def test_what_is_held_takes_its_own_part(self):
        """Categories shift y by 0, 1, 2 and h by as much: held, what is left of y is 0, 3, 6."""
        h = self.level + normal(N)
        location = by_level(
            self.level.float(),
            3,
            (3 * self.level - 2 * h)[:, None].double(),
            h[:, None].double(),
            ALL,
        )
        level = location.at_grid[0]
        assert (level - level[0]).tolist() == pytest.approx([0.0, 3.0, 6.0], abs=1e-3)


class TestPlanes:
    """The locations of groups are linear in bent numbers and categories."""

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
        """y as it is expected to be, in the user's units, and the plane's weights."""
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

    def test_other_columns_weigh_nothing(self, frame):
        """A constant, four numbers and their two bends each, three towns: b's are its own."""
        _, weights = self.located(frame, ["b"])
        assert weights[:, 0].nonzero()[:, 0].tolist() == [0, 2, 6, 10]
