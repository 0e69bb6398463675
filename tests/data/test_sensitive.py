"""Sensitive: columns that look like what nobody can act on are named in the log, and no more."""

import logging

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema
from dear_plugin.data.sensitive import is_sensitive

LOGGER = "dear_plugin.data.sensitive"


def told(caplog):
    return [record.getMessage() for record in caplog.records if record.name == LOGGER]


@pytest.mark.parametrize(
    "name",
    [
        *("age", "AGE", "Age_in_years", "applicant-age", "ageGroup", "AGEGroup", "age2"),
        *("marital-status", "maritalStatus", "MaritalStatus", "MARITAL_STATUS", "maritalstatus"),
        *("sex", "Gender", "race", "ethnicity", "Nationality", "religion"),
    ],
)
def test_whole_words_of_names_are_seen_in_any_case(name):
    assert is_sensitive(name)


@pytest.mark.parametrize(
    "name", ["mortgage", "wages", "agency", "Essex", "racer", "status", "usage", "x", "", "42"]
)
def test_parts_of_words_are_not(name):
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
    def test_where_nothing_is_immutable_the_columns_and_the_argument_are_named(
        self, frame, caplog
    ):
        Schema.infer(frame)
        (message,) = told(caplog)
        assert "immutable=['Age', 'marital-status']" in message
        assert "mortgage" not in message

    @pytest.mark.parametrize(
        "marks",
        [
            {"immutable": ["marital-status"]},
            {"immutable": ["Age", "marital-status"]},
        ],
    )
    def test_who_named_something_is_not_told(self, frame, caplog, marks):
        Schema.infer(frame, **marks)
        assert not told(caplog)

    def test_what_has_a_direction_or_a_range_is_left_out(self, frame, caplog):
        Schema.infer(frame, increasing=["Age"])
        Schema.infer(frame, ranges={"Age": (18, 80)})
        assert len(told(caplog)) == 2
        assert not any("Age" in message for message in told(caplog))

    def test_a_table_without_such_names_says_nothing(self, frame, caplog):
        Schema.infer(frame[["mortgage", "hours"]])
        assert not told(caplog)


class TestActOn:
    def model(self, rows):
        return (rows["hours"] / 60).clip(0, 1).to_numpy()

    def test_where_it_is_missing_the_columns_are_named_once(self, frame, caplog):
        dear = DEAR(self.model, Schema.infer(frame, immutable=["marital-status"])).fit(frame)
        dear.generate(frame.head(3))
        (message,) = told(caplog)
        assert "act_on=[...]" in message
        assert "['Age']" in message

    def test_who_says_what_may_be_acted_on_is_not_told(self, frame, caplog):
        schema = Schema.infer(frame, immutable=["marital-status"])
        DEAR(self.model, schema, act_on=["Age", "hours"])
        assert not told(caplog)

    def test_nor_where_age_may_only_grow(self, frame, caplog):
        schema = Schema.infer(frame, immutable=["marital-status"], increasing=["Age"])
        DEAR(self.model, schema)
        assert not told(caplog)

    def test_it_can_be_silenced(self, frame, caplog):
        logger = logging.getLogger(LOGGER)
        before = logger.level
        logger.setLevel("ERROR")
        try:
            DEAR(self.model, Schema.infer(frame))
        finally:
            logger.setLevel(before)
        assert not told(caplog)
