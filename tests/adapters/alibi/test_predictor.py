import numpy as np
import pytest
import torch

import dear_plugin


def test_a_module_that_ends_in_a_sigmoid_needs_output(fit, refused):
    net = torch.nn.Sequential(torch.nn.LazyLinear(1), torch.nn.Sigmoid())
    with pytest.raises(dear_plugin.errors.ModelError, match="ends in a sigmoid"):
        fit(net).explain(refused[:5], 1)


def test_a_module_of_other_rows_is_refused(fit, module, refused):
    """One on the user's own encoding is passed as a function of label-encoded rows."""
    with pytest.raises(dear_plugin.errors.ModelError, match="encode"):
        fit(torch.nn.Linear(3, 1)).explain(refused[:5], 1)


def test_a_module_keeps_its_mode_and_gives_no_gradient(fit, refused, module):
    net = torch.nn.Sequential(torch.nn.Dropout(0.5), module, torch.nn.Dropout(0.5))
    net[2].eval()
    explainer = fit(net)
    first, second = (explainer.explain(refused[:5], 1).cf["X"] for _ in range(2))
    assert (first == second).all()
    assert [m.training for m in net] == [True, True, False]
    assert module.weight.grad is None


def test_a_fitted_estimator_is_a_predictor(fit, pipeline, predictor, refused):
    ours, theirs = (fit(p).explain(refused[:20], 1) for p in (pipeline, predictor))
    assert (ours.cf["X"] == theirs.cf["X"]).all()


class Strict:
    """An estimator that decides for its second class from a probability of 0.8 on."""

    def __init__(self, pipeline, classes):
        self.pipeline, self.classes_ = pipeline, np.array(classes)

    def predict_proba(self, rows):
        return self.pipeline.predict_proba(rows)

    def predict(self, rows):
        return self.classes_[(self.predict_proba(rows)[:, 1] >= 0.8).astype(int)]


@pytest.mark.parametrize("classes", [[0, 1], ["rejected", "approved"], ["yes", "no"]], ids=str)
def test_an_estimators_own_decision_is_what_counts(fit, pipeline, data, classes):
    predictor = Strict(pipeline, classes)
    X = data.X[pipeline.predict_proba(data.X)[:, 1] < 0.8][:60]
    between = pipeline.predict(X) == 1
    found = fit(predictor).explain(X)
    own = predictor.predict(found.cf["X"]) == classes[1]
    assert between.any()
    assert (found.orig["class"] == 0).all() and (found.target == 1).all()
    assert (found.success[:, 0] == own).all() and own.mean() > 0.9
    assert ((found.cf["class"][:, 0] == 1) == own).all()
    assert (found.cf["X"][between] != X[between]).any(axis=1).all()


def test_one_column_is_the_probability_of_class_1(fit, predictor, refused):
    ours, theirs = (
        fit(p).explain(refused[:20]) for p in (lambda rows: predictor(rows)[:, 1], predictor)
    )
    assert (ours.cf["X"] == theirs.cf["X"]).all()
    assert np.allclose(ours.cf["proba"], theirs.cf["proba"])


def test_hard_labels_are_accepted(fit, pipeline, refused):
    def hard(rows):
        return np.eye(2)[pipeline.predict(rows)]

    found = fit(hard).explain(refused[:20])
    assert found.success.all()
    assert (hard(found.cf["X"])[:, 1] == 1).all()


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


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda rows: np.full((len(rows), 2), np.nan), "NaN"),
        (lambda rows: np.ones((3, 2)), "shape"),
        (lambda rows: 5 * np.ones((len(rows), 2)), "probabilities"),
    ],
)
def test_an_answer_that_is_no_probability_is_refused(fit, refused, answer, words):
    with pytest.raises(dear_plugin.errors.ModelError, match=words):
        fit(answer).explain(refused[:5], 1)


def test_an_error_of_the_predictor_is_raised(fit, refused):
    def broken(rows):
        raise OSError("the service is down")

    with pytest.raises(OSError, match="the service is down"):
        fit(broken).explain(refused[:5], 1)
