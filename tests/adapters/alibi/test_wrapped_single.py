"""Alibi's explainers of single rows as methods; they need TensorFlow."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import MinMaxScaler

import dear_plugin
from dear_alibi import wrap_alibi
from dear_plugin import RecourseMethod, compare
from dear_plugin.baselines import NearestAccepted
from dear_plugin.testing import LAWS, Subject

tf = pytest.importorskip("tensorflow", reason="needs TensorFlow: `.ci/matrix tensorflow`")
alibi = pytest.importorskip("alibi")

# A switch of the whole process, without which Alibi's explainers raise an error.
tf.compat.v1.disable_v2_behavior()

# TensorFlow's sessions cannot be pickled; a `CounterfactualProto` depends on its earlier calls.
PICKLED = {"methods_and_results_can_be_pickled"}
REPEATED = {
    "a_batch_of_n_is_n_batches_of_one",
    "the_order_of_rows_does_not_matter",
    "the_same_query_has_the_same_answer_whatever_the_global_seed",
}
EXEMPT = {"CounterfactualProto": PICKLED | REPEATED}


@pytest.fixture(scope="module")
def scaler(data):
    """What their users do: every column from 0 to 1."""
    return MinMaxScaler().fit(data.X.astype(float))


@pytest.fixture(scope="module")
def predict(data, scaler):
    """Probabilities of scaled rows, the model that is explained; fast, as it is called often."""
    fitted = LogisticRegression().fit(scaler.transform(data.X.astype(float)), data.y)
    weight, bias = fitted.coef_[0], fitted.intercept_[0]

    def probabilities(rows):
        accepted = 1.0 / (1.0 + np.exp(-(np.asarray(rows, dtype=float) @ weight + bias)))
        return np.stack([1.0 - accepted, accepted], 1)

    return probabilities


@pytest.fixture(scope="module")
def options(data, scaler):
    """What the explainers do not have."""
    return {"X": data.X, "preprocessor": scaler, **data.description()}


def counterfactual(predict, X):
    return alibi.explainers.Counterfactual(
        predict,
        shape=(1, X.shape[1]),
        target_proba=0.7,
        tol=0.2,
        max_iter=100,
        max_lam_steps=2,
        early_stop=5,
        lam_init=0.01,
        learning_rate_init=0.1,
        feature_range=(0.0, 1.0),
        eps=0.01,
    )


def prototype(predict, X):
    explainer = alibi.explainers.CounterfactualProto(
        predict,
        shape=(1, X.shape[1]),
        use_kdtree=True,
        theta=10.0,
        max_iterations=40,
        c_steps=2,
        c_init=1.0,
        feature_range=(np.zeros((1, X.shape[1])), np.ones((1, X.shape[1]))),
    )
    return explainer.fit(X)


def contrastive(predict, X):
    return alibi.explainers.CEM(
        predict,
        mode="PN",
        shape=(1, X.shape[1]),
        kappa=0.0,
        beta=0.01,
        max_iterations=40,
        c_steps=2,
        c_init=10.0,
        no_info_val=0.0,
        feature_range=(np.zeros((1, X.shape[1])), np.ones((1, X.shape[1]))),
    )


MAKERS = {"Counterfactual": counterfactual, "CounterfactualProto": prototype, "CEM": contrastive}


@pytest.fixture(scope="module", params=MAKERS)
def explainer(request, predict, scaler, data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "seed", lambda seed: None)
        return MAKERS[request.param](predict, scaler.transform(data.X[:300].astype(float)))


@pytest.fixture(scope="module")
def method(explainer, options, data):
    words = data.frame.astype({"gender": object, "job": object})
    return wrap_alibi(explainer, immutable_features=["gender"], **options).fit(words)


@pytest.fixture(scope="module")
def score(data, predict, scaler):
    """(n,) the probability of the training rows."""
    return predict(scaler.transform(data.X.astype(float)))[:, 1]


@pytest.fixture(scope="module")
def frame(data, score):
    """Rows that are nearly accepted, and an accepted one."""
    words = data.frame.astype({"gender": object, "job": object})
    return pd.concat([words[(score > 0.35) & (score < 0.5)].iloc[:4], words[score > 0.6].iloc[:1]])


@pytest.fixture(scope="module")
def accepts(data, predict, scaler):
    """The model's decision of rows with words."""

    def decide(rows):
        codes = {
            data.names[j]: pd.Categorical(rows[data.names[j]], categories=words).codes
            for j, words in data.maps.items()
        }
        X = rows.assign(**codes).to_numpy(dtype=float)
        return predict(scaler.transform(X))[:, 1] > 0.5

    return decide


