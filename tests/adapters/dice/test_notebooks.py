"""DiCE's documented notebooks, call by call, with `method="dear"` in the place of the method."""

import inspect
import shutil

import dice_ml
import pytest
import torch
from dice_ml.model_interfaces.pytorch_model import PyTorchModel
from dice_ml.utils import helpers
from raiutils.exceptions import UserConfigValidationException
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import dear_dice


@pytest.fixture(autouse=True)
def registered():
    with dear_dice.register():
        yield


@pytest.fixture(scope="module")
def split(loan):
    """The notebooks' own beginning: train and test rows, and a forest behind a transformer."""
    train, test, y_train, _ = train_test_split(
        loan.frame, loan.labels, test_size=0.2, random_state=0, stratify=loan.labels
    )
    x_train, x_test = train.drop("approved", axis=1), test.drop("approved", axis=1)
    forest = RandomForestClassifier(20, max_depth=6, random_state=0)
    return train, x_test, loan.pipeline(x_train, y_train, forest, loan.words)


@pytest.fixture(scope="module")
def iris():
    raw = load_iris(as_frame=True)
    train, test, y_train, _ = train_test_split(
        raw.data, raw.target, test_size=0.2, random_state=0, stratify=raw.target
    )
    model = RandomForestClassifier(30, random_state=0).fit(train, y_train)
    return train.assign(target=y_train), test, model


def dear(model, train, outcome, continuous):
    """The explainer of a fitted model, as all notebooks make it."""
    d = dice_ml.Data(dataframe=train, continuous_features=continuous, outcome_name=outcome)
    m = dice_ml.Model(model=model, backend="sklearn", model_type="classifier")
    return dice_ml.Dice(d, m, method="dear")


@pytest.mark.ci
def test_getting_started_and_feature_importances(split, loan, capsys):
    train, x_test, model = split
    exp = dear(model, train, "approved", loan.continuous)
    query_instance, given = x_test[0:1], {"total_CFs": 2, "desired_class": "opposite"}
    e1 = exp.generate_counterfactuals(
        query_instance, **given, desired_range=None, permitted_range=None, features_to_vary="all"
    )
    e1.visualize_as_dataframe(show_only_changes=True)
    assert "Diverse Counterfactual set" in capsys.readouterr().out

    vary = ["income", "savings", "loan_amount", "duration"]
    e2 = exp.generate_counterfactuals(query_instance, **given, features_to_vary=vary)
    (example,) = e2.cf_examples_list
    fixed = [name for name in x_test.columns if name not in vary]
    assert (example.final_cfs_df[fixed] == query_instance.iloc[0][fixed]).all(axis=None)

    ranges = {"age": [20, 60], "housing": ["own", "shared"]}
    e3 = exp.generate_counterfactuals(query_instance, **given, permitted_range=ranges)
    e3.visualize_as_dataframe(show_only_changes=True)

    imp = exp.local_feature_importance(query_instance, total_CFs=10)
    assert set(imp.local_importance[0]) == set(x_test.columns)
    again = exp.local_feature_importance(query_instance, cf_examples_list=imp.cf_examples_list)
    assert again.local_importance == imp.local_importance
    cobj = exp.global_feature_importance(x_test[0:10], total_CFs=10, posthoc_sparsity_param=None)
    assert set(cobj.summary_importance) == set(x_test.columns)
    shares = list(cobj.summary_importance.values())
    assert shares == sorted(shares, reverse=True)


@pytest.mark.ci
def test_multiclass(iris):
    train, test, model = iris
    continuous = train.drop("target", axis=1).columns.tolist()
    exp = dear(model, train, "target", continuous)
    query = test[model.predict(test) != 2][2:3]
    found = exp.generate_counterfactuals(query, total_CFs=7, desired_class=2)
    (example,) = found.cf_examples_list
    assert set(example.final_cfs_df["target"]) == {2}
    assert set(model.predict(example.final_cfs_df[continuous])) == {2}
    with pytest.raises(UserConfigValidationException, match="cannot be opposite"):
        exp.generate_counterfactuals(query, total_CFs=7, desired_class="opposite")


def test_private_data():
    d = dice_ml.Data(
        features={"age": [17, 90], "work": ["a", "b"]},
        outcome_name="income",
        type_and_precision={"age": "int"},
    )
    with pytest.raises(UserConfigValidationException, match=r"Private data .* training rows"):
        dice_ml.Dice(d, dice_ml.Model(model=object(), backend="sklearn"), method="dear")


@pytest.mark.ci
@pytest.mark.real_data
def test_dices_own_first_notebook(data_home, tmp_path, monkeypatch, capsys):
    if "weights_only" not in inspect.signature(PyTorchModel.load_model).parameters:
        pytest.skip("DiCE before 0.12 cannot load its own file with torch 2.6 or newer")

    def from_disk(url, name):
        shutil.copy(data_home / "adult.zip", name)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(helpers, "urlretrieve", from_disk)
    dataset = helpers.load_adult_income_dataset()
    d = dice_ml.Data(
        dataframe=dataset, continuous_features=["age", "hours_per_week"], outcome_name="income"
    )
    path = helpers.get_adult_income_modelpath(backend="PYT")
    m = dice_ml.Model(model_path=path, backend="PYT", func="ohe-min-max")
    query = dataset.drop(columns="income")[1:2]
    exp = dice_ml.Dice(d, m, method="dear")
    e1 = exp.generate_counterfactuals(query, total_CFs=4, desired_class="opposite")
    e1.visualize_as_dataframe(show_only_changes=True)
    assert "Diverse Counterfactual set" in capsys.readouterr().out
    module = torch.load(path, weights_only=False)
    (example,) = e1.cf_examples_list
    vectors = d.get_ohe_min_max_normalized_data(example.final_cfs_df[query.columns])
    scores = module(torch.tensor(vectors.to_numpy("float32")))
    assert ((scores[:, -1] > 0.5) == bool(example.desired_class)).all()
    assert len(example.final_cfs_df) == 4
