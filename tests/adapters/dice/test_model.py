"""DiCE's model interfaces of every backend, as the engine and DiCE call them."""

from io import StringIO
from types import SimpleNamespace

import dice_ml
import numpy as np
import pandas as pd
import pytest
import torch
from raiutils.exceptions import UserConfigValidationException
from sklearn.linear_model import LogisticRegression

from dear_dice import DiceDEAR, Explanations
from dear_dice.model import Host
from dear_dice.query import number_of
from dear_plugin import Search
from tests.adapters.dice.asked import answers, examples
from tests.thresholded import Thresholded


def torch_interface(module, func="ohe-min-max", **options):
    return dice_ml.Model(model=module, backend="PYT", func=func, **options)


def solved(explainer, query, **arguments):
    """The first counterfactual of each row that has one."""
    return [found.iloc[0] for found in answers(explainer, query, 1, **arguments) if len(found)]


SHIFT = {"shift": 0.0}


def shifted(frame, data_interface, shift):
    """A transformer of a user's own."""
    return data_interface.get_ohe_min_max_normalized_data(frame).astype(float) + shift


# Of the module: its form, whether DEAR calls it directly, how much other numbers may be.
FORMS = {
    "flat": (lambda _, m: torch_interface(torch.nn.Sequential(m, torch.nn.Flatten(0))), True, 0.0),
    "two columns": (
        lambda loan, _: torch_interface(loan.module(loan.data, loan.features, loan.labels, 2)),
        True,
        0.05,
    ),
    "custom transformer": (
        lambda _, m: torch_interface(m, func=shifted, kw_args=SHIFT),
        False,
        0.05,
    ),
}


class TestTorch:
    @pytest.mark.parametrize("name", FORMS)
    def test_another_form_of_a_module_has_the_same_answers(
        self, name, loan, make, torch_model, refused
    ):
        form, is_module, room = FORMS[name]
        # Of a black box more values are tried than of a module, which margins make visible.
        search = Search.cheapest()
        other = DiceDEAR(loan.data, form(loan, torch_model.model), search=search)
        assert other.dear.classifier.is_module == is_module
        for a, b in zip(solved(other, refused), solved(make(search=search), refused), strict=True):
            numbers = a[loan.continuous].astype(float), b[loan.continuous].astype(float)
            np.testing.assert_allclose(*numbers, atol=room)
            assert a[loan.words].equals(b[loan.words])
        assert SHIFT == {"shift": 0.0}

    def test_dropout_and_batch_norm_are_off_and_the_flags_are_put_back(self, loan, refused):
        linear = loan.module(loan.data, loan.features, loan.labels)
        norm = torch.nn.BatchNorm1d(linear[0].in_features, affine=False)
        noisy = torch.nn.Sequential(norm, torch.nn.Dropout(0.5), *linear).train()
        noisy[0].eval()
        explainer = DiceDEAR(loan.data, torch_interface(noisy))
        first, again = solved(explainer, refused), solved(explainer, refused)
        assert all(a.equals(b) for a, b in zip(first, again, strict=True))
        assert [m.training for m in noisy] == [False, True, True, True] and noisy.training
        assert all(p.requires_grad and p.grad is None for p in noisy.parameters())

    @pytest.mark.parametrize("columns", [1, 2])
    def test_logits_are_refused_when_the_explainer_is_built(self, columns, loan):
        logits = loan.module(loan.data, loan.features, loan.labels, columns, torch.nn.Identity())
        with pytest.raises(UserConfigValidationException, match=r"Sigmoid.*Softmax"):
            DiceDEAR(loan.data, torch_interface(logits))

    def test_logits_behind_a_custom_transformer_are_refused_in_a_call(self, loan, refused):
        logits = loan.module(loan.data, loan.features, loan.labels, last=torch.nn.Identity())
        explainer = DiceDEAR(loan.data, torch_interface(logits, func=shifted, kw_args=SHIFT))
        with pytest.raises(UserConfigValidationException, match="Sigmoid"):
            explainer.generate_counterfactuals(refused, total_CFs=1, desired_class=1)

    def test_a_model_that_fails_says_why(self, loan):
        module = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Sigmoid())
        words = "does not take the vector that func='ohe-min-max' makes.*cannot be multiplied"
        with pytest.raises(UserConfigValidationException, match=words):
            DiceDEAR(loan.data, torch_interface(module))

    def test_no_transformer_on_numbers_alone(self, loan):
        features = loan.features.drop(columns=loan.words)
        fitted = LogisticRegression(max_iter=5000).fit(features.to_numpy(), loan.labels)
        module = loan.as_module(fitted).train()
        explainer = loan.dear(module, features, loan.labels, "PYT", func=None)
        query = features[fitted.predict(features.to_numpy()) == 0].iloc[:10]
        found = pd.DataFrame(solved(explainer, query))[features.columns]
        assert len(found) == 10 and module.training
        assert (fitted.predict(found.to_numpy(float)) == 1).all()

    def test_without_a_transformer_text_is_refused_with_the_remedy(self, loan, torch_model):
        explainer = DiceDEAR(loan.data, torch_interface(torch_model.model, None))
        with pytest.raises(UserConfigValidationException, match="'ohe-min-max' encodes categ"):
            explainer.generate_counterfactuals(loan.features.head(1), 1)

    def test_a_regressor(self, loan):
        numbers = [name for name in loan.continuous if name != "savings"]
        data = loan.interface(loan.frame.drop(columns="approved"), "savings", numbers)
        features = loan.features.drop(columns="savings")
        module = torch.nn.Linear(loan.vectors(data, features).shape[1], 1)
        with torch.no_grad():
            module.weight.copy_(torch.linspace(-9, 9, module.in_features)[None])
            module.bias.fill_(20.0)

        def predicted(rows):
            return module(loan.vectors(data, rows[features.columns]))[:, 0].detach().numpy()

        explainer = DiceDEAR(data, torch_interface(module, model_type="regressor"))
        query = features[predicted(features) < 18].iloc[:10]
        for found in answers(explainer, query, 2, desired_range=[20, 22]):
            assert found["savings"].between(20, 22).all()
            np.testing.assert_allclose(found["savings"], predicted(found), atol=1e-4)


