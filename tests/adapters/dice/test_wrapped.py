"""Any DiCE explainer as a method to compare with DEAR."""

import random

import dice_ml
import numpy as np
import pandas as pd
import pytest
import torch

from dear_dice import DiceDEAR, wrap_dice
from dear_plugin import Constraints, RecourseMethod, Target

FAST = {
    "random": {"sample_size": 200, "posthoc_sparsity_algorithm": "binary"},
    "kdtree": {"posthoc_sparsity_param": None},
    "genetic": {"maxiterations": 20},
}


@pytest.fixture(scope="module")
def rows(loan, black_box):
    features = loan.features
    return features[black_box._host.scores(features)[:, 1] < 0.4].iloc[:4]


@pytest.fixture(scope="module", params=FAST)
def method(request, loan, sklearn_model):
    explainer = dice_ml.Dice(loan.data, sklearn_model, method=request.param)
    return wrap_dice(explainer, **FAST[request.param]).fit(loan.features)


def test_it_is_a_method_like_any_other(method, rows, sklearn_model, loan):
    assert isinstance(method, RecourseMethod)
    result = method.generate(rows)
    after = sklearn_model.model.predict(result.counterfactuals)
    assert (after == 1).tolist() == result.actions["success"].tolist()
    assert result.actions["success"].any()
    assert result.counterfactuals.dtypes.equals(rows.dtypes)
    assert result.counterfactuals.index.equals(rows.index)
    assert (result.actions["reason"][~result.actions["success"]] != "").all()
    assert (result.actions["indirect_cost"] == 0).all()
    assert result.support.between(0, 1).all()


def test_constraints_hold_for_it(method, rows):
    within = Constraints(
        frozen=["gender", "age"], ranges={"income": (None, 45)}, categories={"housing": ["own"]}
    )
    result = method.generate(rows, within=within)
    after = result.counterfactuals
    assert after[["gender", "age"]].equals(rows[["gender", "age"]])
    assert (after["income"] <= np.maximum(45, rows["income"])).all()
    assert ((after["housing"] == "own") | (after["housing"] == rows["housing"])).all()


def test_the_same_seed_has_the_same_answer_and_nothing_global_moves(method, rows, loan, capsys):
    permitted = dict(loan.data.permitted_range)
    before = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()
    first, again = method.generate(rows), method.generate(rows)
    pd.testing.assert_frame_equal(first.counterfactuals, again.counterfactuals)
    assert random.getstate() == before[0]
    assert (np.random.get_state()[1] == before[1]).all()
    assert torch.equal(torch.get_rng_state(), before[2])
    assert capsys.readouterr() == ("", "")
    assert loan.data.permitted_range == permitted


def test_gradient_with_its_partial_ranges(loan, torch_model, refused):
    explainer = dice_ml.Dice(loan.data, torch_model, method="gradient")
    method = wrap_dice(explainer, posthoc_sparsity_param=None, min_iter=50, max_iter=200)
    permitted = dict(loan.data.permitted_range)
    result = method.fit(loan.features).generate(
        refused.iloc[:2], within=Constraints(frozen=["gender"], ranges={"income": (30, 60)})
    )
    assert len(result.actions) == 2
    assert loan.data.permitted_range == permitted
    assert result.counterfactuals["gender"].equals(refused.iloc[:2]["gender"])


def test_marks_of_the_schema(loan, sklearn_model, rows):
    explainer = dice_ml.Dice(loan.data, sklearn_model, method="random")
    method = wrap_dice(explainer, immutable=["gender"], increasing=["age"], sample_size=200)
    result = method.fit(loan.features).generate(rows)
    assert result.counterfactuals["gender"].equals(rows["gender"])
    assert (result.counterfactuals["age"] >= rows["age"]).all()


def test_dear_itself_keeps_its_answer(loan, torch_model, refused):
    inner = DiceDEAR(loan.data, torch_model)
    result = wrap_dice(inner).fit(loan.features).generate(refused.iloc[:3])
    pd.testing.assert_frame_equal(
        result.counterfactuals, inner.dear.generate(refused.iloc[:3]).counterfactuals
    )


def test_targets_reach_dice(loan, sklearn_model, regressor, black_box):
    accepted = loan.features[black_box._host.scores(loan.features)[:, 1] > 0.6].iloc[:2]
    explainer = dice_ml.Dice(loan.data, sklearn_model, method="random")
    method = wrap_dice(explainer, sample_size=300).fit(loan.features)
    result = method.generate(accepted, Target.of_class(0, threshold=0.7))
    done = result.actions["success"]
    assert done.any() and (result.actions["score_after"][done] >= 0.7).all()
    explainer = dice_ml.Dice(regressor.data, regressor.model, method="random")
    method = wrap_dice(explainer, sample_size=300).fit(regressor.features)
    rows = regressor.features[regressor.predict(regressor.features) < 33].iloc[:2]
    result = method.generate(rows, Target.of_range(35, 40))
    done = result.actions["success"]
    assert done.any() and result.actions["score_after"][done].between(35, 40).all()


def test_a_failure_keeps_its_reason(loan, sklearn_model, rows):
    explainer = dice_ml.Dice(loan.data, sklearn_model, method="random")
    result = wrap_dice(explainer, no_such_argument=1).fit(loan.features).generate(rows)
    assert not result.actions["success"].any()
    assert result.actions["reason"].str.contains("no_such_argument").all()
    pd.testing.assert_frame_equal(result.counterfactuals, rows)
