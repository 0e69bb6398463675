"""Letters: what they say is accepted by the model; no statistics, no more than 80 words."""

import re
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Constraints, LetterTemplate, Schema, Search
from dear_plugin.datasets import load_loan
from dear_plugin.errors import InputError, SettingError
from dear_plugin.results.letter import MOST_WORDS

DATA = load_loan(3_000)
LOAN = Schema.infer(
    DATA.frame,
    target="approved",
    immutable=["gender", "age"],
    increasing=["education", "income", "savings"],
    tiers=DATA.tiers,
    labels=DATA.labels,
    units=DATA.units,
)


def by_term(rows):
    """A score that falls with the term alone, so that a smaller loan works through it."""
    return 1 / (1 + np.exp(0.4 * (rows["duration"] - 61)))


@pytest.fixture(scope="module")
def loans():
    """Answers that rely on what follows, of one feature."""
    dear = DEAR(by_term, LOAN, act_on=["loan_amount"]).fit(DATA.frame)
    return dear.generate(DATA.frame.head(150))


@pytest.fixture(scope="module")
def many(mixed, fitted):
    """Answers of every kind of feature."""
    return fitted.generate(mixed.frame.head(60))


def advised(result):
    """The labels of the rows with a letter that says what to do."""
    actions = result.actions
    return actions.index[actions["credible"] & (actions["acted_on"] != "")]


class TestWhatItSays:
    def test_what_to_do_what_follows_and_up_to_where_it_must(self, loans):
        label = next(i for i in advised(loans) if loans.actions["reliance"][i] > 0)
        letter = loans.letter(label)
        assert re.match(r"To get the decision you want, reduce the loan from [\d,]+ to", letter)
        assert re.search(r"euros\. Then the term will usually fall to about \d+ m", letter)
        assert re.search(r"This is enough only if the term is at most \d+ months\.", letter)
        assert letter.endswith(LetterTemplate().caution)

    def test_one_of_two_numbers_has_its_unit(self):
        frame = pd.DataFrame({"term": [36, 60] * 20, "sum": range(40)})
        schema = Schema.infer(frame, units={"term": "months"}, labels={"term": "the term"})
        dear = DEAR(lambda f: 0.9 - 0.7 * (f["term"] == 60), schema, act_on=["term"]).fit(frame)
        letter = dear.generate(frame.iloc[1:2]).letter(1)
        assert letter.startswith(
            "To get the decision you want, change the term from 60 to 36 months. Nothing else"
        )

    def test_the_row_that_it_names_is_accepted_by_the_model(self, loans):
        found = 0
        for label in advised(loans):
            bound = re.search(r"at most (\d+) months", loans.letter(label))
            if bound:
                row = loans.factuals.loc[[label]].assign(duration=int(bound[1]))
                assert by_term(row).iloc[0] >= 0.5
                found += 1
        assert found > 3

    def test_a_rounded_action_is_accepted_and_no_smaller(self, loans):
        dear = loans.question.method
        for label in advised(loans):
            told = re.search(r"from [\d,]+ to ([\d,]+) euros", loans.letter(label))[1]
            loan = int(told.replace(",", "")) / 1_000
            assert loan <= loans.counterfactuals["loan_amount"][label]
            again = dear.apply(loans.factuals.loc[[label]], {"loan_amount": loan})
            assert again.actions["success"].all()

    def test_no_statistics_and_at_most_eighty_words(self, loans, many):
        for letter in [*loans.letter(), *many.letter()]:
            assert len(letter.split()) <= MOST_WORDS
            assert not re.search("%|resample|credib|plausib|probab|confiden|cost", letter)

    def test_where_nothing_has_to_follow_it_says_so(self, many):
        enough = [i for i in advised(many) if many.actions["reliance"][i] == 0.0]
        assert enough
        assert all(LetterTemplate().enough in many.letter(i) for i in enough)

    def test_what_usually_follows_is_not_short_of_what_must(self, loans):
        for label in advised(loans):
            letter = loans.letter(label)
            usual, bound = (
                re.search(rf"{words} (\d+) months", letter) for words in ("about", "at most")
            )
            assert usual is None or bound is None or int(usual[1]) <= int(bound[1])


class TestRowsWithoutAdvice:
    def test_an_accepted_row_has_to_change_nothing(self, many):
        row = many.actions.query("reason == 'already accepted'").index[0]
        assert many.letter(row) == LetterTemplate().accepted

    def test_a_row_without_a_credible_answer_gets_an_honest_sentence(self, mixed, fitted):
        rows = mixed.refused(3)
        none = fitted.generate(rows, within=Constraints(act_on=[]))
        assert (none.letter() == LetterTemplate().none).all()
        strict = fitted.with_search(Search(min_plausibility=1.0, min_confidence=1.0))
        weak = strict.generate(rows)
        assert (weak.letter()[~weak.actions["credible"]] == LetterTemplate().none).all()

    def test_a_row_that_cannot_be_read(self, mixed, fitted):
        rows = mixed.frame.head(2).assign(town=["Atlantis", "A"])
        assert fitted.generate(rows).letter().iloc[0] == LetterTemplate().unreadable

    def test_given_actions_that_do_not_lead_to_the_decision(self, loans):
        dear, row = loans.question.method, DATA.frame.query("duration > 70").head(1)
        tried = dear.apply(row, {"loan_amount": row["loan_amount"].iloc[0] - 0.01})
        assert tried.letter().iloc[0] == LetterTemplate().refused


class TestCalls:
    def test_all_rows_are_a_series_with_the_index(self, many):
        letters = many.letter()
        assert isinstance(letters, pd.Series)
        assert letters.index.equals(many.factuals.index)
        assert all(letters[label] == many.letter(label) for label in letters.index[:10])

    def test_an_unknown_label_and_something_else_as_a_template_are_errors(self, many):
        with pytest.raises(InputError, match="exactly one"):
            many.letter("nobody")
        with pytest.raises(SettingError, match="template"):
            many.letter(template="Dear")

    def test_a_template_translates_every_word(self, loans):
        german = LetterTemplate(
            **{field.name: "" for field in fields(LetterTemplate)}
            | {
                "advice": "Für die gewünschte Entscheidung: {actions}.",
                "lowered": "{feature} von {old} auf {new} senken",
                "only_if": "Das gilt nur, wenn {bounds}.",
                "at_most": "{feature} höchstens {new} beträgt",
                "thousand": "thousand ",
                "separator": ".",
                "point": ",",
            }
        )
        label = next(i for i in advised(loans) if loans.actions["reliance"][i] > 0)
        text = loans.letter(label, template=german)
        assert re.match(r"Für die .*: the loan von \d+\.\d+ auf \d+\.\d+ euros senken\.", text)
        assert "höchstens" in text
        assert "the decision" not in text
