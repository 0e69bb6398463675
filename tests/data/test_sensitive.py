"""Sensitive: logger warnings on mutable columns with names of sensitive attributes."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema
from dear_plugin.data.sensitive import is_sensitive

LOGGER = "dear_plugin.data.sensitive"


def messages(caplog):
    return [record.getMessage() for record in caplog.records if record.name == LOGGER]


@pytest.mark.parametrize(
    "name",
    [
        *("age", "AGE", "Age_in_years", "applicant-age", "ageGroup", "AGEGroup", "age2"),
        *("marital-status", "maritalStatus", "MaritalStatus", "MARITAL_STATUS", "maritalstatus"),
        *("sex", "Gender", "race", "ethnicity", "Nationality", "religion"),
    ],
)
def test_whole_words_match_in_any_case(name):
    assert is_sensitive(name)


@pytest.mark.parametrize(
    "name", ["mortgage", "wages", "agency", "Essex", "racer", "status", "usage", "x", "", "42"]
)
def test_parts_of_words_do_not_match(name):
    assert not is_sensitive(name)


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "Age": rng.integers(18, 80, 300),
            "marital-status": rng.choice(["single", "married", "widowed"], 300),
            "mortgage": rng.normal(100, 10, 300).round(1),
            "hours": rng.integers(10, 60, 300),
        }
    )


class TestSchema:
    def test_a_schema_without_immutable_features_warns_with_columns_and_argument(
        self, frame, caplog
    ):
        Schema.infer(frame)
        (message,) = messages(caplog)
        assert "immutable=['Age', 'marital-status']" in message
        assert "mortgage" not in message

    @pytest.mark.parametrize(
        "marks", [{"immutable": ["marital-status"]}, {"immutable": ["Age", "marital-status"]}]
    )
    def test_immutable_features_switch_the_warning_off(self, frame, caplog, marks):
        Schema.infer(frame, **marks)
        assert not messages(caplog)

    def test_features_with_a_direction_or_a_range_are_left_out(self, frame, caplog):
        Schema.infer(frame, increasing=["Age"])
        Schema.infer(frame, ranges={"Age": (18, 80)})
        assert len(messages(caplog)) == 2
        assert not any("Age" in message for message in messages(caplog))


class TestActOn:
    def model(self, rows):
        return (rows["hours"] / 60).clip(0, 1).to_numpy()

    def test_without_act_on_the_columns_are_logged_once(self, frame, caplog):
        dear = DEAR(self.model, Schema.infer(frame, immutable=["marital-status"])).fit(frame)
        dear.generate(frame.head(3))
        (message,) = messages(caplog)
        assert "act_on=[...]" in message
        assert "['Age']" in message

    def test_act_on_switches_the_warning_off(self, frame, caplog):
        schema = Schema.infer(frame, immutable=["marital-status"])
        DEAR(self.model, schema, act_on=["Age", "hours"])
        assert not messages(caplog)
