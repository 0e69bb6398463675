"""Every metric on cases with a known value."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Encoder, Schema
from dear_plugin.benchmark.fits import ReferenceRows
from dear_plugin.benchmark.metrics import (
    alone,
    decision,
    invalidated,
    noise_reported,
    partly,
    reliance,
    replicated,
    still_accepted,
)
from tests.still import Still

ROWS = 2000


class Twins(Still):
    """A decoder that changes every number by as much as the first, in scaled units."""

    def decode(self, x, v, values):
        moved = super().decode(x, v, values)
        change = moved[..., :1] - x[:, None, :1]
        others = (x[:, None, 1:] + change).clamp(0.0, 1.0)
        return torch.cat([moved[..., :1], others], 2)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 101, ROWS) / 100.0, rng.integers(0, 101, ROWS) / 100.0
    return pd.DataFrame({"a": a, "b": b, "word": np.where(a > 0.5, "high", "low")})


@pytest.fixture(scope="module")
def schema(frame):
    return Schema.infer(frame[["a", "b"]])


@pytest.fixture(scope="module")
def zeros(schema):
    return pd.DataFrame({"a": [0.0] * 3, "b": [0.0] * 3}, index=list("xyz"))


def above(name, threshold):
    """A model that accepts rows with a number above a threshold."""
    return lambda frame: (frame[name] > threshold).to_numpy().astype(float)


def fitted(model, schema, frame, decoder):
    return DEAR(model, schema, act_on=["a"], decoder=decoder).fit(frame)


class TestReplication:
    def test_a_fit_replicates_itself(self, frame, schema):
        dear = fitted(above("b", 0.7), schema, frame, Twins())
        answers = dear.generate(frame[frame["b"] < 0.3])
        solved = answers.actions["success"].to_numpy()
        assert solved.any()
        assert (replicated(answers, dear)[solved] == 1.0).all()

    def test_without_indirect_changes_only_the_action_remains(self, frame, schema):
        model, rows = above("b", 0.7), frame[frame["b"] < 0.3]
        answers = fitted(model, schema, frame, Twins()).generate(rows)
        other = fitted(model, schema, frame, Still())
        shares = replicated(answers, other)
        solved = answers.actions["success"].to_numpy()
        assert solved.any()
        assert (shares[solved] == 0.0).all()
        assert np.isnan(shares[~solved]).all()


class TestReliance:
    @pytest.mark.parametrize(
        ("threshold", "least"), [(-1.0, None), (0.1, 0.25), (0.3, 0.5), (0.5, 0.75), (0.7, 1.0)]
    )
    def test_it_is_the_least_share_that_succeeds(self, zeros, frame, schema, threshold, least):
        model = above("b", threshold)
        result = fitted(model, schema, frame, Twins()).apply(zeros, {"a": 0.8})
        found = reliance(result, decision(model, schema))
        assert found.tolist() == [0.0 if least is None else least] * 3

    def test_an_indirect_change_may_reverse_the_decision(self, zeros, frame, schema):
        def model(rows):
            reversed_ = (rows["b"] > 0.3) & (rows["b"] < 0.7)
            return ((rows["a"] > 0.5) & ~reversed_).to_numpy().astype(float)

        result = fitted(model, schema, frame, Twins()).apply(zeros, {"a": 0.8})
        accepts = decision(model, schema)
        assert alone(result, accepts).tolist() == [1.0] * 3
        assert reliance(result, accepts).tolist() == [1.0] * 3

    def test_numbers_are_interpolated_and_categories_change_at_half(self, mixed):
        dear = DEAR(mixed.net, mixed.schema).fit(mixed.frame)
        result = dear.apply(mixed.refused(100), {"income": 58.0})
        before, after = result.factuals, result.counterfactuals
        quarter, half = partly(result, 0.25), partly(result, 0.5)
        for name in ("job", "town", "member", "owner"):
            assert quarter[name].equals(before[name])
            assert half[name].equals(after[name])
        partial = before["debt"] + 0.25 * (after["debt"] - before["debt"])
        assert np.allclose(quarter["debt"], partial, atol=1e-5)
        assert (quarter["income"] == 58.0).all()


def test_a_changed_feature_is_reported_as_noise(frame):
    dear = fitted(above("b", 2.0), Schema.infer(frame[["a", "b"]]), frame, Twins())
    reported = noise_reported(dear.apply(frame.iloc[:50], {"a": 0.8}), names=("b",))
    moved = dear.apply(frame.iloc[:50], {"a": 0.8}).counterfactuals["b"] != frame["b"].iloc[:50]
    assert reported.tolist() == moved.tolist()
    assert reported.any()


def test_the_distance_is_the_mean_of_the_five_nearest():
    line = pd.DataFrame({"a": np.arange(101) / 100.0, "b": 0.0})
    encoder = Encoder(Schema.infer(line))
    reference = ReferenceRows(encoder, encoder.rows(line), np.ones(101, dtype=bool))
    at = encoder.rows(pd.DataFrame({"a": [0.0, 0.5], "b": [0.0, 0.0]}))
    assert reference.measure(at)["distance"] == pytest.approx([0.02, 0.012], abs=1e-6)


@pytest.fixture
def pairs():
    frame = pd.DataFrame(
        {
            "sex": ["male", "female"] * 50,
            "role": ["husband", "wife"] * 25 + ["single"] * 50,
            "age": [*range(30, 80), *range(20, 70)],
        }
    )
    encoder = Encoder(Schema.infer(frame))
    return encoder, ReferenceRows(encoder, encoder.rows(frame), np.ones(100, dtype=bool))


@pytest.mark.parametrize(
    ("sex", "role", "age", "count"),
    [
        ("male", "husband", 50, 0),
        ("female", "husband", 50, 1),
        ("male", "husband", 20, 1),
        ("female", "husband", 20, 2),
    ],
)
def test_pairs_of_no_training_row_are_counted(pairs, sex, role, age, count):
    encoder, known = pairs
    row = pd.DataFrame({"sex": [sex], "role": [role], "age": [age]})
    assert known.unseen(encoder.rows(row)).tolist() == [count]


class TestRobustness:
    def test_the_share_of_models_that_still_accept(self, zeros, frame, schema):
        model = above("b", 0.5)
        result = fitted(model, schema, frame, Twins()).apply(zeros, {"a": 0.8})
        models = [decision(above("b", t), schema) for t in (0.1, 0.6, 0.79, 0.9)]
        assert still_accepted(result, models).tolist() == [0.75] * 3

    @pytest.mark.parametrize("steps", [0.0, 1.0, 2.0])
    def test_invalidation_is_that_of_a_normal_distribution(self, frame, schema, steps):
        # Accepted from 0.5 on; the answer is `steps` standard deviations beyond.
        module = torch.nn.Linear(2, 1)
        with torch.no_grad():
            module.weight.copy_(torch.tensor([[100.0, 0.0]]))
            module.bias.fill_(-49.999)
        rows = pd.DataFrame({"a": np.zeros(400), "b": np.zeros(400)})
        dear = fitted(module, schema, frame, Still())
        result = dear.apply(rows, {"a": 0.5 + 0.01 * steps})
        expected = 0.5 * math.erfc(steps / math.sqrt(2.0))
        found = invalidated(result, dear.classifier, sigma=0.01)
        assert found.mean() == pytest.approx(expected, abs=0.02)
