"""Cutoffs: models whose `predict` is not the likeliest class of `predict_proba`."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from dear_plugin import DEAR, Schema, Search, Target
from dear_plugin.baselines import NearestAccepted
from dear_plugin.errors import ModelError
from dear_plugin.models.classifier import Classifier
from dear_plugin.models.cutoffs import cutoffs
from tests.thresholded import Thresholded


def pipeline(model, study, labels=None):
    """A pipeline on the mixed frame."""
    words = list(study.frame.select_dtypes(exclude="number"))
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), words), remainder=StandardScaler()
    )
    fitted = make_pipeline(columns, model)
    return fitted.fit(study.frame, study.labels if labels is None else labels)


@pytest.fixture(scope="module")
def models(mixed):
    forest = RandomForestClassifier(15, min_samples_leaf=5, random_state=0)
    return {
        "linear": pipeline(LogisticRegression(max_iter=500), mixed),
        "forest": pipeline(forest, mixed),
    }


def rejected(model, frame, label=1, n=25):
    return frame[model.predict(frame) != label].head(n)


def log_odds(p):
    return np.log(p / (1.0 - p))


@pytest.mark.parametrize(
    "threshold", [0.3, 0.95, *(pytest.param(each, marks=pytest.mark.slow) for each in (0.1, 0.7))]
)
@pytest.mark.parametrize("kind", ["linear", pytest.param("forest", marks=pytest.mark.slow)])
class TestThresholds:
    @pytest.fixture
    def fitted(self, kind, threshold, mixed, models):
        model = Thresholded(models[kind], threshold)
        factuals = rejected(model, mixed.frame)
        search = Search(max_features=1)
        return model, factuals, DEAR(model, mixed.schema, search=search).fit(mixed.frame)

    def test_results_equal_those_of_a_known_threshold(self, fitted, threshold, mixed):
        model, factuals, dear = fitted

        def shifted(frame):
            p = model.predict_proba(frame)[:, 1].clip(1e-9, 1.0 - 1e-9)
            return 1.0 / (1.0 + np.exp(log_odds(threshold) - log_odds(p)))

        other = DEAR(shifted, mixed.schema, search=dear.search).fit(mixed.frame)
        known = other.generate(factuals).actions
        learned = dear.generate(factuals).actions
        both = known["success"] & learned["success"]
        assert learned["success"].sum() >= known["success"].sum() - 1
        # The margin is measured from the cut-off, which is estimated: on the steps of a forest a
        # row may need another action.
        ratio = learned["cost"][both] / known["cost"][both]
        assert ratio.median() <= 1.01
        more = (learned["cost"] - known["cost"])[both].sort_values()
        assert more[:-1].sum() <= 0.1 * known["cost"][both].sum()


class TestFewTrainingRows:
    """With few rows near the cutoff, rows near it are recombined."""

    @pytest.mark.parametrize("threshold", [0.02, 0.3, 0.97])
    def test_the_cutoff_is_estimated(self, threshold, mixed, models):
        model = Thresholded(models["linear"], threshold)
        few = mixed.frame.head(60)
        encoder = Schema.infer(few)
        dear = DEAR(model, encoder).fit(few)
        found = cutoffs(dear.classifier, dear.encoder.rows(few))
        assert float(found[0, 1]) == pytest.approx(log_odds(threshold), abs=0.1)

    def test_the_model_may_accept_none_of_them(self, mixed, models):
        p = models["linear"].predict_proba(mixed.frame)[:, 1]
        few = mixed.frame[p < 0.8].head(200)
        model = Thresholded(models["linear"], 0.9)
        assert not (model.predict(few) == 1).any()
        result = DEAR(model, mixed.schema).fit(few).generate(few.head(30))
        own = model.predict(result.counterfactuals) == 1
        assert result.actions["success"].tolist() == own.tolist()
        assert own.mean() >= 0.8


class Weighted:
    """A classifier with class weights, whose prediction does not depend on one margin alone."""

    def __init__(self, fitted, weights):
        self.fitted, self.classes_, self.weights = fitted, fitted.classes_, np.array(weights)

    def predict_proba(self, frame):
        return self.fitted.predict_proba(frame)

    def predict(self, frame):
        return self.classes_[(self.predict_proba(frame) * self.weights).argmax(1)]


@pytest.fixture(scope="module", params=["weighted", "support vectors"])
def three(request, mixed):
    points = mixed.frame["income"] - 2 * mixed.frame["debt"]
    labels = np.array(pd.qcut(points, 3, labels=["low", "mid", "high"]), dtype=str)
    if request.param == "weighted":
        fitted = pipeline(LogisticRegression(max_iter=500), mixed, labels)
        return Weighted(fitted, [0.3, 1.0, 0.6])
    # Platt's probabilities of several classes need not agree with the votes.
    with warnings.catch_warnings(category=FutureWarning, action="ignore"):
        return pipeline(SVC(probability=True, random_state=0), mixed, labels)


class TestManyClasses:
    @pytest.mark.parametrize("wanted", ["high", "mid"])
    def test_success_is_the_decision_of_predict_and_frequent(self, three, wanted, mixed):
        model = three
        factuals = rejected(model, mixed.frame, wanted)
        dear = DEAR(model, mixed.schema).fit(mixed.frame)
        result = dear.generate(factuals, Target.of_class(wanted))
        own = model.predict(result.counterfactuals) == wanted
        assert result.actions["success"].tolist() == own.tolist()
        assert own.mean() >= 0.9


class TestContradiction:
    def test_an_unrelated_predict_causes_no_false_success(self, mixed, models):
        class Two:
            classes_ = np.array([0, 1])
            predict_proba = staticmethod(models["linear"].predict_proba)
            predict = staticmethod(models["forest"].predict)

        factuals = rejected(Two, mixed.frame)
        for method in (DEAR, NearestAccepted):
            result = method(Two(), mixed.schema).fit(mixed.frame).generate(factuals)
            own = models["forest"].predict(result.counterfactuals) == 1
            assert result.actions["success"].tolist() == own.tolist()
            assert result.actions["reason"][~own].str.len().gt(0).all()


class TestThresholdOfATarget:
    def test_below_one_half_the_probability_decides_and_predict_is_not_called(self, mixed, models):
        model = Thresholded(models["linear"], 0.7)
        factuals = mixed.frame.head(40)
        dear = DEAR(model, mixed.schema).fit(mixed.frame)
        actions = dear.generate(factuals, Target.of_class(1, threshold=0.2)).actions
        before = model.predict_proba(factuals)[:, 1] >= 0.2
        assert (actions["reason"] == "already accepted").tolist() == before.tolist()
        assert actions["success"].all()
        assert actions["score_after"][~before].between(0.2, 0.5).any()
        assert model.sizes == []

    @pytest.mark.slow
    def test_above_one_half_both_are_needed(self, mixed, models):
        factuals = mixed.frame.head(40)
        for cutoff, threshold in ((0.6, 0.8), (0.8, 0.6)):
            model = Thresholded(models["linear"], cutoff)
            dear = DEAR(model, mixed.schema).fit(mixed.frame)
            result = dear.generate(factuals, Target.of_class(1, threshold=threshold))
            p = model.predict_proba(result.counterfactuals)[:, 1]
            both = (p >= threshold) & (model.predict(result.counterfactuals) == 1)
            assert result.actions["success"].tolist() == both.tolist()
            assert p[both].min() >= 0.8


class TestCalls:
    def test_predicting_the_likeliest_class_has_no_effect(self, mixed, models):
        factuals = rejected(models["linear"], mixed.frame)
        one = DEAR(models["linear"], mixed.schema).fit(mixed.frame)
        other = one.with_model(lambda frame: models["linear"].predict_proba(frame))
        assert cutoffs(one.classifier, one.encoder.rows(mixed.frame)) is None
        pd.testing.assert_frame_equal(
            one.generate(factuals).counterfactuals, other.generate(factuals).counterfactuals
        )


class TestOutputOfPredict:
    """Outputs that are no classes are rejected, with advice."""

    def decisions(self, mixed, models, returned, classes=None):
        class Model:
            predict_proba = staticmethod(models["linear"].predict_proba)
            predict = staticmethod(returned)

        model = Model()
        if classes is not None:
            model.classes_ = np.array(classes)
        classifier = Classifier(model, mixed.encoder)
        return classifier.decisions(mixed.frame.head(3))

    @pytest.mark.parametrize(
        "returned",
        [
            lambda f: np.array([0, 1, 1]),
            lambda f: np.array([[0.0], [1.0], [1.0]]),
            lambda f: np.array([False, True, True]),
            lambda f: [0, 1, 1],
            lambda f: pd.Series([0, 1, 1]),
            lambda f: np.array([0, 1, 1], dtype=object),
        ],
    )
    @pytest.mark.parametrize("classes", [None, [0, 1], [False, True]], ids=str)
    def test_classes_in_any_form(self, mixed, models, returned, classes):
        assert self.decisions(mixed, models, returned, classes).tolist() == [0, 1, 1]

    @pytest.mark.parametrize(
        ("returned", "classes", "message"),
        [
            (lambda f: np.array([0.3, 0.7, 0.1]), None, "returned 0.3, which is none"),
            (lambda f: np.array([0.3, 0.7, 0.1]), [0, 1], "0.3.* classes \\[0, 1\\]"),
            (lambda f: np.array(["a", "b", "a"]), None, "'a'.*numbers from 0: it has no classes_"),
            (lambda f: np.array([0, np.nan, 1]), [0, 1], "nan"),
            (lambda f: np.zeros((3, 2)), None, "m = 3 rows and returned shape \\(3, 2\\)"),
        ],
    )
    def test_what_is_no_class_is_rejected(self, mixed, models, returned, classes, message):
        with pytest.raises(ModelError, match=f"{message}.*pass the function"):
            self.decisions(mixed, models, returned, classes)
