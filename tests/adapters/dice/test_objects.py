"""Columns of objects: numbers and booleans in them are what the model was trained on."""

import dice_ml
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from dear_dice import DiceDEAR

rng = np.random.default_rng(0)
N = 600
CABINS = {
    "integers": [int(value) for value in rng.integers(0, 2, N)],
    "three integers": [int(value) for value in rng.integers(0, 3, N)],
    "floats": [float(value) for value in rng.integers(0, 3, N)],
    "booleans": [bool(value) for value in rng.integers(0, 2, N)],
    "text": [str(value) for value in rng.integers(0, 3, N)],
}
# The dtypes of the training rows and of the query: a row of a frame has objects, JSON has none.
FORMS = {
    "as trained": (object, object),
    "objects of a typed column": (None, object),
    "typed cells of objects": (object, None),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("values", CABINS)
def test_an_answer_has_the_values_of_the_query(values, form):
    trained, asked = FORMS[form]
    fares, sexes = rng.gamma(2, 15, N).round(2), rng.choice(["male", "female"], N)
    cabin = pd.Series(CABINS[values], dtype=trained)
    frame = pd.DataFrame({"cabin": cabin, "sex": sexes, "fare": fares})
    paid = frame["fare"] + 20 * (frame["sex"] == "female") + 9 * frame["cabin"].astype(float)
    words = OneHotEncoder(handle_unknown="ignore"), ["cabin", "sex"]
    columns = make_column_transformer(words, remainder="passthrough")
    label = (paid > 45).astype(int).rename("y")
    model = make_pipeline(columns, LogisticRegression(max_iter=500)).fit(frame, label)
    data = dice_ml.Data(
        dataframe=frame.assign(y=label), continuous_features=["fare"], outcome_name="y"
    )
    query = frame[model.predict(frame) == 0].head(4)
    query = query.assign(cabin=pd.Series(query["cabin"].tolist(), query.index, dtype=asked))
    explainer = DiceDEAR(data, dice_ml.Model(model=model, backend="sklearn"))
    found = explainer.generate_counterfactuals(query, 1, desired_class=1).cf_examples_list
    answers = pd.concat([example.final_cfs_df[list(frame)] for example in found])
    assert (answers.dtypes == query.dtypes).all()
    assert set(map(type, answers["cabin"])) == set(map(type, query["cabin"]))
    assert (model.predict(answers.astype(frame.dtypes.to_dict())) == 1).all()
