"""Any DiCE explainer as a method to compare with DEAR: it obeys the laws of every method."""

import dice_ml
import pandas as pd
import pytest

from dear_dice import DiceDEAR, wrap_dice
from dear_plugin import Constraints, Target
from dear_plugin.testing import LAWS, Subject

FAST = {
    "random": {"sample_size": 100, "posthoc_sparsity_algorithm": "binary"},
    "kdtree": {"posthoc_sparsity_param": None},
    "genetic": {"maxiterations": 5},
    "gradient": {"posthoc_sparsity_param": None, "min_iter": 5, "max_iter": 60},
}
PAIRS = [
    ("random", "module"),
    pytest.param(("random", "pipeline"), marks=pytest.mark.slow),
    # DiCE's kdtree takes the number of columns of a module for the number of classes.
    ("kdtree", "module of two columns"),
    pytest.param(("kdtree", "pipeline"), marks=pytest.mark.slow),
    pytest.param(("genetic", "module"), marks=pytest.mark.slow),
    pytest.param(("genetic", "pipeline"), marks=pytest.mark.slow),
    ("gradient", "module"),
]


@pytest.fixture(scope="module")
def models(loan, torch_model, sklearn_model):
    two = loan.module(loan.data, loan.features, loan.labels, columns=2)
    return {
        "module": torch_model,
        "module of two columns": dice_ml.Model(model=two, backend="PYT", func="ohe-min-max"),
        "pipeline": sklearn_model,
    }


@pytest.fixture(scope="module", params=PAIRS, ids=lambda pair: "-".join(pair))
def subject(request, loan, models):
    name, host = request.param
    explainer = dice_ml.Dice(loan.data, models[host], method=name)
    method = wrap_dice(explainer, immutable=["gender"], increasing=["age"], **FAST[name])
    method.fit(loan.features)
    scores = method.classifier.frame_scores(loan.features)
    score = Target.of_class(1).resolve(len(scores), None).score(scores).numpy()
    refused, accepted = loan.features[(score > 0.3) & (score < 0.45)], loan.features[score > 0.6]
    return Subject.of(method, pd.concat([refused.iloc[:2], accepted.iloc[:1]]))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_laws_hold(law, subject):
    law(subject)


def test_it_solves_a_row(subject):
    assert subject.result.actions["success"].iloc[:2].any(), subject.result.actions["reason"]


def test_it_is_silent_and_restores_the_ranges_of_the_interface(subject, loan, capsys):
    permitted = dict(loan.data.permitted_range)
    within = Constraints(ranges={"income": (30, 60)}, categories={"housing": ["own"]})
    after = subject.generate(subject.query, within).counterfactuals
    assert ((after["housing"] == "own") | (after["housing"] == subject.query["housing"])).all()
    assert capsys.readouterr() == ("", "")
    assert loan.data.permitted_range == permitted


def test_all_levels_with_an_order_are_permitted(loan, sklearn_model, refused, monkeypatch):
    order = pd.CategoricalDtype(["rented", "shared", "own"], ordered=True)
    data = loan.interface(loan.frame.astype({"housing": order}))
    explainer = dice_ml.Dice(data, sklearn_model, method="random")
    asked, own = [], explainer.generate_counterfactuals
    monkeypatch.setattr(
        explainer, "generate_counterfactuals", lambda *a, **k: asked.append(k) or own(*a, **k)
    )
    method = wrap_dice(explainer, sample_size=50).fit(loan.features.astype({"housing": order}))
    method.generate(refused.astype({"housing": order}).head(1))
    assert asked[0]["permitted_range"]["housing"] == ["rented", "shared", "own"]


@pytest.fixture(scope="module")
def rows(loan, black_box):
    features = loan.features
    return features[black_box._host.scores(features)[:, 1] < 0.4].iloc[:4]


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
