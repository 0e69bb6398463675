"""Wording: a change of features in plain words."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Feature, Kind, Schema
from dear_plugin.results.changes import join
from dear_plugin.results.reasons import WORDS, short_of
from dear_plugin.search.settings import CRITERIA
from dear_plugin.tell.describe import (
    ASSOCIATION,
    FOLLOWS,
    definition,
    enough,
    heading,
    imperative,
    in_short,
    infinitive,
    needed,
    note,
    sentence,
    succeeds,
    unclear,
    why,
)
from tests.results.lines import line

HOURS = Feature("hours", Kind.NUMERIC, bounds=(0.0, 100.0))
GAIN = Feature("gain", Kind.NUMERIC, bounds=(-500.0, 1_000.0))
JOB = Feature("job", Kind.CATEGORICAL, categories=("cook", "judge", "nurse"))
MARRIED = Feature("married", Kind.BINARY, categories=("no", "yes"))


def follows(feature, old, new, **more):
    """A feature that is expected to follow."""
    return line(feature, old, new, kind="indirect", **more)


ACTION = [line(HOURS, 35, 41)]


def test_the_changes_that_are_not_named_are_counted():
    many = [follows(replace(GAIN, name=f"g{i}"), 0, 307) for i in range(5)]
    assert sentence([*ACTION, *many], []).endswith("and g2 to rise from 0 to 307 (and 2 more)")


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (200.0, 400.0, "to rise by 200 to 400"),
        (0.0, 400.0, "to rise by up to 400"),
        (-400.0, -200.0, "to fall by 200 to 400"),
        (-400.0, 0.0, "to fall by up to 400"),
        (-20.0, 400.0, "to fall by up to 20 or rise by up to 400"),
        (306.9, 307.1, "to rise from 0 to 307"),
    ],
)
def test_what_is_uncertain_is_a_range(low, high, words):
    whole = replace(GAIN, precision=0)
    text = sentence([*ACTION, follows(whole, 0, 307, low=low, high=high)], [])
    assert text == f"raise hours from 35 to 41; then expect gain {words}"


def test_the_range_of_one_person_is_told_where_it_is_another_one():
    whole = replace(GAIN, precision=0)
    mean = {"low": 200.0, "high": 400.0}
    wide = follows(whole, 0, 307, **mean, low_one=-20.0, high_one=700.0)
    assert (
        infinitive(wide) == "to rise by 200 to 400 for people like this"
        " (one person: fall by up to 20 or rise by up to 700)"
    )
    assert wide.is_open
    same = follows(whole, 0, 307, **mean, low_one=150.0, high_one=450.0)
    assert infinitive(same) == "to rise by 200 to 400"
    assert not same.is_open


def test_a_range_that_is_wider_than_the_usual_one_is_not_told():
    """Of 69 transactions: "to fall by up to 69 or rise by up to 68"."""
    count = Feature("count", Kind.NUMERIC, (0.0, 139.0), precision=0, central=(10.0, 110.0))
    count = replace(count, scale=100.0)
    wide = follows(count, 69, 40, low=-69.0, high=68.0, low_one=-69.0, high_one=70.0)
    assert infinitive(wide) == "to change (how far is not known)"
    assert in_short(wide) == "69 → 40 (how far is not known)"
    assert wide.is_open
    one = wide._replace(low=-35.0, high=-20.0)
    assert infinitive(one) == (
        "to fall by 20 to 35 for people like this (one person: how far is not known)"
    )


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (-25.0, -23.0, "to fall by 23 to 25 for people like this (one person: by 24 to 31)"),
        (-23.0, -23.0, "to fall from 40 to 17 for people like this (one person: by 24 to 31)"),
    ],
)
def test_the_range_of_one_person_has_no_sign(low, high, told):
    """ "to fall by 23 to 25 (a single person: -31 to -24)" has two forms of one thing."""
    days = Feature("days", Kind.NUMERIC, bounds=(0.0, 90.0), precision=0)
    one = {"low_one": -31.0, "high_one": -24.0}
    assert infinitive(follows(days, 40, 17, low=low, high=high, **one)) == told


@pytest.mark.parametrize("times", [8, 12])
def test_a_category_that_changes_in_half_of_the_resamples_is_expected_to(times):
    married = follows(MARRIED, "no", "yes", agree=times)
    assert sentence([*ACTION, married], []).endswith(
        f"then expect married to change from no to yes ({times} of 16 resamples)"
    )


def test_what_changes_in_less_than_half_of_the_resamples_may_change():
    changes = [follows(MARRIED, "no", "yes", agree=7), follows(GAIN, 0, 307)]
    assert sentence([*ACTION, *changes], []) == (
        "raise hours from 35 to 41; then expect gain to rise from 0 to 307;"
        " married may change from no to yes (7 of 16 resamples)"
    )


TERM = Feature("term", Kind.NUMERIC, precision=0)
FOLLOW = [
    follows(TERM, 68, 59, least=65),
    follows(JOB, "cook", "nurse", least="nurse"),
    follows(GAIN, 0, 3.2, least=0.8),
]
KNOWN = {"relies": True, "alone": False, "gain": True, "sure": True}


def test_all_that_must_follow_is_told_in_the_values_that_the_model_accepted():
    many = [follows(replace(TERM, name=f"t{i}"), 68, 59, least=65) for i in range(5)]
    told = enough(FOLLOW, **KNOWN)
    assert told == (
        "The action alone is not enough; it is with what is expected to follow: term at 59 to 65,"
        " job being nurse and gain at 0.8 to 3.2."
    )
    assert all(f"t{i} at 59 to 65" in enough(many, **KNOWN) for i in range(5))


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"relies": False}, "The action is enough by itself."),
        (
            {"relies": False, "sure": False},
            "The action is enough by itself, but what is expected to follow may undo it.",
        ),
        (
            {"alone": None},
            "The action alone is not feasible; it is enough with what is expected to follow:"
            " term at 59 to 65, job being nurse and gain at 0.8 to 3.2.",
        ),
        (
            {"alone": True},
            "The action alone is accepted, but not with every part of what is expected to follow:"
            " it depends on how much of that happens.",
        ),
    ],
)
def test_an_action_may_be_enough_may_be_undone_and_may_depend(known, words):
    assert enough(FOLLOW, **{**KNOWN, **known}) == words


def test_an_action_that_does_not_help_by_itself_works_through_what_follows():
    told = enough(FOLLOW, **{**KNOWN, "gain": False})
    assert told.endswith("0.8 to 3.2. The action works through what follows, not by itself.")


ACRES = Feature("area", Kind.NUMERIC, precision=0, unit="acres")
AREA = line(ACRES, 60, 80, kind="forced")


def test_what_a_rule_forces_is_told_as_by_definition():
    assert sentence([*ACTION, follows(GAIN, 0, 307), AREA], []) == (
        "raise hours from 35 to 41; with it, area is 80 acres by definition; then expect gain to"
        " rise from 0 to 307"
    )
    assert (
        enough([AREA], **{**KNOWN, "relies": False})
        == "The action is enough, with what it changes by definition."
    )
    assert in_short(AREA) == "60 → 80 acres (by definition)"


def test_what_an_order_forces_is_a_bound():
    bound = {"kind": "forced", "exact": False}
    least, most = line(ACRES, 60, 80, **bound), line(ACRES, 60, 40, **bound)
    assert definition(least) == "area cannot be less than 80 acres"
    assert definition(most) == "area cannot be more than 40 acres"
    assert definition(line(JOB, "cook", "nurse", **bound)) == "job can only be nurse"
    assert in_short(least) == "60 → 80 acres (by an order)"
    told = sentence([*ACTION, AREA, most._replace(label="yard")], [])
    assert told.endswith(
        "; with it, area is 80 acres by definition, and yard cannot be more than 40 acres"
    )
    assert enough([AREA, most], **{**KNOWN, "relies": False}) == (
        "The action is enough, with what has to change with it."
    )


def test_an_association_is_not_told_as_what_then_follows():
    mate = follows(TERM, 68, 59, link="association")
    assert sentence([*ACTION, follows(GAIN, 0, 307), mate], []) == (
        "raise hours from 35 to 41; then expect gain to rise from 0 to 307; along with it expect"
        " term to fall from 68 to 59"
    )
    assert why(mate) == " (association)" and not why(follows(GAIN, 0, 307))


def test_one_of_a_unit_has_no_plural():
    assert definition(line(ACRES, 60, 1, kind="forced")) == "area is 1 acre"
    by = {"kind": "indirect", "low_one": 0.0, "high_one": 1.0}
    assert infinitive(line(ACRES, 60, 61, low=0.0, high=1.0, **by)) == "to rise by up to 1 acre"
    assert infinitive(line(ACRES, 60, 58, low=-2.0, high=-1.0, **by)).startswith(
        "to fall by 1 to 2 acres"
    )
    warm = replace(ACRES, unit="degrees Celsius")
    assert imperative(line(warm, 60, 1)).endswith("to 1 degrees Celsius")


def test_a_unit_that_is_a_number_is_no_part_of_the_amount():
    pay = replace(ACRES, unit="ten thousand dollars")
    assert imperative(line(pay, 3, 2)) == "lower area from 3 to 2 x ten thousand dollars"


def test_changes_that_often_do_not_help_have_the_shares_that_gain():
    assert unclear({}) == ""
    told = "such a change of work and education: of the training rows that it moves, 56% and none"
    assert unclear({"work": 0.557, "education": 0.0}) == (
        f"The model does not clearly favour {told} gain."
    )
    assert unclear({"work": 0.004}).endswith(
        "of the training rows that it moves, less than 1% gain."
    )


def test_categories_that_change_in_some_resamples_only_are_counted():
    chances = ["married changes in 3 of 16 resamples"]
    assert sentence(ACTION, chances).endswith(
        "no other change is likely (married changes in 3 of 16 resamples)"
    )
    assert sentence([*ACTION, follows(GAIN, 0, 307)], chances).endswith(
        "from 0 to 307 (married changes in 3 of 16 resamples)"
    )


NO_AMOUNT = {"low": np.nan, "high": np.nan}


@pytest.mark.parametrize("absent", [np.nan, None, pd.NA, -9])
def test_a_missing_value_or_a_code_is_neither_raised_nor_lowered(absent):
    income = Feature("income", Kind.NUMERIC, special=(-9.0,), missing="nan")
    words = "missing" if pd.isna(absent) else "-9"
    changes = line(income, absent, 5.5, **NO_AMOUNT), follows(income, 4.2, absent, **NO_AMOUNT)
    text = sentence(changes, [])
    assert text == (
        f"change income from {words} to 5.5; then expect income to change from 4.2 to {words}"
    )


@pytest.mark.parametrize(
    ("parts", "words"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), ("abc", "a, b and c")]
)
def test_parts_are_joined(parts, words):
    assert join(list(parts)) == words


def test_tiers_decide_what_indirect_changes_are_called():
    feature, effect = Feature("a", Kind.NUMERIC, (0.0, 1.0)), follows(GAIN, 0, 307)
    without, with_tiers = Schema((feature,)), Schema((feature,), tiers=(("a",),))
    mate = effect._replace(link="association")
    assert (heading([mate]), heading([mate, effect])) == FOLLOWS
    assert note(without) == ASSOCIATION
    assert "an effect, if the stated order is right and nothing unobserved" in note(with_tiers)


def test_a_description_says_expected_and_never_caused(fitted, mixed):
    result = fitted.generate(mixed.refused(30))
    texts = [result.describe_row(i) for i in range(len(result))]
    moved = result.actions["indirect_cost"] > 0
    assert all("expect" in words for words, along in zip(texts, moved, strict=True) if along)
    assert not any("will" in words or "cause" in words for words in texts)


def test_what_is_lacking_is_said_in_words_with_figures_that_differ():
    assert short_of("confidence", 0.8125, 0.9) == (
        "success in too few resamples (confidence 0.81, at least 0.9 is required)"
    )
    assert short_of("reliance", 0.25, 0.5) == (
        "reliance on too much of the indirect change (reliance 0.75, at most 0.5 is required)"
    )
    assert short_of("plausibility", 0.0122, 0.0124) == "unusual values"
    assert short_of("plausibility", 0.049701, 0.05) == "unusual values"


@pytest.mark.parametrize("name", CRITERIA)
def test_every_criterion_has_words(name):
    assert short_of(name, 0.5, 0.5) == WORDS[name]


def test_of_one_training_row_16_of_16_resamples_tell_nothing():
    assert succeeds(15, 16, 30) == "It succeeds in 15 of 16 resamples of the training rows."
    assert succeeds(16, 16, 1).endswith("of the training rows; so few rows (1) show little.")


MONTHS = Feature("term", Kind.BINARY, categories=(36, 60), dtype="int64", unit="months")


GAPPED, CODED = replace(MONTHS, categories=(36, 60, None)), replace(HOURS, special=(-9,))


@pytest.mark.parametrize(
    ("feature", "old", "new", "words"),
    [
        (MONTHS, 60, 36, "change term from 60 to 36 months"),
        (GAPPED, None, 36, "from missing to 36 months"),
        (MARRIED, "no", "yes", "change married from no to yes"),
        (CODED, 5, -9, "change hours from 5 to -9"),
    ],
)
def test_one_of_two_numbers_has_its_unit_and_a_code_has_none(feature, old, new, words):
    more = NO_AMOUNT if new == -9 else {}
    assert imperative(line(replace(feature, unit="months"), old, new, **more)).endswith(words)


def test_a_number_that_must_become_another_has_its_unit():
    told = follows(MONTHS, 60, 36, least=36, **NO_AMOUNT)
    assert needed(told) == "term being 36 months"


def test_what_must_follow_is_one_value_where_no_other_will_do():
    years = replace(TERM, unit="years")
    assert needed(follows(years, 68, 59, least=59)) == "term at 59 years"
    assert needed(follows(years, 68, 59, least=65)) == "term at 59 to 65 years"
    assert needed(follows(years, 3, 0, least=0)) == "term at 0 years"
