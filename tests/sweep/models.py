"""Models: classifiers as people fit them on frames, with `predict` and `predict_proba`."""

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch.nn.functional import binary_cross_entropy_with_logits

SMALL = {"xgboost": {"enable_categorical": True, "n_jobs": 1, "max_depth": 3}}
SMALL["lightgbm"] = {"num_leaves": 7, "n_jobs": 1, "verbose": -1}
SMALL["catboost"] = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
CLASSES = {"xgboost": "XGBClassifier", "lightgbm": "LGBMClassifier"}
CLASSES["catboost"] = "CatBoostClassifier"
KINDS = ["histogram", "pipeline", "torch", *filter(find_spec, CLASSES)]
# The dtypes of categories that a kind takes, if not all; these kinds also take missing numbers.
NATIVE = dict.fromkeys(("xgboost", "lightgbm", "histogram"), ("category",)) | {
    "catboost": ("text",)
}


def fitted(kind, table):
    """A model of a kind, fitted on a table."""
    model = _new(kind, table).fit(table.frame, table.label)
    return Hard(model) if "labels" in table.traits else model


def _new(kind, table):
    if kind in CLASSES:
        options = SMALL[kind] | ({"cat_features": table.words} if kind == "catboost" else {})
        return getattr(import_module(kind), CLASSES[kind])(n_estimators=20, **options)
    if kind == "histogram":
        return HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype")
    if kind == "torch":
        return Net(table)
    words = OneHotEncoder(handle_unknown="ignore"), table.words
    columns = make_column_transformer(words, remainder=StandardScaler())
    return make_pipeline(columns, LogisticRegression(max_iter=500))


class Hard:
    """A model of which only the labels are known."""

    classes_ = np.array([0, 1])

    def __init__(self, model):
        self.predict = model.predict

    def predict_proba(self, frame):
        return np.eye(2)[np.ravel(self.predict(frame)).astype(int)]


class Net:
    """A torch module behind a function of frames; `encode` makes rows (n, d) of a frame."""

    classes_ = np.array([0, 1])

    def __init__(self, table):
        self.levels = {name: sorted(set(table.frame[name])) for name in table.words}
        self.scale = table.frame.drop(columns=table.words).astype(float).abs().max() + 1.0

    def encode(self, frame):
        numbers = frame[self.scale.index].astype(float) / self.scale
        flags = [frame[n].to_numpy() == level for n, ls in self.levels.items() for level in ls]
        return torch.tensor(np.column_stack([numbers.to_numpy(), *flags]).astype(np.float32))

    def fit(self, frame, label):
        x, y = self.encode(frame), torch.tensor(label.to_numpy(np.float32))
        with torch.random.fork_rng():
            torch.manual_seed(0)
            hidden, out = torch.nn.Linear(x.shape[1], 8), torch.nn.Linear(8, 1)
        self.module = torch.nn.Sequential(hidden, torch.nn.Tanh(), out)
        optimiser = torch.optim.Adam(self.module.parameters(), lr=0.05)
        for _ in range(60):
            optimiser.zero_grad()
            binary_cross_entropy_with_logits(self.module(x)[:, 0], y).backward()
            optimiser.step()
        self.module.eval()
        return self

    def predict_proba(self, frame):
        with torch.no_grad():
            p = self.module(self.encode(frame)).sigmoid().numpy().astype(float)
        return np.hstack([1 - p, p])

    def predict(self, frame):
        return (self.predict_proba(frame)[:, 1] > 0.5).astype(int)
