"""What the page asks of the engine, without a browser: every kind of model, target and feature."""

import json

import numpy as np
import pytest

pytest.importorskip("panel")

from dear_plugin import DEAR, Constraints, Schema, Target
from dear_plugin.errors import ConstraintError, InputError
from dear_plugin.page import Explorer
from dear_plugin.page.explorer import _View
from dear_plugin.page.session import ACT, FOLLOWS, STAYS, Session


def view(dear, rows, target=None, within=None):
    """The views of a new session, in which every question is answered at once."""
    views = _View(Session(*dear.explore(rows, target, within=within)._asked))
    views._later = lambda choices: views._show(choices, views.session.answered(choices))
    return views


def shown(views):
    """The cards that are shown."""
    return [card for card in views.cards.cards if card.visible]


def text(views):
    """The text of all cards that are shown."""
    return "".join(card[0].object for card in shown(views))


def state(views, name, value):
    views.reach.states[name].value = value


def inputs(views, name):
    """The inputs of the least and the greatest value of a feature."""
    (fields,) = views.reach.reaches[name]
    return [field[0] for field in fields]


@pytest.fixture
def views(loans):
    return view(*loans)


def weak(loans):
    """The views of an applicant who has a way that can be told, and one that cannot."""
    views = view(*loans, within=Constraints(act_on=["income", "savings", "loan_amount"]))
    for _ in range(60):
        told = [not way.why for way in views.session.answer.found]
        if len(set(told)) == 2:
            return views
        views.choose._step(1)
    raise AssertionError("all ways of all applicants are alike")


class TestOneQuestionOneAnswer:
    def test_until_it_is_answered_no_letter_can_be_taken_and_old_ways_are_dimmed(self, views):
        views._later = lambda choices: None
        state(views, "savings", STAYS)
        assert all(button.disabled for button in [*views.cards.buttons, *views.letter.buttons])
        assert "old" in views.answers.css_classes
        assert views.main.status == "Computing"

    def test_an_answer_to_a_former_question_is_not_shown(self, views):
        views._later = lambda choices: None
        before = text(views)
        state(views, "savings", STAYS)
        first = views.session.choices
        state(views, "savings", ACT)
        state(views, "duration", STAYS)
        views._show(first, views.session.answered(first))
        assert text(views) == before
        assert views.letter.buttons[0].disabled

    def test_cards_letter_and_curve_are_of_the_same_answer(self, views):
        state(views, "savings", STAYS)
        way = views.session.answer.ways[0]
        assert views.letter.plain.value == way.letter
        assert not views.letter.buttons[0].disabled
        assert views.session.known[views.session.answer.feature].title in text(views)
        assert views.main.status.endswith("way") or views.main.status.endswith("ways")

    def test_ways_are_those_of_the_engine(self, loans, views):
        dear, rows = loans
        found = [way.result for way in views.session.answer.ways]
        others = dear.generate(rows.head(1)).alternatives(4)
        acted = [way.outcome["acted_on"].iloc[0] for way in found]
        assert sorted(acted) == sorted(others["acted_on"])

    def test_a_row_without_an_answer_says_so_in_plain_words(self, loans):
        views = view(*loans, within=Constraints(act_on=[]))
        assert "No way was found" in views.cards.note.object
        assert "Nothing that you could change here is enough" in views.cards.note.object
        assert "we have no way that we can recommend" in views.letter.plain.value
        assert views.main.status == "no ways"


class TestWhoIsShown:
    def test_the_case_is_on_the_page_in_the_letter_and_in_the_name_of_the_file(self, loans):
        dear, rows = loans
        views = view(dear, rows.set_axis([f"L-{n}" for n in range(len(rows))]))
        views.choose._step(1)
        assert "<h2>Applicant L-1</h2>" in views.choose.who.object
        assert "Age" in views.choose.who.object
        assert views.letter.plain.value.startswith("Case L-1")
        assert views.letter.file.filename == "letter-L-1.txt"

    def test_a_search_that_finds_nobody_says_so(self, views):
        views.choose.search.value_input = "nobody"
        assert "No applicant has" in views.choose.none.object
        views.choose.search.value_input = "Age"
        assert not views.choose.none.object

    def test_the_field_is_empty_after_a_choice(self, views):
        assert views.choose.search.value == ""
        views.choose.search.value = list(views.choose.names)[3]
        assert views.choose.search.value == ""
        assert views.session.choices.applicant == list(views.session.labels)[3]

    def test_cases_that_repeat_are_told_apart(self, loans):
        dear, rows = loans
        views = view(dear, rows.head(2).set_axis([7, 7]))
        assert list(views.session.labels) == ["7", "7 (row 2)"]


