"""Real Adult, and the torch model that DiCE ships for its own first notebook."""

import shutil

import dice_ml
import numpy as np
import pytest
import torch
from dice_ml.utils import helpers

from dear_dice import register
from dear_plugin.datasets import load_adult

pytestmark = pytest.mark.real_data

FIXED = ["sex", "race", "native-country"]


@pytest.fixture(scope="module")
def adult(data_home, loan):
    dataset = load_adult(data_home=data_home)
    train, test = dataset.split(seed=0)
    continuous = [n for n in train.columns if n not in (*dataset.categorical, "income")]
    data = loan.interface(train, "income", continuous)
    module = loan.module(data, train.drop(columns="income"), train["income"])
    model = dice_ml.Model(model=module, backend="PYT", func="ohe-min-max")
    probability = module(loan.vectors(data, test.drop(columns="income")))[:, 0].detach().numpy()
    return data, model, test.drop(columns="income")[probability < 0.5].iloc[:200]


@pytest.mark.ci
def test_dices_own_first_notebook(data_home, tmp_path, monkeypatch, capsys):
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
    with register():
        exp = dice_ml.Dice(d, m, method="dear")
    e1 = exp.generate_counterfactuals(query, total_CFs=4, desired_class="opposite")
    e1.visualize_as_dataframe(show_only_changes=True)
    assert "Diverse Counterfactual set" in capsys.readouterr().out
    module = torch.load(path, weights_only=False)
    (example,) = e1.cf_examples_list
    vectors = d.get_ohe_min_max_normalized_data(example.final_cfs_df[query.columns])
    scores = module(torch.tensor(vectors.to_numpy(dtype=np.float32)))
    assert ((scores[:, -1] > 0.5) == bool(example.desired_class)).all()
    assert len(example.final_cfs_df) == 4
