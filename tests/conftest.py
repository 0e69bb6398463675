"""Fixtures that every test may ask for."""

import os
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Encoder, Schema
from dear_plugin.datasets import load_loan


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """No doctests in test files: their collector imports first and hides every ImportError."""
    found = yield
    return [collector for collector in found if type(collector) is pytest.Module]


@dataclass(frozen=True)
class Study:
    """People, what may change about them, and two models trained on them.

    Attributes:
        frame: the features, in user units.
        labels: 1 where the label is the wanted one.
        schema: what may change.
        net: a trained torch module, logits (n, 1) on the encoding; about half are refused.
        pipeline: a trained scikit-learn pipeline on frames.
    """

    frame: pd.DataFrame
    labels: pd.Series
    schema: Schema
    net: torch.nn.Module
    pipeline: Any

    @property
    def encoder(self) -> Encoder:
        return Encoder(self.schema)

    def refused(self, n: int) -> pd.DataFrame:
        """The first n people whom the torch module refuses."""
        with torch.no_grad():
            logits = self.net(self.encoder.encode(self.frame))[:, 0]
        return self.frame[(logits <= 0).numpy()].iloc[:n]


@pytest.fixture(scope="session")
def data_home() -> Path:
    """The folder of the real data sets; where DEAR_DATA_HOME is set, a missing file fails."""
    folder = os.environ.get("DEAR_DATA_HOME")
    if not folder:
        pytest.skip("DEAR_DATA_HOME is not set: no real data")
    return Path(folder)


@pytest.fixture(scope="session")
def mixed() -> Study:
    """One feature of every kind and dtype, depending on one another."""
    frame, labels = _mixed(1500, np.random.default_rng(0))
    schema = Schema.infer(
        frame,
        immutable=["gender"],
        increasing=["age", "owner"],
        decreasing=["debt"],
        ranges={"income": (0.0, 90.0)},
    )
    return _study(frame, labels, schema)


@pytest.fixture(scope="session")
def loan() -> Study:
    """Mostly numbers, with a published structure."""
    data = load_loan(1500, seed=0)
    schema = Schema.infer(data.features, immutable=data.immutable, increasing=data.increasing)
    return _study(data.features, data.outcome, schema)


@pytest.fixture(scope="session")
def studies(mixed: Study, loan: Study) -> Mapping[str, Study]:
    """All studies by name."""
    return {"mixed": mixed, "loan": loan}


@pytest.fixture(scope="session")
def fitted(mixed: Study) -> DEAR:
    """The default method, fitted on the mixed study with its torch module."""
    return DEAR(mixed.net, mixed.schema).fit(mixed.frame)


def _mixed(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.Series]:
    age = rng.integers(18, 81, n)
    owner = (rng.random(n) < 0.2 + 0.006 * age).astype(np.int64)
    rank = rng.integers(0, 4, n)
    income = np.round(15 + 0.2 * age + 6 * rank + 5 * owner + rng.normal(0, 6, n), 2)
    debt = np.exp(rng.normal(1.0, 0.5, n) + 0.3 * owner)
    member = rng.random(n) < 0.3 + 0.1 * rank
    gender = np.where(rng.random(n) < 0.5, "female", "male")
    jobs = np.array(["porter", "cook", "nurse", "judge"])
    town = rng.choice(list("ABCDEF"), n, p=[0.3, 0.25, 0.2, 0.15, 0.08, 0.02])
    frame = pd.DataFrame(
        {
            "age": age,
            "income": income,
            "debt": debt,
            "gender": gender.astype(object),
            "owner": owner,
            "member": member,
            # Neither in alphabetical order nor all in use.
            "job": pd.Categorical(jobs[rank], categories=[*jobs, "king"]),
            "town": town.astype(object),
        }
    )
    margin = 0.12 * (income - 36) - 0.4 * (debt - 3) + owner + 0.5 * member + (town == "A")
    return frame, pd.Series((margin + rng.logistic(0, 0.5, n) > 1.3).astype(np.int64))


def _study(frame: pd.DataFrame, labels: pd.Series, schema: Schema) -> Study:
    net = _net(Encoder(schema).encode(frame), torch.tensor(labels.to_numpy()).float())
    return Study(frame, labels, schema, net, _pipeline(frame, labels))


def _net(x: torch.Tensor, y: torch.Tensor) -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = torch.nn.Sequential(
            torch.nn.Linear(x.shape[1], 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
        )
    optimiser = torch.optim.Adam(net.parameters(), lr=0.03)
    for _ in range(150):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(net(x)[:, 0], y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return net.eval()


def _pipeline(frame: pd.DataFrame, labels: pd.Series) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    words = list(frame.select_dtypes(exclude="number").columns)
    numbers = [c for c in frame.columns if c not in words]
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), words), (StandardScaler(), numbers)
    )
    return make_pipeline(columns, LogisticRegression(max_iter=500)).fit(frame, labels)