class TestSeveralClasses:
    @staticmethod
    def by_income(loan, names):
        return pd.cut(loan.features["income"], [-99, 33, 39, 99], labels=names)

    def test_of_a_module(self, loan, refused):
        classes = self.by_income(loan, [0, 1, 2]).astype(int)
        module = loan.module(loan.data, loan.features, classes)
        explainer = loan.dear(module, loan.features, classes, "PYT", func="ohe-min-max")
        for wanted in range(3):
            for found in answers(explainer, refused.iloc[:10], 2, desired_class=wanted):
                x = loan.vectors(loan.data, found[loan.features.columns])
                assert (module(x).argmax(1) == wanted).all()
                assert set(found["approved"]) == {wanted}
        with pytest.raises(UserConfigValidationException, match="cannot be opposite"):
            explainer.generate_counterfactuals(refused, 1, desired_class="opposite")

    def test_their_numbers_are_those_of_the_sorted_labels(self, loan, refused):
        classes = self.by_income(loan, ["poor", "fair", "rich"]).astype(str)
        fitted = loan.pipeline(loan.features, classes, LogisticRegression(), loan.words)
        explainer = loan.dear(fitted, loan.features, classes)
        for number, name in enumerate(["fair", "poor", "rich"]):
            found = solved(explainer, refused, desired_class=number)
            assert {row["approved"] for row in found} == {name}
        with pytest.raises(
            UserConfigValidationException, match="class not present in training data!"
        ):
            explainer.generate_counterfactuals(refused, 1, desired_class=100)

    def test_a_threshold_for_one_of_them(self, loan, refused):
        classes = self.by_income(loan, [0, 1, 2]).astype(int)
        fitted = loan.pipeline(loan.features, classes, LogisticRegression(), loan.words)
        explainer = loan.dear(fitted, loan.features, classes)
        rows = solved(explainer, refused, desired_class=2, stopping_threshold=0.9)
        found = pd.DataFrame(rows)[loan.features.columns].infer_objects()
        assert (fitted.predict_proba(found)[:, 2] >= 0.9).all()


LABELS = [["refused", "accepted"], [1, 2], [False, True], [0.0, 1.0]]


