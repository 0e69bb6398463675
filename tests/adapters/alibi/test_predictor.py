from types import SimpleNamespace

import numpy as np
import pytest

import dear_plugin
from tests.rounding import near
from tests.thresholded import Thresholded

FORMS = {
    "a fitted estimator": lambda pipeline: pipeline,
    "one column, of class 1": lambda pipeline: lambda rows: pipeline.predict_proba(rows)[:, 1],
}


@pytest.mark.parametrize("form", FORMS)
def test_another_form_of_a_predictor_has_the_same_answers(form, fit, pipeline, predictor, refused):
    ours, theirs = (fit(p).explain(refused) for p in (FORMS[form](pipeline), predictor))
    assert (ours.cf["X"] == theirs.cf["X"]).all()
    assert ours.cf["proba"] == near(theirs.cf["proba"])


@pytest.mark.parametrize("classes", [[0, 1], ["rejected", "approved"], ["yes", "no"]], ids=str)
def test_an_estimators_own_decision_is_what_counts(fit, pipeline, data, classes):
    """It decides for its second class from a probability of 0.8 on."""
    named = SimpleNamespace(classes_=classes, predict_proba=pipeline.predict_proba)
    predictor = Thresholded(named, 0.8)
    X = data.X[pipeline.predict_proba(data.X)[:, 1] < 0.8][:60]
    between = pipeline.predict(X) == 1
    found = fit(predictor).explain(X)
    own = predictor.predict(found.cf["X"]) == classes[1]
    assert between.any()
    assert (found.orig["class"] == 0).all() and (found.target == 1).all()
    assert (found.success[:, 0] == own).all() and own.mean() > 0.9
    assert ((found.cf["class"][:, 0] == 1) == own).all()
    assert (found.cf["X"][between] != X[between]).any(axis=1).all()


def test_rows_reach_the_predictor_as_it_was_trained(fit, predictor, refused):
    seen = []

    def spy(rows):
        seen.append((rows.dtype, rows.shape[1]))
        return predictor(rows)

    fit(spy).explain(refused[:3].astype(object), 1)
    assert set(seen) == {(np.dtype(np.int64), refused.shape[1])}


@pytest.mark.parametrize("wrong", [3, None, np.zeros(3)])
def test_an_object_that_cannot_predict_is_refused(fit, explainer, wrong):
    with pytest.raises(dear_plugin.errors.ModelError, match="torch module or a function"):
        explainer.reset_predictor(wrong)
