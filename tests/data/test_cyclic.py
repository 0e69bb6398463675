"""Cyclic columns: labels that go around; what is stated of them, what they cost, what is told."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from dear_plugin import DEAR, Constraints, Encoder, Feature, Schema
from dear_plugin.data.labels import Cyclic
from dear_plugin.errors import SchemaError

DAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
CYCLIC = {"hour": 24, "month": range(1, 13), "day": DAYS}


@pytest.fixture(scope="module")
def frame():
    draw = np.random.default_rng(0)
    columns = {"hour": range(24), "month": range(1, 13), "day": DAYS, "amount": range(100)}
    return pd.DataFrame({name: draw.choice(each, 600) for name, each in columns.items()})


@pytest.fixture(scope="module")
def schema(frame):
    return Schema.infer(frame, cyclic=CYCLIC)


def of(values, **given):
    return Schema.infer(pd.DataFrame({"x": values}), **given).features[0]


def test_the_distance_across_midnight_is_short(frame, schema):
    encoder, (a, b) = Encoder(schema), (frame.head(1), frame.head(1))
    a = a.assign(hour=23, month=12, day="Sun", amount=0)
    for other, cost in [((1, 1, "Mon"), (2 / 12, 1 / 6, 1 / 3)), ((11, 6, "Wed"), (1, 1, 1))]:
        b = a.assign(**dict(zip(CYCLIC, other, strict=True)))
        x, y = encoder.rows(a), encoder.rows(b)
        for found in (encoder.distance(x, y), encoder.distance(y, x)):
            assert found[0].tolist() == pytest.approx([*cost, 0.0])


def test_rows_and_cells_are_the_frames_own(frame, schema):
    encoder = Encoder(schema)
    pd.testing.assert_frame_equal(encoder.frame(encoder.rows(frame)), frame)
    assert [type(feature) for feature in schema][:3] == [Cyclic] * 3


def test_the_number_of_levels_begins_where_the_column_does():
    assert of([*range(1, 13)], cyclic={"x": 12}).circle == (*range(1, 13),)
    assert of([*range(12)], cyclic={"x": 12}).circle == (*range(12),)


def test_few_rows_of_each_level_leave_it_actionable():
    assert of([*range(24)] * 2, cyclic={"x": 24}).actionable
    assert not of([*range(24)] * 2, categorical=["x"]).actionable


def test_nothing_changes_to_a_level_that_no_row_has():
    feature = of([0, 1, 2, 5, 6], cyclic={"x": 7}, excluded={"x": [0]})
    assert (feature.excluded, feature.answers) == ((3, 4, 0), [1, 2, 5, 6])


def test_what_is_missing_or_unknown_is_outside():
    values = pd.Series(["Mon", "Tue", "?", None], dtype="category")
    feature = of(values, cyclic={"x": DAYS})
    encoder = Encoder(Schema((feature,)))
    rows = encoder.rows(pd.DataFrame({"x": values}))
    costs = [encoder.distance(rows[[0]], rows[[i]]).item() for i in range(4)]
    assert (feature.special, costs) == (("?",), [0.0, pytest.approx(1 / 3), 1.0, 1.0])
    assert encoder.frame(rows)["x"].tolist()[:3] == values.tolist()[:3]


def test_it_is_saved(tmp_path, frame, schema):
    assert Schema.from_dict(schema.to_dict()) == schema
    assert type(Feature.from_dict(schema.features[0].to_dict())) is Cyclic
    schema.to_toml(tmp_path / "schema.toml")
    assert Schema.from_toml(tmp_path / "schema.toml", frame) == schema


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"increasing": ["x"]}, "'x' is cyclic: it has no end"),
        ({"ranges": {"x": (1, 5)}}, r"ranges\['x'\]: expected a numeric feature, got categories"),
        ({"numeric": ["x"]}, "both cyclic and numeric"),
        ({"cyclic": {"x": 6}}, r"cyclic\['x'\]: expected all values.* got 6, without \[0\]"),
        ({"cyclic": {"x": [0, 1, 1]}}, r"cyclic\['x'\]: expected all values"),
        ({"cyclic": {"x": "week"}}, r"cyclic\['x'\]: expected all values"),
    ],
)
def test_what_fits_no_circle_is_an_error(given, text):
    with pytest.raises(SchemaError, match=text):
        of([*range(7)] * 2, **{"cyclic": {"x": 7}, **given})


def test_an_action_steps_across_midnight(frame, tmp_path):
    label = frame["hour"].isin([1, 2, 10, 11, 12])
    rows = frame[["hour", "amount"]]
    model = DecisionTreeClassifier(random_state=0).fit(rows, label)
    dear = DEAR(model, Schema.infer(rows, cyclic={"hour": 24}), act_on=["hour"]).fit(rows)
    late = rows[rows["hour"] == 23].head(3)
    found = dear.generate(late)
    assert found.counterfactuals["hour"].tolist() == [1, 1, 1]
    assert found.counterfactuals["hour"].dtype == rows["hour"].dtype
    assert "hour from 23 to 1" in found.describe(late.index[0])
    assert "hour from 23 to 1" in found.letter(late.index[0])
    assert found.actions["direct_cost"].tolist() == pytest.approx([2 / 12] * 3)
    dear.save(tmp_path / "dear")
    again = DEAR.load(tmp_path / "dear", model).generate(late)
    pd.testing.assert_frame_equal(again.counterfactuals, found.counterfactuals)


def test_a_range_of_a_row_is_an_error(frame, schema):
    model = DecisionTreeClassifier(random_state=0).fit(frame[["amount"]], frame["amount"] > 50)
    dear = DEAR(lambda x: model.predict_proba(x[["amount"]]), schema).fit(frame)
    with pytest.raises(Exception, match="hour"):
        dear.generate(frame.head(1), within=Constraints(ranges={"hour": (1, 5)}))
