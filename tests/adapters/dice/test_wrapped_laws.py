"""The laws of every method for each of DiCE's own, on torch modules and scikit-learn pipelines."""

import dice_ml
import pandas as pd
import pytest

from dear_dice import wrap_dice
from dear_plugin import Target
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
