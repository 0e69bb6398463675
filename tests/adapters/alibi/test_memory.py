"""Memory grows with the rows, not with their square."""

import subprocess
import sys
from pathlib import Path

import pytest

ADAPTERS = Path(__file__).parents[3] / "adapters"
MOST_BYTES_A_ROW = 8192

CODE = f"""
import resource, sys
sys.path.insert(0, {str(ADAPTERS)!r})
import numpy as np
from dear_alibi import DEAR
rng = np.random.default_rng(0)
X = rng.normal(size=(3_000, 6)).round(2)
X[:, 0] = rng.integers(0, 4, len(X))
def predict(rows):
    p = 1 / (1 + np.exp(2 - rows[:, 1:].max(1)))
    return np.column_stack([1 - p, p])
names = [f"x{{j}}" for j in range(6)]
explainer = DEAR(predict, names, {{0: list("abcd")}}).fit(X[:500])
explainer.explain(X[:500], 1)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
found = explainer.explain(X, 1)
print(len(found.success), peak() - before)
"""


@pytest.mark.slow
def test_memory_grows_by_little_a_row():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    rows, grown = map(int, done.stdout.split())
    assert rows == 3_000
    assert grown < rows * MOST_BYTES_A_ROW
