"""Graph: shortest paths on graphs small enough to check by hand."""

import numpy as np
import pytest

from dear_plugin.baselines.graph import FaceConfig, Graph, weights

# Short steps from (0, 0) over (0, 4) to (4, 4), and one row beyond a gap.
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


def ends(graph, point, *rows):
    return graph.ends(np.array([point]), only(*rows)).tolist()


def test_of_two_wanted_rows_on_a_path_the_first_is_the_end():
    assert ends(graph(), STAIR[START], 5, END) == [5]


def test_a_longer_path_of_short_links_beats_one_long_link():
    # The link is 2.5 long, the path 4, in steps of one half.
    assert ends(graph(k=17), STAIR[START], ACROSS, 8) == [8]


def test_without_density_the_long_link_would_win():
    flat = Graph.of(STAIR, FaceConfig(17), 0)
    assert ends(flat, STAIR[START], ACROSS, 8) == [ACROSS]


def test_a_radius_leaves_some_unreachable():
    near = graph(k=17, radius=0.6)
    assert ends(near, STAIR[START], END) == [END]
    assert ends(near, STAIR[START], ACROSS) == [-1]


def test_points_need_not_be_rows_of_the_graph():
    points = np.array([[0.0, 0.1], [4.0, 3.9], [2.4, 0.1]])
    assert graph().ends(points, only(START, END, ACROSS)).tolist() == [START, END, ACROSS]


def test_where_rows_are_sparse_the_weight_is_minus_the_log_density():
    assert weights(np.array([100.0]), 1.0, 3)[0] == pytest.approx(100 * 3 * np.log(100), rel=1e-4)