class TestSklearn:
    @pytest.mark.parametrize("labels", LABELS, ids=str)
    def test_labels_are_the_models_own(self, labels, loan, refused):
        # DiCE counts the sorted labels of a model: "accepted" is its class 0.
        wanted = sorted(labels).index(labels[1])
        classes = loan.labels.map(dict(enumerate(labels)))
        fitted = loan.pipeline(loan.features, classes, LogisticRegression(), loan.words)
        explainer = loan.dear(fitted, loan.features, classes)
        query = refused[fitted.predict(refused) == labels[0]].iloc[:4]
        for named in ("opposite", wanted, *([labels[1]] if isinstance(labels[1], str) else [])):
            result = explainer.generate_counterfactuals(query, 2, desired_class=named)
            assert "cfs_list" in result.to_json()
            for example in result.cf_examples_list:
                assert set(example.final_cfs_df["approved"]) == {labels[1]}
                assert example.test_instance_df["approved"].tolist() == labels[:1]
                assert example.desired_class == labels[1]
                reread = fitted.predict(example.final_cfs_df[loan.features.columns])
                assert set(reread) == {labels[1]}
        assert set(explainer.cfs_preds) == {wanted}

    def test_a_label_that_the_model_does_not_have(self, loan, refused):
        classes = loan.labels.map({0: "refused", 1: "accepted"})
        fitted = loan.pipeline(loan.features, classes, LogisticRegression(), loan.words)
        explainer = loan.dear(fitted, loan.features, classes)
        words = r"class for no .*\(0 for 'accepted', 1 for 'ref"
        with pytest.raises(UserConfigValidationException, match=words):
            explainer.generate_counterfactuals(refused, 1, desired_class="no")

    def test_text_in_the_place_of_a_number(self, loan, sklearn_model):
        with pytest.raises(UserConfigValidationException, match=r"class \(0, 1\), got '1'"):
            number_of("1", Host(sklearn_model, loan.data))

    @pytest.mark.parametrize("count", [1, 10])
    def test_categories_that_are_numbers_and_truths(self, count, loan):
        """A query of one row does not show all levels that its answers may have."""
        homes = loan.features["housing"].map({"rented": 1, "shared": 2, "own": 10})
        male = loan.features["gender"] == "male"
        features = loan.features.assign(gender=male, housing=homes)
        fitted = loan.pipeline(features, loan.labels, LogisticRegression(), loan.words)
        explainer = loan.dear(fitted, features, loan.labels)
        query = features[fitted.predict(features) == 0].iloc[:count]
        for example in examples(explainer, query, total_CFs=3):
            found = example.final_cfs_df[features.columns]
            assert found.dtypes.equals(features.dtypes)
            assert found["housing"].isin([1, 2, 10]).all()
            assert (fitted.predict(found) == 1).all()
            assert example.support.between(0, 1).all()

    @pytest.mark.parametrize(("threshold", "labels"), [(0.25, [0, 1]), (0.8, ["no", "yes"])])
    def test_the_models_own_decision_is_what_counts(self, loan, threshold, labels):
        """Whatever its threshold: DiCE's own rule would be the likeliest class."""
        classes = np.array(labels)[loan.labels]
        inner = loan.pipeline(loan.features, classes, LogisticRegression(), loan.words)
        fitted = Thresholded(inner, threshold)
        explainer = loan.dear(fitted, loan.features, classes)
        refused = loan.features[fitted.predict(loan.features) == labels[0]]
        likely = refused[inner.predict_proba(refused)[:, 1] >= 0.5]
        for example in examples(explainer, (likely if len(likely) else refused).head(10), 2):
            assert [example.test_pred, example.new_outcome] == labels
            assert set(example.final_cfs_df["approved"]) == {labels[1]}
            assert set(fitted.predict(example.final_cfs_df[loan.features.columns])) == {labels[1]}

    @pytest.mark.parametrize(
        ("kind", "has", "lacks"),
        [("classifier", "predict", "predict_proba"), ("regressor", "predict_proba", "predict")],
    )
    def test_a_model_without_the_method_that_is_called(self, loan, kind, has, lacks):
        model = SimpleNamespace(**{has: lambda frame: np.zeros(len(frame))})
        with pytest.raises(UserConfigValidationException, match=f"DEAR calls {lacks}, which"):
            loan.dear(model, loan.features, loan.labels, model_type=kind)

    def test_the_rows_of_a_query_are_scored_once_in_a_call(self, loan, refused):
        asked = []

        def predict_proba(frame):
            asked.append(frame.reset_index(drop=True))
            likely = 1.0 / (1.0 + np.exp(35.0 - frame["savings"].astype(float)))
            return np.stack([1.0 - likely, likely], 1)

        explainer = loan.dear(
            SimpleNamespace(predict_proba=predict_proba), loan.features, loan.labels
        )
        query, times = refused.nsmallest(1, "savings"), []
        for _ in range(3):
            asked.clear()
            assert len(answers(explainer, query, 2, desired_class=1)[0]) > 0
            times.append(sum(frame.equals(asked[0]) for frame in asked))
        # First also whether the model takes such a frame, and whether it repeats its scores.
        assert times == [3, 1, 1]

    def test_a_decision_that_names_no_class_is_refused(self, loan):
        named = SimpleNamespace(
            predict_proba=lambda frame: np.full((len(frame), 2), 0.5),
            predict=lambda frame: np.full(len(frame), "yes"),
        )
        explainer = loan.dear(named, loan.features, loan.labels)
        with pytest.raises(UserConfigValidationException, match="`predict` returned 'yes'"):
            explainer.generate_counterfactuals(loan.features.head(1), 1)

    def test_a_model_on_the_encoding(self, loan, refused):
        vectors = loan.data.get_ohe_min_max_normalized_data(loan.features)
        fitted = LogisticRegression(max_iter=2000).fit(vectors.to_numpy(float), loan.labels)
        # It takes DiCE's encoded frame for the array that it is.
        model = SimpleNamespace(predict_proba=lambda f: fitted.predict_proba(f.to_numpy(float)))
        explainer = loan.dear(model, loan.features, loan.labels, func="ohe-min-max")
        found = solved(explainer, refused, desired_class=1)
        assert {row["approved"] for row in found} == {1}


