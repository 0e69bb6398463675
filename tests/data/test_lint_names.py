"""Lint: logger warnings on mutable columns with names of what nobody can act on."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Schema

# Words of a warning: names that get it.
NAMES = {
    "attributes that cannot be changed": (
        *("age", "AGE", "Age_in_years", "applicant-age", "ageGroup", "AGEGroup", "age2"),
        *("marital-status", "maritalStatus", "MaritalStatus", "MARITAL_STATUS", "maritalstatus"),
        *("sex", "Gender", "race", "ethnicity", "Nationality", "religion", "age_of_car"),
        *("black", "White", "hispan", "hispanic", "isAsian", "nonwhite", "race_black", "latino"),
        *("male", "Female", "fem", "is_male", "sex_F", "married", "marr", "mar_stat", "divorced"),
        *("old", "young", "elderly", "citizen", "foreign_worker", "native-country", "relig"),
        *("firstname", "first_name", "lastName", "surname", "name"),
    ),
    "no action makes time pass": (
        *("months_since_last_delinquency", "MSinceOldestTradeOpen", "days since contact"),
        *("tenure", "JobTenure", "years_at_company"),
        *("YearsAtCompany", "YearsWithCurrManager", "years_in_job", "seniority"),
    ),
    "which no action undoes": (
        *("delinq_2yrs", "NumberOfTimes90DaysLate", "NumberOfTime30-59DaysPastDueNotWorse"),
        *("pub_rec", "priors_count", "arrears", "ChargeOffs", "default"),
    ),
    "marks that the decision maker gives": (
        *("int_rate", "InterestRate", "sub_grade", "credit_limit", "score"),
    ),
}
# Terms that a person chooses are among them.
OTHERS = (
    *("mortgage", "wages", "agency", "Essex", "racer", "status", "usage", "x", "", "42"),
    *("duration", "term", "loan_term_months", "duration_in_month", "hours-per-week"),
    *("length_of_stay", "years_of_education", "savings", "loan_amount", "installment_rate"),
    *("latest", "unlimited", "education", "upgrade", "scores_of_friends"),
    *("old_balance", "white_goods", "single_family", "malestrom", "company_name", "oldbalanceOrg"),
)


ASKED = "nothing is stated as immutable"


def numbers(*names: str) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: rng.integers(0, 90, 400) for name in names})


def messages(caplog) -> list[str]:
    logger = "dear_plugin.look.names"
    every = [record.getMessage() for record in caplog.records if record.name == logger]
    return [text for text in every if ASKED not in text]


@pytest.mark.parametrize(
    ("why", "name"), [(why, name) for why, names in NAMES.items() for name in names]
)
def test_such_a_name_gets_the_argument_to_use(why, name, caplog):
    Schema.infer(numbers(name, "sum"))
    (text,) = messages(caplog)
    assert f"immutable=['{name}']" in text
    assert why in text


@pytest.mark.parametrize("name", OTHERS)
def test_other_names_do_not(name, caplog):
    Schema.infer(numbers(name, "sum"))
    assert not messages(caplog)


@pytest.mark.parametrize(
    "names",
    [
        ["age", "sex", "race"],
        ["tenure", "months_since", "seniority"],
        ["delinq_2yrs", "int_rate", "late"],
    ],
)
def test_what_is_stated_is_not_suggested(names, caplog):
    fixed, rising, ranged = names
    marks = {"immutable": [fixed], "increasing": [rising], "ranges": {ranged: (0, 3)}}
    Schema.infer(numbers(*names), **marks)
    assert not messages(caplog)


def test_a_sensitive_column_with_a_direction_or_a_range_is_left_out(caplog):
    Schema.infer(numbers("Age", "Sex", "sum"), increasing=["Age"])
    Schema.infer(numbers("Age", "Sex", "sum"), ranges={"Age": (18, 80)})
    assert ["['Sex']" in text for text in messages(caplog)] == [True, True]


def test_what_is_not_stated_is_named_besides_what_is(caplog):
    Schema.infer(numbers("sex", "race", "sum"), immutable=["sex"])
    assert ["['race']" in text for text in messages(caplog)] == [True]


def test_a_column_is_named_by_one_warning(caplog):
    Schema.infer(numbers("age", "sum"))
    assert len(caplog.records) == 1


@pytest.mark.parametrize(("stated", "asked"), [({}, 1), ({"immutable": ["sum"]}, 0)])
def test_where_nothing_is_immutable_one_line_asks_for_it(stated, asked, caplog):
    Schema.infer(numbers("income", "sum"), **stated)
    assert caplog.text.count(ASKED) == asked


def test_in_a_group_of_dummies(caplog):
    at = np.arange(400) % 3
    groups = pd.get_dummies(pd.Series(at).map(dict(enumerate(["black", "hispan", "white"]))))
    Schema.infer(groups.astype(int).assign(sum=np.arange(400) % 7))
    assert "columns ['black', 'hispan', 'white'] have names" in caplog.text