class TestWhatMayChange:
    def test_three_states_are_three_constraints(self, loans, views):
        state(views, "savings", FOLLOWS)
        state(views, "income", STAYS)
        within = views.session._within(views.session.choices, views.session.row)
        assert within.frozen == ["income"]
        assert within.act_on == ["loan_amount"]
        for way in views.session.answer.found:
            assert way.result.outcome["acted_on"].iloc[0] == "loan_amount"

    def test_what_is_not_acted_on_has_two_states(self, views):
        assert views.reach.states["duration"].options == [FOLLOWS, STAYS]

    def test_what_stays_is_in_no_card(self, views):
        assert "Term" in text(views) or "Savings" in text(views)
        for name in ("savings", "duration"):
            state(views, name, STAYS)
        assert "Term" not in text(views)
        assert "Savings" not in text(views)

    def test_a_reach_starts_at_the_own_value_of_what_may_only_rise(self, loans, views):
        _, rows = loans
        for at in range(3):
            least, most = inputs(views, "savings")
            assert least.value == least.start == rows["savings"].iloc[at]
            assert most.value == most.end > least.end - 1e9
            assert least.step == views.session.known["savings"].action_step
            views.choose._step(1)

    def test_a_reach_is_kept_for_the_next_applicant(self, views):
        inputs(views, "savings")[1].value = 36.0
        views.choose._step(1)
        assert inputs(views, "savings")[1].value == 36.0
        saved = [w.result.counterfactuals["savings"].iloc[0] for w in views.session.answer.found]
        assert max(saved) <= 36.0

    def test_a_value_beyond_the_reach_says_so(self, loans):
        dear, rows = loans
        high = rows.assign(savings=dear.schema.features[-1].bounds[1] + 5.0)
        views = view(dear, high)
        assert "Nothing is left to act on" in views.reach.reaches["savings"][0].object

    def test_constraints_are_where_it_starts(self, loans):
        dear, rows = loans
        within = Constraints(
            frozen=["income"], act_on=["savings"], ranges={"savings": (None, 36.0)}
        )
        views = view(dear, rows, within=within)
        assert views.reach.states["income"].value == STAYS
        assert inputs(views, "savings")[1].value == 36.0
        saved = [w.result.counterfactuals["savings"].iloc[0] for w in views.session.answer.ways]
        assert max(saved) <= 36.0


class TestOneVerdict:
    def test_a_weak_way_says_why_and_has_no_letter(self, loans):
        views = weak(loans)
        for way, card, button in zip(
            views.session.answer.found, shown(views), views.cards.buttons, strict=False
        ):
            assert button.disabled == bool(way.why)
            assert ("weak: not for a letter" in card[0].object) == bool(way.why)
            assert ("clearly favour" in card[0].object) <= bool(way.why)
            assert ("can be told" in card[0].object) != bool(way.why)

    def test_ways_that_can_be_told_come_first(self, loans):
        views = weak(loans)
        told = [not way.why for way in views.session.answer.found]
        assert told == sorted(told, reverse=True)
        assert views.cards.buttons[0].label == "In the letter"
        assert "To get the decision you want" in views.letter.plain.value

    def test_another_way_is_taken_into_the_letter(self, loans):
        views = view(*loans)
        for _ in range(60):
            if sum(not way.why for way in views.session.answer.found) > 1:
                break
            views.choose._step(1)
        before = views.letter.plain.value
        views.cards.buttons[1].clicks += 1
        assert views.letter.plain.value == views.session.answer.ways[1].letter != before


class TestByHand:
    def test_what_is_tried_is_what_apply_says(self, loans, views):
        dear, rows = loans
        views._choose(feature="savings")
        (field,) = views.by_hand.value
        assert field.label == "Value of Savings"
        field.value = 45.0
        result = dear.apply(rows.head(1), {"savings": 45.0})
        won = result.actions["success"].iloc[0]
        assert (
            f"The decision is {'' if won else 'not '}the wanted one" in views.by_hand.told.object
        )
        assert views.by_hand.value[0] is field
        points = views.by_hand.picture.object.renderers[-1].data_source.data
        assert list(points["x"]) == [rows["savings"].iloc[0], 45.0]
        assert list(points["y"])[-1] == result.outcome["score_after"].iloc[0]

    def test_the_axes_of_the_curve_have_titles_and_units(self, views):
        views._choose(feature="savings")
        figure = views.by_hand.picture.object
        assert figure.xaxis.axis_label == "Savings (thousand euros)"
        assert figure.yaxis.axis_label == "Score"


class TestAllApplicants:
    def test_kinds_of_advice_are_in_words_with_units_and_percent(self, views):
        views._turn("All applicants")
        words = [kind[0].options[0] for kind in views.kinds.list]
        assert "Increase the savings" in words
        texts = " ".join(kind[1].object for kind in views.kinds.list)
        assert "of 60 applicants" in texts
        assert "%" in texts
        assert "thousand euros" in texts
        assert "=[" not in texts

    def test_a_kind_without_its_tick_is_told_to_nobody(self, views):
        views._turn("All applicants")
        kinds = {kind[0].options[0]: kind[0] for kind in views.kinds.list}
        kinds["Increase the savings"].value = []
        advice = views.session.answer.advice
        assert not ((advice["feature"] == "savings") & (advice["change"] == "up")).any()
        assert "Do: Savings" not in text(views)
        gone = {kind[0].options[0]: kind[0] for kind in views.kinds.list}["Increase the savings"]
        assert gone.value == []
        gone.value = gone.options
        assert "savings" in set(views.session.answer.advice["feature"])

    def test_levels_groups_and_special_values_can_be_excluded(self, mixed, fitted):
        views = view(fitted, mixed.refused(40))
        views._turn("All applicants")
        while len(views.session.answer.advice):
            line = views.session.answer.advice.iloc[0]
            kept = views.kinds.list[0][0]
            kept.value = []
            assert not views.session.answer.error
            after = views.session.answer.advice
            same = (after["feature"] == line["feature"]) & (after["change"] == line["change"])
            assert not same.any()


