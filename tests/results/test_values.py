"""Values: old and new values of features as text."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dear_plugin import Feature, Kind
from dear_plugin.results.changes import amount_of, ends, marks_of, number


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (41.0, "41"),
        (-3, "-3"),
        (0.5, "0.5"),
        (1234.50, "1234.5"),
        (4.668031234, "4.66803"),
        (1e-9, "1e-09"),
        (123456789.0, "123456789"),
        (1e300, "1e+300"),
    ],
)
def test_numbers_are_written_without_trailing_zeros(value, words):
    assert number(value) == words


@pytest.mark.parametrize(
    ("value", "more", "words"),
    [
        (1234.5, {"marks": (",", ".")}, "1,234.5"),
        (1234567, {"marks": (".", ",")}, "1.234.567"),
        (1234.5, {"places": 2, "fixed": True, "marks": (".", ",")}, "1.234,50"),
        (0.25, {"marks": ("", ",")}, "0,25"),
        (1e300, {"places": 2, "fixed": True}, "1e+300"),
        # No zero is negative.
        (-0.0, {"places": 0, "fixed": True}, "0"),
        (-0.3, {"places": 0, "fixed": True}, "0"),
        (-0.0, {"places": 1}, "0"),
    ],
)
def test_numbers_have_the_marks_and_decimals_of_their_texts(value, more, words):
    assert number(value, **more) == words


@pytest.mark.parametrize(
    ("unit", "amounts", "marks"),
    [
        ("", (9500, 12410), (",", ".")),
        ("", (950, 1241), ("", ".")),
        ("euros", (950, -1241), (",", ".")),
    ],
)
def test_all_amounts_of_a_line_have_separators_where_one_is_long(unit, amounts, marks):
    assert marks_of(Feature("price", Kind.NUMERIC, unit=unit), *amounts) == marks


def test_categories_that_a_frame_turns_into_floats_keep_their_names():
    owner = Feature("owner", Kind.BINARY, categories=(0, 1))
    assert ends(owner, 0.0, 1.0) == ("0", "1")
    assert ends(Feature("a", Kind.BINARY, categories=("x", "y")), "x", "z") == ("x", "z")


def test_a_rounding_error_is_zero():
    sine = Feature("sine", Kind.NUMERIC, bounds=(-1.0, 1.0))
    assert ends(sine, -1.8e-16, 0.5) == ("0", "0.5")
    assert ends(Feature("mass", Kind.NUMERIC, bounds=(0.0, 1e-15)), 1.8e-16, 0.0)[0] == "1.8e-16"


def raised(old, new, precision=None):
    feature = Feature("debt", Kind.NUMERIC, precision=precision)
    return list(ends(feature, old, new))


class TestTheWrittenActionIsEnough:
    """The rounded number in the text is not smaller than the action."""

    @pytest.mark.parametrize(
        ("old", "new", "precision", "text"),
        [
            (1e6, 1000010.25, 2, ["1000000", "1000010.25"]),
            (1250000.5, 1250001.5, 1, ["1250000.5", "1250001.5"]),
            (26.864, 33.2913449, None, ["26.864", "33.2914"]),
            (1250000.51234, 1250000.71239, None, ["1250000.51", "1250000.72"]),
            (np.float32(33.29), np.float32(35.11), 2, ["33.29", "35.11"]),
            (1.0, 1.0000001, None, ["1", "1.0000001"]),
            (2**60, 2**60 + 5, 0, [str(2**60), str(2**60 + 5)]),
            (1e-9, 3.12345678e-9, None, ["1e-09", "3.12346e-09"]),
        ],
    )
    def test_the_digits_show_the_change(self, old, new, precision, text):
        assert raised(old, new, precision) == text

    @given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e6), st.sampled_from([None, 0, 1, 2, 4]))
    def test_the_written_number_is_not_nearer_than_the_exact_one(self, old, gap, precision):
        new = old + gap if precision is None else round(old + gap, precision)
        assume(new - old >= max(1e-3, 2.0**-18 * max(abs(new), abs(old))))  # distinct in float32
        before, after = map(float, raised(old, new, precision))
        assert before < after
        assert after >= new - gap / 50.0


@pytest.mark.parametrize(
    ("width", "amount", "words"),
    [(7e6, 2000.05, "2000"), (1e4, 2.25, "2.25"), (7e6, 0.0, "0"), (1e-310, 0.25, "0.25")],
)
def test_an_amount_has_three_digits_and_no_further_decimals(width, amount, words):
    feature = Feature("income", Kind.NUMERIC, bounds=(0.0, width), precision=2)
    assert amount_of(feature, amount) == words
