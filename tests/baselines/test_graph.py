"""Graph: shortest paths on drawings small enough to check by eye."""

import numpy as np
import pytest

from dear_plugin.baselines.graph import FaceConfig, Graph, weights

# A stair of short steps from (0, 0) over (0, 4) to (4, 4); 20 lies off it, beyond a gap.
STAIR = np.array(
    [[0.0, i / 2] for i in range(8)] + [[i / 2, 4.0] for i in range(9)] + [[2.5, 0.0]]
)
START, END, ACROSS = 0, 16, 17


def only(*rows):
    wanted = np.zeros(len(STAIR), dtype=bool)
    wanted[list(rows)] = True
    return wanted


def graph(k=3, radius=np.inf):
    return Graph.of(STAIR, FaceConfig(k, radius), 2)


def ends(drawing, place, *rows):
    return drawing.ends(np.array([place]), only(*rows)).tolist()


def test_a_path_ends_at_the_row_that_is_wanted():
    assert ends(graph(), STAIR[START], END) == [END]


def test_of_two_on_the_way_the_first_is_the_end():
    assert ends(graph(), STAIR[START], 5, END) == [5]


def test_someone_already_there_stays():
    assert ends(graph(), STAIR[END], END, 5) == [END]


def test_a_dense_way_round_beats_a_leap_across():
    # The leap is 2.5 long, the way round 4, but in steps of one half.
    assert ends(graph(k=17), STAIR[START], ACROSS, 8) == [8]


def test_without_density_the_leap_would_win():
    flat = Graph.of(STAIR, FaceConfig(17), 0)
    assert ends(flat, STAIR[START], ACROSS, 8) == [ACROSS]


def test_a_radius_leaves_some_unreachable():
    near = graph(k=17, radius=0.6)
    assert ends(near, STAIR[START], END) == [END]
    assert ends(near, STAIR[START], ACROSS) == [-1]


def test_someone_too_far_from_everyone_has_no_path():
    assert ends(graph(radius=0.6), [9.0, 9.0], END) == [-1]


def test_nothing_wanted_is_nothing_found():
    assert ends(graph(), STAIR[START]) == [-1]


def test_a_person_between_two_rows_starts_from_where_they_are():
    people = np.array([[0.0, 0.1], [4.0, 3.9], [2.4, 0.1]])
    assert graph().ends(people, only(START, END, ACROSS)).tolist() == [START, END, ACROSS]


def test_a_single_row_is_a_graph():
    alone = Graph.of(np.zeros((1, 2)), FaceConfig(), 2)
    assert alone.ends(np.ones((1, 2)), np.array([True])).tolist() == [0]


@pytest.mark.parametrize("volume", [0, 1, 10])
def test_weights_grow_with_length_and_are_never_negative(volume):
    cost = weights(np.linspace(0.0, 3.0, 50), 0.5, volume)
    assert (cost > 0).all()
    assert (np.diff(cost) > 0).all()


def test_a_link_that_is_not_there_costs_infinitely_much():
    assert weights(np.array([np.inf]), 0.5, 0)[0] == np.inf


def test_where_the_air_is_thin_a_link_costs_minus_the_log_of_the_density():
    assert weights(np.array([100.0]), 1.0, 3)[0] == pytest.approx(100 * 3 * np.log(100), rel=1e-4)
