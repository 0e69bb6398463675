"""Of what follows, an answer needs no more than the user's model asks for."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema, Search


@pytest.fixture(scope="module")
def answers():
    """`far` and `near` follow `a`, the former farther; the model looks at `near` alone."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=2_000)
    far, near = 4 * a + rng.normal(size=2_000), a + 0.4 * rng.normal(size=2_000)
    frame = pd.DataFrame({"a": a, "far": far, "near": near}).round(2)
    model = lambda rows: 1 / (1 + np.exp(-6 * (rows["near"] - 0.5)))  # noqa: E731
    schema = Schema.infer(frame, tiers=[["a"], ["far", "near"]])
    dear = DEAR(model, schema, act_on=["a"], search=Search(own_gain=False)).fit(frame)
    result = dear.generate(frame[model(frame) < 0.3].head(20))
    return result[result.actions.index[result.actions["reliance"] > 0.0]]


def test_what_the_model_does_not_look_at_is_not_needed(answers):
    lines = answers.changes.query("kind == 'indirect'")
    assert set(lines["feature"]) == {"far", "near"}
    assert set(lines["feature"][lines["least"] != lines["old"]]) == {"near"}
    assert not answers.describe().str.contains("far must").any()
