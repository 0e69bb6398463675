"""Cutoffs: models whose `predict` is not the likeliest class of `predict_proba`."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from dear_plugin import DEAR, Search, Target
from dear_plugin.errors import ModelError
from dear_plugin.models.classifier import Classifier, cutoffs
from dear_plugin.rivals import NearestAccepted
from tests.thresholded import Thresholded

SLOW = pytest.mark.slow


def rejected(model, frame, label=1, n=25):
    return frame[model.predict(frame) != label].head(n)


def log_odds(p):
    return np.log(p / (1.0 - p))


def own_decisions(result, decide, label):
    """The decisions of a model on the rows of a result, which are its successes."""
    own = decide(result.counterfactuals) == label
    assert result.actions["success"].tolist() == own.tolist()
    return own


class TestThresholds:
    @pytest.mark.parametrize(
        "threshold", [0.3, 0.95, pytest.param(0.1, marks=SLOW), pytest.param(0.7, marks=SLOW)]
    )
    def test_results_equal_those_of_a_known_threshold(self, threshold, mixed):
        model = Thresholded(mixed.pipeline, threshold)
        factuals = rejected(model, mixed.frame)

        def shifted(frame):
            p = model.predict_proba(frame)[:, 1].clip(1e-9, 1.0 - 1e-9)
            return 1.0 / (1.0 + np.exp(log_odds(threshold) - log_odds(p)))

        known, learned = (
            DEAR(each, mixed.schema, search=Search(max_features=1))
            .fit(mixed.frame)
            .generate(factuals)
            .actions
            for each in (shifted, model)
        )
        both = known["success"] & learned["success"]
        assert learned["success"].sum() >= known["success"].sum() - 1
        # The margin is measured from the cut-off, which is estimated.
        assert (learned["cost"] / known["cost"])[both].median() <= 1.01
        more = (learned["cost"] - known["cost"])[both].sort_values()
        assert more[:-1].sum() <= 0.1 * known["cost"][both].sum()

    @pytest.mark.parametrize("threshold", [0.02, 0.3, 0.97])
    def test_with_few_rows_near_the_cutoff_rows_near_it_are_recombined(self, threshold, mixed):
        few = mixed.frame.head(60)
        dear = DEAR(Thresholded(mixed.pipeline, threshold), mixed.schema).fit(few)
        found = cutoffs(dear.classifier, dear.encoder.rows(few))
        assert float(found[0, 1]) == pytest.approx(log_odds(threshold), abs=0.1)

    def test_the_model_may_accept_none_of_the_training_rows(self, mixed):
        p = mixed.pipeline.predict_proba(mixed.frame)[:, 1]
        few = mixed.frame[p < 0.8].head(200)
        model = Thresholded(mixed.pipeline, 0.9)
        assert not (model.predict(few) == 1).any()
        result = DEAR(model, mixed.schema).fit(few).generate(few.head(30))
        assert own_decisions(result, model.predict, 1).mean() >= 0.8

    def test_below_one_half_the_probability_decides_and_predict_is_not_called(self, mixed):
        model = Thresholded(mixed.pipeline, 0.7)
        factuals = mixed.frame.head(40)
        dear = DEAR(model, mixed.schema).fit(mixed.frame)
        actions = dear.generate(factuals, Target.of_class(1, threshold=0.2)).actions
        before = model.predict_proba(factuals)[:, 1] >= 0.2
        assert (actions["reason"] == "already accepted").tolist() == before.tolist()
        assert actions["success"].all()
        assert actions["score_after"][~before].between(0.2, 0.5).any()
        assert model.sizes == []

    def test_predicting_the_likeliest_class_has_no_effect(self, mixed):
        factuals = rejected(mixed.pipeline, mixed.frame)
        one = DEAR(mixed.pipeline, mixed.schema).fit(mixed.frame)
        other = one.with_model(lambda frame: mixed.pipeline.predict_proba(frame))
        assert cutoffs(one.classifier, one.encoder.rows(mixed.frame)) is None
        pd.testing.assert_frame_equal(
            one.generate(factuals).counterfactuals, other.generate(factuals).counterfactuals
        )


class Weighted:
    """A classifier with class weights, whose prediction does not depend on one margin alone."""

    def __init__(self, fitted, weights):
        self.classes_, self.weights = fitted.classes_, np.array(weights)
        self.predict_proba = fitted.predict_proba

    def predict(self, frame):
        return self.classes_[(self.predict_proba(frame) * self.weights).argmax(1)]


@pytest.mark.parametrize("wanted", ["high", "mid"])
def test_of_many_classes_success_is_the_decision_of_predict_and_frequent(wanted, mixed):
    points = mixed.frame["income"] - 2 * mixed.frame["debt"]
    labels = np.array(pd.qcut(points, 3, labels=["low", "mid", "high"]), dtype=str)
    model = Weighted(clone(mixed.pipeline).fit(mixed.frame, labels), [0.3, 1.0, 0.6])
    dear = DEAR(model, mixed.schema).fit(mixed.frame)
    result = dear.generate(rejected(model, mixed.frame, wanted), Target.of_class(wanted))
    assert own_decisions(result, model.predict, wanted).mean() >= 0.9


class Says:
    """A model with the probabilities of another one and a `predict` of its own."""

    def __init__(self, other, predict, classes=None):
        self.predict_proba, self.predict = other.predict_proba, predict
        if classes is not None:
            self.classes_ = np.array(classes)


@pytest.mark.parametrize("method", [DEAR, NearestAccepted])
def test_an_unrelated_predict_causes_no_false_success(method, mixed):
    def women_of_small_debt(frame):
        return ((frame["debt"] < 2.0) & (frame["gender"] == "female")).to_numpy(int)

    model = Says(mixed.pipeline, women_of_small_debt, [0, 1])
    result = method(model, mixed.schema).fit(mixed.frame).generate(rejected(model, mixed.frame))
    own = own_decisions(result, model.predict, 1)
    assert not own.all()
    assert result.actions["reason"][~own].str.len().gt(0).all()


class TestOutputOfPredict:
    """Outputs that are no classes are rejected, with advice."""

    def decisions(self, mixed, returned, classes):
        model = Says(mixed.pipeline, lambda frame: returned, classes)
        return Classifier(model, mixed.encoder).decisions(mixed.frame.head(3))

    @pytest.mark.parametrize(
        "returned",
        [
            np.array([0, 1, 1]),
            np.array([[0.0], [1.0], [1.0]]),
            np.array([False, True, True]),
            [0, 1, 1],
            pd.Series([0, 1, 1]),
            np.array([0, 1, 1], dtype=object),
        ],
    )
    @pytest.mark.parametrize("classes", [None, [0, 1], [False, True]], ids=str)
    def test_classes_in_any_form(self, mixed, returned, classes):
        assert self.decisions(mixed, returned, classes).tolist() == [0, 1, 1]

    @pytest.mark.parametrize(
        ("returned", "classes", "message"),
        [
            (np.array([0.3, 0.7, 0.1]), None, "returned 0.3, which is none"),
            (np.array([0.3, 0.7, 0.1]), [0, 1], "0.3.* classes \\[0, 1\\]"),
            (np.array(["a", "b", "a"]), None, "'a'.*no classes_, so numbers from 0"),
            (np.array([0, np.nan, 1]), [0, 1], "nan"),
            (np.zeros((3, 2)), None, "m = 3 rows and returned shape \\(3, 2\\)"),
        ],
    )
    def test_what_is_no_class_is_rejected(self, mixed, returned, classes, message):
        with pytest.raises(ModelError, match=f"{message}.*pass the function"):
            self.decisions(mixed, returned, classes)
