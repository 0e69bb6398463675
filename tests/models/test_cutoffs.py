"""A model's own decision: `predict` beside `predict_proba` decides, and the search knows where."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import fbeta_score, make_scorer
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
    forest = RandomForestClassifier(30, min_samples_leaf=5, random_state=0)
    return {
        "linear": pipeline(LogisticRegression(max_iter=500), mixed),
        "forest": pipeline(forest, mixed),
    }


def refused(model, frame, wanted=1, n=40):
    return frame[model.predict(frame) != wanted].head(n)


def log_odds(p):
    return np.log(p / (1.0 - p))


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("kind", ["linear", "forest"])
class TestThresholds:
    @pytest.fixture
    def asked(self, kind, threshold, mixed, models):
        model = Thresholded(models[kind], threshold)
        people = refused(model, mixed.frame)
        search = Search(groups=False)
        return model, people, DEAR(model, mixed.schema, search=search).fit(mixed.frame)

    def test_success_is_what_predict_says(self, asked):
        model, people, dear = asked
        result = dear.generate(people)
        own = model.predict(result.counterfactuals) == 1
        assert result.actions["success"].tolist() == own.tolist()
        assert own.any()

    def test_nobody_refused_is_already_accepted_and_the_others_are(self, asked, mixed):
        model, _, dear = asked
        accepted = model.predict(mixed.frame.head(60)) == 1
        reasons = dear.generate(mixed.frame.head(60)).actions["reason"]
        assert (reasons == "already accepted").tolist() == accepted.tolist()

    def test_the_answers_are_those_of_a_known_threshold(self, asked, threshold, mixed):
        model, people, dear = asked

        def shifted(frame):
            p = model.predict_proba(frame)[:, 1].clip(1e-9, 1.0 - 1e-9)
            return 1.0 / (1.0 + np.exp(log_odds(threshold) - log_odds(p)))

        other = DEAR(shifted, mixed.schema, search=Search(groups=False)).fit(mixed.frame)
        known = other.generate(people).actions
        learned = dear.generate(people).actions
        both = known["success"] & learned["success"]
        assert learned["success"].sum() >= known["success"].sum() - 1
        assert learned["cost"][both].sum() <= 1.02 * known["cost"][both].sum()

    def test_alternatives_are_accepted_too(self, asked):
        model, people, dear = asked
        table = dear.generate(people.head(10)).alternatives(3)
        assert table["success"].tolist() == (model.predict(table[people.columns]) == 1).tolist()
        assert (table["rank"] > 0).any()

    def test_the_cut_off_is_found(self, asked, threshold, mixed):
        model, _, dear = asked
        found = cutoffs(dear.classifier, dear.encoder.rows(mixed.frame))
        gap = 0.01 if "LogisticRegression" in str(model.fitted) else 0.15
        assert found[0].tolist() == pytest.approx(
            [-log_odds(threshold), log_odds(threshold)], abs=gap
        )


class TestScikitLearn:
    """Its own classifiers with a threshold, alone and at the end of a pipeline."""

    @pytest.fixture(params=["fixed", "tuned"])
    def model(self, request, mixed):
        if not hasattr(sklearn.model_selection, "FixedThresholdClassifier"):
            pytest.skip("scikit-learn before 1.5 has no thresholds")
        inner = LogisticRegression(max_iter=500)
        if request.param == "fixed":
            return pipeline(
                sklearn.model_selection.FixedThresholdClassifier(inner, threshold=0.8), mixed
            )
        careful = make_scorer(fbeta_score, beta=0.3)
        tuned = sklearn.model_selection.TunedThresholdClassifierCV
        return pipeline(tuned(inner, scoring=careful, cv=3), mixed)

    def test_success_is_what_predict_says_and_not_rare(self, model, mixed):
        people = refused(model, mixed.frame)
        by_chance = model.predict_proba(people)[:, 1] > 0.5
        result = DEAR(model, mixed.schema).fit(mixed.frame).generate(people)
        own = model.predict(result.counterfactuals) == 1
        assert by_chance.any()
        assert result.actions["success"].tolist() == own.tolist()
        assert own.mean() >= 0.9


class TestFewTrainingRows:
    """Where they show little of the cut-off, rows near it are combined."""

    @pytest.mark.parametrize("threshold", [0.02, 0.3, 0.97])
    def test_it_is_found_all_the_same(self, threshold, mixed, models):
        model = Thresholded(models["linear"], threshold)
        few = mixed.frame.head(60)
        encoder = Schema.infer(few)
        dear = DEAR(model, encoder).fit(few)
        found = cutoffs(dear.classifier, dear.encoder.rows(few))
        assert float(found[0, 1]) == pytest.approx(log_odds(threshold), abs=0.1)

    def test_the_model_may_accept_none_of_them(self, mixed, models):
        rng = models["linear"].predict_proba(mixed.frame)[:, 1]
        few = mixed.frame[rng < 0.8].head(200)
        model = Thresholded(models["linear"], 0.9)
        assert not (model.predict(few) == 1).any()
        result = DEAR(model, mixed.schema).fit(few).generate(few.head(30))
        own = model.predict(result.counterfactuals) == 1
        assert result.actions["success"].tolist() == own.tolist()
        assert own.mean() >= 0.8


class Weighted:
    """Three classes, of which some count for more: no threshold of one says what it decides."""

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
    def test_success_is_what_predict_says_and_not_rare(self, three, wanted, mixed):
        model = three
        people = refused(model, mixed.frame, wanted)
        dear = DEAR(model, mixed.schema).fit(mixed.frame)
        result = dear.generate(people, Target.of_class(wanted))
        own = model.predict(result.counterfactuals) == wanted
        assert result.actions["success"].tolist() == own.tolist()
        assert own.mean() >= 0.9


class TestContradiction:
    def test_predict_wins_over_the_probabilities_of_the_factual(self, mixed, models):
        model = Thresholded(models["linear"], 0.9)
        people = refused(model, mixed.frame)
        sure = people[model.predict_proba(people)[:, 1] > 0.6]
        actions = DEAR(model, mixed.schema).fit(mixed.frame).generate(sure).actions
        assert len(sure) > 3
        assert (actions["reason"] != "already accepted").all()
        assert (actions["cost"] > 0).all()

    def test_a_decision_by_something_else_never_makes_a_false_success(self, mixed, models):
        class Two:
            classes_ = np.array([0, 1])
            predict_proba = staticmethod(models["linear"].predict_proba)
            predict = staticmethod(models["forest"].predict)

        people = refused(Two, mixed.frame)
        for method in (DEAR, NearestAccepted):
            result = method(Two(), mixed.schema).fit(mixed.frame).generate(people)
            own = models["forest"].predict(result.counterfactuals) == 1
            assert result.actions["success"].tolist() == own.tolist()
            assert result.actions["reason"][~own].str.len().gt(0).all()


class TestThresholdOfATarget:
    def test_below_one_half_the_probability_decides_and_predict_is_not_asked(self, mixed, models):
        model = Thresholded(models["linear"], 0.7)
        people = mixed.frame.head(40)
        dear = DEAR(model, mixed.schema).fit(mixed.frame)
        actions = dear.generate(people, Target.of_class(1, threshold=0.2)).actions
        before = model.predict_proba(people)[:, 1] >= 0.2
        assert (actions["reason"] == "already accepted").tolist() == before.tolist()
        assert actions["success"].all()
        assert actions["score_after"][~before].between(0.2, 0.5).any()
        assert model.asked == []

    def test_above_one_half_both_are_needed(self, mixed, models):
        people = mixed.frame.head(40)
        for own, asked in ((0.6, 0.8), (0.8, 0.6)):
            model = Thresholded(models["linear"], own)
            dear = DEAR(model, mixed.schema).fit(mixed.frame)
            result = dear.generate(people, Target.of_class(1, threshold=asked))
            rng = model.predict_proba(result.counterfactuals)[:, 1]
            both = (rng >= asked) & (model.predict(result.counterfactuals) == 1)
            assert result.actions["success"].tolist() == both.tolist()
            assert rng[both].min() >= 0.8


class TestAsking:
    def test_a_decision_that_is_the_likeliest_class_changes_no_answer(self, mixed, models):
        people = refused(models["linear"], mixed.frame)
        one = DEAR(models["linear"], mixed.schema).fit(mixed.frame)
        other = one.with_model(lambda frame: models["linear"].predict_proba(frame))
        assert cutoffs(one.classifier, one.encoder.rows(mixed.frame)) is None
        pd.testing.assert_frame_equal(
            one.generate(people).counterfactuals, other.generate(people).counterfactuals
        )

    def test_predict_is_asked_about_factuals_and_answers_alone(self, mixed, models):
        model = Thresholded(models["linear"], 0.7)
        dear = DEAR(model, mixed.schema).fit(mixed.frame)
        assert model.asked == []
        people = refused(model, mixed.frame)
        model.asked.clear()
        dear.generate(people)
        learning = sum(model.asked)
        model.asked.clear()
        dear.generate(people)
        assert sum(model.asked) <= 4 * len(people)
        assert learning <= len(mixed.frame) + 2 * 5 * 500 + 4 * len(people)

    def test_another_model_and_another_fit_are_asked_anew(self, mixed, models):
        strict, lenient = (Thresholded(models["linear"], t) for t in (0.8, 0.3))
        dear = DEAR(strict, mixed.schema).fit(mixed.frame)
        people = refused(strict, mixed.frame)
        dear.generate(people)
        same = DEAR(lenient, mixed.schema).fit(mixed.frame).generate(people)
        other = dear.with_model(lenient).generate(people)
        pd.testing.assert_frame_equal(other.counterfactuals, same.counterfactuals)

    def test_what_was_pickled_or_saved_gives_the_same_answers(self, tmp_path, mixed, models):
        model = Thresholded(models["linear"], 0.8)
        people = refused(model, mixed.frame)
        dear = DEAR(model, mixed.schema).fit(mixed.frame)
        expected = dear.generate(people).counterfactuals
        dear.save(tmp_path)
        for again in (pickle.loads(pickle.dumps(dear)), DEAR.load(tmp_path, model)):
            pd.testing.assert_frame_equal(again.generate(people).counterfactuals, expected)


class TestWhatPredictReturns:
    """It is taken for the model's decision: what is none is refused, with the way out."""

    def asked(self, mixed, models, returned, classes=None):
        class Odd:
            predict_proba = staticmethod(models["linear"].predict_proba)
            predict = staticmethod(returned)

        model = Odd()
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
        assert self.asked(mixed, models, returned, classes).tolist() == [0, 1, 1]

    @pytest.mark.parametrize("dtype", [None, object])
    def test_named_classes(self, mixed, models, dtype):
        told = np.array(["yes", "no", "yes"], dtype=dtype)
        assert self.asked(mixed, models, lambda f: told, ["no", "yes"]).tolist() == [1, 0, 1]

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
    def test_what_is_no_class_is_refused(self, mixed, models, returned, classes, message):
        with pytest.raises(ModelError, match=f"{message}.*pass the function"):
            self.asked(mixed, models, returned, classes)

    @pytest.mark.parametrize("output", ["values", None])
    def test_a_value_and_a_function_are_no_decisions(self, mixed, models, output):
        model = models["linear"] if output else models["linear"].predict_proba
        classifier = Classifier(model, mixed.encoder, output=output)
        assert not classifier.has_decisions
        assert classifier.decisions(mixed.frame.head(3)) is None
