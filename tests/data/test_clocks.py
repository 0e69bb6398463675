"""Clocks: logger warnings on mutable columns that count time."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Schema

LOGGER = "dear_plugin.data.clocks"


def warned(caplog, frame, **marks) -> str:
    Schema.infer(frame, **marks)
    return " ".join(r.getMessage() for r in caplog.records if r.name == LOGGER)


def numbers(*names: str) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({name: rng.integers(0, 90, 400) for name in names})


@pytest.mark.parametrize(
    "name",
    [
        *("months_since_last_delinquency", "MSinceOldestTradeOpen", "days since contact"),
        *("age_of_car", "account_age", "tenure", "JobTenure", "years_at_company"),
        *("YearsAtCompany", "YearsWithCurrManager", "years_in_job", "seniority"),
    ],
)
def test_names_of_elapsed_time_get_the_advice_to_make_them_immutable(name, caplog):
    text = warned(caplog, numbers(name, "sum"), immutable=["sum"])
    assert f"immutable=['{name}']" in text
    assert "no action makes time pass" in text


@pytest.mark.parametrize(
    "name",
    [
        *(
            "duration",
            "term",
            "loan_term_months",
            "duration_in_month",
            "hours-per-week",
            "mortgage",
        ),
        *(
            "length_of_stay",
            "years_of_education",
            "NumberOfTime30-59DaysPastDueNotWorse",
            "savings",
        ),
    ],
)
def test_terms_that_a_person_chooses_and_other_names_do_not(name, caplog):
    assert not warned(caplog, numbers(name))


def test_a_number_that_grows_with_age_counts_time(caplog):
    age = np.random.default_rng(0).integers(18, 80, 500)
    work = np.maximum(age - 18 - np.random.default_rng(1).integers(0, 6, 500), 0)
    frame = pd.DataFrame({"age": age, "work": work, "pay": age * 900, "hours": age[::-1] // 2})
    text = warned(caplog, frame, immutable=["age"])
    assert "columns ['work'] seem" in text


def test_immutable_columns_and_those_with_a_direction_do_not(caplog):
    frame = numbers("tenure", "months_since", "sum")
    assert not warned(caplog, frame, immutable=["tenure"], increasing=["months_since"])


def test_a_column_is_named_by_one_warning(caplog):
    Schema.infer(numbers("age", "sum"))
    assert len(caplog.records) == 1
