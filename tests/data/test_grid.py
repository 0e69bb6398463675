"""Grid: numbers with a few decimals, as they print."""

import numpy as np
import pytest

from dear_plugin.data.numbers import Grid, on_grid

PLACES = [2, 0, -2, None, 6, -5]


@pytest.fixture
def grid() -> Grid:
    return Grid.of(PLACES)


def test_a_rounded_number_is_the_one_that_prints_with_its_decimals(grid):
    values = np.random.default_rng(0).normal(size=(2_000, len(PLACES))) * 1e6
    for j, places in enumerate(PLACES):
        wanted = values[:, j].tolist()
        if places is not None:
            wanted = [float(f"{round(value, places):.{max(places, 0)}f}") for value in wanted]
        assert grid.round(values)[:, j].tolist() == wanted


def test_rounding_twice_changes_nothing(grid):
    values = np.random.default_rng(0).random((2_000, len(PLACES))) * 1e9
    once = grid.round(values)
    assert np.array_equal(grid.round(once), once)


def test_some_features_are_rounded_as_all_of_them_are(grid):
    values, at = np.random.default_rng(0).random((50, len(PLACES))) * 100.0, [4, 0]
    assert np.array_equal(grid.round(values[:, at], at), grid.round(values)[:, at])


def test_a_step_is_one_unit_of_the_last_decimal(grid):
    assert grid.step.tolist() == [0.01, 1.0, 100.0, 0.0, 1e-6, 1e5]


def test_bounds_move_inwards_unless_they_are_a_rounding_error_off():
    grid = Grid.of([1, 0, None])
    low = np.array([[0.1 + 0.2, 2.2, 0.123456789]])
    high = np.array([[0.7999999999999999, 8.8, np.inf]])
    inner = grid.inward(low, high)
    assert inner[0].tolist() == [[0.3, 3.0, 0.123456789]]
    assert inner[1].tolist() == [[0.8, 8.0, np.inf]]


class TestCodes:
    """Numbers among the amounts that are codes: 99 of one, 7 and 7.1 of one with a decimal."""

    @pytest.fixture
    def grid(self) -> Grid:
        return Grid.of([0, 1, None], [(99.0,), (7.0, 7.1), ()], [0.0, 0.0, 0.0])

    def test_a_number_that_rounds_to_a_code_takes_the_amount_beside_it(self, grid):
        values = np.array([[99.2, 7.04, 99.0], [98.4, 6.9, 7.0]])
        assert grid.round(values).tolist() == [[100.0, 7.2, 99.0], [98.0, 6.9, 7.0]]
        assert grid.round(values, side=-1.0).tolist() == [[98.0, 6.9, 99.0], [98.0, 6.9, 7.0]]

    def test_so_it_does_where_features_are_given_by_position(self, grid):
        values = np.array([[99.0, 98.0], [7.0, 99.0]])
        at = np.array([[0], [1]])
        assert grid.round(values, at).tolist() == [[100.0, 98.0], [7.2, 99.0]]

    def test_it_is_on_the_step_of_actions(self):
        grid = Grid.of([0], [(95.0,)], [5.0])
        assert grid.round(np.array([95.2])).tolist() == [100.0]

    def test_no_bound_is_a_code(self, grid):
        ends = np.array([99.0, 7.1, 99.0])
        assert [end.tolist() for end in grid.inward(ends, ends)] == [
            [100.0, 7.2, 99.0],
            [98.0, 6.9, 99.0],
        ]


class TestOnGrid:
    def test_equal_numbers_have_equal_bits_however_they_were_computed(self):
        assert on_grid(np.array([0.1 + 0.2, 0.3]), 1).tolist() == [0.3, 0.3]
        assert on_grid(np.array([0.1, 2.7], dtype=np.float32), 1).tolist() == [0.1, 2.7]

    def test_a_number_with_more_decimals_stays(self):
        assert on_grid(np.array([0.3000001, 33.5]), 0).tolist() == [0.3000001, 33.5]

    def test_integers_and_numbers_without_decimals_stay(self):
        assert on_grid(np.array([2**53 - 1]), 0).tolist() == [2.0**53 - 1]
        assert on_grid(np.array([0.1 + 0.2]), None).tolist() == [0.1 + 0.2]
