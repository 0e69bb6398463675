"""Wording: a change of features in plain words."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Feature, Kind, Schema
from dear_plugin.problem.reasons import Reason
from dear_plugin.results.wording import (
    ASSOCIATION,
    Move,
    certainty,
    claim,
    join,
    level,
    nearest,
    sentence,
)

HOURS = Feature("hours", Kind.NUMERIC)
GAIN = Feature("gain", Kind.NUMERIC)
JOB = Feature("job", Kind.CATEGORICAL, categories=("cook", "judge", "nurse"))
MARRIED = Feature("married", Kind.BINARY, categories=("no", "yes"))


@pytest.mark.parametrize(("smaller", "words"), [(1, "1 smaller one"), (24, "24 smaller ones")])
def test_the_smaller_changes_are_counted(smaller, words):
    assert sentence([Move(HOURS, 35, 41)], [Move(GAIN, 0, 307)], {}, smaller=smaller) == (
        f"raise hours from 35 to 41; gain is then expected to move from 0 to 307 (and {words})"
    )


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (200.0, 400.0, "to rise by 200 to 400"),
        (0.0, 400.0, "to rise by up to 400"),
        (-400.0, -200.0, "to fall by 200 to 400"),
        (-400.0, 0.0, "to fall by up to 400"),
        (-20.0, 400.0, "to fall by up to 20 or rise by up to 400"),
        (306.9, 307.1, "to move from 0 to 307"),
    ],
)
def test_what_is_uncertain_is_a_range(low, high, words):
    whole = Feature("gain", Kind.NUMERIC, precision=0)
    text = sentence([Move(HOURS, 35, 41)], [Move(whole, 0, 307, low=low, high=high)], {})
    assert text == f"raise hours from 35 to 41; gain is then expected {words}"


def test_a_range_has_the_decimals_of_its_feature_or_few_digits():
    cents = Feature("gain", Kind.NUMERIC, precision=2)
    for feature, words in [(cents, "by 1.23 to 2000.68"), (GAIN, "by 1.23 to 2001")]:
        text = sentence([], [Move(feature, 0, 1, low=1.23456, high=2000.678)], {})
        assert text.endswith(words)


@pytest.mark.parametrize("times", [8, 12])
def test_a_category_that_changes_in_half_of_the_redraws_is_expected_to(times):
    married = Move(MARRIED, "no", "yes", times=(times, 16))
    assert sentence([Move(HOURS, 35, 41)], [married], {}).endswith(
        f"married is then expected to change from no to yes ({times} times out of 16)"
    )


def test_what_changes_in_less_than_half_of_the_redraws_may_change():
    changes = [Move(MARRIED, "no", "yes", times=(7, 16)), Move(GAIN, 0, 307)]
    assert sentence([Move(HOURS, 35, 41)], changes, {}) == (
        "raise hours from 35 to 41; gain is then expected to move from 0 to 307;"
        " married may change from no to yes (7 times out of 16)"
    )


@pytest.mark.parametrize(
    ("reliance", "words"),
    [
        (0.0, "This alone is enough."),
        (0.25, "This counts on what is expected to follow (a quarter of it would do)."),
        (0.5, "This counts on what is expected to follow (half of it would do)."),
        (0.75, "This counts on what is expected to follow (three quarters of it would do)."),
        (1.0, "This counts on what is expected to follow (all of it is needed)."),
    ],
)
def test_whether_the_action_is_enough(reliance, words):
    assert certainty(reliance, 15, 16) == [
        words,
        "It still holds in 15 of 16 redraws of the data.",
    ]


def test_an_action_that_is_enough_may_be_undone_by_what_follows():
    assert certainty(0.0, 5, 16)[0] == (
        "This alone is enough, but what is expected to follow may undo it."
    )


def test_an_answer_that_is_not_credible_says_so_first():
    note = f"{Reason.LACKING.start}confidence 0.5 (at least 0.9 is required)"
    assert nearest("raise a from 1 to 2", ["This alone is enough."], note, 0.5) == (
        "No credible action was found; the nearest: raise a from 1 to 2. This alone is enough."
        " It has confidence 0.5 (at least 0.9 is required)."
    )
    assert nearest("raise a from 1 to 2", [], "", 0.012) == (
        "Not credible: raise a from 1 to 2. 1.2% of the training rows are at least as unusual."
    )


def test_several_of_each():
    assert sentence(
        [Move(HOURS, 41, 35), Move(JOB, "cook", "nurse")],
        [Move(GAIN, 0, 307), Move(MARRIED, "no", "yes"), Move(HOURS, 1, 2)],
        {},
    ) == (
        "lower hours from 41 to 35 and change job from cook to nurse; gain is then expected to"
        " move from 0 to 307, married to change from no to yes and hours to move from 1 to 2"
    )


def test_categories_that_do_not_flip_have_their_probabilities():
    shares = {level(MARRIED): (0.46, 0.52)}
    assert sentence([Move(HOURS, 35, 41)], [], shares).endswith(
        "nothing else is expected to change (expected shares: married = yes: 46% -> 52%)"
    )
    assert sentence([Move(HOURS, 35, 41)], [Move(GAIN, 0, 307)], shares).endswith(
        "from 0 to 307 (expected shares: married = yes: 46% -> 52%)"
    )


@pytest.mark.parametrize("absent", [np.nan, None, pd.NA, -9])
def test_a_missing_value_or_a_code_is_neither_raised_nor_lowered(absent):
    income = Feature("income", Kind.NUMERIC, special=(-9.0,), missing="nan")
    words = "missing" if pd.isna(absent) else "-9"
    text = sentence([Move(income, absent, 5.5)], [Move(income, 4.2, absent)], {})
    assert text == (
        f"change income from {words} to 5.5; income is then expected to change from 4.2 to {words}"
    )


@pytest.mark.parametrize(
    ("parts", "words"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), ("abc", "a, b and c")]
)
def test_parts_are_joined(parts, words):
    assert join(list(parts)) == words


def test_tiers_decide_what_indirect_changes_are_called():
    feature = Feature("a", Kind.NUMERIC, (0.0, 1.0))
    without, with_tiers = claim(Schema((feature,))), claim(Schema((feature,), tiers=(("a",),)))
    assert without.note == ASSOCIATION
    assert without.heading == "Expected to follow (association)"
    assert with_tiers.heading == "Expected to follow"
    for note in (with_tiers.note, with_tiers.short):
        assert "an effect, if the stated order is right and nothing unobserved causes both" in note


def test_a_description_says_expected_and_never_caused(fitted, mixed):
    result = fitted.generate(mixed.refused(30))
    texts = [result.describe_row(i) for i in range(len(result))]
    moved = result.actions["indirect_cost"] > 0
    assert all("expected" in words for words, along in zip(texts, moved, strict=True) if along)
    assert not any("will" in words or "cause" in words for words in texts)
