"""The main job on each real data set: the paper's network, refused test rows, real recourse."""

from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from dear_plugin import DEAR, Schema
from dear_plugin.data.encoder import Encoder
from dear_plugin.datasets import load_adult, load_compas, load_give_me_some_credit
from dear_plugin.demo.classifiers import Recipe, trained

LOADERS = {"adult": load_adult, "compas": load_compas, "gmc": load_give_me_some_credit}
WITH_MISSING = {"adult": partial(load_adult, "full"), "gmc": load_give_me_some_credit}
RECIPES = {
    "adult": Recipe(512, 8, 0.005),
    "compas": Recipe(32, 15, 0.002),
    "gmc": Recipe(512, 6, 0.005),
}
# At age 20 or less the model of Adult as it comes refuses every capital gain, the feature that
# matters most: 24 of 120 people stay unsolved, all of them so young.
LEAST_SOLVED = {"adult": 0.78, "gmc": 0.85}
ROWS = 120

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


@pytest.mark.ci
def test_every_refused_row_is_accepted_after_rounding_and_protected_features_stay(case):
    data, _, refused, model, dear = case
    recourses = dear.generate(refused)
    after, immutable = recourses.counterfactuals, list(data.protected)
    with torch.no_grad():
        accepted = model(dear.encoder.encode(after))[:, 0] > 0
    assert recourses.actions["success"].all()
    assert bool(accepted.all())
    assert (after[immutable] == refused[immutable]).all(axis=None)


@pytest.mark.slow
def test_indirect_changes_follow_the_data(case):
    _, test, _, _, dear = case
    report = dear.diagnose(test)
    assert report.fidelity >= 0.9
    assert report.round_trip < 1e-6


@pytest.mark.slow
class TestTablesAsTheyCome:
    """Missing values and codes kept, and a model that takes them as they are."""

    @pytest.fixture(scope="class", params=WITH_MISSING)
    @staticmethod
    def asked(request, data_home: Path):
        data = WITH_MISSING[request.param](data_home=data_home, missing="keep")
        train, test = data.split(seed=0)
        train = train.sample(12_000, random_state=0)
        codes = OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
        )
        words = make_column_transformer((codes, list(data.categorical)), remainder="passthrough")
        model = make_pipeline(words, HistGradientBoostingClassifier(max_iter=40, random_state=0))
        model.fit(train[list(data.features)], train[data.target])
        schema = Schema.infer(
            train,
            data.target,
            immutable=data.immutable,
            increasing=data.increasing,
            special=data.special,
        )
        dear = DEAR(model, schema, act_on=data.act_on).fit(train)
        refused = test[model.predict(test[list(data.features)]) == 0][list(data.features)]
        odd = refused.isna().any(axis=1)
        for name, levels in data.special.items():
            odd |= refused[name].isin(levels)
        people = pd.concat([refused[odd].head(80), refused[~odd].head(40)])
        return data, model, dear, test, dear.generate(people)

    def test_most_people_are_solved_and_the_model_agrees(self, asked):
        data, model, _, _, recourses = asked
        success = recourses.actions["success"].to_numpy()
        assert success.mean() >= LEAST_SOLVED[data.name]
        assert (model.predict(recourses.counterfactuals) == success).all()

    def test_nobody_unsolved_is_accepted_with_a_new_value_of_one_feature_alone(self, asked):
        """About 200 values of each feature acted on, of the data."""
        data, model, _, _, recourses = asked
        unsolved = recourses.factuals[~recourses.actions["success"]]
        for name in data.act_on:
            codes = data.special.get(name, ())
            own = unsolved[unsolved[name].notna() & ~unsolved[name].isin(codes)]
            values = data.frame[name].dropna().sort_values().unique()
            values = [v for v in values[:: len(values) // 200 + 1] if v not in codes]
            if len(own):
                tried = [own.assign(**{name: value}) for value in values]
                assert not model.predict(pd.concat(tried)).any()
