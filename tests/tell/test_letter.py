"""Letters: what they say is accepted by the model; no statistics, no more than 80 words."""

import re
import tomllib

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Constraints, Feature, Kind, LetterTemplate, Schema, Search
from dear_plugin.errors import InputError, SettingError
from dear_plugin.results.changes import is_stated
from dear_plugin.tell.letter import FOLDER, MOST_WORDS
from tests.labelled import DATA, TEXTS, loan_schema
from tests.results.lines import line

WORDS = LetterTemplate.of("en")
LOAN = loan_schema(**TEXTS)


def by_term(rows):
    """A score that falls with the term alone, so that a smaller loan works through it."""
    return 1 / (1 + np.exp(0.4 * (rows["duration"] - 61)))


@pytest.fixture(scope="module")
def lender():
    return DEAR(by_term, LOAN, act_on=["loan_amount"]).fit(DATA.frame)


@pytest.fixture(scope="module")
def loans(lender):
    """Answers that rely on what follows, of one feature."""
    return lender.generate(DATA.frame.head(150))


@pytest.fixture(scope="module")
def many(mixed, fitted):
    """Answers of every kind of feature."""
    return fitted.generate(mixed.frame.head(60), k=8)


def advised(result):
    """The labels of the rows with a letter that says what to do."""
    actions, letters = result.actions, result.letter()
    acted = actions["acted_on"].str.split(" + ", regex=False)
    named = {feature.name: feature.called for feature in result.encoder.schema}
    told = [
        letter.startswith(WORDS["decided"]) and all(named[name] in letter for name in names)
        for letter, names in zip(letters, acted, strict=True)
    ]
    return actions.index[told]


class TestWhatItSays:
    def test_what_to_do_what_follows_and_up_to_where_it_must(self, loans):
        label = next(i for i in advised(loans) if loans.actions["reliance"][i] > 0)
        letter = loans.letter(label)
        assert letter.startswith(WORDS["decided"])
        assert re.search(r"\nTo get the decision you want, reduce the loan from [\d,]+ to", letter)
        assert re.search(
            r"euros(?: \([\d,]+ may be enough\))?\. This is enough only"
            r" together with the term at \d+ to \d+ months \(now \d+\), as usually happens\.\n",
            letter,
        )
        assert letter.endswith(WORDS["caution"])

    def test_a_rounded_action_is_accepted_and_no_smaller(self, loans, lender):
        for label in advised(loans):
            told = re.search(r"from [\d,]+ to ([\d,]+) euros", loans.letter(label))[1]
            loan = int(told.replace(",", "")) / 1_000
            assert loan <= loans.counterfactuals["loan_amount"][label]
            again = lender.apply(loans.factuals.loc[[label]], {"loan_amount": loan})
            assert again.actions["success"].all()

    def test_no_statistics_and_at_most_eighty_words(self, loans, many):
        always = len(f"{WORDS['decided']} {WORDS['caution']}".split())
        for letter in [*loans.letter(), *many.letter()]:
            assert len(letter.split()) <= MOST_WORDS + always
            assert not re.search("%|resample|credib|plausib|probab|confiden|cost", letter)

    def test_where_nothing_has_to_follow_it_says_so(self, many):
        letters = many[many.rank == 0].letter()
        told = letters[letters.str.startswith(WORDS["decided"])]
        alone = told[many[many.rank == 0].actions.loc[told.index, "reliance"] == 0.0]
        assert len(alone)
        assert alone.str.contains(WORDS["enough"]).all()

    def test_what_is_needed_and_usually_follows_is_told_once(self, loans):
        needed = [text for text in loans.letter() if "only together with the term" in text]
        assert len(needed) > 3
        assert all(text.count("the term") == 1 for text in needed)

    def test_between_the_values_that_it_names_the_model_accepts_all(self):
        """ "With follow at 54 or more" was said of a model that refuses 55."""
        rng = np.random.default_rng(0)
        work = rng.integers(0, 100, 3000)
        frame = pd.DataFrame({"work": work, "follow": (work + rng.normal(0, 4, 3000)).round()})

        def model(rows):
            return (rows["follow"] > 50) * 0.9 * ~rows["follow"].between(55, 56)

        dear = DEAR(model, Schema.infer(frame, tiers=[["work"], ["follow"]]), act_on=["work"])
        rows = frame[frame["follow"].between(35, 49)].head(60)
        letters = dear.fit(frame).generate(rows).letter()
        told = letters.str.extract(r"follow at (\d+)(?: to (\d+))? \(").dropna(how="all")
        assert told[1].notna().any() and told[1].isna().any()
        for low, high in told.ffill(axis=1).astype(int).itertuples(index=False):
            assert model(pd.DataFrame({"follow": range(low, high + 1)})).min() > 0.5


