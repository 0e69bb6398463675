"""Wording: a change of features in plain words."""

import pytest

from dear_plugin import Feature, Kind
from dear_plugin.wording import ASSOCIATION, join, level, number, sentence

HOURS = Feature("hours", Kind.NUMERIC)
GAIN = Feature("gain", Kind.NUMERIC)
JOB = Feature("job", Kind.CATEGORICAL, categories=("cook", "judge", "nurse"))
MARRIED = Feature("married", Kind.BINARY, categories=("no", "yes"))


def test_a_direct_and_an_indirect_change():
    assert sentence([(HOURS, 35, 41)], [(GAIN, 0, 307)], {}) == (
        "raise hours from 35 to 41; gain is then expected to move from 0 to 307"
    )


def test_a_direct_change_alone():
    assert sentence([(HOURS, 41, 35)], [], {}) == "lower hours from 41 to 35"


def test_categories_change():
    assert sentence([(JOB, "cook", "nurse")], [(MARRIED, "no", "yes")], {}) == (
        "change job from cook to nurse; married is then expected to change from no to yes"
    )


def test_several_of_each():
    assert sentence(
        [(HOURS, 35, 41), (JOB, "cook", "nurse")],
        [(GAIN, 0, 307), (MARRIED, "no", "yes"), (HOURS, 1, 2)],
        {},
    ) == (
        "raise hours from 35 to 41 and change job from cook to nurse; gain is then expected to"
        " move from 0 to 307, married to change from no to yes and hours to move from 1 to 2"
    )


def test_categories_that_lean_without_flipping_are_told_with_their_shares():
    shares = {level(MARRIED): (0.46, 0.52)}
    assert sentence([(HOURS, 35, 41)], [], shares).endswith(
        "nothing else is expected to change (expected shares: married = yes: 46% -> 52%)"
    )
    assert sentence([(HOURS, 35, 41)], [(GAIN, 0, 307)], shares).endswith(
        "from 0 to 307 (expected shares: married = yes: 46% -> 52%)"
    )


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
def test_numbers_are_written_as_people_do(value, words):
    assert number(value) == words


@pytest.mark.parametrize(
    ("parts", "words"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), ("abc", "a, b and c")]
)
def test_parts_are_joined(parts, words):
    assert join(list(parts)) == words


def test_it_says_that_associations_are_no_causes():
    assert "not causal" in ASSOCIATION


def test_a_result_speaks_of_expectation_never_of_effect(fitted, mixed):
    result = fitted.generate(mixed.refused(30))
    spoken = [result.describe_row(i) for i in range(len(result))]
    moved = result.actions["indirect_cost"] > 0
    assert all("expected" in words for words, along in zip(spoken, moved, strict=True) if along)
    assert not any("will" in words or "cause" in words for words in spoken)
