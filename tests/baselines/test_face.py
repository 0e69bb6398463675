"""FACE: it starts from the right person, keeps to their own kind, and ends where it may."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Constraints, Schema
from dear_plugin.baselines import FaceConfig, FaceEpsilon, FaceKNN

METHODS = {"k": FaceKNN, "epsilon": FaceEpsilon}


@pytest.fixture(params=METHODS)
def fitted(request, square, linear):
    schema = Schema.infer(square, immutable=["group"])
    return METHODS[request.param](linear(1.0, 1.0, 0.0, bias=-1.2), schema).fit(square)


@pytest.fixture
def refused(square):
    return square[square["a"] + square["b"] < 1.1].iloc[:60]


def test_everyone_ends_at_a_training_row_of_their_own_group(fitted, square, refused):
    result = fitted.generate(refused)
    assert result.actions["success"].all()
    assert (result.counterfactuals["group"] == refused["group"]).all()
    assert len(result.counterfactuals.merge(square.drop_duplicates())) == len(refused)


def test_it_starts_from_the_right_person(fitted, square):
    """Two crowds, far apart: whoever stands in one of them ends at its edge, not at the other's.

    CARLA starts 99 of 100 people from somebody else, and then costs seven times as much.
    """
    low = square.assign(b=0.1)[square["a"] < 0.9]
    high = square.assign(b=0.9)[square["a"] < 0.1]
    people = pd.concat([low, high]).reset_index(drop=True).sample(frac=1.0, random_state=1)
    result = fitted.generate(people)
    moved = (result.counterfactuals[["a", "b"]] - people[["a", "b"]]).abs().sum(axis=1)
    needed = (1.2 - people["a"] - people["b"]).clip(lower=0.0)
    assert result.actions["success"].all()
    assert (moved < needed + 0.5).all()


def test_company_and_order_do_not_matter(fitted, refused):
    together = fitted.generate(refused).counterfactuals
    backwards = fitted.generate(refused[::-1]).counterfactuals[::-1]
    pd.testing.assert_frame_equal(together, backwards)


def test_where_the_model_can_be_sure_the_end_is_a_row_of_which_it_is(square, linear, refused):
    schema = Schema.infer(square, immutable=["group"])
    model = linear(3.0, 3.0, 0.0, bias=-3.6)
    with_threshold = (
        FaceKNN(model, schema, config=FaceConfig(confidence=0.75))
        .fit(square)
        .generate(refused)
        .actions
    )
    just = (
        FaceKNN(model, schema, config=FaceConfig(confidence=0.5))
        .fit(square)
        .generate(refused)
        .actions
    )
    assert (with_threshold["score_after"] >= 0.75).all()
    assert (just["score_after"] < 0.75).any()
    assert just["cost"].median() < with_threshold["cost"].median()


def test_who_can_have_no_sure_end_has_one_with_which_the_model_agrees(square, linear, refused):
    schema = Schema.infer(square, immutable=["group"])
    model = linear(1.0, 1.0, 0.0, bias=-1.2)
    never = FaceKNN(model, schema, config=FaceConfig(confidence=0.99)).fit(square)
    assert never.generate(refused).actions["success"].all()


def test_the_end_keeps_what_the_call_asks_for(fitted, refused):
    result = fitted.generate(refused, within=Constraints(ranges={"b": (0.0, 0.5)}))
    done = result.actions["success"].to_numpy()
    changed = (result.counterfactuals["b"] != refused["b"]).to_numpy()
    assert done.any()
    assert result.counterfactuals["b"][done & changed].between(0.0, 0.5).all()


def test_a_stranger_to_all_groups_is_told(square, linear):
    schema = Schema.infer(square, immutable=["group"])
    others = square[square["group"] == 0]
    method = FaceKNN(linear(1.0, 1.0, 0.0, bias=-1.2), schema).fit(others)
    stranger = square[(square["group"] == 1) & (square["a"] + square["b"] < 1.0)].iloc[:1]
    result = method.generate(stranger)
    assert not result.actions["success"].any()
    assert result.actions["reason"].iloc[0].startswith("no path")


def test_beyond_the_radius_there_is_no_path(square, linear):
    frame = square[(square["a"] + square["b"] - 1.2).abs() > 0.2]
    schema = Schema.infer(frame, immutable=["group"])
    model = linear(1.0, 1.0, 0.0, bias=-1.2)
    method = FaceEpsilon(model, schema, config=FaceConfig(radius=0.1)).fit(frame)
    people = frame[frame["a"] + frame["b"] < 1.0].iloc[:20]
    assert not method.generate(people).actions["success"].any()


def test_people_who_are_alike_are_one_node(square, linear, refused):
    schema = Schema.infer(square, immutable=["group"])
    model = linear(1.0, 1.0, 0.0, bias=-1.2)
    crowd = pd.concat([square, *[refused.iloc[:1]] * 200])
    one = FaceKNN(model, schema).fit(square).generate(refused).counterfactuals
    many = FaceKNN(model, schema).fit(crowd).generate(refused).counterfactuals
    pd.testing.assert_frame_equal(one, many)


def test_a_black_box_will_do(square, refused):
    schema = Schema.infer(square, immutable=["group"])
    method = FaceKNN(lambda f: (f["a"] + f["b"] > 1.2).astype(float), schema).fit(square)
    assert np.all(method.generate(refused).actions["success"])
