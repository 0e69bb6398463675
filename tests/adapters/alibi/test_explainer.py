import numpy as np
import pandas as pd
import pytest
import torch

import dear_plugin
from dear_alibi import DEAR
from tests.rounding import near


def columns(data, *names):
    return [data.names.index(name) for name in names]


def test_conditions_hold_for_all_rows_or_each_for_its_own(explainer, data, refused):
    income, job = columns(data, "income", "job")
    one = explainer.explain(refused, 1, [{"income": [-1, 2], "job": ["nurse", "pilot"]}])
    moved = one.cf["X"] - refused
    assert np.abs(moved[:, income]).max() <= 2
    assert set(one.cf["X"][moved[:, job] != 0, job]) <= {2, 3}
    each = [{"income": [0, 0], "job": []} if i % 2 else {} for i in range(len(refused))]
    found = explainer.explain(refused, 1, each)
    for j in (income, job):
        assert (found.cf["X"][1::2, j] == refused[1::2, j]).all()
    free = explainer.explain(refused, 1)
    assert (found.cf["X"][::2] == free.cf["X"][::2]).all()
    assert found.condition == each


def test_a_condition_with_an_unknown_category_is_refused(explainer, refused):
    with pytest.raises(dear_plugin.errors.ConstraintError, match=r"C\['job'\]: .*'cleric'"):
        explainer.explain(refused, 1, [{"job": ["cleric"]}])


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float64, np.float32, object])
def test_rows_come_back_in_their_own_dtype(explainer, refused, dtype):
    rows = refused.astype(dtype)
    before = rows.copy()
    found = explainer.explain(rows, 1)
    assert found.cf["X"].dtype == found.orig["X"].dtype == dtype
    assert (found.cf["X"] == explainer.explain(refused, 1).cf["X"]).all()
    assert (rows == before).all()
    assert found.orig["X"] is not rows


def test_a_frame_of_the_features_is_read_by_their_names(explainer, fit, data, refused):
    backwards = pd.DataFrame(refused, columns=data.names)[data.names[::-1]]
    expected, found = explainer.explain(refused, 1), explainer.explain(backwards, 1)
    assert (found.orig["X"] == refused).all() and (found.cf["X"] == expected.cf["X"]).all()
    rows = pd.DataFrame(data.X, columns=data.names)[data.names[::-1]]
    again = fit(immutable_features=["gender"], ranges={"age": [0, 1]}).fit(rows)
    assert (again.explain(refused, 1).cf["X"] == expected.cf["X"]).all()
    unnamed = explainer.explain(pd.DataFrame(refused), 1)
    assert (unnamed.cf["X"] == expected.cf["X"]).all()


def test_without_targets_each_row_wants_its_other_class(explainer, data, pipeline):
    rows = data.X[:60]
    found = explainer.explain(rows)
    assert (found.target[:, 0] == 1 - pipeline.predict(rows)).all()
    assert (found.cf["class"] == found.target)[found.success].all()


def test_more_than_two_classes_need_targets(fit, three, data):
    explainer, rows = fit(three.predict), data.X[:40]
    with pytest.raises(dear_plugin.errors.TargetError, match="give Y_t"):
        explainer.explain(rows)
    with pytest.raises(dear_plugin.errors.TargetError, match=r"classes 0 \.\.\. 2"):
        explainer.explain(rows, 3)
    wanted = np.arange(40) % 3
    found = explainer.explain(rows, wanted)
    assert found.orig["proba"].shape == (40, 3)
    assert found.orig["proba"] == near(three.predict(rows))
    assert (found.target[:, 0] == wanted).all()
    assert ((found.cf["class"] == found.target) == found.success).all()
    assert found.success.mean() > 0.8


