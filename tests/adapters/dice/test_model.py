"""DiCE's model interfaces of every backend, as the engine and DiCE call them."""

from io import StringIO
from types import SimpleNamespace

import dice_ml
import numpy as np
import pandas as pd
import pytest
import torch
from raiutils.exceptions import UserConfigValidationException
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from dear_dice import DiceDEAR
from dear_dice.model import Host
from dear_plugin import Search
from tests.adapters.dice.asked import answers, examples
from tests.thresholded import Thresholded


def torch_interface(module, func="ohe-min-max", **options):
    return dice_ml.Model(model=module, backend="PYT", func=func, **options)


def solved(explainer, query, **arguments):
    result = explainer.generate_counterfactuals(query, total_CFs=1, **arguments)
    return [e.final_cfs_df.iloc[0] for e in result.cf_examples_list if len(e.final_cfs_df)]


class TestTorch:
    def test_two_columns_give_what_one_column_gives(self, loan, explainer, refused):
        module = loan.module(loan.data, loan.features, loan.labels, columns=2)
        two = DiceDEAR(loan.data, torch_interface(module))
        assert two.dear.classifier.is_module
        for a, b in zip(solved(two, refused), solved(explainer, refused), strict=True):
            numbers = a[loan.continuous].astype(float), b[loan.continuous].astype(float)
            np.testing.assert_allclose(*numbers, atol=0.05)
            assert a[loan.words].equals(b[loan.words])

    def test_a_flat_output(self, loan, explainer, refused):
        module = torch.nn.Sequential(explainer.model.model, torch.nn.Flatten(0))
        flat = DiceDEAR(loan.data, torch_interface(module))
        for a, b in zip(solved(flat, refused), solved(explainer, refused), strict=True):
            assert a.equals(b)

    def test_dropout_and_batch_norm_are_off_and_the_flags_are_put_back(self, loan, refused):
        linear = loan.module(loan.data, loan.features, loan.labels)
        width = linear[0].in_features
        noisy = torch.nn.Sequential(
            torch.nn.BatchNorm1d(width, affine=False), torch.nn.Dropout(0.5), *linear
        )
        noisy.train()
        noisy[0].eval()
        explainer = DiceDEAR(loan.data, torch_interface(noisy))
        first, again = solved(explainer, refused), solved(explainer, refused)
        assert all(a.equals(b) for a, b in zip(first, again, strict=True))
        assert [m.training for m in noisy] == [False, True, True, True] and noisy.training
        assert all(p.requires_grad and p.grad is None for p in noisy.parameters())

    def test_several_classes(self, loan, refused):
        classes = pd.cut(loan.features["savings"], [-99, 25, 35, 99], labels=[0, 1, 2]).astype(int)
        module = loan.module(loan.data, loan.features, classes)
        explainer = DiceDEAR(loan.data, torch_interface(module))
        for wanted in range(3):
            query = refused.iloc[:10]
            for example in examples(explainer, query, 2, desired_class=wanted):
                found = example.final_cfs_df
                x = loan.vectors(loan.data, found[loan.features.columns])
                assert (module(x).argmax(1) == wanted).all()
                assert (found["approved"] == wanted).all()
        with pytest.raises(UserConfigValidationException, match="cannot be opposite"):
            explainer.generate_counterfactuals(refused, 1, desired_class="opposite")

    @pytest.mark.parametrize("columns", [1, 2])
    def test_logits_are_refused_when_the_explainer_is_built(self, columns, loan):
        identity = torch.nn.Identity()
        module = loan.module(loan.data, loan.features, loan.labels, columns, identity)
        with pytest.raises(UserConfigValidationException, match=r"Sigmoid.*Softmax"):
            DiceDEAR(loan.data, torch_interface(module))

    def test_a_model_that_fails_says_why(self, loan):
        module = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Sigmoid())
        words = (
            "does not take the vector that func='ohe-min-max' makes.*shapes cannot be multiplied"
        )
        with pytest.raises(UserConfigValidationException, match=words):
            DiceDEAR(loan.data, torch_interface(module))

    def test_a_custom_transformer(self, loan, explainer, refused):
        def func(frame, data_interface, shift):
            vector = data_interface.get_ohe_min_max_normalized_data(frame)
            return vector.astype(float) + shift

        kw_args = {"shift": 0.0}
        model = torch_interface(explainer.model.model, func=func, kw_args=kw_args)
        # Of a black box more values are tried than of a module, which margins make visible.
        custom = DiceDEAR(loan.data, model, search=Search.cheapest())
        plain = DiceDEAR(loan.data, explainer.model, search=Search.cheapest())
        assert not custom.dear.classifier.is_module
        assert kw_args == {"shift": 0.0}
        for a, b in zip(solved(custom, refused), solved(plain, refused), strict=True):
            numbers = a[loan.continuous].astype(float), b[loan.continuous].astype(float)
            np.testing.assert_allclose(*numbers, atol=0.05)

    def test_no_transformer_on_numbers_alone(self, loan):
        frame = loan.frame.drop(columns=loan.words)
        data = loan.interface(frame)
        features = frame.drop(columns="approved")
        fitted = LogisticRegression(max_iter=5000).fit(features.to_numpy(), loan.labels)
        layer = torch.nn.Linear(features.shape[1], 1)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(fitted.coef_))
            layer.bias.copy_(torch.tensor(fitted.intercept_))
        module = torch.nn.Sequential(layer, torch.nn.Sigmoid()).train()
        explainer = DiceDEAR(data, torch_interface(module, func=None))
        query = features[fitted.predict(features.to_numpy()) == 0].iloc[:10]
        found = pd.DataFrame(solved(explainer, query))
        assert len(found) == 10 and module.training
        assert (fitted.predict(found[features.columns].to_numpy()) == 1).all()

    def test_logits_behind_a_custom_transformer_are_refused_in_a_call(self, loan, refused):
        module = loan.module(loan.data, loan.features, loan.labels, last=torch.nn.Identity())
        explainer = DiceDEAR(loan.data, torch_interface(module, func=custom))
        with pytest.raises(UserConfigValidationException, match="Sigmoid"):
            explainer.generate_counterfactuals(refused, total_CFs=1, desired_class=1)

    def test_a_regressor(self, loan):
        data = loan.interface(loan.frame.drop(columns="approved"), "savings", NUMBERS)
        features = loan.features.drop(columns="savings")
        width = loan.vectors(data, features).shape[1]
        module = torch.nn.Linear(width, 1)
        with torch.no_grad():
            module.weight.copy_(torch.linspace(-9, 9, width)[None])
            module.bias.fill_(20.0)
        explainer = DiceDEAR(data, torch_interface(module, model_type="regressor"))
        before = module(loan.vectors(data, features))[:, 0].detach().numpy()
        query = features[before < 18].iloc[:10]
        for example in examples(explainer, query, 2, desired_range=[20, 22]):
            values = module(loan.vectors(data, example.final_cfs_df[features.columns]))[:, 0]
            assert ((values >= 20) & (values <= 22)).all()
            np.testing.assert_allclose(
                example.final_cfs_df["savings"], values.detach().numpy(), atol=1e-4
            )