def asked(values, label="a guarantor", template="en"):
    """What a letter asks for on a column of two values, the second of which is accepted."""
    frame = pd.DataFrame({"own": values * 30, "pay": range(60)})
    schema = Schema.infer(frame, categorical=["own"], labels={"own": label} if label else {})
    dear = DEAR(lambda f: 0.9 - 0.8 * (f["own"] == values[0]), schema, act_on=["own"]).fit(frame)
    return dear.generate(frame.iloc[:1]).letter(0, template=template).split("\n")[1]


class TestYesAndNo:
    @pytest.mark.parametrize("values", [["no", "yes"], [0, 1], [False, True]])
    def test_no_to_yes_is_to_have_it(self, values):
        assert asked(values).startswith("To get the decision you want, have a guarantor.")
        assert "führt: künftig auch a guarantor." in asked(values, template="de")

    def test_yes_to_no_is_to_have_it_no_longer(self):
        assert "want, no longer have a guarantor." in asked(["Yes", "No"])

    def test_only_a_label_without_the_is_read_as_what_one_has(self):
        assert "want, change own from 0 to 1." in asked([0, 1], label="")
        assert "want, change own from no to yes." in asked(["no", "yes"], label="")
        assert "change the job from no to yes." in asked(["no", "yes"], label="the job")

    def test_values_with_a_word_between_two_values_are_quoted(self):
        own = asked(["1 to 9", "10 or more"], label="the size")
        assert "want, change the size from “1 to 9” to “10 or more”." in own

    def test_other_values_are_told(self):
        assert "want, change a guarantor from none to two." in asked(["none", "two"])


class TestRowsWithoutAdvice:
    def test_an_accepted_row_has_to_change_nothing(self, many):
        row = many.actions.query("reason == 'already accepted'").index[0]
        assert many.letter(row) == WORDS["accepted"]

    def test_a_row_without_a_credible_answer_gets_an_honest_sentence(self, mixed, fitted):
        rows = mixed.refused(3)
        none = fitted.generate(rows, within=Constraints(act_on=[]))
        assert none.letter().str.startswith(WORDS["none"]).all()
        assert none.letter().str.endswith(WORDS["ask"]).all()
        strict = fitted.with_search(Search(min_plausibility=1.0, min_confidence=1.0))
        weak = strict.generate(rows)
        letters = weak.letter()[~weak.actions["credible"]]
        assert letters.str.startswith(WORDS["none"]).all()

    def test_no_way_is_none_of_the_first_ranks(self, many):
        """Whatever is said against the first answer, later ones are looked at."""
        none = many.letter().str.startswith(WORDS["none"]).to_numpy()
        row = many.starts.cumsum() - 1
        can = [none[row[at]] for at, lines in enumerate(many.lines) if is_stated(lines)]
        assert 2 * len(can) > len(none) and not any(can)

    def test_a_row_that_cannot_be_read(self, mixed, fitted):
        rows = mixed.frame.head(2).assign(town=["Atlantis", "A"])
        assert fitted.generate(rows).letter().iloc[0] == WORDS["unreadable"]

    def test_given_actions_that_do_not_lead_to_the_decision(self, lender):
        row = DATA.frame.query("duration > 70").head(1)
        tried = lender.apply(row, {"loan_amount": row["loan_amount"].iloc[0] - 0.01})
        assert tried.letter().iloc[0] == WORDS["refused"]


