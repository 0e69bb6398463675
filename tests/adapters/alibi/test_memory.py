"""Memory grows with the rows, not with their square: the engine searches in chunks of rows."""

import subprocess
import sys
from pathlib import Path

import pytest

ADAPTERS = Path(__file__).parents[3] / "adapters"
# The rows of the first call, more than a chunk has, and of the second.
FIRST, ALL = 3_000, 6_000
# The peak of a chunk differs by what its rows need.
MOST_BYTES_A_ROW = 1 << 15

CODE = f"""
import resource, sys
sys.path.insert(0, {str(ADAPTERS)!r})
import numpy as np
from dear_alibi import DEAR
rng = np.random.default_rng(0)
X = rng.normal(size=({ALL}, 6)).round(2)
X[:, 0] = rng.integers(0, 4, len(X))
def predict(rows):
    p = 1 / (1 + np.exp(2 - rows[:, 1:].max(1)))
    return np.column_stack([1 - p, p])
names = [f"x{{j}}" for j in range(6)]
explainer = DEAR(predict, names, {{0: list("abcd")}}).fit(X[:500])
explainer.explain(X[:{FIRST}], 1)
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
found = explainer.explain(X, 1)
print(len(found.success), peak() - before)
"""


@pytest.mark.slow
def test_memory_grows_by_little_a_row():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    rows, grown = map(int, done.stdout.split())
    assert rows == ALL
    assert grown < (ALL - FIRST) * MOST_BYTES_A_ROW
