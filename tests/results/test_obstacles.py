"""Obstacles: the features that cannot be acted on and stand in the way of a credible answer."""

import re

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Constraints, LetterTemplate, Schema, Search
from dear_plugin.problem.feasible import Reason


@pytest.fixture(scope="module")
def debtors():
    """Of 600 people 30 paid late; all of these have a low income, and are refused."""
    rng, late = np.random.default_rng(0), np.zeros(600, dtype=int)
    late[:30] = rng.integers(5, 9, 30)
    income = np.where(late > 0, rng.normal(20, 2, 600), rng.normal(60, 10, 600)).round()
    return pd.DataFrame({"income": income, "late": late, "age": rng.integers(20, 70, 600)})


def dear_of(frame, search=None, immutable=("age", "late"), act_on=("income",), **options):
    def model(rows):
        return 1 / (1 + np.exp(-(rows["income"] - 5 * rows["late"] - 30) / 5))

    schema = Schema.infer(frame, immutable=immutable, **options)
    return DEAR(model, schema, act_on=act_on, search=search).fit(frame)


@pytest.fixture(scope="module")
def result(debtors):
    return dear_of(debtors, labels={"late": "late payments"}).generate(debtors.head(60))


def test_what_cannot_be_acted_on_is_named(result, debtors):
    weak = ~result.actions["credible"] & (debtors["late"] > 0)[:60]
    assert weak.sum() >= 20
    assert (result.obstacles[weak] == "late").all()


def test_the_same_rows_with_usual_values_there_have_a_credible_answer(result, debtors):
    named = result.obstacles == "late"
    dear = dear_of(debtors, labels={"late": "late payments"})
    again = dear.generate(debtors.head(60)[named].assign(late=0))
    assert again.actions["credible"].all()


def test_the_reason_and_the_description_say_it_by_its_label(result):
    some = result.obstacles == "late"
    words = "; what cannot be acted on stands in the way: late payments"
    assert result.actions["reason"][some].str.endswith(words).all()
    assert result.describe()[some].str.contains(words, regex=False).all()
    first = some[some].index[0]
    assert words in result.describe(first)


def test_a_row_with_an_answer_and_an_accepted_row_have_none(result):
    fine = result.actions["credible"] | (result.factuals["late"] == 0)
    assert fine.any()
    assert (result.obstacles[fine] == "").all()


def test_what_a_call_freezes_counts(debtors):
    dear = dear_of(debtors, immutable=["age"], act_on=["income", "late"])
    result = dear.generate(debtors.head(30), within=Constraints(frozen=["late"]))
    assert (result.obstacles == "late").mean() > 0.5


def test_where_nothing_may_be_acted_on_the_reason_says_so(debtors):
    result = dear_of(debtors).generate(debtors.head(5), within=Constraints(frozen=["income"]))
    assert (result.obstacles == "").all()
    assert (result.actions["reason"] == Reason.NOTHING_ADMISSIBLE).all()


def test_columns_of_a_group_are_named_by_the_group(debtors):
    often = debtors["late"] > 0
    columns = {"paid_late": often.astype(int), "paid_in_time": (~often).astype(int)}
    frame = debtors.drop(columns="late").assign(**columns)

    def model(rows):
        return 1 / (1 + np.exp(-(rows["income"] - 40 * rows["paid_late"] - 30) / 5))

    schema = Schema.infer(frame, immutable=["age", *columns], exactly_one=[list(columns)])
    *_, paid = schema
    found = DEAR(model, schema, act_on=["income"]).fit(frame).generate(frame[often]).obstacles
    assert (found == paid.name).mean() > 0.5


def test_an_identifier_is_in_nobodys_way(debtors):
    named = debtors.assign(case=[f"K-{at}" for at in range(len(debtors))])
    found = dear_of(named).generate(named.head(60)).obstacles
    assert {*found} == {"", "late"}


def test_what_does_not_move_the_score_of_a_row_is_in_nobodys_way(debtors):
    """First names and marks go with late payments; the model reads none of them."""
    late = (debtors["late"] > 0).to_numpy()
    names = {n: np.where(late, "Zoe", "Ann") for n in ("first", "mark")}
    frame = debtors.assign(**names)
    schema = Schema.infer(frame, immutable=["age", "late", *names])
    model = lambda r: 1 / (1 + np.exp(-(r["income"] - 5 * r["late"] - 30) / 5))  # noqa: E731
    found = DEAR(model, schema, act_on=["income"]).fit(frame).generate(frame.head(60)).obstacles
    assert {*found} == {"", "late"}


