"""Loan applicants as an Alibi user holds them: codes in an array, names and a category map."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

pytest.importorskip("alibi")

from dear_alibi import DEAR
from dear_alibi.table import Table
from dear_plugin import Encoder
from dear_plugin.datasets import load_loan

JOBS = ("clerk", "driver", "nurse", "pilot", "retired")


@dataclass
class Loans:
    """Label-encoded rows and their description; no row has the job "retired"."""

    X: np.ndarray
    y: np.ndarray
    names: list
    maps: dict
    frame: pd.DataFrame

    def description(self):
        return {"feature_names": self.names, "category_map": self.maps}


def loans(n=1500, seed=0):
    data = load_loan(n, seed=seed)
    frame = data.features.round({"loan_amount": 0, "income": 0, "savings": 0})
    pay = frame["income"] + np.random.default_rng(seed).normal(0, 3, n)
    job = np.digitize(pay, np.quantile(pay, [0.3, 0.6, 0.9]))
    frame.insert(3, "job", pd.Categorical.from_codes(job, list(JOBS)))
    frame["gender"] = pd.Categorical(frame["gender"], categories=["female", "male"])
    maps = {0: ["female", "male"], 3: list(JOBS)}
    codes = {"gender": frame["gender"].cat.codes, "job": frame["job"].cat.codes}
    X = frame.assign(**codes).to_numpy(dtype=np.int64)
    return Loans(X, data.outcome.to_numpy(), list(frame.columns), maps, frame)


@pytest.fixture(scope="session")
def data():
    return loans()


def fitted_pipeline(data):
    """What users own: categories first, then numbers."""
    numbers = [j for j in range(len(data.names)) if j not in data.maps]
    levels = [list(range(len(words))) for words in data.maps.values()]
    columns = [
        ("cat", OneHotEncoder(categories=levels), list(data.maps)),
        ("num", StandardScaler(), numbers),
    ]
    return make_pipeline(ColumnTransformer(columns), LogisticRegression(max_iter=500)).fit(
        data.X, data.y
    )


@pytest.fixture(scope="session")
def pipeline(data):
    return fitted_pipeline(data)


@pytest.fixture(scope="session")
def predictor(pipeline):
    return lambda rows: pipeline.predict_proba(rows)


@pytest.fixture(scope="session")
def module(data):
    """Logistic regression on the engine's encoding, as one logit."""
    levels = Table.of(data.names, data.maps)
    frame = levels.frame(data.X)
    encoder = Encoder(levels.schema(frame, {}))
    fitted = LogisticRegression(max_iter=500).fit(encoder.encode(frame).numpy(), data.y)
    linear = torch.nn.Linear(encoder.d, 1)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor(fitted.coef_))
        linear.bias.copy_(torch.tensor(fitted.intercept_))
    return linear


@pytest.fixture(scope="session")
def refused(data, pipeline):
    return data.X[pipeline.predict(data.X) == 0][:20]


@pytest.fixture(scope="session")
def explainer(data, predictor):
    """Fitted once; tests that change an explainer use `fit`."""
    return fitted(data, predictor, immutable_features=["gender"], ranges={"age": [0, 1]})


def fitted(data, predictor, **options):
    return DEAR(predictor, **data.description(), **options).fit(data.X)


@pytest.fixture
def fit(data, predictor):
    return lambda other=None, **options: fitted(data, other or predictor, **options)


@pytest.fixture
def three(data):
    """A predictor of three classes, by income and savings."""
    weights = np.zeros((len(data.names), 3))
    weights[data.names.index("income"), 1:] = 0.2, 0.3
    weights[data.names.index("savings"), 2] = 0.1

    def predict(rows):
        scores = np.asarray(rows, dtype=float) @ weights - [0.0, 7.0, 14.0]
        odds = np.exp(scores - scores.max(1, keepdims=True))
        return odds / odds.sum(1, keepdims=True)

    return SimpleNamespace(predict=predict)
