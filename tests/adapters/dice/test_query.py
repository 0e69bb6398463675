"""A query: its forms, the number and the threshold of its wanted classes."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from dice_ml.data_interfaces.base_data_interface import _BaseData
from raiutils.exceptions import UserConfigValidationException

from dear_dice.interface import as_numbers
from dear_dice.query import as_frame, least_probability, number_of


@pytest.mark.parametrize(
    ("classes", "threshold", "columns", "least"),
    [
        ([1, 1], 0.5, 1, None),
        ([1, 1], 0.7, 1, 0.7),
        ([1, 1], 0.3, 2, None),
        ([1, 1], 0.0, 1, None),
        ([0, 0], 0.5, 2, None),
        ([0, 0], 0.7, 1, 0.7),
        ([0, 0], 0.3, 1, 0.7),
        ([0, 1], 0.3, 1, 0.7),
        ([2, 1], 0.5, 3, None),
        ([2, 0], 0.2, 3, None),
        ([2, 0], 0.9, 3, 0.9),
    ],
)
def test_the_threshold(classes, threshold, columns, least):
    found = least_probability(classes, threshold, columns)
    assert found == (None if least is None else pytest.approx(least))


@pytest.mark.parametrize(("wanted", "threshold"), [(1, 1.0), (0, 0.0)])
def test_certainty_is_near_enough(wanted, threshold):
    assert 0.999 < least_probability([wanted], threshold, 1) < 1.0


class TestForms:
    """Rows of a frame are read by their names, whatever the order of these."""

    data = SimpleNamespace(feature_names=["age", "pay"])
    data.query_instance_to_df = partial(_BaseData.query_instance_to_df, data)
    row = pd.Series({"pay": 3.5, "age": 40})

    @pytest.mark.parametrize("query", [row, [row], [row[::-1], row]], ids=["one", "list", "two"])
    def test_a_series_is_a_row(self, query):
        found = as_frame(query, self.data)
        assert found[["age", "pay"]].values.tolist() == [[40, 3.5]] * len(found)
        assert len(found) == (len(query) if isinstance(query, list) else 1)

    @pytest.mark.parametrize("query", [None, "age", 3])
    def test_what_is_no_row_is_refused(self, query):
        with pytest.raises(UserConfigValidationException, match=f"should be a.*, got {query!r}:"):
            as_frame(query, self.data)


class TestClassNumbers:
    host = SimpleNamespace(classes_=np.array([1, 2]))

    def test_an_integer_is_a_number_as_in_dice_and_the_log_says_of_which_label(self, caplog):
        assert [number_of(n, self.host) for n in (0, 1)] == [0, 1]
        assert [r.getMessage() for r in caplog.records] == [
            "desired_class=1 is, as in DiCE, the number of a class (0 for 1, 1 for 2)"
        ]

    def test_another_one_is_refused_with_the_numbers_of_the_labels(self):
        words = r"not present in training data! .*\(0 for 1, 1 for 2\), got 2"
        with pytest.raises(UserConfigValidationException, match=words):
            number_of(2, self.host)


def test_text_that_is_no_number_is_named():
    rows = pd.DataFrame({"age": [40, 41], "pay": ["3.5", "much"]})
    with pytest.raises(UserConfigValidationException, match=r"pay is continuous .*, got 'much'"):
        as_numbers(rows, ["age", "pay"])
    assert as_numbers(rows[:1], ["age", "pay"])["pay"].tolist() == [3.5]
