"""An identifier is moved by nothing, and neither answers nor their measures depend on it."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema
from dear_plugin.errors import ConstraintError
from dear_plugin.rivals import FaceKNN, NearestAccepted

ROWS = 2_000


def score(frame):
    """Accepted with few credits and many hours."""
    return 1 / (1 + np.exp((frame["credits"].to_numpy() - 100) / 12 - frame["hours"] / 20))


def table(kind: str) -> pd.DataFrame:
    """Identifiers that go along with the credits, given out in the order of years."""
    rng = np.random.default_rng(0)
    year = rng.integers(2018, 2025, ROWS)
    numbers = (year - 2018) * 10_000 + rng.permutation(ROWS)
    names = np.array([f"c{i:06}" for i in numbers])
    return pd.DataFrame(
        {
            "key": numbers if kind == "numbers" else names,
            "credits": 30 * rng.integers(1, 6, ROWS) + 5 * (year - 2018),
            "hours": rng.normal(20, 6, ROWS),  # not rounded: no two rows are equally near
            "job": rng.choice(["cook", "nurse", "judge"], ROWS),
        }
    )


@pytest.fixture(scope="module", params=["numbers", "text"])
def frame(request):
    return table(request.param)


@pytest.mark.parametrize("method", [DEAR, NearestAccepted, FaceKNN])
def test_answers_do_not_depend_on_identifiers(frame, method):
    if method is FaceKNN and frame["key"].dtype != int:
        frame = frame.head(600)
    other = frame.assign(key=frame["key"].to_numpy()[::-1])
    found = []
    for each in (frame, other):
        rows = each[score(each) < 0.4].head(15)
        recourses = method(score, Schema.infer(each)).fit(each).generate(rows)
        assert recourses.actions["success"].all()
        assert (recourses.counterfactuals["key"] == rows["key"]).all()
        found.append(recourses)
    one, two = found
    same = ["credits", "hours", "job"]
    pd.testing.assert_frame_equal(one.counterfactuals[same], two.counterfactuals[same])
    pd.testing.assert_frame_equal(one.actions, two.actions)
    assert (one.support == two.support).all()


def test_the_error_on_acting_on_one_names_the_arguments(frame):
    schema = Schema.infer(frame)
    with pytest.raises(ConstraintError, match=r"look like identifiers: .*numeric=\['key'\]"):
        DEAR(score, schema, act_on=["key"])
    with pytest.raises(ConstraintError, match="look like identifiers"):
        DEAR(score, schema).fit(frame).apply(frame.head(1), {"key": frame["key"].iloc[5]})


def test_it_is_in_no_relation():
    frame = table("numbers").assign(double=lambda f: 2 * f["key"] + 1)
    schema = Schema.infer(frame, numeric=["double"])
    assert not any("key" in relation.members for relation in schema.relations)


def test_a_new_one_is_passed_on_and_is_no_news(caplog):
    frame = table("text").head(600)
    rows = frame[score(frame) < 0.4].head(5).assign(key=[f"new {i}" for i in range(5)])
    dear = DEAR(score, Schema.infer(frame)).fit(frame)
    caplog.clear()
    found = dear.generate(rows)
    assert found.actions["success"].all()
    assert found.counterfactuals["key"].tolist() == rows["key"].tolist()
    assert "key" not in caplog.text


def test_alibi_keeps_one_of_its_category_map():
    pytest.importorskip("alibi")
    from dear_alibi import DEAR as Explainer

    hours = np.random.default_rng(0).integers(1, 60, 400)
    table_of_codes = np.c_[np.arange(400), hours].astype(float)

    def predictor(rows):
        accepted = 1 / (1 + np.exp((30 - rows[:, 1]) / 4))
        return np.stack([1 - accepted, accepted], 1)

    explainer = Explainer(predictor, ["key", "hours"], {0: [f"c{i}" for i in range(400)]})
    rows = table_of_codes[hours < 25][:8]
    found = explainer.fit(table_of_codes).explain(rows, Y_t=1).data["cf"]["X"]
    assert (found[:, 0] == rows[:, 0]).all() and (found[:, 1] > rows[:, 1]).all()