def test_a_new_code_of_an_immutable_feature_reaches_the_predictor_and_comes_back():
    rng = np.random.default_rng(0)
    rows = np.c_[rng.normal(50, 10, 300), rng.integers(0, 4, 300)]
    asked = []

    def predictor(x):
        asked.append(x[:, 1])
        p = 1 / (1 + np.exp(55 - x[:, 0]))
        return np.c_[1 - p, p]

    names, codes, query = ["pay", "town"], {1: list("abcd")}, np.array([[40.0, 7.0], [40.0, 1.0]])
    still = DEAR(predictor, names, codes, immutable_features=["town"]).fit(rows)
    found = still.explain(query, Y_t=1).data
    assert found["success"].all()
    assert found["cf"]["X"][:, 1].tolist() == [7.0, 1.0]
    assert 7.0 in np.concatenate(asked)
    assert set(np.concatenate(asked)) <= {0.0, 1.0, 2.0, 3.0, 7.0}
    with pytest.raises(ValueError, match=r"'town' must .* got \[7.0\] .* immutable_features"):
        DEAR(predictor, names, codes).fit(rows).explain(query, Y_t=1)


def test_what_the_log_asks_for_is_an_argument(fit):
    explainer = fit(identifiers=["duration"], special={"savings": [0]})
    features = {feature.name: feature for feature in explainer.engine.schema}
    assert features["duration"].identifier and features["savings"].special == (0.0,)
    assert explainer.params["identifiers"] == ["duration"]


def test_calls_before_fit_are_refused(data, predictor, refused):
    unfitted = DEAR(predictor, **data.description())
    for call in (unfitted.explain, unfitted.recourses):
        with pytest.raises(dear_plugin.errors.NotFittedError, match=r"call fit\(X\) first"):
            call(refused)


def test_a_missing_number_is_refused_before_the_predictor_is_called(fit, data, refused):
    """All columns that hold one are named, in `fit` and in `explain`."""

    def never(rows):
        raise RuntimeError("the predictor was called")

    explainer = fit(never)
    for j, k in ((1, 5), (2, 6)):
        rows = refused.astype(float)
        rows[3, j], rows[4, k] = np.nan, np.inf
        words = rf"'{data.names[j]}' .*\[nan\] in rows \[3\].*'{data.names[k]}' .*\[inf\]"
        for call in (explainer.explain, explainer.recourses, fit(never).fit):
            with pytest.raises(dear_plugin.errors.InputError, match=words):
                call(rows)


class TestArgumentsOfOtherExplainers:
    """One word changes in a workflow: what only the other one needs has no effect."""

    def test_they_have_no_effect_and_the_log_says_so(self, explainer, fit, data, refused, caplog):
        options = {"immutable_features": ["gender"], "ranges": {"age": [0, 1]}}
        theirs = {"decoder": torch.nn.Linear(1, 2), "coeff_sparsity": 0.5, "seed": 1}
        other = fit(explainer.predictor, **options, **theirs)
        assert other.params["decoder"] == "transport"
        found = other.explain(refused[:20], 1, None, 7, tolerance=0.1)
        assert (found.cf["X"] == explainer.explain(refused[:20], 1).cf["X"]).all()
        logged = [r.getMessage() for r in caplog.records if r.name == "dear_alibi"]
        expected = [", ".join(theirs), "tolerance"]
        assert logged == [
            f"DEAR ignores {e}: only CounterfactualRLTabular uses them" for e in expected
        ]

    def test_unknown_arguments_are_refused_with_suggestions(self, explainer, fit, data, refused):
        with pytest.raises(TypeError, match=r"'act_om' \(did you mean 'act_on'\?\); known are"):
            fit(explainer.predictor, act_om=["age"])
        with pytest.raises(TypeError, match=r"unknown arguments: 'epochs'; known are: "):
            explainer.fit(data.X, epochs=3)
        with pytest.raises(TypeError, match=r"'rows'; known are: .* in all\)"):
            explainer.explain(refused, 1, rows=3)


