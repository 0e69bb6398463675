"""The model of `--model`: files and modules, and whose code may run."""

from importlib.util import find_spec

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from dear_plugin import DEAR, Schema
from dear_plugin.errors import InputError
from dear_plugin.tell.files import model_of, on_its_columns, wanted_class

NEEDS_SKOPS = pytest.mark.skipif(find_spec("skops") is None, reason="skops is not installed")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 2))
    return LogisticRegression().fit(x, x[:, 0] > 0)


def test_a_file_of_joblib_needs_trust(model, tmp_path):
    path = tmp_path / "model.joblib"
    joblib.dump(model, path)
    with pytest.raises(InputError, match="runs the code in it: add --trust"):
        model_of(str(path), trust=False)
    assert np.array_equal(model_of(str(path), trust=True).coef_, model.coef_)


def test_a_file_of_skops_with_known_types_needs_none(model, tmp_path):
    skops = pytest.importorskip("skops.io")
    path = tmp_path / "model.skops"
    skops.dump(model, path)
    assert np.array_equal(model_of(str(path), trust=False).coef_, model.coef_)


def test_a_module_of_the_present_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "its_scores.py").write_text("def score(rows):\n    return rows['a']\n")
    assert model_of("its_scores:score", trust=False)({"a": 3}) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("absent.joblib", "absent.joblib: expected a file of joblib.*No such file"),
        pytest.param("absent.skops", "absent.skops: .*No such file", marks=NEEDS_SKOPS),
        ("no_such_module:model", "or module:attribute; No module named"),
        ("json:nothing", "has no attribute 'nothing'"),
        ("os.path:nothing", "has no attribute 'nothing'"),
        ("nothing", "nothing: expected a file of joblib"),
    ],
)
def test_what_cannot_be_read_is_an_error(text, message):
    with pytest.raises(InputError, match=message):
        model_of(text, trust=True)


def test_a_classifier_that_was_trained_on_fewer_columns_takes_frames_of_all():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(50, 3)), columns=["a", "b", "case"])
    model = LogisticRegression().fit(frame[["b", "a"]], frame["a"] > 0)
    own = on_its_columns(model)
    assert np.array_equal(own.predict_proba(frame), model.predict_proba(frame[["b", "a"]]))
    assert np.array_equal(own.predict(frame), model.predict(frame[["b", "a"]]))
    assert on_its_columns(np.mean) is np.mean


@pytest.mark.parametrize(
    ("classes", "text", "message"),
    [
        (["no", "yes"], "", "expected --want with the wanted class, one of no, yes"),
        (["no", "yes"], "yess", "did you mean 'yes'"),
        ([0, 1, 2], "", "one of 0, 1, 2"),
    ],
)
def test_a_class_that_is_not_told_is_an_error_that_names_the_option(classes, text, message):
    with pytest.raises(InputError, match=message):
        wanted_class(fitted_to(classes), text)


def test_the_wanted_class_is_a_label_of_the_model():
    assert wanted_class(fitted_to([1, 2]), "2") == 2
    assert wanted_class(fitted_to([0, 1]), "") is None


def fitted_to(classes):
    """A DEAR of a model of some classes."""
    frame = pd.DataFrame({"income": [1, 2, 4, 7, 9, 20] * 10})
    model = LogisticRegression().fit(frame, [classes[i % len(classes)] for i in range(60)])
    return DEAR(model, Schema.infer(frame)).fit(frame)


def test_a_regression_is_answered_in_python():
    with pytest.raises(InputError, match=r"got LinearRegression; .* output=.values."):
        on_its_columns(LinearRegression())