def test_an_answer_that_the_model_accepts_is_not_told_as_not_enough(debtors):
    """A letter said that nothing is enough where a change was, by less than the margin."""

    def model(rows):
        score = (rows["income"] - 6 * rows["late"] - 30) / 10
        return 1 / (1 + np.exp(-score))

    schema = Schema.infer(debtors, immutable=["age", "late"])
    result = DEAR(model, schema, act_on=["income"]).fit(debtors).generate(debtors.head(60))
    accepted = result.actions["success"] & ~result.actions["credible"]
    assert (accepted & (result.obstacles != "")).any()
    nothing = result.letter().str.contains("Nothing that you could|would not be enough")
    assert not nothing[result.actions["success"]].any()


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_person_without_a_way_is_told_which_change_comes_nearest(debtors, language):
    """50 of 55 letters said only that nothing is enough."""
    model = lambda rows: 1 / (1 + np.exp(-(rows["income"] - 400) / 50))  # noqa: E731
    schema = Schema.infer(debtors, immutable=["age", "late"])
    result = DEAR(model, schema, act_on=["income"]).fit(debtors).generate(debtors.head(20))
    assert not result.actions["success"].any()
    assert [hindrance.sentence for hindrance in result.hindrances] == ["nearest"] * 20
    words = LetterTemplate.of(language)
    for letter, own in zip(result.letter(template=language), result.lines, strict=True):
        old = f"{own[0].old:.0f}"
        amount = rf"(?:from {old} to|bei) (\d+)(?: statt {old})?"
        told = re.search(words["nearest"].replace("({features})", rf"\(.*{amount}.*\)"), letter)
        assert own[0].old < float(told[1]) <= own[0].new
        assert not model(pd.DataFrame({"income": [float(told[1])]}))[0] >= 0.5


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize(("immutable", "act_on"), [([], ["idle"]), (["late", "race"], ["income"])])
@pytest.mark.parametrize(("lack", "sentence"), [(0, "fixed"), (200, "most")])
def test_a_person_without_a_way_is_told_what_counts_most_but_no_protected_attribute(
    debtors, language, immutable, act_on, lack, sentence
):
    """Race counts more, and age; where these and late payments are not enough, what counts."""
    rng = np.random.default_rng(1)
    frame = debtors.assign(race=rng.choice(["x", "y"], 600), idle=rng.integers(0, 9, 600))
    points = lambda r: r["income"] - 5 * r["late"] - 300 * (r["race"] == "x") - 9 * r["age"]  # noqa: E731
    model = lambda rows: 1 / (1 + np.exp(-(points(rows) + 150 - lack) / 50))  # noqa: E731
    schema = Schema.infer(frame, immutable=immutable, labels={"late": "the late payments"})
    rows = frame.query("late > 0 and race == 'x' and age > 40").head(10)
    dear = DEAR(model, schema, act_on=act_on).fit(frame)
    letters = dear.generate(rows).letter(template=language)
    told = LetterTemplate.of(language)[sentence].format(features="the late payments")
    assert letters.str.contains(told, regex=False).all()
    assert not letters.str.contains("race|age[ .,)]").any()


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("en", "You can ask us again until 31 March."),
        ("de", "Sie können uns bis zum 31 March erneut fragen."),
    ],
)
def test_until_when_to_ask_again_is_told_where_there_is_no_way(result, language, sentence):
    letters, same = (
        result.letter(template=language, **more) for more in ({"until": "31 March"}, {})
    )
    none = same.str.startswith(LetterTemplate.of(language)["none"])
    assert none.any() and not none.all()
    assert (letters == same + none.map({True: f"\n{sentence}", False: ""})).all()


def test_a_search_without_criteria_has_none(debtors):
    result = dear_of(debtors, Search.cheapest()).generate(debtors.head(40))
    assert (result.obstacles == "").all()


def test_that_there_is_no_further_answer_has_none(mixed):
    found = DEAR(mixed.net, mixed.schema).fit(mixed.frame).generate(mixed.refused(40), k=4)
    last = found[found.rank > 0]
    assert len(last)
    assert (last.obstacles == "").all()
