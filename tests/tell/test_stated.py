"""Amounts that a letter tells: some digits of the value and of the change, away from the old."""

import re
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Constraints, Feature, Kind, LetterTemplate, Schema
from dear_plugin.results.changes import is_stated
from dear_plugin.results.statements import (
    _accepted,
    _as_its_column,
    _farther,
    _rare,
    far_of,
    rounded,
)
from tests.results.lines import line


def pay(step=1_000.0, **more):
    given = {"bounds": (0.0, 100_000.0), "precision": 2, "scale": 100.0 * step, **more}
    return Feature("pay", Kind.NUMERIC, **given)


@pytest.mark.parametrize(
    ("old", "new", "digits", "away", "told"),
    [
        (32.81, 27.84, 2, 1, 27.8),
        (32.81, 27.84, 2, -1, 27.9),
        (32.81, 27.84, 3, 1, 27.84),
        (32.81, 27.84, None, 1, 27.84),
        (21.54, 25.35, 2, 1, 25.4),
        (21.54, 25.35, 2, 0, 25.4),
        (23_610.0, 34_440.0, 2, 1, 35_000.0),
        (7.0, 7.03, 2, 1, 7.03),
        (5.0, 5.0, 2, 1, 5.0),
        # Two digits of the amount: 941 less were told as 50 by those of the change.
        (1_000.0, 59.0, 2, 1, 59.0),
        (102_669.0, 3_148.0, 2, 1, 3_100.0),
        (10_000.0, 1_340.0, 2, 1, 1_300.0),
        (57_148.0, 4.0, 2, 1, 4.0),
        (90_000.0, 61_234.0, 2, 1, 61_000.0),
    ],
)
def test_known_amounts(old, new, digits, away, told):
    assert rounded(pay(), old, new, digits, away=away) == told


@pytest.mark.parametrize("new", np.random.default_rng(0).uniform(0.0, 100_000.0, 30).tolist())
@pytest.mark.parametrize("step", [0.5, 20.0, 1_000.0])
def test_no_amount_is_farther_from_the_answer_than_a_step(new, step):
    told = rounded(pay(step), 88_888.0, new, 2, away=1)
    assert abs(told - new) <= max(step, 0.01)


def test_a_number_of_few_values_is_told_as_it_is():
    own = pay(observed=(0.0, 37.0, 90.0), precision=0)
    assert rounded(own, 0.0, 37.0, 1, away=1) == 37.0


def test_no_amount_is_told_as_a_code():
    own = pay(special=(35_000.0,), bounds=(0.0, 90_000.0))
    assert rounded(own, 23_610.0, 34_440.0, 2, away=1) == 34_440.0


def test_no_amount_is_beyond_all_rows():
    """It is rounded towards the old value instead, and the model is asked as always."""
    few, many = pay(bounds=(27.84, 90.0)), pay(bounds=(0.0, 25.35))
    assert _farther(line(pay(), 32.81, 27.84), 2) == 27.8
    assert _farther(line(few, 32.81, 27.84), 2) == 27.9
    assert _farther(line(many, 21.54, 25.35), 2) == 25.3


class TestFar:
    @pytest.mark.parametrize(
        ("old", "new", "more", "far"),
        [
            (30_000.0, 40_000.0, {}, False),
            (30_000.0, 41_000.0, {}, True),  # more than a third more
            (30_000.0, 16_000.0, {}, False),
            (30_000.0, 14_000.0, {}, True),
            (99_000.0, 45_000.0, {}, True),  # more than half of the usual range
            (1_000.0, 3_000.0, {}, False),  # two steps
            (17_000.0, 8_000.0, {"scale": 900_000.0}, False),
            (17_000.0, 8_000.0, {}, True),
        ],
    )
    def test_an_amount_that_few_can_change_so_much(self, old, new, more, far):
        assert bool(far_of((pay(**more), old, new))) == far

    def test_a_number_of_few_values_goes_two_of_these(self):
        rooms = pay(observed=(1.0, 1.5, 2.0, 2.5, 3.0), precision=1, scale=4.0)
        assert not far_of((rooms, 1.5, 2.5))
        assert far_of((rooms, 1.5, 3.0))


