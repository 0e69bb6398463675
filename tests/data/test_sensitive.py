"""Sensitive: logger warnings on mutable columns with names of what nobody can act on."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema

# {(logger, words of its warning): names that get it}.
NAMES = {
    ("sensitive", "attributes that cannot be changed"): (
        *("age", "AGE", "Age_in_years", "applicant-age", "ageGroup", "AGEGroup", "age2"),
        *("marital-status", "maritalStatus", "MaritalStatus", "MARITAL_STATUS", "maritalstatus"),
        *("sex", "Gender", "race", "ethnicity", "Nationality", "religion"),
    ),
    ("clocks", "no action makes time pass"): (
        *("months_since_last_delinquency", "MSinceOldestTradeOpen", "days since contact"),
        *("age_of_car", "account_age", "tenure", "JobTenure", "years_at_company"),
        *("YearsAtCompany", "YearsWithCurrManager", "years_in_job", "seniority"),
    ),
    ("records", "which no action undoes"): (
        *("delinq_2yrs", "NumberOfTimes90DaysLate", "NumberOfTime30-59DaysPastDueNotWorse"),
        *("pub_rec", "priors_count", "arrears", "ChargeOffs", "default"),
    ),
    ("records", "marks that the decision maker gives"): (
        *("int_rate", "InterestRate", "sub_grade", "credit_limit", "score"),
    ),
}
OTHERS = {
    "sensitive": (
        *("mortgage", "wages", "agency", "Essex", "racer", "status", "usage", "x", "", "42"),
    ),
    # Terms that a person chooses are among them.
    "clocks": (
        *("duration", "term", "loan_term_months", "duration_in_month", "hours-per-week"),
        *("mortgage", "length_of_stay", "years_of_education", "savings"),
        "NumberOfTime30-59DaysPastDueNotWorse",
    ),
    "records": (
        *("savings", "loan_amount", "installment_rate", "latest", "unlimited", "education"),
        *("months_since_last_delinq", "upgrade", "scores_of_friends"),
    ),
}


def numbers(*names: str) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: rng.integers(0, 90, 400) for name in names})


def messages(caplog, logger: str) -> list[str]:
    name = f"dear_plugin.data.{logger}"
    return [record.getMessage() for record in caplog.records if record.name == name]


@pytest.mark.parametrize(
    ("logger", "why", "name"), [(*key, name) for key, names in NAMES.items() for name in names]
)
def test_such_a_name_gets_the_argument_to_use(logger, why, name, caplog):
    # Where nothing is immutable, the warning of sensitive names comes first.
    Schema.infer(numbers(name, "sum"), immutable=["sum"] if logger == "clocks" else [])
    (text,) = messages(caplog, logger)
    assert f"immutable=['{name}']" in text
    assert why in text


@pytest.mark.parametrize(
    ("logger", "name"), [(logger, name) for logger, names in OTHERS.items() for name in names]
)
def test_other_names_do_not(logger, name, caplog):
    Schema.infer(numbers(name, "sum"))
    assert not messages(caplog, logger)


@pytest.mark.parametrize(
    ("logger", "names"),
    [
        ("sensitive", ["age", "sex", "race"]),
        ("clocks", ["tenure", "months_since", "sum"]),
        ("records", ["delinq_2yrs", "int_rate", "late"]),
    ],
)
def test_what_is_stated_is_not_suggested(logger, names, caplog):
    fixed, rising, ranged = names
    marks = {"immutable": [fixed], "increasing": [rising], "ranges": {ranged: (0, 3)}}
    Schema.infer(numbers(*names), **marks)
    assert not messages(caplog, logger)


def test_a_sensitive_column_with_a_direction_or_a_range_is_left_out(caplog):
    Schema.infer(numbers("Age", "Sex", "sum"), increasing=["Age"])
    Schema.infer(numbers("Age", "Sex", "sum"), ranges={"Age": (18, 80)})
    assert ["['Sex']" in text for text in messages(caplog, "sensitive")] == [True, True]


def test_a_number_that_grows_with_age_counts_time(caplog):
    age = np.random.default_rng(0).integers(18, 80, 500)
    work = np.maximum(age - 18 - np.random.default_rng(1).integers(0, 6, 500), 0)
    frame = pd.DataFrame({"age": age, "work": work, "pay": age * 900, "hours": age[::-1] // 2})
    Schema.infer(frame, immutable=["age"])
    (text,) = messages(caplog, "clocks")
    assert "columns ['work'] seem" in text


def test_a_column_is_named_by_one_warning(caplog):
    Schema.infer(numbers("age", "sum"))
    assert len(caplog.records) == 1


class TestActOn:
    frame = numbers("age", "sex", "hours")
    schema = Schema.infer(frame, immutable=["sex"])

    def model(self, rows):
        return (rows["hours"] / 90).to_numpy()

    def test_without_act_on_the_columns_are_logged_once(self, caplog):
        DEAR(self.model, self.schema).fit(self.frame).generate(self.frame.head(3))
        (message,) = messages(caplog, "sensitive")
        assert "act_on=[...]" in message
        assert "['age']" in message

    def test_act_on_switches_the_warning_off(self, caplog):
        DEAR(self.model, self.schema, act_on=["age", "hours"])
        assert not messages(caplog, "sensitive")