def lightgbm():
    kind = pytest.importorskip("lightgbm").LGBMClassifier
    return kind(n_estimators=20, verbose=-1, n_jobs=1)


def xgboost():
    kind = pytest.importorskip("xgboost").XGBClassifier
    return kind(n_estimators=20, enable_categorical=True, n_jobs=1)


WORDS = ["gender", "housing"]
SENT = {
    "a row of a frame": lambda q: q.iloc[0].to_frame().T,
    "values": lambda q: pd.DataFrame([q.iloc[0].to_dict()]),
    "JSON": lambda q: pd.read_json(StringIO(q.to_json(orient="records"))),
    "string": lambda q: q.astype({**dict.fromkeys(WORDS, "string"), "code": int}),
    "levels of one row": lambda q: q.astype(dict.fromkeys(WORDS, object)).astype(
        dict.fromkeys(WORDS, "category")
    ),
}


@pytest.fixture(scope="module", params=[lightgbm, xgboost])
def trained(request, loan):
    levels = pd.CategoricalDtype(["shared", "own", "rented"])  # XGBoost reads codes: no order
    features = loan.features.astype({"gender": "category", "housing": levels})
    features["code"] = pd.Categorical(np.arange(len(features)) % 3 * 5)
    model = request.param().fit(features, loan.labels)
    query = features[model.predict(features) == 0].iloc[:1]
    return loan.dear(model, features, loan.labels), model, query


class TestNativeCategories:
    """A model of pandas categories gets those of its training frame, whatever a query holds."""

    @pytest.mark.parametrize("form", SENT)
    def test_a_row_as_a_web_service_gives_it(self, trained, form):
        explainer, model, query = trained
        sent = SENT[form](query)
        before = sent.copy()
        expected, found = (answers(explainer, each, 1)[0] for each in (query, sent))
        assert found[query.columns].dtypes.equals(sent.dtypes)
        typed = found[query.columns].astype(query.dtypes.to_dict())
        assert (model.predict(typed) == 1).all()
        pd.testing.assert_frame_equal(typed, expected[query.columns])
        pd.testing.assert_frame_equal(sent, before)

    def test_its_levels_are_all_those_of_training_in_their_order(self, loan):
        """Also of text that has an order, and with a level that no row has."""
        sizes, homes = ["10-49", "100+", "50-99", "<10"], ["shared", "own", "rented", "other"]
        features = loan.features.assign(size=np.resize(sizes, len(loan.features))).astype(
            {"size": pd.CategoricalDtype(sizes), "housing": pd.CategoricalDtype(homes)}
        )
        fitted = xgboost().fit(features.astype({"gender": "category"}), loan.labels)
        seen = []

        def predict_proba(frame):
            seen.extend(list(frame[name].cat.categories) for name in ("size", "housing"))
            return fitted.predict_proba(frame.astype({"gender": "category"}))

        explainer = loan.dear(SimpleNamespace(predict_proba=predict_proba), features, loan.labels)
        seen.clear()
        explainer.generate_counterfactuals(features.head(2), 1, desired_class="opposite")
        assert seen
        assert all(each in (sizes, homes) for each in seen)


