"""What the page shows, without a browser: every kind of model, target and feature."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("panel")

from dear_plugin import DEAR, Constraints, Schema, Target
from dear_plugin.benchmark.work import Work
from dear_plugin.errors import ConstraintError, InputError
from dear_plugin.page import Explorer
from dear_plugin.page.choices import ACT, EVERYONE, FOLLOWS, STAYS
from dear_plugin.page.explorer import Page
from dear_plugin.page.session import Session
from dear_plugin.page.shown import NONE, advice_text, names, shown
from tests.page.conftest import loan_score


class Visit:
    """A person who asks one question after another, each as a case in JSON."""

    def __init__(self, dear, rows, target=None, within=None):
        self.session = Session(*dear.explore(rows, target, within=within)._given)
        self.open(self.choices.to_json())

    @property
    def choices(self):
        return self.session.answer.choices

    def open(self, case):
        self.session.answer = self.session.answered(self.session.opened(case))
        self.shown = shown(self.session, self.session.answer)

    def ask(self, **more):
        self.open(replace(self.choices, **more).to_json())
        return self.shown

    def state(self, name, value):
        return self.ask(states={**self.choices.states, name: value})

    def next(self):
        labels = list(self.session.labels)
        at = labels.index(self.choices.applicant) + 1
        return self.ask(applicant=labels[at % len(labels)])

    def feature(self, name):
        return next(each for each in self.shown["features"] if each["name"] == name)

    @property
    def acted(self):
        """What the ways act on, and what follows."""
        return {line["title"] for way in self.shown["ways"] for line in way["lines"]}


@pytest.fixture
def visit(loans):
    return Visit(*loans)


def weak(loans):
    """A visit to an applicant who has a way that can be told, and one that cannot."""
    visit = Visit(*loans, within=Constraints(act_on=["income", "savings", "loan_amount"]))
    for _ in range(60):
        if len({not way["why"] for way in visit.shown["ways"]}) == 2:
            return visit
        visit.next()
    raise AssertionError("all ways of all applicants are alike")


class TestOneQuestionOneAnswer:
    def test_only_the_answer_to_the_last_question_is_shown(self, loans):
        page = loans[0].explore(loans[1]).__panel__()
        asked = []
        page._later = lambda *question: asked.append(question)
        first = page.session.answer.choices
        stays = replace(first, states={**first.states, "savings": STAYS})
        for turn, choices in enumerate((stays, first), 1):
            page._handle_msg({"turn": turn, "case": choices.to_json()})
        (one, ended, former), (two, stop, last) = asked
        assert page._answered(ended, former) is None
        page._show(one, page.session.answered(former))
        assert page.shown["turn"] == 0
        page._show(two, page._answered(stop, last))
        assert page.shown["turn"] == 2
        assert page.shown["choices"]["states"]["savings"] == ACT

    def test_ways_letter_and_curve_are_of_the_same_answer(self, visit):
        out = visit.state("savings", STAYS)
        assert out["letter"] == visit.session.answer.ways[0].letter
        assert visit.session.features[out["curve"]["name"]].title in visit.acted
        assert out["status"] == f"{len(out['ways'])} way{'s' * (len(out['ways']) != 1)}"

    def test_ways_are_those_of_the_engine(self, loans, visit):
        dear, rows = loans
        others = dear.generate(rows.head(1)).alternatives(4)
        acted = [way.result.actions["acted_on"].iloc[0] for way in visit.session.answer.found]
        assert sorted(acted) == sorted(others["acted_on"])

    def test_a_row_without_an_answer_says_so_in_plain_words(self, loans):
        out = Visit(*loans, within=Constraints(act_on=[])).shown
        assert out["note"] == [NONE]
        assert out["letter"].count("Nothing that you could change here is enough") == 1
        assert "we have no way that we can recommend" in out["letter"]
        assert (out["ways"], out["status"]) == ([], "no ways")


class TestWhoIsShown:
    def test_the_case_is_on_the_page_and_in_the_letter(self, loans):
        dear, rows = loans
        out = Visit(dear, rows.set_axis([f"L-{n}" for n in range(len(rows))])).next()
        assert out["choices"]["applicant"] == "L-1"
        assert any(text.startswith("Age ") for text in out["fixed"])
        assert out["letter"].startswith("Case L-1")

    def test_applicants_are_searched_by_their_case_and_some_values(self, visit, loans):
        found = names(visit.session)
        assert len(found) == len(loans[1])
        line, name = found[3]
        assert line.startswith(f"{name} · Education ")
        assert not re.search("Gender|Age", line)

    def test_cases_that_repeat_are_told_apart(self, loans):
        dear, rows = loans
        assert list(Visit(dear, rows.head(2).set_axis([7, 7])).session.labels) == [
            "7",
            "7 (row 2)",
        ]


class TestWhatMayChange:
    def test_three_states_are_three_constraints(self, visit):
        visit.state("savings", FOLLOWS)
        visit.state("income", STAYS)
        within = visit.session._within(visit.choices)
        assert (within.frozen, within.act_on) == (["income"], ["loan_amount"])
        for way in visit.session.answer.found:
            assert way.result.actions["acted_on"].iloc[0] == "loan_amount"

    def test_what_is_not_acted_on_has_two_states(self, visit):
        assert visit.feature("duration")["states"] == [FOLLOWS, STAYS]
        assert "ends" not in visit.feature("duration")

    def test_what_stays_is_in_no_way(self, visit):
        assert visit.acted & {"Term", "Savings"}
        for name in ("savings", "duration"):
            visit.state(name, STAYS)
        assert not visit.acted & {"Term", "Savings"}

    def test_a_reach_starts_at_the_own_value_of_what_may_only_rise(self, loans, visit):
        _, rows = loans
        savings = visit.session.features["savings"]
        for at in range(3):
            reach = visit.feature("savings")
            assert reach["held"] == list(reach["ends"])
            assert reach["ends"] == (rows["savings"].iloc[at], savings.bounds[1])
            assert reach["step"] == savings.action_step
            visit.next()

    def test_a_reach_holds(self, visit):
        visit.ask(reach={"savings": [None, 36.0]})
        assert visit.feature("savings")["held"][1] == 36.0
        saved = [w.result.counterfactuals["savings"].iloc[0] for w in visit.session.answer.found]
        assert max(saved) <= 36.0

    def test_a_value_beyond_the_reach_says_so(self, loans):
        dear, rows = loans
        high = rows.assign(savings=dear.schema.features[-1].bounds[1] + 5.0)
        assert "Nothing is left to act on" in Visit(dear, high).feature("savings")["none"]

    def test_constraints_are_where_it_starts(self, loans):
        within = Constraints(
            frozen=["income"], act_on=["savings"], ranges={"savings": (None, 36.0)}
        )
        visit = Visit(*loans, within=within)
        assert visit.choices.states["income"] == STAYS
        assert visit.feature("savings")["held"][1] == 36.0
        saved = [w.result.counterfactuals["savings"].iloc[0] for w in visit.session.answer.ways]
        assert max(saved) <= 36.0

    def test_a_limit_holds_and_is_shown_of_what_may_follow(self, loans):
        visit = Visit(*loans, within=Constraints(ranges={"duration": (48, 70)}))
        assert visit.feature("duration")["held"] == [48, 70]
        visit.state("duration", STAYS)
        assert "held" not in visit.feature("duration")

    def test_costs_of_the_constraints_count(self, loans):
        dear, rows = loans
        dearer = Constraints(costs={"savings": 50.0})
        first = Visit(dear, rows, within=dearer).session.answer.ways[0].result
        assert first.actions["cost"].iloc[0] in set(
            dear.generate(rows.head(1), within=dearer).alternatives(4)["cost"]
        )


class TestOneVerdict:
    def test_ways_that_can_be_told_come_first_and_a_weak_way_says_why(self, loans):
        visit = weak(loans)
        ways = visit.shown["ways"]
        assert [bool(way["why"]) for way in ways] == sorted(bool(way["why"]) for way in ways)
        for way in ways:
            assert ("clearly favour" in way["known"]) <= bool(way["why"])
        assert "To get the decision you want" in visit.shown["letter"]

    def test_another_way_is_taken_into_the_letter(self, loans):
        visit = Visit(*loans)
        while sum(not way["why"] for way in visit.shown["ways"]) < 2:
            visit.next()
        before = visit.shown["letter"]
        ways = visit.session.answer.ways
        assert visit.ask(way=1)["letter"] == ways[1].letter != before
        assert visit.session.answer.ways is ways


class TestByHand:
    def test_what_is_tried_is_what_apply_says(self, loans, visit):
        dear, rows = loans
        out = visit.ask(feature="savings", hand={"savings": 45.0})
        result = dear.apply(rows.head(1), {"savings": 45.0})
        won = result.actions["success"].iloc[0]
        assert out["tried"]["head"] == f"The decision is {'' if won else 'not '}the wanted one"
        curve = out["curve"]
        assert (curve["own"], curve["value"]) == (rows["savings"].iloc[0], 45.0)
        assert curve["tried"] == result.actions["score_after"].iloc[0]

    def test_the_axes_of_the_curve_have_titles_and_units(self, visit):
        curve = visit.ask(feature="savings")["curve"]
        assert (curve["title"], curve["score"]) == ("Savings (thousand euros)", "Score")

    def test_values_by_hand_are_those_that_the_applicant_may_take(self, loans, visit):
        own = loans[1]["savings"].iloc[0]
        assert visit.ask(feature="savings")["curve"]["ends"][0] == own


class TestAllApplicants:
    def test_kinds_of_advice_are_in_words_with_units_and_percent(self, visit):
        kinds = visit.ask(applicant=EVERYONE)["kinds"]
        assert "Increase the savings" in [kind["words"] for kind in kinds]
        texts = " ".join(kind["text"] for kind in kinds)
        assert "of 60 applicants" in texts
        assert "%)" in texts
        assert "thousand euros" in texts
        assert "=[" not in texts

    @pytest.mark.parametrize(("goes", "by"), [("1", "by 1 year of"), ("2 (1 to 3)", "years of")])
    def test_one_of_a_unit_has_no_plural(self, visit, goes, by):
        one = {"feature": "education", "change": "up", "rows": 1, "old": 10, "new": 11}
        line = SimpleNamespace(**one, goes=goes, at_edge=0.0, follows="")
        assert f"{by} schooling" in advice_text(visit.session, line)

    def test_a_kind_without_its_tick_is_told_to_nobody(self, visit):
        person = visit.choices.applicant
        kind = next(k for k in visit.ask(applicant=EVERYONE)["kinds"] if "savings" in k["words"])
        out = visit.ask(excluded=[kind["kind"]])
        assert out["kinds"][-1] == {
            **kind,
            "text": "No applicant gets this advice.",
            "ticked": False,
        }
        advice = visit.session.answer.advice
        assert not ((advice["feature"] == "savings") & (advice["change"] == "up")).any()
        ways = visit.ask(applicant=person)["ways"]
        assert ways
        acted = {
            line["title"] for way in ways for line in way["lines"] if line["kind"] == "direct"
        }
        assert "Savings" not in acted
        visit.ask(applicant=EVERYONE, excluded=[])
        assert "savings" in set(visit.session.answer.advice["feature"])

    def test_only_what_is_shown_is_computed(self, visit):
        person, ways = visit.choices.applicant, visit.session.answer.ways
        out = visit.ask(applicant=EVERYONE)
        assert (out["ways"], out["curve"], out["letter"]) == ([], None, "")
        assert visit.ask(applicant=person)["kinds"] is None
        assert visit.session.answer.ways is ways

    def test_levels_groups_and_special_values_can_be_excluded(self, mixed, fitted):
        visit = Visit(fitted, mixed.refused(40))
        visit.ask(applicant=EVERYONE)
        while kinds := [kind for kind in visit.shown["kinds"] if kind["ticked"]]:
            gone = kinds[0]["kind"]
            visit.ask(excluded=[*visit.choices.excluded, gone])
            assert not visit.shown["error"]
            assert gone not in [kind["kind"] for kind in visit.shown["kinds"] if kind["ticked"]]


WRONG = {
    "not JSON": (lambda case: "[1", "this case is not JSON"),
    "no object": (lambda case: "[1]", "this case: expected an object with applicant, states"),
    "keys missing": (lambda case: case.pop("hand"), "this case: expected an object with appl"),
    "keys unknown": (lambda case: case.update(more=1), "with applicant.* got .*'more'"),
    "applicant": (lambda case: case.update(applicant="x"), "applicant: expected one of the 60"),
    "applicant's type": (lambda case: case.update(applicant=[4]), "applicant: expected a text"),
    "states": (lambda case: case["states"].pop("savings"), "states: expected a state of each"),
    "state": (lambda case: case["states"].update(savings=3), "savings'\\]: expected one of"),
    "cannot be acted on": (
        lambda case: case["states"].update(duration=ACT), "states\\['duration'\\]: expected one",
    ),
    "reach's type": (lambda case: case.update(reach=[1]), "reach: expected an object by features"),
    "reach of a text": (
        lambda case: case["reach"].update(savings=["21", 40]),
        "reach\\['savings'\\]: expected \\[least, greatest\\], each a number from .*, or null",
    ),
    "reach of one": (lambda case: case["reach"].update(savings=40), "each a number.* got 40;"),
    "reach beyond its limits": (
        lambda case: case["reach"].update(savings=[-5, None]), "number from .* got 2 values",
    ),
    "reach of three": (lambda case: case["reach"].update(savings=[1, 2, 3]), "got 3 values; corr"),
    "reach, unknown": (lambda case: case["reach"].update(wealth=[1, 2]), "reach: expected feat"),
    "hand": (lambda case: case["hand"].update(savings="x"), "hand\\['savings'\\]: expected a num"),
    "excluded": (lambda case: case["excluded"].append("savings"), "excluded: expected \\[feature"),
    "excluded, unknown": (
        lambda case: case["excluded"].append(["wealth", "up", None]), "excluded: expected",
    ),
    "level": (lambda case: case["excluded"].append(["savings", "up", 3]), "excluded: expected"),
    "feature": (lambda case: case.update(feature="wealth"), "feature: expected one of"),
    "way": (lambda case: case.update(way=True), "way: expected a whole number, got True"),
    "way below 0": (lambda case: case.update(way=-1), "way: expected 0 or more"),
}  # fmt: skip


class TestSavedCases:
    def test_a_saved_case_opens_again(self, loans, visit):
        visit.next()
        visit.state("income", STAYS)
        visit.ask(reach={"savings": [None, 40.0]}, hand={"savings": 33.0})
        visit.ask(excluded=[["loan_amount", "down", None]])
        other = Visit(*loans)
        other.open(visit.choices.to_json())
        assert other.shown == visit.shown
        assert other.feature("savings")["held"][1] == 40.0

    @pytest.mark.parametrize("change", WRONG)
    def test_a_case_that_was_changed_by_hand_is_one_clear_error(self, loans, change):
        page = Page(Session(*loans[0].explore(loans[1])._given))
        before, (spoil, message) = page.shown, WRONG[change]
        case = json.loads(page.session.answer.choices.to_json())
        spoiled = spoil(case)
        text = spoiled if isinstance(spoiled, str) and "[" in spoiled else json.dumps(case)
        with pytest.raises(InputError, match=message):
            page.session.opened(text)
        page._handle_msg({"turn": 1, "case": text})
        assert page.shown["wrong"].endswith("save the case on this page again")
        assert {**before, "turn": 1, "wrong": page.shown["wrong"]} == page.shown

    def test_the_order_of_its_parts_is_free(self, visit):
        case = json.loads(visit.choices.to_json())
        assert visit.session.opened(json.dumps(dict(reversed(case.items())))) == visit.choices

    def test_levels_are_among_those_of_the_feature(self, mixed, fitted):
        visit = Visit(fitted, mixed.refused(3))
        visit.ask(reach={"town": ["A", "B"], "job": ["cook", "judge"]})
        assert [each[0] for each in visit.feature("town")["levels"] if each[2]] == ["A", "B"]
        for reach in ({"town": ["Z"]}, {"town": []}, {"town": "A"}, {"town": [["A"]]}):
            with pytest.raises(InputError, match="'town'\\]: expected a list of levels, each one"):
                visit.ask(reach=reach)


class TestKindsOfModelsAndFeatures:
    def test_every_kind_of_feature(self, mixed, fitted):
        visit = Visit(fitted, mixed.refused(5))
        assert visit.shown["ways"]
        for name in visit.session.features:
            out = visit.ask(feature=name)
            assert not out["error"]
            assert len(out["curve"]["texts"]) == len(out["curve"]["lines"][0])
            known = {"ends", "levels", "none"} & {*visit.feature(name)}
            assert len(known) == 1

    def test_one_hot_columns_are_one_feature_with_levels(self):
        rng = np.random.default_rng(0)
        job = rng.integers(0, 3, 600)
        frame = pd.DataFrame({f"job_{c}": (job == at).astype(int) for at, c in enumerate("abc")})
        frame["amount"] = rng.normal(50 + 5 * job, 10).round(1)

        def score(rows):
            return 1 / (1 + np.exp((65 - rows["amount"] - 8 * rows["job_c"]) / 5))

        dear = DEAR(score, Schema.infer(frame)).fit(frame)
        within = Constraints(categories={"job": ["a", "c"]})
        visit = Visit(dear, frame[score(frame) < 0.5].head(20), within=within)
        assert [each[2] for each in visit.feature("job")["levels"]] == [True, False, True]
        assert visit.ask(feature="job", hand={"job": "c"})["tried"]["lines"][0]["title"] == "job"
        kind = next(
            k["kind"] for k in visit.ask(applicant=EVERYONE)["kinds"] if k["kind"][0] == "job"
        )
        out = visit.ask(excluded=[kind])
        assert kind not in [each["kind"] for each in out["kinds"] if each["ticked"]]

    def test_missing_values_and_codes(self, mixed):
        frame = mixed.frame.copy()
        frame.loc[::5, "debt"] = np.nan
        frame.loc[1::5, "income"] = -9.0
        frame.loc[2::7, "town"] = None
        schema = Schema.infer(frame, special={"income": [-9.0]}).replace(
            "debt", leave_special=True
        )
        score = lambda rows: 1 / (1 + np.exp(3 - rows["debt"].fillna(2.0)))  # noqa: E731
        dear = DEAR(score, schema).fit(frame)
        refused = frame[score(frame) < 0.5].head(8)
        visit = Visit(dear, refused)
        for own in [*refused["debt"].iloc[1:], refused["debt"].iloc[0]]:
            visit.next()
            for name in ("debt", "income", "town"):
                assert not visit.ask(feature=name)["error"]
            assert "nan" not in str(visit.shown["fixed"])
            value = visit.ask(feature="debt")["curve"]["value"]
            assert value == (None if np.isnan(own) else own)
        kinds = visit.ask(applicant=EVERYONE)["kinds"]
        assert ["debt", "from or to a special value", None] in [kind["kind"] for kind in kinds]
        for kind in kinds:
            assert not visit.ask(excluded=[kind["kind"]])["error"]

    def test_a_regression_shows_values_and_its_range(self, loans):
        dear, rows = loans
        model = lambda frame: 100 * frame["savings"] / frame["duration"]  # noqa: E731
        value = dear.with_model(model, output="values")
        out = Visit(value, rows, Target.of_range(low=(model(rows) * 1.2).tolist())).shown
        assert out["curve"]["score"] == "Predicted value"
        assert out["ways"][0]["wanted"] == [pytest.approx(model(rows).iloc[0] * 1.2), None]
        assert Visit(value, rows, Target.of_range(low=90.0)).shown["letter"]

    def test_values_are_written_as_letters_write_them(self):
        """A year was 1,980, a truth value False, and an amount 13900 euros."""
        n = 400
        frame = pd.DataFrame(
            {
                "founded": 1900 + np.arange(n) % 100,
                "insured": 12_000.0 + 10 * np.arange(n),
                "barn": np.arange(n) % 3 == 0,
            }
        )
        model = lambda rows: (rows["insured"] / 30_000).clip(0, 1)  # noqa: E731
        schema = Schema.infer(frame, units={"insured": "euros"}, immutable=["founded", "barn"])
        visit = Visit(DEAR(model, schema).fit(frame), frame.iloc[[41]])
        assert visit.shown["fixed"] == ["founded 1941", "barn no"]
        assert visit.feature("insured")["now"] == "12,410 euros"
        (line,) = visit.shown["ways"][0]["lines"]
        assert re.fullmatch(r"12,410 → \d\d,\d{3} euros", line["text"])

    def test_an_applicant_who_is_accepted_or_cannot_be_read(self, loans):
        dear, rows = loans
        out = Visit(dear.with_model(lambda frame: np.full(len(frame), 0.9)), rows).shown
        assert "has the wanted decision already" in out["note"][0]
        assert "You do not have to change anything" in out["letter"]
        out = Visit(dear, rows.assign(savings=np.nan)).shown
        (note,) = out["note"]
        assert "savings" in note
        assert "could not read" in out["letter"]

    def test_an_error_of_the_model_is_shown(self, loans):
        dear, rows = loans

        def _broken(frame):
            if 0 < len(frame) < 50:
                raise RuntimeError("the scoring service is down")
            return np.full(len(frame), 0.4)

        out = Visit(dear.with_model(_broken), rows).shown
        assert "the scoring service is down" in out["error"]
        assert (out["letter"], out["curve"]) == ("", None)


class TestWork:
    """What a click costs, whatever the machine."""

    @pytest.fixture
    def counted(self, loans):
        (dear, rows), calls = loans, []

        def _score(frame):
            calls.append(len(frame))
            return loan_score(frame)

        return Visit(dear.with_model(_score), rows), calls

    def test_of_a_click_in_model_calls(self, counted):
        visit, calls = counted
        for ask, most in (
            (visit.next, 18),
            (lambda: visit.state("savings", STAYS), 18),
            (lambda: visit.ask(reach={"income": [None, 50.0]}), 18),
            (lambda: visit.ask(hand={"loan_amount": 20.0}), 6),
            (lambda: visit.ask(way=1), 0),
            (lambda: visit.ask(applicant=EVERYONE), 32),
        ):
            calls.clear()
            ask()
            assert len(calls) <= most

    def test_of_a_click_on_forty_features(self, wide):
        """Some of the first clicks fit the resamples of sets of features; the others do not."""
        visit, counted = Visit(*wide), []
        for _ in range(9):
            with Work(SimpleNamespace()) as work:
                visit.next()
            counted.append(work.counts())
        assert np.median([each["operations"] for each in counted]) < 18_000
        assert np.median([each["calls"] for each in counted]) < 42_000
        with Work(SimpleNamespace()) as work:
            visit.ask(way=1)
        assert work.counts()["operations"] < 200

    def test_of_what_was_answered_before_only_a_curve(self, counted):
        visit, calls = counted
        first = visit.choices
        visit.next()
        calls.clear()
        ways = visit.ask(**vars(first))["ways"]
        assert ways
        assert len(calls) <= 2


class TestExplorer:
    def test_it_says_how_many_and_is_made_anew_for_each_display(self, loans):
        dear, rows = loans
        page = dear.explore(rows)
        assert repr(page) == "Explorer(60 applicants)"
        assert isinstance(page, Explorer)
        assert page.__panel__() is not page.__panel__()

    @pytest.mark.parametrize(
        ("within", "message"),
        [
            (lambda n: Constraints(frozen=[["savings"]] * n), "not by row"),
            (lambda n: Constraints(ranges=[{"savings": (0, 40)}] * n), "not by row"),
            (lambda n: Constraints(frozen=["savngs"]), "did you mean 'savings'"),
            (lambda n: Constraints(ranges={"savings": (40, 0)}), "low must not exceed high"),
        ],
    )
    def test_constraints_that_do_not_fit_are_errors(self, loans, within, message):
        with pytest.raises(ConstraintError, match=message):
            loans[0].explore(loans[1], within=within(len(loans[1])))

    def test_no_rows_are_an_error(self, loans):
        with pytest.raises(InputError, match="no rows"):
            loans[0].explore(loans[1].head(0))