class TestCalls:
    def test_all_rows_are_a_series_with_the_index(self, many):
        letters = many.letter()
        assert isinstance(letters, pd.Series)
        assert letters.index.equals(many.factuals.index[many.starts])
        assert all(letters[label] == many.letter(label) for label in letters.index[:10])

    def test_an_unknown_label_and_something_else_as_a_template_are_errors(self, many):
        with pytest.raises(InputError, match="exactly one"):
            many.letter("nobody")
        with pytest.raises(SettingError, match=r"\['de', 'en'\] or the path"):
            many.letter(template="Dear")
        with pytest.raises(SettingError, match="ways"):
            many.letter(ways=4)
        with pytest.raises(SettingError, match="above a letter"):
            many.letter(dates="today")

    def test_date_case_and_name_stand_above_each_for_all_or_by_label(self, many):
        labels = many.factuals.index[many.starts]
        cases = pd.Series([f"A-{i}" for i in range(len(labels))], labels)
        letters = many.letter(date="27 November 2026", case=cases, name=cases.head(3).to_dict())
        for place, (label, letter) in enumerate(letters.items()):
            named = [f"Dear A-{place},"] * (place < 3)
            head = ["27 November 2026", f"Case A-{place}", *named]
            assert letter.split("\n")[: len(head)] == head
            assert letter.endswith(many.letter(label))

    def test_up_to_three_ways_each_of_which_the_model_accepts(self, lender):
        both = DEAR(by_term, LOAN, act_on=["loan_amount", "duration"]).fit(DATA.frame)
        found = both.generate(DATA.frame[by_term(DATA.frame) < 0.4].head(20), k=8)
        several = found.letter(ways=3)[lambda each: each.str.contains(WORDS["ways"])]
        assert len(several)
        for label, letter in several.items():
            ways = re.findall(r"^\d\. .*$", letter, re.MULTILINE)
            assert 2 <= len(ways) <= 3
            terms = [re.search(r"term from [\d.]+ to ([\d.]+)\b", way) for way in ways]
            for term in filter(None, terms):
                row = found.factuals.loc[[label]].assign(duration=float(term[1]))
                assert by_term(row).iloc[0] >= 0.5
        assert lender.generate(DATA.frame.head(0)).letter(ways=3).empty

    def test_a_result_of_one_rank_tells_its_own_answers(self, mixed, fitted):
        found = fitted.generate(mixed.refused(10), k=3)
        for rank in range(3):
            way = found[found.rank == rank]
            letters, acted = way.letter(), way.actions["acted_on"]
            for label, letter in letters[letters.str.contains("To get the dec")].items():
                assert all(name in letter for name in acted[label].split(" + "))


class TestLabels:
    def test_a_schema_without_labels_is_warned_of_once(self, caplog, monkeypatch):
        monkeypatch.setattr("dear_plugin.tell.letter.WARNED", set())
        frame = DATA.frame.drop(columns="approved").head(600)
        for labels in ({}, {"duration": "the term"}):
            schema = Schema.infer(frame, immutable=["gender", "age"], labels=labels)
            dear = DEAR(by_term, schema, act_on=["duration"]).fit(frame)
            caplog.clear()
            for language in ("en", "de", "en"):
                dear.generate(frame.head(3)).letter(template=language)
            (told,) = [r.getMessage() for r in caplog.records if "without a label" in r.message]
            assert "'loan_amount': 'the loan amount'" in told and "gender" not in told
            assert ("duration" in told) != bool(labels)

    def test_with_labels_nothing_is_said(self, caplog, loans):
        loans.letter()
        assert "without a label" not in caplog.text


class TestTemplates:
    @pytest.mark.parametrize("language", ["en", "de"])
    def test_a_language_is_a_file_with_every_sentence(self, language, loans):
        own = tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf8"))
        assert own.keys() == WORDS.sentences.keys()
        assert "{" not in "".join(loans.letter(template=language))

    def test_german_numbers_are_german(self, loans):
        german = LetterTemplate.of("de", thousand="thousand")
        label = next(i for i in advised(loans) if loans.actions["reliance"][i] > 0)
        text = loans.letter(label, template=german)
        assert re.search(r"the loan bei \d+\.\d+ euros statt \d+\.\d+( \(|\.)", text)
        assert re.search(r"wenn dann wie meist auch gilt: the term bei \d+ bis \d+ m", text)
        assert "the decision" not in text

    def test_a_sentence_or_a_file_of_the_user(self, loans, tmp_path):
        path, label = tmp_path / "ours.toml", loans.factuals.index[0]
        text = (FOLDER / "en.toml").read_text(encoding="utf8")
        path.write_text(text.replace('ask = "', 'ask = "Come and see us. '), encoding="utf8")
        assert LetterTemplate.of(path)["ask"].startswith("Come and see us. ")
        own = LetterTemplate.of("en", caution="", decided="")
        letter = loans.letter(label, template=own)
        assert letter.startswith(("To get", "We looked", "The decision"))
        assert "promise" not in letter

    @pytest.mark.parametrize(
        ("changed", "told"),
        [
            ({"cauton": "x"}, "did you mean 'caution'"),
            ({"raised": "raise {name}"}, r"'raised' is a text with \['feature', 'new', 'old'\]"),
            ({"raised": 1}, "'raised' is a text"),
        ],
    )
    def test_a_wrong_sentence_is_an_error(self, changed, told):
        with pytest.raises(SettingError, match=told):
            LetterTemplate.of("en", **changed)

    def test_a_file_that_lacks_sentences_is_an_error(self, tmp_path):
        (tmp_path / "short.toml").write_text('ask = "Ask."', encoding="utf8")
        with pytest.raises(SettingError, match=r"lacks the sentences \['date', "):
            LetterTemplate.of(tmp_path / "short.toml")


