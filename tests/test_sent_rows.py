"""Rows as clients send them: other dtypes than the training frame's, and values it does not have.

A black box always gets the training dtypes, and the result has those of the input.
"""

import io

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from dear_plugin import DEAR, Schema, Search, Vetted
from dear_plugin.baselines import NearestAccepted
from dear_plugin.datasets import load_loan

HOMES = ["rent", "own", "mortgage"]  # not in alphabetical order, which the codes depend on


@pytest.fixture(scope="module")
def frame():
    """Loan applications with two native categories."""
    frame = load_loan(400).frame
    home = np.array(HOMES)[(frame["savings"].rank(pct=True) * 2.99).astype(int)]
    return frame.assign(
        gender=frame["gender"].astype("category"), home=pd.Categorical(home, HOMES)
    )


class Strict:
    """A model that takes nothing but the dtypes that it was trained on."""

    def __init__(self, frame):
        self.dtypes = frame.dtypes

    def predict_proba(self, frame):
        for name, dtype in self.dtypes.items():
            assert frame.dtypes[name] == dtype, name
            if dtype == "category":
                assert frame[name].cat.categories.tolist() == dtype.categories.tolist()
        score = frame["savings"] / 60 + (frame["home"].cat.codes == 2) * 0.1
        return np.column_stack([1 - score.clip(0, 1), score.clip(0, 1)])


SENT = {
    "as trained": lambda row: row,
    "a dict": lambda row: pd.DataFrame([row.iloc[0].to_dict()]),
    "JSON": lambda row: pd.read_json(io.StringIO(row.to_json(orient="records"))),
    "a row of a frame": lambda row: row.iloc[0].to_frame().T,
    "string": lambda row: row.astype({"gender": "string", "home": "string"}),
    "string[pyarrow]": lambda row: row.astype({"gender": "string[pyarrow]"}),
    "a category of one level": lambda row: row.astype({"home": str}).astype({"home": "category"}),
    "nullable": lambda row: row.convert_dtypes(),
    "Arrow": lambda row: row.convert_dtypes(dtype_backend="pyarrow"),
    "other numbers": lambda row: row.astype({"age": float, "income": "float32"}),
}


@pytest.fixture(scope="module")
def routes(frame):
    """Every call of a method, by name: a frame in, `Recourses` out."""
    features = frame.drop(columns="approved")
    schema, model = Schema.infer(frame, target="approved"), Strict(features)
    dear = DEAR(model, schema, act_on=["savings", "home"]).fit(frame)
    nearest = NearestAccepted(model, schema).fit(frame)
    return {
        "generate": dear.generate,
        "apply": lambda rows: dear.apply(rows, {"savings": 40.0}),
        "vetted": Vetted(nearest, Search()).generate,
    }


class TestDtypes:
    @pytest.mark.parametrize("sent", SENT)
    @pytest.mark.parametrize("route", ["generate", "apply", "vetted"])
    def test_a_model_gets_the_training_dtypes_and_the_user_his_own(
        self, frame, routes, route, sent
    ):
        refused = frame[frame["savings"] < 20].head(1).drop(columns="approved")
        row = SENT[sent](refused)
        result = routes[route](row)
        assert result.actions["success"].all()
        # A category of one level gains the one that it changes to.
        assert result.counterfactuals.dtypes.map(str).equals(row.dtypes.map(str))
        assert result.counterfactuals.index.equals(row.index)
        expected = routes[route](refused)
        assert result.actions["acted_on"].tolist() == expected.actions["acted_on"].tolist()

    @pytest.mark.parametrize("module", ["lightgbm", "xgboost", "sklearn"])
    def test_models_with_native_categories(self, frame, module):
        features, approved = frame.drop(columns="approved"), frame["approved"]
        if module == "sklearn":
            model = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=10)
        elif module == "xgboost":
            model = pytest.importorskip(module).XGBClassifier(
                n_estimators=10, n_jobs=1, enable_categorical=True
            )
        else:
            model = pytest.importorskip(module).LGBMClassifier(
                n_estimators=10, n_jobs=1, verbose=-1
            )
        model.fit(features, approved)
        dear = DEAR(model, Schema.infer(frame, target="approved")).fit(frame)
        refused = features[model.predict(features) == 0].head(1)
        row = SENT["a dict"](refused)
        counterfactual = dear.generate(row).counterfactuals
        assert model.predict(counterfactual.astype(features.dtypes)).tolist() == [1]

    def test_a_value_that_the_dtype_cannot_hold_is_passed_as_it_is(self, frame):
        """No half year is cut off an age without a word."""
        seen = []

        def model(rows):
            seen.extend(rows["age"].tolist())
            return rows["savings"] / 60

        dear = DEAR(model, Schema.infer(frame, target="approved"), act_on=["savings"]).fit(frame)
        dear.apply(frame.head(1).assign(age=33.5), {"savings": 30.0})
        assert set(seen) == {33.5}

    def test_null_in_a_column_that_may_be_missing(self, frame):
        """`pd.DataFrame([{"income": None}])` has a column of objects."""
        gaps = frame.assign(income=frame["income"].where(frame.index % 9 > 0))
        schema = Schema.infer(gaps, target="approved")
        dear = DEAR(lambda rows: rows["savings"] / 60, schema, act_on=["savings"]).fit(gaps)
        row = pd.DataFrame([{**frame.iloc[0].to_dict(), "income": None}])
        result = dear.generate(row)
        assert result.actions["success"].all()
        assert result.counterfactuals["income"].tolist() == [None]

    def test_whole_numbers_among_objects_stay_whole(self, frame):
        dear = DEAR(lambda rows: rows["age"] / 100, Schema.infer(frame, target="approved"))
        row = frame.head(1).astype(object)
        age = dear.fit(frame).generate(row).counterfactuals["age"].iloc[0]
        assert type(age) is int and age >= 50