NUMBERS = ["income", "age", "education", "loan_amount", "duration"]


def custom(frame, data_interface):
    return data_interface.get_ohe_min_max_normalized_data(frame)


class TestSklearn:
    @pytest.mark.ci
    def test_labels_are_the_models_own(self, loan):
        labels = loan.labels.map({0: "refused", 1: "approved"})
        fitted = loan.pipeline(loan.features, labels, LogisticRegression(), loan.words)
        frame = loan.features.assign(decision=labels)
        data = loan.interface(frame, "decision")
        explainer = DiceDEAR(data, dice_ml.Model(model=fitted, backend="sklearn"))
        query = loan.features[fitted.predict(loan.features) == "refused"].iloc[:4]
        # Class 0 is "approved": DiCE counts the model's sorted labels.
        for wanted in ("opposite", 0, "approved", np.str_("approved")):
            for example in examples(explainer, query, 2, desired_class=wanted):
                assert (example.final_cfs_df["decision"] == "approved").all()
                assert example.test_instance_df["decision"].tolist() == ["refused"]
                assert example.desired_class == "approved"
                reread = fitted.predict(example.final_cfs_df[loan.features.columns])
                assert (reread == "approved").all()
        assert set(explainer.cfs_preds) == {0}
        with pytest.raises(
            UserConfigValidationException, match=r"class for no .* 0 for 'approved', 1 for 'ref"
        ):
            explainer.generate_counterfactuals(query, 1, desired_class="no")

    def test_text_in_the_place_of_a_number(self, loan, sklearn_model):
        with pytest.raises(UserConfigValidationException, match=r"class \(0, 1\), got '1'"):
            Host(sklearn_model, loan.data).number_of("1")

    @pytest.mark.parametrize("labels", [[1, 2], [False, True], [0.0, 1.0]], ids=str)
    def test_labels_that_are_other_numbers(self, labels, loan, refused):
        named = loan.labels.map(dict(enumerate(labels)))
        fitted = loan.pipeline(loan.features, named, LogisticRegression(), loan.words)
        data = loan.interface(loan.features.assign(approved=named))
        explainer = DiceDEAR(data, dice_ml.Model(model=fitted, backend="sklearn"))
        result = explainer.generate_counterfactuals(refused, 1, desired_class=1)
        assert {e.final_cfs_df["approved"].iat[0] for e in result.cf_examples_list} == {labels[1]}
        assert "cfs_list" in result.to_json()

    @pytest.mark.ci
    def test_categories_that_are_numbers_and_truths(self, loan):
        features = loan.features.assign(
            gender=loan.features["gender"] == "male",
            housing=loan.features["housing"].map({"rented": 1, "shared": 2, "own": 10}),
        )
        fitted = loan.pipeline(features, loan.labels, LogisticRegression(), loan.words)
        data = loan.interface(features.assign(approved=loan.labels))
        explainer = DiceDEAR(data, dice_ml.Model(model=fitted, backend="sklearn"))
        query = features[fitted.predict(features) == 0].iloc[:10]
        for example in examples(explainer, query, total_CFs=3):
            found = example.final_cfs_df
            assert found.drop(columns="approved").dtypes.equals(features.dtypes)
            assert found["housing"].isin([1, 2, 10]).all()
            assert (fitted.predict(found[features.columns]) == 1).all()
        assert example.support.between(0, 1).all()

    @pytest.mark.parametrize("labels", [[0, 1], ["no", "yes"]], ids=str)
    @pytest.mark.parametrize("threshold", [0.25, 0.8])
    @pytest.mark.slow
    def test_the_models_own_decision_is_what_counts(self, loan, threshold, labels):
        """Whatever its threshold: DiCE's own rule would be the likeliest class."""
        classes = np.array(labels)[loan.labels]
        inner = loan.pipeline(loan.features, classes, LogisticRegression(), loan.words)
        fitted = Thresholded(inner, threshold)
        data = loan.interface(loan.features.assign(approved=classes))
        explainer = DiceDEAR(data, dice_ml.Model(model=fitted, backend="sklearn"))
        refused = loan.features[fitted.predict(loan.features) == labels[0]]
        unlikely = inner.predict_proba(refused)[:, 1] < 0.5
        if threshold > 0.5:
            assert not unlikely.all()
            refused = refused[~unlikely]
        for example in examples(explainer, refused.head(10), 2):
            found = example.final_cfs_df
            assert len(found)
            assert example.test_pred == labels[0] and example.new_outcome == labels[1]
            assert (fitted.predict(found[loan.features.columns]) == labels[1]).all()
            assert (found["approved"] == labels[1]).all()

    @pytest.mark.parametrize(
        ("kind", "has", "lacks"),
        [("classifier", "predict", "predict_proba"), ("regressor", "predict_proba", "predict")],
    )
    def test_a_model_without_the_method_that_is_called(self, loan, kind, has, lacks):
        survival = SimpleNamespace(**{has: lambda frame: np.zeros(len(frame))})
        model = dice_ml.Model(model=survival, backend="sklearn", model_type=kind)
        with pytest.raises(UserConfigValidationException, match=f"DEAR calls {lacks}, which"):
            DiceDEAR(loan.data, model)

    def test_a_decision_that_names_no_class_is_refused(self, loan):
        named = SimpleNamespace(predict_proba=halves, predict=lambda f: np.full(len(f), "yes"))
        model = dice_ml.Model(model=named, backend="sklearn")
        explainer = DiceDEAR(loan.data, model)
        with pytest.raises(UserConfigValidationException, match="predict returned 'yes'"):
            explainer.generate_counterfactuals(loan.features.head(1), 1)

    def test_a_query_in_another_format_follows(self, loan, black_box):
        query = loan.features[black_box._host.scores(loan.features)[:, 1] < 0.5].iloc[:2]
        first = solved(black_box, query)
        wider = query.astype({"housing": "category", "age": "int8", "savings": "float32"})
        again = solved(black_box, wider)
        for a, b in zip(first, again, strict=True):
            assert a["housing"] == b["housing"] and a["age"] == b["age"]

    @pytest.mark.ci
    def test_a_forest_on_steps(self, loan):
        forest = RandomForestClassifier(20, max_depth=5, random_state=0)
        fitted = loan.pipeline(loan.features, loan.labels, forest, loan.words)
        explainer = DiceDEAR(loan.data, dice_ml.Model(model=fitted, backend="sklearn"))
        query = loan.features[fitted.predict(loan.features) == 0].iloc[:10]
        found = pd.DataFrame(solved(explainer, query))
        assert len(found) == 10
        assert (fitted.predict(found[loan.features.columns].infer_objects()) == 1).all()

    def test_several_classes(self, loan, refused):
        names = ["poor", "fair", "rich"]
        classes = pd.cut(loan.features["income"], [-99, 33, 39, 99], labels=names).astype(str)
        fitted = loan.pipeline(loan.features, classes, LogisticRegression(), loan.words)
        data = loan.interface(loan.features.assign(approved=classes))
        explainer = DiceDEAR(data, dice_ml.Model(model=fitted, backend="sklearn"))
        for number, name in enumerate(sorted(names)):
            for row in solved(explainer, refused, desired_class=number):
                assert row["approved"] == name
        with pytest.raises(UserConfigValidationException, match="not present in training data"):
            explainer.generate_counterfactuals(refused, 1, desired_class=100)

    def test_a_threshold_for_one_of_several_classes(self, loan, refused):
        classes = pd.cut(loan.features["income"], [-99, 33, 39, 99], labels=[0, 1, 2]).astype(int)
        fitted = loan.pipeline(loan.features, classes, LogisticRegression(), loan.words)
        explainer = DiceDEAR(loan.data, dice_ml.Model(model=fitted, backend="sklearn"))
        rows = solved(explainer, refused, desired_class=2, stopping_threshold=0.9)
        found = pd.DataFrame(rows)[loan.features.columns].infer_objects()
        assert (fitted.predict_proba(found)[:, 2] >= 0.9).all()

    def test_a_model_on_the_encoding(self, loan, refused):
        vectors = loan.data.get_ohe_min_max_normalized_data(loan.features)
        fitted = LogisticRegression(max_iter=2000).fit(vectors.to_numpy(float), loan.labels)
        model = dice_ml.Model(model=OnArrays(fitted), backend="sklearn", func="ohe-min-max")
        explainer = DiceDEAR(loan.data, model)
        for row in solved(explainer, refused, desired_class=1):
            assert row["approved"] == 1