def test_what_hardly_anybody_has_given_all_else_is_no_advice():
    """A rent that is usual, but not for so large a flat."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"area": rng.uniform(20.0, 120.0, 3_000).round()})
    frame["rent"] = (12 * frame["area"] + rng.normal(0.0, 40.0, 3_000)).round(-1)
    schema = Schema.infer(frame, immutable=["area"])
    dear = DEAR(lambda rows: 1.0 * (rows["rent"] <= 800), schema, act_on=["rent"]).fit(frame)
    rows = pd.DataFrame({"area": [70.0, 100.0], "rent": [860.0, 1_200.0]})
    found = dear.generate(rows)
    assert found.actions["success"].all()
    rare = _rare(found.question, found.proposal.direct, found.proposal.rows)
    assert rare.tolist() == [[False, False], [False, True]]
    assert "no way that we can recommend" in found.letter(1)


def test_what_no_flat_of_a_size_and_price_costs_is_no_advice():
    """A rent is an area times a price: a letter asked for 240 in place of 345 euros."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"area": rng.uniform(18.0, 130.0, 3_000).round()})
    frame["price"] = rng.choice([8.0, 11.0, 15.0, 20.0], 3_000)
    noise = rng.normal(0.0, 0.08, 3_000)
    frame["rent"] = (frame["area"] * frame["price"] * np.exp(noise)).round(-1)
    schema = Schema.infer(frame, immutable=["area", "price"])
    rows = pd.DataFrame({"area": 60.0, "price": 8.0, "rent": [500.0]})
    for most, is_rare in ((330, True), (420, False)):
        model = partial(lambda most, rows: 1.0 * (rows["rent"] <= most), most)
        found = DEAR(model, schema, act_on=["rent"]).fit(frame).generate(rows)
        rare = _rare(found.question, found.proposal.direct, found.proposal.rows)
        assert bool(rare.any()) == is_rare


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_change_that_is_larger_than_advice_is_told_with_its_amounts(language):
    """26 of 40 letters said only "It would take a very large change of the experience"."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"pay": rng.normal(30_000, 6_000, 2_000).round(-2)})
    frame["late"] = rng.poisson(1.0, 2_000)
    model = lambda r: 1 / (1 + np.exp((41_000 + 900 * r["late"] - r["pay"]) / 2_000))  # noqa: E731
    schema = Schema.infer(frame, immutable=["late"])
    dear = DEAR(model, schema, act_on=["pay"]).fit(frame)
    rows = frame[(frame["pay"] < 29_000) & (frame["late"] > 2)].head(20)
    words = LetterTemplate.of(language)
    letters = dear.generate(rows, k=2).letter(template=words)
    large = letters[letters.str.contains(words["far"].split("(")[0], regex=False)]
    assert len(large) > 5
    assert large.str.contains(words["most"].format(features="late"), regex=False).any()
    told = large.str.extract(r"(?:to|bei) (\d\d[.,]\d{3})")[0].str.replace(r"[.,]", "", regex=True)
    assert model(rows.loc[large.index].assign(pay=told.astype(float))).ge(0.5).all()


@pytest.mark.parametrize("language", ["en", "de"])
def test_what_is_computed_is_not_called_what_one_cannot_change(language):
    """A letter said that the rent as a share of the income was not the applicant's to change."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({n: rng.gamma(9, 90, 500).round(-1) + 10 for n in ("net", "heating")})
    frame["income"] = rng.gamma(8, 330, 500).round(-1) + 10
    frame["rent"] = frame["net"] + frame["heating"]
    frame["share"] = (frame["rent"] / frame["income"]).round(4)
    schema = Schema.infer(frame, immutable=["income"])
    model = lambda rows: 1 / (1 + np.exp(20 * (rows["share"] - 0.15)))  # noqa: E731
    dear = DEAR(model, schema, act_on=["net"]).fit(frame)
    letters = dear.generate(frame.head(40), k=4).letter(template=language)
    none = letters[letters.str.startswith(LetterTemplate.of(language)["none"])]
    assert len(none) > 10
    assert not none.str.contains("share|rent").any()
    assert none.str.contains("heating").any()


def test_what_is_computed_is_told_in_the_decimals_of_its_column():
    """A letter set the loan as a share of the price to 0.923728814."""
    share = Feature("share", Kind.NUMERIC, bounds=(0.0, 2.0))
    cents = Feature("instalment", Kind.NUMERIC, bounds=(0.0, 900.0), precision=2)
    assert _as_its_column(share, 0.923728814) == 0.924
    assert _as_its_column(replace(share, precision=9), 0.0123728814) == 0.0124
    assert _as_its_column(share, 12_345.678) == 12_346
    assert _as_its_column(cents, 312.06) == 312.06


