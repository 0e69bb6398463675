"""Consistency: of the training rows whose margin a kind of change moves, the share that gain."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Encoder, Schema, Search, Target
from dear_plugin.evaluation.trained import MODEL_ROWS, Consistency
from dear_plugin.models.classifier import Classifier
from tests.asked import chance, fitted

ROWS = 400


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "up": rng.integers(0, 100, ROWS),
            "count": rng.choice([0, 1, 2, 3], ROWS, p=[0.9, 0.06, 0.03, 0.01]),
            "group": rng.choice(["a", "b", "c"], ROWS),
            "unused": rng.normal(size=ROWS).round(3),
        }
    )


def consistency_of(frame, model, output="probabilities", **marks):
    encoder = Encoder(Schema.infer(frame, **marks))
    return Consistency(encoder.rows(frame), Classifier(model, encoder, output=output))


def share(measured, frame, change, target=None):
    """The consistency of one change of the first row, by feature."""
    encoder = measured.classifier.encoder
    row = frame.iloc[:1].copy()
    before, after = encoder.rows(row), encoder.rows(row.assign(**change))
    goal = (target or Target.of_class(1)).resolve(1, None)
    acted = torch.ones(before.shape, dtype=torch.bool)
    found = measured.of(before, after, acted, goal, torch.tensor([0]))[0]
    return {encoder.schema.names[j]: found[j].item() for j in encoder.schema.index(change)}


class TestLaws:
    def test_of_a_linear_model_it_is_one_the_one_way_and_zero_the_other(self, frame):
        frame = frame.assign(up=[50, *frame["up"][1:]], count=[1, *frame["count"][1:]])
        measured = consistency_of(frame, lambda f: chance(f["up"] / 50 - f["count"]))
        assert share(measured, frame, {"up": 51, "count": 0}) == {"up": 1.0, "count": 1.0}
        assert share(measured, frame, {"up": 49, "count": 2}) == {"up": 0.0, "count": 0.0}
        other = Target.of_class(0)
        assert share(measured, frame, {"up": 51, "count": 0}, other) == {"up": 0.0, "count": 0.0}

    @pytest.mark.parametrize("feature, low, high", [("up", 10, 90), ("group", "a", "b")])
    def test_a_kind_and_its_reverse_add_up_to_one(self, frame, feature, low, high):
        def model(f):
            sign = np.where(f["unused"] > 0.3, 1.0, -1.0)
            return chance(sign * (f["up"] / 50 + (f["group"] == "b")))

        frame = frame.assign(up=[low if feature == "up" else 5, *frame["up"][1:]])
        at_low = frame.assign(group=["a", *frame["group"][1:]])
        at_high = at_low.assign(**{feature: [high, *at_low[feature][1:]]})
        measured = consistency_of(frame, model)
        there = share(measured, at_low, {feature: high})[feature]
        back = share(measured, at_high, {feature: low})[feature]
        assert there + back == pytest.approx(1.0)
        assert 0.2 < there < 0.6

    def test_where_the_model_ignores_what_is_acted_on_nothing_is_against_it(self, frame):
        measured = consistency_of(frame, lambda f: chance(f["up"] / 50 - 1))
        assert share(measured, frame, {"unused": 9.0, "group": "c"}) == {"unused": 1, "group": 1}


class TestKnownAnswers:
    def test_of_categories_it_is_the_share_of_rows_that_gain_by_the_same_step(self, frame):
        """Of the rows with a positive `unused`, c beats a; of the others, a beats c."""

        def model(f):
            return chance((f["group"] == "c") * np.sign(f["unused"]))

        first = frame.assign(group=["a", *frame["group"][1:]])
        measured = consistency_of(first, model)
        gaining = (first["unused"][:200] > 0).mean()  # the first 200 rows are asked
        assert share(measured, first, {"group": "c"})["group"] == pytest.approx(gaining)
        assert share(measured, first, {"group": "b"})["group"] == 1.0

    def test_of_a_number_with_a_common_value_its_few_values_are_compared(self, frame):
        """1 is better than 0, 2 and 3 are worse: of the steps 0 to 1 and 1 to 2, one gains."""
        first = frame.assign(count=[0, *frame["count"][1:]])
        measured = consistency_of(
            first, lambda f: chance(f["count"].map([0, 1, -1, -2].__getitem__))
        )
        assert share(measured, first, {"count": 2})["count"] == pytest.approx(0.5, abs=0.17)

    def test_of_a_group_of_columns_a_level_is_one_change(self, frame):
        table = pd.get_dummies(frame["group"], prefix="job", dtype=int).assign(x=frame["unused"])
        table.iloc[0, :3] = [1, 0, 0]
        measured = consistency_of(table, lambda f: chance(f["job_c"] * 2.0 - f["job_b"]))
        assert share(measured, table, {"job_a": 0, "job_c": 1}) == {"job": 1.0}
        assert share(measured, table, {"job_a": 0, "job_b": 1}) == {"job": 0.0}

    def test_of_a_range_it_is_the_margin_of_the_row_s_own_range(self, frame):
        measured = consistency_of(frame, lambda f: 2.0 * f["up"], output="values")
        row = frame.assign(up=[50, *frame["up"][1:]])
        assert share(measured, row, {"up": 60}, Target.of_range(low=150)) == {"up": 1.0}
        assert share(measured, row, {"up": 40}, Target.of_range(high=50)) == {"up": 1.0}
        assert share(measured, row, {"up": 40}, Target.of_range(low=150)) == {"up": 0.0}


def test_a_model_that_checks_its_rows_has_none(frame, caplog):
    """It refuses rows of which only one feature is changed; answers do not depend on it."""
    pair = pd.DataFrame({"a": frame["up"], "b": frame["up"] + 5})

    def model(f):
        if (f["a"] > f["b"]).any():
            raise ValueError("a is more than b")
        return chance(f["a"] / 50 - 1)

    dear = fitted(model, pair, act_on=["a"])
    recourses = dear.generate(pair[pair["a"] < 40].head(5))
    with caplog.at_level("WARNING"):
        actions = recourses.actions
    assert actions["consistency"].isna().all()
    assert actions["credible"].any()
    assert "no consistency of 'a': a is more than b" in caplog.text
    assert not recourses.describe().str.contains("clearly favour").any()


def test_twenty_features_ask_for_at_most_20_000_rows_once():
    asked, rng = [], np.random.default_rng(0)
    numbers = {f"n{i}": rng.normal(size=600) for i in range(14)}
    levels = {f"c{i}": rng.choice(list("abcdefgh")[: i + 2], 600) for i in range(6)}
    wide = pd.DataFrame(numbers | levels)

    def model(f):
        asked.append(len(f))
        return chance(f["n0"])

    measured = consistency_of(wide, model)
    rows = measured.classifier.encoder.rows(wide)
    goal, acted = Target.of_class(1).resolve(300, None), torch.ones(300, 20, dtype=torch.bool)
    for _ in range(2):
        measured.of(rows[:300], rows[300:], acted, goal, torch.arange(300))
    assert sum(asked) <= 20 * MODEL_ROWS == 20_000
    assert len(asked) == 20


def test_as_a_criterion_other_advice_is_given_or_the_reason_says_what_lacks(frame):
    """The model rewards a small `up`, by a dip, though more is better for most rows."""

    def model(f):
        dip = 5.0 * ((f["up"] > 15) & (f["up"] < 20))
        return chance(f["up"] / 20 + dip - 3.5 - f["count"] + 2.0 * (f["group"] == "c"))

    dear = fitted(model, frame, act_on=["up", "group"], search=Search(min_consistency=0.7))
    near = frame["up"].between(20, 26) & (frame["count"] == 0) & (frame["group"] != "c")
    actions = dear.generate(frame[near].head(8)).actions
    assert actions["credible"].any()
    assert (actions["consistency"][actions["credible"]] >= 0.7).all()


def test_one_training_row_has_no_other_to_compare_with():
    model = lambda rows: np.clip(rows["a"].to_numpy(float), 0.01, 0.99)  # noqa: E731
    rows = pd.DataFrame(np.random.default_rng(0).random((50, 2)), columns=["a", "b"])
    dear = DEAR(model, Schema.infer(rows)).fit(rows.head(1))
    found = dear.generate(rows[rows["a"] < 0.4])
    assert found.actions["success"].all() and found.actions["consistency"].eq(1.0).all()
    assert found.describe().str.contains("raise a").all()