class TestDiversity:
    def test_each_answer_for_a_row_is_one_of_the_engines_alternatives(self, explainer, refused):
        rows = refused[:1]
        found = explainer.explain(rows, [1], [], diversity=True, num_samples=4)
        table = explainer.recourses(rows, 1).alternatives(4)
        assert (found.orig["X"] == rows).all() and len(found.orig["proba"]) == 1
        assert (found.cf["X"] == explainer._table.array(table, rows.dtype)).all()
        acted = [" + ".join(names) for names in found.action["direct_features"]]
        assert acted == table["acted_on"].tolist()
        assert (
            found.cf["X"] == found.orig["X"] + found.action["direct"] + found.action["indirect"]
        ).all()
        assert found.success.shape == found.target.shape == (len(table), 1)
        assert found.credible.shape == (len(table), 1)
        assert found.success.all()

    def test_they_are_of_one_search(self, explainer, refused, monkeypatch):
        searches, own = [], dear_plugin.DEAR._searching
        monkeypatch.setattr(
            dear_plugin.DEAR, "_searching", lambda *a: searches.append(a) or own(*a)
        )
        explainer.explain(refused[:1], 1, diversity=True, num_samples=4)
        assert len(searches) == 1

    @pytest.mark.parametrize(
        ("n", "count", "words"),
        [
            (2, 4, "takes one row of X, got 2 rows"),
            (1, 0, "num_samples must be a whole number from 1, got 0"),
            (1, 2.5, "num_samples must be .*, got 2.5"),
            (1, "3", "num_samples must be .*, got '3'"),
            (1, None, "num_samples must be .*, got None"),
        ],
    )
    def test_it_takes_one_row_and_a_number_from_1(self, explainer, refused, n, count, words):
        with pytest.raises(dear_plugin.errors.InputError, match=words):
            explainer.explain(refused[:n], 1, diversity=True, num_samples=count)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"immutable_features": ["agee"]}, "immutable_features: .*did you mean 'age'"),
        ({"immutable_features": "age"}, "immutable_features must be a list"),
        ({"tiers": [["sex"]]}, "tiers: unknown features: 'sex'"),
        ({"tiers": ["age"]}, "must be a list"),
        ({"causes": {"income": ["sex"]}}, "causes: unknown features: 'sex'"),
        ({"act_on": ["sex"]}, "sex"),
        ({"decoder": "magic"}, "magic"),
        ({"decoder": int}, "unknown decoder"),
        ({"output": "odds"}, "odds"),
        ({"output": "values"}, "'logits' or 'probabilities' .*regressions.*, got 'values'"),
    ],
)
def test_a_wrong_option_is_named(fit, options, words):
    with pytest.raises(dear_plugin.errors.DearError, match=words):
        fit(**options)


@pytest.mark.parametrize("target_proba", [0.3, 0.8])
def test_a_probability_to_reach_is_the_engines_threshold(explainer, refused, target_proba):
    found = explainer.explain(refused, 1, target_proba=target_proba)
    reached = found.cf["proba"][:, [1]] >= target_proba
    assert found.success.any() and (reached == found.success).all()
    assert found.target_proba == target_proba
    target = dear_plugin.Target.of_class(1, target_proba)
    engine = explainer.engine.generate(explainer.frame(refused), target)
    assert (found.cf["proba"][:, 1] == engine.actions["score_after"]).all()
    own = explainer.recourses(refused, 1, target_proba=target_proba)
    assert own.counterfactuals.equals(engine.counterfactuals)


def test_several_answers_reach_the_probability_too(explainer, refused):
    many = {"diversity": True, "num_samples": 3}
    found = explainer.explain(refused[:1], 1, target_proba=0.8, **many)
    assert (found.cf["proba"][:, 1] >= 0.8).all()


@pytest.mark.parametrize("wrong", [0.0, 1.0, 1.5, "high", [0.7, 0.8], float("nan")])
def test_a_probability_lies_between_0_and_1(explainer, refused, wrong):
    with pytest.raises(dear_plugin.errors.TargetError, match="target_proba must lie between"):
        explainer.explain(refused, 1, target_proba=wrong)
    assert explainer.explain(refused, 1, target_proba=0.95).success.any()


@pytest.mark.parametrize("as_type", [list, np.array, pd.Index, pd.Series])
def test_features_are_named_in_any_list(as_type):
    explainer = DEAR(lambda X: X, ["age", "pay"], immutable_features=as_type(["age"]))
    assert explainer.meta["params"]["immutable_features"] == ["age"]
