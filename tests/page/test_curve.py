"""Ways and curves: what a page shows is what generate, alternatives and apply say."""

import numpy as np
import pandas as pd
import pytest
import torch

pytest.importorskip("panel")

from dear_plugin import Constraints, Schema, Target
from dear_plugin.page import session
from tests.rounding import near


def curve(dear, row, feature, actions=None, within=None):
    """The curve of a feature, whatever is acted on beside it."""
    within = Constraints() if within is None else within
    return session.curve(dear, row, feature, actions or {}, within=within, target=None)


def test_a_target_has_the_values_of_one_row():
    target = Target.of_range(low=[1.0, 2.0], high=5.0)
    assert (target.at(1).low, target.at(1).high) == (2.0, 5.0)
    assert Target.of_class(["a", "b"]).at(0).label == "a"
    assert Target.of_class("a", threshold=0.7).at(3) == Target.of_class("a", threshold=0.7)


class TestCurve:
    def test_each_value_is_that_of_apply(self, mixed, fitted):
        row = mixed.refused(1)
        for name in ("income", "job", "member"):
            found = curve(fitted, row, name)
            for line in found.dropna().itertuples():
                if line.value != row[name].iloc[0]:
                    tried = fitted.apply(row, {name: line.value}).actions
                    assert tried["score_after"].iloc[0] == near(line.with_what_follows)
                    alone = row.assign(**{name: row[name].astype(object)})
                    alone[name] = pd.Series([line.value], row.index).astype(row[name].dtype)
                    scored = fitted.generate(alone).actions["score_before"].iloc[0]
                    assert scored == near(line.all_else_frozen)

    def test_other_actions_hold_along_the_curve(self, mixed, fitted):
        row = mixed.refused(1)
        found = curve(fitted, row, "income", {"job": "judge"})
        line = found.dropna().iloc[-1]
        both = fitted.apply(row, {"job": "judge", "income": line["value"]}).actions
        assert both["score_after"].iloc[0] == near(line["with_what_follows"])

    def test_a_frozen_feature_has_no_curve(self, mixed, fitted):
        row = mixed.refused(1)
        found = curve(fitted, row, "income", within=Constraints(["income"]))
        others = found["value"] != row["income"].iloc[0]
        assert found["with_what_follows"][others].isna().all()

    def test_a_code_is_no_value_of_a_curve(self):
        frame = pd.DataFrame({"hours": np.r_[np.arange(60, 101), np.full(9, 99)]})
        (hours,) = Schema.infer(frame, special={"hours": [99]})
        assert {98.0, 100.0} <= {*session.curve_values(hours)}
        assert 99.0 not in session.curve_values(hours)


def wanted(result):
    """(n, 2) the ends of the wanted scores, which the page draws."""
    return result.question.case.goal.wanted(torch.zeros(len(result))).numpy()


class TestWanted:
    def test_scores_between_the_ends_are_successes(self, mixed, fitted):
        for target in (1, 0, Target.of_class(1, threshold=0.8), Target.of_class(1, threshold=0.3)):
            result = fitted.generate(mixed.frame.head(200), target)
            before, accepted = result.actions["score_before"], result.question.accepted.numpy()
            least, greatest = wanted(result).T
            assert ((before >= least) == accepted)[np.abs(before - least) > 1e-6].all()
            assert (greatest == 1.0).all()

    def test_a_range_is_that_of_the_target(self, mixed, fitted):
        values = fitted.with_model(lambda f: f["income"], output="values")
        found = values.generate(mixed.frame.head(2), Target.of_range([30.0, 40.0], 90.0))
        assert wanted(found).tolist() == [[30.0, 90.0], [40.0, 90.0]]