class TestRegressor:
    @pytest.mark.ci
    def test_predictions_fall_into_the_range(self, regressor):
        query = regressor.features[regressor.predict(regressor.features) < 34].iloc[:8]
        explainer = DiceDEAR(regressor.data, regressor.model)
        found = examples(explainer, query, total_CFs=3, desired_range=[36, 37])
        for (_, row), example in zip(query.iterrows(), found, strict=True):
            values = example.final_cfs_df["income"]
            assert values.between(36, 37).all() and len(values)
            after = regressor.predict(example.final_cfs_df[regressor.features.columns])
            np.testing.assert_allclose(values, after)
            own = regressor.predict(row.to_frame().T.infer_objects())
            assert example.test_pred == pytest.approx(own[0])
            assert (example.desired_range, example.new_outcome) == ([36, 37], [36, 37])
            assert (example.model_type, example.desired_class) == ("regressor", "opposite")

    @pytest.mark.parametrize("form", [tuple, np.array, pd.Series])
    def test_the_range_may_be_any_two_numbers(self, form, regressor):
        explainer = DiceDEAR(regressor.data, regressor.model)
        query = regressor.features[regressor.predict(regressor.features) < 34].iloc[:2]
        result = explainer.generate_counterfactuals(query, 1, desired_range=form([36, 37]))
        assert Explanations.from_json(result.to_json()) == result
        assert {type(example.new_outcome) for example in result.cf_examples_list} == {list}

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            (None, "should be set for regression"),
            ([3], "needs to have two numbers in ascending order"),
            ([4, 3], "should be in ascending order"),
        ],
    )
    def test_the_range_is_checked_with_dices_messages(self, given, words, regressor):
        explainer = DiceDEAR(regressor.data, regressor.model)
        with pytest.raises(UserConfigValidationException, match=words):
            explainer.generate_counterfactuals(regressor.features.iloc[:1], 1, desired_range=given)


class Tensorish:
    """What a framework's tensor is to numpy."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)


class TestOtherBackends:
    def test_any_interface_that_answers_frames(self, loan, sklearn_model, black_box, refused):
        class Foreign(type(sklearn_model)):
            def get_output(self, input_tensor, training=False, transform_data=False):
                return Tensorish(self.model.predict_proba(input_tensor)[:, 1:])

        foreign = Foreign(sklearn_model.model, backend="TF2")
        foreign.model_type = "classifier"
        explainer = DiceDEAR(loan.data, foreign)
        for a, b in zip(solved(explainer, refused), solved(black_box, refused), strict=True):
            assert a[loan.continuous].equals(b[loan.continuous])

    def test_xgboost(self, loan):
        xgboost = pytest.importorskip("xgboost")
        pytest.importorskip("dice_ml.model_interfaces.xgboost_model")  # new in dice-ml 0.12
        male = (loan.features["gender"] == "male").astype(int)
        features = loan.features[["age", "education", "duration"]].assign(gender=male)
        fitted = xgboost.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1)
        fitted.fit(features, loan.labels)
        backend = {"model": "xgboost_model.XGBoostModel", "explainer": "none.None"}
        with pytest.warns(UserWarning, match="not in supported backends"):
            explainer = loan.dear(fitted, features, loan.labels, backend)
        query = features[fitted.predict(features) == 0].iloc[:5]
        before = query.copy()
        found = pd.DataFrame(solved(explainer, query))[features.columns].infer_objects()
        assert len(found) and (fitted.predict(found) == 1).all()
        pd.testing.assert_frame_equal(query, before)
