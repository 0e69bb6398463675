"""Records: logger warnings on names of past events and of the decision maker's marks."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Schema

LOGGER = "dear_plugin.data.records"


def warned(caplog, *names: str, **marks) -> list[str]:
    rng = np.random.default_rng(0)
    Schema.infer(pd.DataFrame({name: rng.integers(0, 30, 400) for name in names}), **marks)
    return [r.getMessage() for r in caplog.records if r.name == LOGGER]


@pytest.mark.parametrize(
    "name",
    [
        *("delinq_2yrs", "NumberOfTimes90DaysLate", "NumberOfTime30-59DaysPastDueNotWorse"),
        *("pub_rec", "priors_count", "arrears", "ChargeOffs", "default"),
    ],
)
def test_names_of_past_events_get_the_argument_to_use(name, caplog):
    (text,) = warned(caplog, name, "sum")
    assert f"immutable=['{name}']" in text
    assert "which no action undoes" in text


@pytest.mark.parametrize(
    "name", ["int_rate", "InterestRate", "sub_grade", "credit_limit", "score"]
)
def test_names_of_marks_do_too(name, caplog):
    (text,) = warned(caplog, name, "sum")
    assert f"immutable=['{name}']" in text
    assert "marks that the decision maker gives" in text


@pytest.mark.parametrize(
    "name",
    [
        *("savings", "loan_amount", "installment_rate", "latest", "unlimited", "education"),
        *("months_since_last_delinq", "upgrade", "scores_of_friends"),
    ],
)
def test_other_names_do_not(name, caplog):
    assert not warned(caplog, name)


def test_what_is_stated_is_not_suggested(caplog):
    names = "delinq_2yrs", "int_rate", "late"
    marks = {"immutable": names[:1], "decreasing": names[1:2], "ranges": {"late": (0, 3)}}
    assert not warned(caplog, *names, **marks)