def halves(frame):
    return np.full((len(frame), 2), 0.5)


class OnArrays:
    """An estimator that takes DiCE's encoded frame for the array it is."""

    def __init__(self, fitted):
        self.fitted = fitted

    def predict_proba(self, frame):
        return self.fitted.predict_proba(frame.to_numpy(float))


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
    data = loan.interface(features.assign(approved=loan.labels))
    explainer = DiceDEAR(data, dice_ml.Model(model=model, backend="sklearn"))
    return explainer, model, features[model.predict(features) == 0].iloc[:1]


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


class TestRegressor:
    @pytest.mark.ci
    def test_predictions_fall_into_the_range(self, regressor):
        before = regressor.predict(regressor.features)
        query = regressor.features[before < 34].iloc[:8]
        explainer = DiceDEAR(regressor.data, regressor.model)
        result = explainer.generate_counterfactuals(query, total_CFs=3, desired_range=[36, 37])
        for (_, row), example in zip(query.iterrows(), result.cf_examples_list, strict=True):
            found = example.final_cfs_df
            after = regressor.predict(found[regressor.features.columns])
            assert ((after >= 36) & (after <= 37)).all() and len(found)
            np.testing.assert_allclose(found["income"], after)
            own = regressor.predict(row.to_frame().T.infer_objects())
            assert example.test_pred == pytest.approx(own[0])
            assert (example.desired_range, example.new_outcome) == ([36, 37], [36, 37])
            assert (example.model_type, example.desired_class) == ("regressor", "opposite")

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
        features = loan.features[["age", "education", "duration"]].assign(
            gender=(loan.features["gender"] == "male").astype(int)
        )
        fitted = xgboost.XGBClassifier(n_estimators=20, max_depth=3, n_jobs=1).fit(
            features, loan.labels
        )
        data = loan.interface(
            features.assign(approved=loan.labels), continuous=["age", "education", "duration"]
        )
        backend = {"model": "xgboost_model.XGBoostModel", "explainer": "none.None"}
        with pytest.warns(UserWarning, match="not in supported backends"):
            model = dice_ml.Model(model=fitted, backend=backend)
        explainer = DiceDEAR(data, model)
        query = features[fitted.predict(features) == 0].iloc[:5]
        before = query.copy()
        rows = solved(explainer, query)
        found = pd.DataFrame(rows)[features.columns].infer_objects()
        assert len(found) and (fitted.predict(found) == 1).all()
        pd.testing.assert_frame_equal(query, before)
