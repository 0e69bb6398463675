"""FACE: paths start at the factual, stay in its group, and end at feasible accepted rows."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Schema
from dear_plugin.rivals import FaceConfig, FaceEpsilon, FaceKNN
from dear_plugin.rivals.face import Graph, weights

METHODS = {"k": FaceKNN, "epsilon": FaceEpsilon}


@pytest.fixture(params=METHODS)
def fitted(request, square, schema, linear):
    return METHODS[request.param](linear(1.0, 1.0, 0.0, bias=-1.2), schema).fit(square)


def test_every_row_ends_at_a_training_row_of_its_group(fitted, square, refused):
    result = fitted.generate(refused)
    assert result.actions["success"].all()
    assert (result.counterfactuals["group"] == refused["group"]).all()
    assert len(result.counterfactuals.merge(square.drop_duplicates())) == len(refused)


def test_paths_start_at_the_factual_row(fitted, square):
    """Of two distant clusters, rows of one end at its own boundary, not at that of the other.

    CARLA starts 99 of 100 paths from another row, and its costs are seven times as high.
    """
    low = square.assign(b=0.1)[square["a"] < 0.9]
    high = square.assign(b=0.9)[square["a"] < 0.1]
    rows = pd.concat([low, high]).reset_index(drop=True).sample(frac=1.0, random_state=1)
    result = fitted.generate(rows)
    moved = (result.counterfactuals[["a", "b"]] - rows[["a", "b"]]).abs().sum(axis=1)
    needed = (1.2 - rows["a"] - rows["b"]).clip(lower=0.0)
    assert result.actions["success"].all()
    assert (moved < needed + 0.5).all()


def test_paths_end_at_rows_of_the_required_confidence(square, schema, linear, refused):
    model = linear(3.0, 3.0, 0.0, bias=-3.6)
    sure, just = (
        FaceKNN(model, schema, config=FaceConfig(confidence=p)).fit(square).generate(refused)
        for p in (0.75, 0.5)
    )
    assert (sure.actions["score_after"] >= 0.75).all()
    assert (just.actions["score_after"] < 0.75).any()
    assert just.actions["cost"].median() < sure.actions["cost"].median()


def test_beyond_the_radius_there_is_no_path(square, linear):
    frame = square[(square["a"] + square["b"] - 1.2).abs() > 0.2]
    schema = Schema.infer(frame, immutable=["group"])
    model = linear(1.0, 1.0, 0.0, bias=-1.2)
    method = FaceEpsilon(model, schema, config=FaceConfig(radius=0.1)).fit(frame)
    rows = frame[frame["a"] + frame["b"] < 1.0].iloc[:20]
    assert not method.generate(rows).actions["success"].any()


def test_equal_rows_are_one_node(square, schema, linear, refused):
    model = linear(1.0, 1.0, 0.0, bias=-1.2)
    repeated = pd.concat([square, *[refused.iloc[:1]] * 200])
    one = FaceKNN(model, schema).fit(square).generate(refused).counterfactuals
    many = FaceKNN(model, schema).fit(repeated).generate(refused).counterfactuals
    pd.testing.assert_frame_equal(one, many)


# Short steps from (0, 0) over (0, 4) to (4, 4), and one row beyond a gap.
STAIR = np.array(
    [[0.0, i / 2] for i in range(8)] + [[i / 2, 4.0] for i in range(9)] + [[2.5, 0.0]]
)
START, END, ACROSS = 0, 16, 17


def end(k, *wanted):
    """The wanted row at which the path from the start ends, with k links a row."""
    graph = Graph.of(STAIR, FaceConfig(k, np.inf), 2)
    return graph.ends(STAIR[[START]], np.isin(np.arange(len(STAIR)), wanted)).item()


def test_of_two_wanted_rows_on_a_path_the_first_is_the_end():
    assert end(3, 5, END) == 5


def test_a_longer_path_of_short_links_beats_one_long_link():
    # The link is 2.5 long, the path 4, in steps of one half.
    assert end(17, ACROSS, 8) == 8


def test_where_rows_are_sparse_the_weight_is_minus_the_log_density():
    assert weights(np.array([100.0]), 1.0, 3)[0] == pytest.approx(100 * 3 * np.log(100), rel=1e-4)
