"""The Adult example of Alibi's CounterfactualRL, line by line, with DEAR in its place."""

import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
from alibi.explainers.backends.cfrl_tabular import apply_category_mapping, get_he_preprocessor
from alibi.models.pytorch import ADULTDecoder, ADULTEncoder, HeAE

from dear_alibi import DEAR


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
        X=rows[1:2], Y_t=np.array([1]), C=conditions, diversity=True, num_samples=5, batch_size=10
    )
    # There are as many as there are sets with a minimal answer.
    assert 2 <= len(several.data["cf"]["X"]) <= 5