class TestSavedCases:
    def test_a_saved_case_opens_again(self, loans, views):
        views.choose._step(1)
        state(views, "income", STAYS)
        inputs(views, "savings")[1].value = 40.0
        views._choose(hand={"savings": 33.0}, excluded=[("loan_amount", "down", None)])
        saved = views.case._saved().getvalue()
        other = view(*loans)
        other.case.file.value = saved.encode()
        assert json.loads(other.session.choices.to_json()) == json.loads(saved)
        assert text(other) == text(views)
        assert other.letter.plain.value == views.letter.plain.value
        assert other.reach.states["income"].value == STAYS
        assert inputs(other, "savings")[1].value == 40.0
        assert other.by_hand.told.object == views.by_hand.told.object

    @pytest.mark.parametrize("content", [b"[1", b"\xff", b'{"applicant": "4", "states": {}}'])
    def test_another_file_is_an_error(self, views, content):
        before = text(views)
        views.case.file.value = content
        assert 'role="alert"' in views.case.wrong.object
        assert text(views) == before


class TestKindsOfModelsAndFeatures:
    def test_every_kind_of_feature(self, mixed, fitted):
        rows = mixed.refused(5)
        views = view(fitted, rows)
        assert text(views)
        for feature in views.session.features:
            views._choose(feature=feature.name)
            assert not views.session.answer.error
            assert views.by_hand.picture.object is not None

    def test_missing_values_and_codes(self, mixed):
        frame = mixed.frame.copy()
        frame.loc[::5, "debt"] = np.nan
        frame.loc[1::5, "income"] = -9.0
        frame.loc[2::7, "town"] = None
        schema = Schema.infer(frame, special={"income": [-9.0]})
        score = lambda rows: 1 / (1 + np.exp(3 - rows["debt"].fillna(2.0)))  # noqa: E731
        dear = DEAR(score, schema).fit(frame)
        refused = frame[score(frame) < 0.5].head(8)
        views = view(dear, refused)
        for _ in range(8):
            views.choose._step(1)
            for name in ("debt", "income", "town"):
                views._choose(feature=name)
                assert not views.session.answer.error
            assert "nan" not in views.choose.who.object
            own = refused["debt"].iloc[views.session.labels[views.session.choices.applicant]]
            views._choose(feature="debt")
            assert views.by_hand.value[0].value == (None if np.isnan(own) else own)
        views._turn("All applicants")
        for kind in list(views.kinds.list):
            kind[0].value = []
            assert not views.session.answer.error

    def test_a_regression_shows_values_and_its_range(self, loans):
        dear, rows = loans
        model = lambda frame: 100 * frame["savings"] / frame["duration"]  # noqa: E731
        value = dear.with_model(model, output="values")
        views = view(value, rows, Target.of_range(low=(model(rows) * 1.2).tolist()))
        assert "Predicted value" in text(views)
        assert "decision at" in text(views)
        assert view(value, rows, Target.of_range(low=90.0)).session.answer.ways

    def test_an_applicant_who_is_accepted_or_cannot_be_read(self, loans):
        dear, rows = loans
        views = view(dear.with_model(lambda frame: np.full(len(frame), 0.9)), rows)
        assert "has the wanted decision already" in views.cards.note.object
        assert "You do not have to change anything" in views.letter.plain.value
        views = view(dear, rows.assign(savings=np.nan))
        assert "savings" in views.cards.note.object
        assert "could not read" in views.letter.plain.value

    def test_an_error_of_the_model_is_shown(self, loans):
        dear, rows = loans

        def _broken(frame):
            if len(frame) < 50:
                raise RuntimeError("the scoring service is down")
            return np.full(len(frame), 0.4)

        views = view(dear.with_model(_broken), rows)
        assert "the scoring service is down" in views.cards.note.object
        assert not views.letter.view.visible


class TestExplorer:
    def test_it_says_how_many_and_is_made_anew_for_each_display(self, loans):
        dear, rows = loans
        page = dear.explore(rows)
        assert repr(page) == "Explorer(60 applicants)"
        assert isinstance(page, Explorer)
        assert page.__panel__() is not page.__panel__()

    def test_no_rows_and_constraints_by_row_are_errors(self, loans):
        dear, rows = loans
        with pytest.raises(InputError, match="no rows"):
            dear.explore(rows.head(0))
        with pytest.raises(ConstraintError, match="not by row"):
            dear.explore(rows, within=Constraints(frozen=[["savings"]] * len(rows)))
        with pytest.raises(ConstraintError, match="not by row"):
            dear.explore(rows, within=Constraints(ranges=[{"savings": (0, 40)}] * len(rows)))