@pytest.fixture(scope="module")
def sharers():
    """The rent as a share of the income, in all decimals; a guarantor; and the model's answers."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"rent": rng.gamma(9, 90, 2_000).round(-1) + 10})
    frame["income"] = (frame["rent"] * rng.uniform(2.0, 5.0, 2_000)).round(-1)
    frame["share"] = frame["rent"] / frame["income"]
    frame["guarantor"] = rng.choice(["no", "yes"], 2_000, p=[0.8, 0.2])
    schema = Schema.infer(frame, labels={"guarantor": "a guarantor", "income": "the income"})
    points = lambda r: 8 * (0.22 - r["share"]) + 0.5 * (r["guarantor"] == "yes")  # noqa: E731
    model = lambda rows: 1 / (1 + np.exp(-6 * points(rows)))  # noqa: E731
    dear = DEAR(model, schema, act_on=["income", ("income", "guarantor")]).fit(frame)
    return dear, dear.generate(frame[model(frame) < 0.3].head(100), k=8)


@pytest.mark.parametrize(
    ("language", "sets"),
    [("en", r"sets share to (\S+)\."), ("de", r"rechnerisch: share = (\S+)\.")],
)
def test_a_share_has_three_digits_in_letters(sharers, language, sets):
    told = sharers[1].letter(template=language).str.extract(sets)[0].dropna()
    assert len(told) > 10
    assert told.str.len().max() <= len("0.123")


@pytest.mark.parametrize(
    ("language", "least"),
    [("en", r"\(([\d,]+) (may be enough)\)"), ("de", r"\((vielleicht genügt) ([\d.]+)\)")],
)
def test_that_less_may_be_enough_is_told_in_five_words_also_of_two_features(
    sharers, language, least
):
    dear, found = sharers
    both = found[found.actions["acted_on"].eq("income + guarantor").to_numpy()]
    some = [own for own in both.lines if (own[0].stated, own[1].stated) != (None, None)]
    acted = [next(e for e in own if e.feature == "income") for own in some]
    less = [line for line in acted if line.stated_least != line.stated]
    assert less
    texts = [LetterTemplate.of(language).write([own], {}) for own in some]
    assert sum(bool(re.search(least, text)) for text in texts) == len(less)
    rows = found.factuals.groupby(level=0).head(1).loc[[line.row for line in less]]
    action = pd.DataFrame(
        {"income": [e.stated_least for e in less], "guarantor": "yes"}, rows.index
    )
    assert dear.apply(rows, action).actions["success"].all()


def test_no_rounding_takes_an_amount_to_where_none_is_advised():
    """The answer is among the usual values of such rows; two digits of it would be beyond them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"area": rng.uniform(20.0, 120.0, 3_000).round()})
    frame["rent"] = (12 * frame["area"] + rng.normal(0.0, 8.0, 3_000)).round(2)
    schema = Schema.infer(frame, immutable=["area"], steps={"rent": 0.01})
    model = lambda rows: 1.0 * (rows["rent"] <= 12 * rows["area"] - 11)  # noqa: E731
    found = DEAR(model, schema, act_on=["rent"]).fit(frame).generate(frame.iloc[:200])
    told = [(at, own) for at, own in enumerate(found.lines) if is_stated(own)]
    rows = found.proposal.rows.clone()
    for at, own in told:
        rows[at, 1] = float(own[0].stated)
        assert not far_of((own[0].of, own[0].old, own[0].stated))
    rare = _rare(found.question, found.proposal.direct, rows)
    assert len(told) > 20
    assert not rare[[at for at, _ in told]].any()
    at, (own, *_) = told[0]
    least = float(found.question.trained.usual.ends(rows[[at]], 1)[0])
    beyond = own._replace(stated=least - 1.0, stated_least=least - 1.0)
    assert model(found.factuals.iloc[[at]].assign(rent=least - 1.0)).all()
    given = [(at, [own]), (at, [beyond])]
    assert [each for each, _ in _accepted(found.question, found.proposal, given)] == [at]


