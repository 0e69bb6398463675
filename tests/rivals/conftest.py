"""A small data set and linear models, for which the right counterfactuals are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from dear_plugin import Schema

Linear = Callable[..., nn.Module]


@pytest.fixture
def linear() -> Linear:
    """Builds the module `w x + b` on the encoding, a logit (n, 1)."""

    def build(*weights: float, bias: float = 0.0) -> nn.Module:
        model = nn.Linear(len(weights), 1)
        with torch.no_grad():
            model.weight.copy_(torch.tensor([weights]))
            model.bias.fill_(bias)
        return model.eval()

    return build


@pytest.fixture
def square() -> pd.DataFrame:
    """Two numbers on a fine grid of the unit square, and a group that never changes."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((400, 2)).round(3), columns=["a", "b"])
    frame.iloc[:4] = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    return frame.assign(group=np.arange(400) % 2)


@pytest.fixture
def schema(square: pd.DataFrame) -> Schema:
    return Schema.infer(square, immutable=["group"], central=1.0)


@pytest.fixture
def steep(linear: Linear) -> nn.Module:
    """Accepts where 3 a + b exceeds 2."""
    return linear(3.0, 1.0, 0.0, bias=-2.0)


@pytest.fixture
def refused(square: pd.DataFrame) -> pd.DataFrame:
    """Rows that both models of these tests refuse, with a + b below 1.1 and 3 a + b below 1.9."""
    low = (3 * square["a"] + square["b"] < 1.9) & (square["a"] + square["b"] < 1.1)
    return square[low].iloc[:40]