@pytest.fixture(scope="module")
def subject(method, frame, accepts):
    return Subject.of(method, frame, accepts)


def test_it_solves_rows_by_direct_changes(subject):
    assert isinstance(subject.method, RecourseMethod)
    done = subject.result.actions["success"]
    assert done.iloc[-1] and done.iloc[:4].any(), subject.result.actions["reason"].tolist()
    assert (subject.result.actions["indirect_cost"] == 0).all()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_laws_hold(law, subject):
    if law.__name__ in EXEMPT.get(type(subject.method.explainer).__name__, PICKLED):
        pytest.skip("not a law of this explainer")
    law(subject)


def test_the_model_is_the_explainers_own(method, data, score):
    logs = method.classifier.frame_scores(data.frame.iloc[:50])
    np.testing.assert_allclose(logs.softmax(1)[:, 1], score[:50], atol=1e-5)


def test_a_failure_is_the_reason_of_its_row(explainer, options, frame, data):
    explains, called = explainer.explain, []

    def second_fails(row, **arguments):
        called.append(row)
        if len(called) == 2:
            raise RuntimeError("a singular row")
        return explains(row, **arguments)

    method = wrap_alibi(explainer, **options).fit(frame)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explainer, "explain", second_fails)
        found = method.generate(frame)
    assert found.actions["reason"].iloc[1] == "RuntimeError: a singular row"
    assert not found.actions["reason"].iloc[[0, 2, 3]].str.contains("singular").any()


@pytest.mark.parametrize("name", MAKERS)
def test_keras_models(name, options, data, scaler):
    """A network that looks at income alone, whose gradient the explainers follow."""
    rows = scaler.transform(data.X[:300].astype(float))
    income = data.names.index("income")
    net = tf.keras.Sequential(
        [tf.keras.layers.Input(rows.shape[1]), tf.keras.layers.Dense(2, activation="softmax")]
    )
    weights = np.zeros((rows.shape[1], 2))
    weights[income] = -6.0, 6.0
    middle = 12.0 * np.quantile(rows[:, income], 0.8)
    net.set_weights([weights, np.array([middle, -middle]) / 2.0])
    method = wrap_alibi(MAKERS[name](net, rows), **options).fit(data.frame)
    near = (rows[:, income] * 12.0 - middle > -1.0) & (rows[:, income] * 12.0 < middle)
    found = method.generate(data.frame.iloc[:300][near].iloc[:3])
    done = found.actions["success"]
    assert done.any(), found.actions["reason"].tolist()
    assert found.actions["acted_on"][done].str.contains("income").all()


def test_it_is_compared_with_other_methods(method, frame, data):
    nearest = NearestAccepted(method.classifier.model, method.schema, output="probabilities")
    words = data.frame.astype({"gender": object, "job": object})
    found = compare({"alibi": method, "nearest": nearest.fit(words)}, frame, progress=False)
    assert found.summary.loc["alibi", "rows"] == 4


class TestArguments:
    def test_rows_of_another_shape_are_refused(self, explainer, options):
        with pytest.raises(dear_plugin.errors.InputError, match="explains rows of shape"):
            wrap_alibi(explainer, **{**options, "preprocessor": (lambda X: X[:, :2], None)})

    def test_the_description_is_needed(self, explainer, data):
        with pytest.raises(dear_plugin.errors.InputError, match="does not describe its rows"):
            wrap_alibi(explainer, **data.description())

    def test_a_preprocessor_has_two_directions(self, explainer, options):
        with pytest.raises(dear_plugin.errors.InputError, match="pair of functions"):
            wrap_alibi(explainer, **{**options, "preprocessor": np.log})

    def test_a_pertinent_positive_is_no_counterfactual(self, predict, options, data):
        other = alibi.explainers.CEM(predict, mode="PP", shape=(1, data.X.shape[1]))
        with pytest.raises(dear_plugin.errors.ModelError, match="mode='PN', got 'PP'"):
            wrap_alibi(other, **options)
