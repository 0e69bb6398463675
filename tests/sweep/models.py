"""Models: classifiers as people fit them on frames, with `predict` and `predict_proba`."""

from importlib.util import find_spec

import numpy as np
import pandas as pd
import torch

# The dtypes of categories that a kind takes, if not all; these kinds also take missing numbers.
NATIVE = dict.fromkeys(("xgboost", "lightgbm", "histogram"), ("category",))
NATIVE["catboost"] = ("text",)


def fitted(kind, table):
    """A model of a kind, fitted on a table."""
    return MODELS[kind](table).fit(table.frame, table.label)


def _xgboost(table):
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=20, max_depth=3, enable_categorical=True, n_jobs=1)


def _lightgbm(table):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=20, num_leaves=7, n_jobs=1, verbose=-1)


def _catboost(table):
    from catboost import CatBoostClassifier

    quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
    return CatBoostClassifier(iterations=20, depth=3, cat_features=table.words, **quiet)


def _histogram(table):
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype")


def _pipeline(table):
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = [name for name in table.frame if name not in table.words]
    words = OneHotEncoder(handle_unknown="ignore")
    columns = make_column_transformer((words, table.words), (StandardScaler(), numbers))
    return make_pipeline(columns, LogisticRegression(max_iter=500))


def _torch(table):
    levels = {name: sorted(table.frame[name].unique()) for name in table.words}
    return Net(levels, table.frame)


class Net:
    """A torch module behind a function of frames."""

    classes_ = np.array([0, 1])

    def __init__(self, levels, frame):
        self.levels = levels
        self.scale = frame.drop(columns=list(levels)).astype(float).abs().max() + 1.0

    def encode(self, frame):
        """(n, d) scaled numbers and one column for each level."""
        numbers = frame[self.scale.index].astype(float) / self.scale
        flags = [frame[n].to_numpy() == level for n, ls in self.levels.items() for level in ls]
        stacked = np.column_stack([numbers.to_numpy(), *flags])
        return torch.tensor(stacked.astype(np.float32))

    def fit(self, frame, label):
        """Train it."""
        x, y = self.encode(frame), torch.tensor(label.to_numpy(np.float32))
        return self.trained(x, y)

    def trained(self, x, y):
        """Train it on encoded rows, (n, d)."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.module = torch.nn.Sequential(
                torch.nn.Linear(x.shape[1], 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
            )
        optimiser = torch.optim.Adam(self.module.parameters(), lr=0.05)
        for _ in range(60):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(self.module(x)[:, 0], y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        self.module.eval()
        return self

    def predict_proba(self, frame):
        """(n, 2) probabilities."""
        with torch.no_grad():
            p = self.module(self.encode(frame)).sigmoid().numpy().astype(float)
        return np.hstack([1 - p, p])

    def predict(self, frame):
        """(n,) classes."""
        return (self.predict_proba(frame)[:, 1] > 0.5).astype(int)


def decisions(model, frame: pd.DataFrame, dtypes: pd.Series):
    """(n,) the classes of rows, in the dtypes of the training rows as its user would pass them."""
    return np.asarray(model.predict(frame.astype(dtypes.to_dict()))).ravel().astype(int)


MODELS = {"histogram": _histogram, "pipeline": _pipeline, "torch": _torch} | {
    name: model
    for name, model in (("xgboost", _xgboost), ("lightgbm", _lightgbm), ("catboost", _catboost))
    if find_spec(name)
}