class TestAmounts:
    @pytest.mark.parametrize(
        ("old", "new", "precision", "told"),
        [
            (63.65233, 50.0, 5, ("63.7", "50.0")),
            (57_148.37, 10_000.0, 2, ("57,148", "10,000")),
            (12.0, 12.5, 1, ("12.0", "12.5")),
            (12, 13, 0, ("12", "13")),
            (0.0412, 0.05, None, ("0.0412", "0.0500")),
            (7.0, 7.03, 2, ("7.00", "7.03")),
            (10_200, 6_200, 0, ("10,200", "6,200")),
        ],
    )
    def test_old_and_new_have_as_many_decimals(self, old, new, precision, told):
        feature = Feature("a", Kind.NUMERIC, precision=precision)
        assert WORDS._ends(feature, old, new) == told

    def test_of_few_values_without_decimals_three_digits_tell_which(self):
        thirds = tuple(each / 3 for each in range(3, 16))
        feature = Feature("rating", Kind.NUMERIC, bounds=(1.0, 5.0), observed=thirds)
        assert WORDS._ends(feature, thirds[3], thirds[8]) == ("2.00", "3.67")

    def test_a_new_amount_without_the_old_one_has_its_own_decimals(self):
        feature = Feature("rooms", Kind.NUMERIC, precision=1)
        usual = line(feature, 4.5, 3.0, "indirect", stated_usual=3.0)
        text = WORDS.write([[usual]], {})
        assert "rooms will usually fall to about 3." in text
        assert "3.0" not in text

    @pytest.mark.parametrize(
        ("unit", "told"),
        [
            ("thousand euros", ("2,500", "1,000 euros")),
            ("ten thousand dollars", ("25,000", "10,000 dollars")),
            ("thousands", ("2.5", "1.0 thousand")),
            ("years of schooling", ("2.5", "1.0 year of schooling")),
            ("hours a week", ("2.5", "1.0 hour a week")),
            ("square metres", ("2.5", "1.0 square metre")),
            ("inches", ("2.5", "1.0 inch")),
            ("status", ("2.5", "1.0 status")),
            ("companies", ("2.5", "1.0 company")),
            ("ms", ("2.5", "1.0 ms")),
            ("mbps", ("2.5", "1.0 mbps")),
        ],
    )
    def test_a_unit_that_is_a_number_is_said_in_full(self, unit, told):
        feature = Feature("a", Kind.NUMERIC, precision=1, unit=unit)
        assert WORDS._ends(feature, 2.5, 1.0) == told

    @pytest.mark.parametrize(
        ("unit", "told"),
        [("Jahre Schule", "1 Jahr Schule"), ("Monate", "1 Monat"), ("Euro", "1 Euro")],
    )
    def test_a_german_unit_has_its_singular(self, unit, told):
        feature = Feature("a", Kind.NUMERIC, precision=0, unit=unit)
        assert LetterTemplate.of("de")._ends(feature, 3.0, 1.0)[1] == told

    def test_a_template_may_name_what_a_unit_is_of_one(self, tmp_path):
        own, text = tmp_path / "own.toml", (FOLDER / "en.toml").read_text(encoding="utf8")
        own.write_text(text.replace('single = ""', 'single = "buses bus"'), encoding="utf8")
        feature = Feature("a", Kind.NUMERIC, precision=0, unit="buses a day")
        assert LetterTemplate.of(own)._ends(feature, 3.0, 1.0)[1] == "1 bus a day"

    def test_no_verb_agrees_with_a_label(self, loans):
        """ "the monthly charges is at most" cannot be written."""
        own = ("needed_at", "needed_being", "sets", "by_definition")
        assert not any(re.search(r"\b(is|are|has)\b", WORDS[n]) for n in own)
