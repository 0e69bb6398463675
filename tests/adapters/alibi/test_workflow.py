"""The Adult example of Alibi's CounterfactualRL, line by line, with DEAR in its place."""

import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from alibi.explainers.backends.cfrl_tabular import apply_category_mapping, get_he_preprocessor
from alibi.models.pytorch import ADULTDecoder, ADULTEncoder, HeAE
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dear_alibi import DEAR
from dear_plugin.datasets import load_adult


def read(explanation, names, maps):
    """As the example reads an explanation: concatenate, map the categories, look."""
    names, maps = [*names, "Label"], {**deepcopy(maps), len(names): ["refused", "accepted"]}
    tables = []
    for part in (explanation.data["orig"], explanation.data["cf"]):
        rows = np.concatenate([part["X"], part["class"]], axis=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Alibi's own, on pandas
            tables.append(pd.DataFrame(apply_category_mapping(rows, maps), columns=names))
    return tables


def test_the_workflow_on_loans(data, predictor, pipeline):
    preprocess, invert = get_he_preprocessor(data.X, data.names, data.maps)
    heae = HeAE(ADULTEncoder(8, 4), ADULTDecoder(8, [len(data.names)]))
    explainer = DEAR(
        predictor=predictor,
        encoder=heae.encoder,
        decoder=heae.decoder,
        latent_dim=4,
        encoder_preprocessor=preprocess,
        decoder_inv_preprocessor=invert,
        coeff_sparsity=0.5,
        coeff_consistency=0.5,
        category_map=data.maps,
        feature_names=data.names,
        ranges={"age": [0.0, 1.0], "education": [0.0, 1.0]},
        immutable_features=["gender"],
        train_steps=10_000,
        batch_size=100,
        backend="pytorch",
    )
    explainer = explainer.fit(X=data.X)
    rows = data.X[pipeline.predict(data.X) == 0][:200]
    conditions = [{"income": [-2, 10], "job": ["nurse", "pilot"]}]
    explanation = explainer.explain(rows, np.array([1]), conditions, 100)
    orig, cf = read(explanation, data.names, data.maps)
    assert (cf["gender"] == orig["gender"]).all()
    assert (cf["age"] >= orig["age"]).all()
    assert (cf["income"] - orig["income"]).between(-2, 10).all()
    assert (cf["job"].isin(["nurse", "pilot"]) | (cf["job"] == orig["job"])).all()
    assert set(orig["job"]) <= set(data.maps[3])
    assert (orig["Label"] == "refused").all()
    assert ((cf["Label"] == "accepted") == explanation.success[:, 0]).all()
    assert explanation.success.mean() > 0.9
    several = explainer.explain(
        X=rows[:1], Y_t=np.array([1]), C=conditions, diversity=True, num_samples=5, batch_size=10
    )
    # There are as many as there are sets with a minimal answer.
    assert 2 <= len(several.data["cf"]["X"]) <= 5


@pytest.fixture(scope="module")
def adult(data_home):
    data = load_adult(categories="full", data_home=data_home)
    frame = data.features
    maps = {frame.columns.get_loc(name): sorted(frame[name].unique()) for name in data.categorical}
    X = frame.copy()
    for j, words in maps.items():
        X.isetitem(j, pd.Categorical(frame.iloc[:, j], categories=words).codes)
    return X.to_numpy(np.int64), data.outcome.to_numpy(), list(frame.columns), maps


@pytest.mark.real_data
@pytest.mark.slow
def test_the_workflow_on_adult(adult):
    X, y, names, maps = adult
    numbers = [j for j in range(len(names)) if j not in maps]
    levels = [range(len(words)) for words in maps.values()]
    columns = [
        ("cat", OneHotEncoder(categories=levels, handle_unknown="ignore"), list(maps)),
        ("num", StandardScaler(), numbers),
    ]
    classifier = make_pipeline(ColumnTransformer(columns), LogisticRegression(max_iter=300))
    classifier.fit(X[:20_000], y[:20_000])
    immutable = ["marital-status", "relationship", "race", "sex"]
    explainer = DEAR(
        lambda rows: classifier.predict_proba(rows),
        feature_names=names,
        category_map=maps,
        immutable_features=immutable,
        ranges={"age": [0.0, 1.0]},
    ).fit(X[:8_000])
    rows = X[classifier.predict(X) == 0][:40]

    free = explainer.explain(X=rows, Y_t=np.array([1]), C=[])
    assert free.success.all()
    assert (classifier.predict(free.cf["X"]) == 1).all()
    orig, cf = read(free, names, maps)
    assert (cf[immutable] == orig[immutable]).all(axis=None)
    assert (cf["age"] >= orig["age"]).all()
    assert set(orig["workclass"]) <= set(maps[1])

    conditions = [{"age": [0, 20], "workclass": ["State-gov", "Local-gov"]}]
    bound = explainer.explain(X=rows, Y_t=np.array([1]), C=conditions)
    orig, cf = read(bound, names, maps)
    assert (cf["age"] - orig["age"]).between(0, 20).all()
    stays = cf["workclass"] == orig["workclass"]
    assert (cf["workclass"].isin(conditions[0]["workclass"]) | stays).all()
    assert bound.success.mean() > 0.95

    rows = rows[:12]  # few, because most of them need pairs of features
    fixed = {name: [0, 0] for name in ("capital-gain", "capital-loss", "fnlwgt")}
    tighter = explainer.explain(rows, 1, [{**fixed, "native-country": []}])
    moved = (tighter.cf["X"] != rows).any(0)
    assert not moved[[names.index(n) for n in ("capital-gain", "capital-loss", "race")]].any()
    assert (classifier.predict(tighter.cf["X"]) == tighter.cf["class"][:, 0]).all()
    assert tighter.success.mean() > 0.7