class TestWhatALetterAsksFor:
    """A flat's area decides its rent, and both the score; people choose area and rent."""

    @cached_property
    def flats(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"income": rng.normal(2_000.0, 400.0, 3_000).round(-1)})
        frame["loan"] = (frame["income"] * rng.uniform(0.0, 0.2, 3_000)).round(-1)
        frame["area"] = (frame["income"] / 50 + rng.normal(10.0, 8.0, 3_000)).round()
        frame["rent"] = (8 * frame["area"] + rng.normal(0.0, 15.0, 3_000)).round(-1)
        frame["heating"] = (2 * frame["area"] + rng.normal(0.0, 5.0, 3_000)).round()
        return frame

    def letters(self, frame, model, act_on):
        tiers = [[name] for name in frame]
        dear = DEAR(model, Schema.infer(frame, tiers=tiers), act_on=act_on)
        rows = frame[model(frame) < 0.5].head(40)
        found = dear.fit(frame).generate(rows, k=4)
        texts = found.letter()
        return found, texts[texts.str.contains("To get the decision")]

    def test_what_the_applicant_may_act_on_and_is_needed_is_asked_for(self):
        """ "Enough only together with the rent at 400" left open whose task that was."""
        model = lambda f: 1 / (1 + np.exp((f["rent"] - 380) / 20))  # noqa: E731
        found, told = self.letters(self.flats, model, [("area",), ("rent", "income")])
        assert len(told) > 5
        assert told.str.contains("reduce area from .* and reduce rent from").any()
        assert not told.str.contains("only together with rent").any()
        for case, text in told.items():
            new = dict(re.findall(r"(?:reduce|increase) (\w+) from [\d,]+ to ([\d,]+)", text))
            changed = {name: float(value.replace(",", "")) for name, value in new.items()}
            assert model(found.factuals.loc[[case]].assign(**changed)).ge(0.5).all()

    def test_what_it_sets_by_definition_is_that_of_all_that_is_asked_for(self):
        """ "Nothing else has to change" was said, and the rent with heating does."""
        frame = self.flats.assign(total=self.flats["rent"] + self.flats["heating"])
        model = lambda f: 1 / (1 + np.exp((f["total"] - 470) / 20))  # noqa: E731
        _, told = self.letters(frame, model, [("area",), ("rent", "income")])
        both = told[told.str.contains("and reduce rent from")]
        assert both.str.contains("this sets total to").sum() > 3
        assert not both.str.contains("Nothing else has to change").any()

    def test_what_is_needed_begins_at_a_step_of_its_column(self):
        model = lambda f: 1 / (1 + np.exp((f["rent"] - 380) / 20))  # noqa: E731
        _, told = self.letters(self.flats, model, [("area",), ("rent", "income")])
        least = told.str.extract(r"reduce rent from .*?\((\d+) may be enough\)")[0].dropna()
        assert len(least) > 3
        assert (least.astype(int) % 5 == 0).all()

    def test_what_only_goes_with_the_action_is_not_called_needed(self):
        """The model does not read the heating."""
        model = lambda f: 1 / (1 + np.exp((f["area"] - 48) / 2))  # noqa: E731
        _, told = self.letters(self.flats, model, ["area"])
        assert len(told) > 5
        assert not told.str.contains("only together with").any()
        assert told.str.contains("heating will usually fall").any()

    def test_what_follows_a_choice_does_not_follow_what_comes_before_it(self):
        """More income leads to a larger flat, and this to more heating: if one chooses it."""
        model = lambda f: 1 / (1 + np.exp((1_900 - f["income"]) / 100))  # noqa: E731
        _, free = self.letters(self.flats, model, ["income"])
        _, chosen = self.letters(self.flats, model, ["income", "area"])
        assert free.str.contains("heating will usually rise").any()
        assert not chosen.str.contains("heating will usually").any()


def test_nobody_is_only_told_that_nothing_is_enough():
    """Nothing may be acted on, and of an age nothing may be said."""
    frame = pd.DataFrame({"age": np.arange(18, 78).repeat(5), "race": [*"abc"] * 100})
    dear = DEAR(lambda f: 1.0 * (f["age"] > 40), Schema.infer(frame, immutable=["age"])).fit(frame)
    letter = dear.generate(frame.head(1), within=Constraints(act_on=[])).letter(0)
    assert "of age" not in letter and "race" not in letter
    assert "Please check with us that your data are right." in letter
