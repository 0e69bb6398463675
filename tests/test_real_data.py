"""The main job on each real data set: the paper's network, refused test rows, real recourse."""

from pathlib import Path

import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Schema, Transport
from dear_plugin.benchmark import Recipe, trained
from dear_plugin.datasets import load_adult, load_compas, load_give_me_some_credit
from dear_plugin.encoding import Encoder

LOADERS = {"adult": load_adult, "compas": load_compas, "gmc": load_give_me_some_credit}
RECIPES = {
    "adult": Recipe(512, 8, 0.005),
    "compas": Recipe(32, 15, 0.002),
    "gmc": Recipe(512, 6, 0.005),
}
ROWS = 300

pytestmark = pytest.mark.real_data


@pytest.fixture(scope="module", params=LOADERS)
def case(request, data_home: Path):
    data = LOADERS[request.param](data_home=data_home)
    train, test = data.split(seed=0)
    # The paper's setting: the protected features are immutable, all else is free.
    schema = Schema.infer(train, target=data.target, immutable=data.protected)
    encoder = Encoder(schema)
    labels = torch.tensor(train[data.target].to_numpy())
    for seed in range(10):
        model = trained("ann", encoder.encode(train), labels, RECIPES[data.name], seed)
        with torch.no_grad():
            refused = test[(model(encoder.encode(test))[:, 0] <= 0).numpy()]
        if len(refused) >= 50:
            break
    dear = DEAR(model, schema).fit(train)
    return data, test, refused.iloc[:ROWS], model, dear


def test_every_refused_person_is_accepted_after_rounding(case):
    _, _, refused, model, dear = case
    recourses = dear.generate(refused)
    with torch.no_grad():
        accepted = model(dear.encoder.encode(recourses.counterfactuals))[:, 0] > 0
    assert recourses.actions["success"].all()
    assert bool(accepted.all())


def test_protected_features_are_as_they_were(case):
    data, _, refused, _, dear = case
    held = list(data.protected)
    after = dear.generate(refused).counterfactuals
    assert (after[held] == refused[held]).all(axis=None)


def test_indirect_changes_follow_the_data(case):
    _, test, _, _, dear = case
    report = dear.diagnose(test)
    assert report.fidelity >= 0.9
    assert report.round_trip < 1e-6


def test_a_black_box_gets_the_same_answers(case):
    _, _, refused, model, dear = case

    def predict(frame):
        with torch.no_grad():
            return torch.sigmoid(model(dear.encoder.encode(frame)).double()).numpy()

    black_box = DEAR(predict, dear.schema)
    few = refused.iloc[:40]
    black_box.fit(_training_rows(dear))
    left = dear.generate(few).counterfactuals[list(dear.schema.names)]
    right = black_box.generate(few).counterfactuals[list(dear.schema.names)]
    same = (left == right).all(axis=1)
    assert same.mean() >= 0.95  # a probability is a float's rounding away from its logit


def _training_rows(dear):
    return dear.encoder.frame(dear._fitted_rows)


@pytest.mark.parametrize("given", [(), "immutable"], ids=["nothing given", "immutables given"])
@pytest.mark.parametrize("ties", ["middle", "score"])
@pytest.mark.parametrize("groups", [False, True], ids=["single", "groups"])
def test_what_was_saved_is_read_again(case, tmp_path, given, ties, groups):
    """What a load takes for damage is not what rounding does to sound tables."""
    _, _, refused, model, dear = case
    free = list(dear.schema.mutable)
    act_on = [tuple(free[:2]), free[2], tuple(free[1:4])] if groups else None
    few = refused.iloc[:20]
    decoder = Transport(given=given, ties=ties)
    fresh = DEAR(model, dear.schema, decoder=decoder, act_on=act_on).fit(_training_rows(dear))
    fresh.save(tmp_path)
    again = DEAR.load(tmp_path, model)
    pd.testing.assert_frame_equal(again.generate(few).actions, fresh.generate(few).actions)
