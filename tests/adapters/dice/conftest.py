"""Small data, DiCE's interfaces to it and real models on it."""

from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dear_plugin.datasets import load_loan

if find_spec("dice_ml") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    import dice_ml

    import dear_dice

# Not in frame order, because DiCE's vector follows this argument.
CONTINUOUS = ["income", "age", "education", "loan_amount", "duration", "savings"]
WORDS = ["gender", "housing"]


def loan_frame(n=1200):
    """Loan applications with a category of three levels besides gender's two."""
    frame = load_loan(n, seed=1).frame
    ranks = frame["savings"].rank(pct=True).to_numpy()
    frame.insert(3, "housing", np.array(["rented", "shared", "own"])[(ranks * 2.999).astype(int)])
    return frame


def interface(frame, outcome="approved", continuous=None, **options):
    names = CONTINUOUS if continuous is None else continuous
    return dice_ml.Data(
        dataframe=frame, continuous_features=list(names), outcome_name=outcome, **options
    )


def vectors(data, features):
    """What DiCE hands to a torch model."""
    raw = data.get_ohe_min_max_normalized_data(features)
    return torch.tensor(raw.to_numpy(dtype=np.float32))


def linear_module(data, features, labels, columns=1, last=None):
    """Logistic regression on DiCE's vector as a torch module: (n, 1), (n, 2) or (n, c)."""
    fitted = LogisticRegression(max_iter=2000).fit(vectors(data, features).numpy(), labels)
    return as_module(fitted, columns, last)


def as_module(fitted, columns=1, last=None):
    """A fitted logistic regression as a torch module."""
    weight = torch.tensor(fitted.coef_, dtype=torch.float32)
    bias = torch.tensor(fitted.intercept_, dtype=torch.float32)
    if len(weight) == 1 and columns == 2:
        weight, bias = torch.cat([-weight, weight]) / 2, torch.cat([-bias, bias]) / 2
    layer = torch.nn.Linear(weight.shape[1], len(weight))
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    if last is None:
        last = torch.nn.Sigmoid() if len(weight) == 1 else torch.nn.Softmax(dim=1)
    return torch.nn.Sequential(layer, last)


def pipeline(features, labels, estimator, words):
    numbers = [name for name in features.columns if name not in words]
    encoder = make_column_transformer((OneHotEncoder(), list(words)), (StandardScaler(), numbers))
    return make_pipeline(encoder, estimator).fit(features, labels)


def dear(model, features, labels, backend="sklearn", **options):
    """DEAR of a model of some features and labels."""
    frame = features.assign(approved=labels)
    data = interface(frame, continuous=[name for name in CONTINUOUS if name in features])
    return dear_dice.DiceDEAR(data, dice_ml.Model(model=model, backend=backend, **options))


@pytest.fixture(scope="session")
def loan():
    """The frame, its features and labels, DiCE's interface, and what builds models on it."""
    frame = loan_frame()
    features, labels = frame.drop(columns="approved"), frame["approved"]
    return SimpleNamespace(
        frame=frame,
        features=features,
        labels=labels,
        data=interface(frame),
        interface=interface,
        vectors=vectors,
        module=linear_module,
        as_module=as_module,
        pipeline=pipeline,
        dear=dear,
        words=WORDS,
        continuous=CONTINUOUS,
    )


@pytest.fixture(scope="session")
def torch_model(loan):
    """DiCE's interface to a torch module with one column."""
    module = linear_module(loan.data, loan.features, loan.labels)
    return dice_ml.Model(model=module, backend="PYT", func="ohe-min-max")


@pytest.fixture(scope="session")
def sklearn_model(loan):
    """DiCE's interface to a scikit-learn pipeline."""
    fitted = pipeline(loan.features, loan.labels, LogisticRegression(max_iter=2000), WORDS)
    return dice_ml.Model(model=fitted, backend="sklearn")


@pytest.fixture(scope="session")
def regressor(loan):
    """Income from the rest: a frame, its interface and a fitted pipeline."""
    features = loan.features.drop(columns="income")
    frame = features.assign(income=loan.features["income"])
    continuous = [name for name in CONTINUOUS if name != "income"]
    fitted = pipeline(features, frame["income"], Ridge(), WORDS)
    return SimpleNamespace(
        features=features,
        data=interface(frame, "income", continuous),
        model=dice_ml.Model(model=fitted, backend="sklearn", model_type="regressor"),
        predict=fitted.predict,
    )


@pytest.fixture(scope="session")
def explainer(make):
    return make()


@pytest.fixture(scope="session")
def black_box(loan, sklearn_model):
    return dear_dice.DiceDEAR(loan.data, sklearn_model)


@pytest.fixture(params=["explainer", "black_box"])
def either(request):
    """The explainer of a torch module, then that of a scikit-learn pipeline."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def make(loan, torch_model):
    """An explainer of the torch module with some options."""
    return lambda **options: dear_dice.DiceDEAR(loan.data, torch_model, **options)


@pytest.fixture(scope="session")
def probability(loan, torch_model):
    """P(approved) of rows, computed on DiCE's own vector of them."""

    def evaluate(rows):
        with torch.no_grad():
            return torch_model.model(vectors(loan.data, rows[loan.features.columns]))[:, 0].numpy()

    return evaluate


@pytest.fixture(scope="session")
def refused(loan, probability):
    """Rows that the torch model refuses."""
    return loan.features[probability(loan.features) < 0.5].iloc[:12]


@pytest.fixture(scope="session")
def accepted(loan, probability):
    """Rows that the torch model accepts."""
    return loan.features[probability(loan.features) > 0.5].iloc[:12]


@pytest.fixture(scope="session")
def hardest(loan, probability):
    """The row that is the farthest from being accepted."""
    return loan.features.iloc[[int(probability(loan.features).argmin())]]
