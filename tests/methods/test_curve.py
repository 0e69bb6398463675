"""Ways and curves: what a page shows is what generate, alternatives and apply say."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import Constraints, Target
from dear_plugin.errors import InputError, SchemaError
from tests.rounding import near


def test_a_target_has_the_values_of_one_row():
    target = Target.of_range(low=[1.0, 2.0], high=5.0)
    assert (target.at(1).low, target.at(1).high) == (2.0, 5.0)
    assert Target.of_class(["a", "b"]).at(0).label == "a"
    assert Target.of_class("a", threshold=0.7).at(3) == Target.of_class("a", threshold=0.7)


class TestCurve:
    def test_each_value_is_that_of_apply(self, mixed, fitted):
        row = mixed.refused(1)
        for name in ("income", "job", "member"):
            curve = fitted.curve(row, name)
            for line in curve.dropna().itertuples():
                if line.value != row[name].iloc[0]:
                    tried = fitted.apply(row, {name: line.value}).actions
                    assert tried["score_after"].iloc[0] == near(line.with_what_follows)
                    alone = row.assign(**{name: row[name].astype(object)})
                    alone[name] = pd.Series([line.value], row.index).astype(row[name].dtype)
                    scored = fitted.generate(alone).actions["score_before"].iloc[0]
                    assert scored == near(line.all_else_frozen)

    def test_other_actions_hold_along_the_curve(self, mixed, fitted):
        row = mixed.refused(1)
        curve = fitted.curve(row, "income", {"job": "judge"})
        line = curve.dropna().iloc[-1]
        both = fitted.apply(row, {"job": "judge", "income": line["value"]}).actions
        assert both["score_after"].iloc[0] == near(line["with_what_follows"])

    def test_other_actions_may_be_a_series(self, mixed, fitted):
        row, actions = mixed.refused(1), {"job": "judge"}
        given = fitted.curve(row, "income", pd.Series(actions))
        pd.testing.assert_frame_equal(given, fitted.curve(row, "income", actions))

    def test_a_frozen_feature_has_no_curve(self, mixed, fitted):
        row = mixed.refused(1)
        curve = fitted.curve(row, "income", within=Constraints(["income"]))
        others = curve["value"] != row["income"].iloc[0]
        assert curve["with_what_follows"][others].isna().all()

    def test_several_rows_and_unknown_features_are_errors(self, mixed, fitted):
        with pytest.raises(InputError, match="one row, got 2"):
            fitted.curve(mixed.refused(2), "income")
        with pytest.raises(SchemaError, match="incom"):
            fitted.curve(mixed.refused(1), "incom")


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
