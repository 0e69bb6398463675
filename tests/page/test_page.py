"""What the page asks of the engine, without a browser: every kind of model, target and feature."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("panel")

from dear_plugin import DEAR, Constraints, Schema, Target
from dear_plugin.errors import ConstraintError, InputError
from dear_plugin.page import Explorer
from dear_plugin.page.explorer import _View
from dear_plugin.page.session import Session


def view(dear, rows, target=None, within=None):
    """The views of a new session."""
    views = _View(Session(*dear.explore(rows, target, within=within)._asked))

    def _at_once(*works):
        for work in works:
            work()
        views._show()

    views._later = _at_once
    return views


def text(views):
    """The text of all cards that are shown."""
    shown = [card for card in views.cards.cards if card.visible]
    return "".join(card[0].object for card in shown)


def answered(views):
    """The views after what was chosen is answered."""
    views._ask()
    return text(views)


class TestChoices:
    def test_ways_are_those_of_the_engine(self, loans):
        dear, rows = loans
        views = view(dear, rows)
        label = rows.index[:1]
        pd.testing.assert_frame_equal(
            views.session.ways[0].counterfactuals, dear.generate(rows.loc[label]).counterfactuals
        )
        others = dear.generate(rows.loc[label]).alternatives(4)
        acted = [way.outcome["acted_on"].iloc[0] for way in views.session.ways]
        assert acted == others["acted_on"].tolist()

    def test_a_frozen_feature_is_in_no_card(self, loans):
        views = view(*loans)
        assert "Term" in text(views) or "Savings" in text(views)
        for name in ("savings", "duration"):
            views.reach.ticks[name].value = []
        assert views.session.frozen == {"savings", "duration"}
        found = answered(views)
        assert "Term" not in found and "Savings" not in found

    def test_constraints_are_where_it_starts(self, loans):
        dear, rows = loans
        within = Constraints(
            frozen=["income"], act_on=["savings"], ranges={"savings": (None, 36.0)}
        )
        views = view(dear, rows, within=within)
        assert views.reach.ticks["income"].value == []
        assert views.session.asked["within"].ranges == {"savings": (None, 36.0)}
        saved = [way.counterfactuals["savings"].iloc[0] for way in views.session.ways]
        assert max(saved) <= 36.0

    def test_a_row_without_an_answer_says_so(self, loans):
        views = view(*loans, within=Constraints(act_on=[]))
        assert "No way was found" in views.cards.note.object
        assert "we have no way that we can recommend" in views.letter.plain.value


class TestByHand:
    def test_what_is_tried_is_what_apply_says(self, loans):
        dear, rows = loans
        views = view(dear, rows)
        views.session.hand["savings"] = 45.0
        answered(views)
        said = views.by_hand.told.object
        result = dear.apply(rows.head(1), {"savings": 45.0})
        won = result.actions["success"].iloc[0]
        assert f"The decision is {'' if won else 'not '}the wanted one" in said


class TestKindsOfModelsAndFeatures:
    def test_every_kind_of_feature(self, mixed, fitted):
        rows = mixed.refused(5)
        views = view(fitted, rows)
        assert text(views)
        for feature in views.session.features:
            views.by_hand.at = feature
            answered(views)
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
            answered(views)
            assert views.session.ways, views.session.error
            assert "nan" not in views.choose.facts.object

    def test_a_regression_shows_values_and_its_range(self, loans):
        dear, rows = loans
        model = lambda frame: 100 * frame["savings"] / frame["duration"]  # noqa: E731
        value = dear.with_model(model, output="values")
        views = view(value, rows, Target.of_range(low=(model(rows) * 1.2).tolist()))
        assert "Predicted value" in text(views)
        assert "decision at" in text(views)
        assert view(value, rows, Target.of_range(low=90.0)).session.ways

    def test_an_error_of_the_model_is_shown(self, loans):
        dear, rows = loans

        def _broken(frame):
            if len(frame) < 50:
                raise RuntimeError("the scoring service is down")
            return np.full(len(frame), 0.4)

        views = view(dear.with_model(_broken), rows)
        assert "the scoring service is down" in views.cards.note.object


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
