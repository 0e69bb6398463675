"""Metrics: each measure on rows whose answer is known by hand."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Constraints, Encoder, Schema
from dear_plugin.evaluation.metrics import (
    costs,
    neighbours,
    redundancy,
    success_rate,
    violations,
    ynn,
)
from dear_plugin.models.classifier import Classifier


@pytest.fixture(scope="module")
def frame():
    """a, b independent and uniform on 0 ... 100; a town of three."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "a": rng.integers(0, 101, 2000).astype(float),
            "b": rng.integers(0, 101, 2000).astype(float),
            "town": rng.choice(["x", "y", "z"], 2000),
        }
    )


@pytest.fixture(scope="module")
def schema(frame):
    return Schema.infer(frame)


def above(bar):
    """A black box that accepts whoever has a >= bar."""
    return lambda f: (f["a"] >= bar).to_numpy(dtype=float)


@pytest.fixture(scope="module")
def solved(frame, schema):
    people = frame[frame["a"] < 40].iloc[:30]
    return DEAR(above(60), schema).fit(frame).generate(people)


@pytest.fixture(scope="module")
def failed(frame, schema):
    """a may not move: nobody can be helped."""
    people = frame[frame["a"] < 40].iloc[:30]
    return DEAR(above(60), schema).fit(frame).generate(people, within=Constraints(frozen=["a"]))


class TestSuccess:
    def test_is_over_all_rows(self, solved, failed):
        assert success_rate(solved) == 1.0
        assert success_rate(failed) == 0.0


class TestViolations:
    def test_count_held_features_that_changed(self, solved):
        assert violations(solved, ["a"]) == (1.0, 1.0)
        moved = float((solved.counterfactuals["town"] != solved.factuals["town"]).mean())
        assert violations(solved, ["town"]) == (moved, moved)

    def test_nobody_solved_violates_nothing(self, failed):
        assert violations(failed, ["a"]) == (0.0, 0.0)


class TestNeighbours:
    def test_deep_among_the_accepted_all_agree(self, frame, schema):
        people = frame[frame["a"] < 40].iloc[:20]
        encoder = Encoder(schema)
        far = DEAR(above(60), schema).fit(frame).generate(people)
        easy = Classifier(above(0), encoder)
        assert (neighbours(far, encoder.rows(frame), easy) == 1.0).all()

    def test_their_share_is_the_share_of_the_nearest_with_the_same_label(self, solved, frame):
        encoder = solved.encoder
        rows, classifier = encoder.rows(frame), Classifier(above(60), encoder)
        x, everyone = encoder.expand(solved.proposal.rows), encoder.expand(rows)
        gaps = torch.cdist(x.double(), everyone.double())
        gaps[gaps == 0.0] = torch.inf
        nearest = gaps.topk(5, largest=False).indices
        accepted = torch.tensor((frame["a"] >= 60).to_numpy())
        by_hand = accepted[nearest].double().mean(1).numpy()
        told = neighbours(solved, rows, classifier)
        # Equally near rows may be told apart in another order.
        assert np.abs(told - by_hand).mean() < 0.05
        assert ynn(solved, rows, classifier) == pytest.approx(told.mean())

    def test_an_unsolved_row_has_none(self, failed, frame):
        encoder = failed.encoder
        told = neighbours(failed, encoder.rows(frame), Classifier(above(60), encoder))
        assert np.isnan(told).all()
        assert np.isnan(ynn(failed, encoder.rows(frame), Classifier(above(60), encoder)))


class TestRedundancy:
    def test_counts_what_could_be_put_back(self, solved):
        """Only a matters: every other change could be put back, and a could not."""
        told = redundancy(solved, Classifier(above(60), solved.encoder))
        others = solved.changed[:, 1:].sum(1).numpy()
        assert (told == others).all()

    def test_an_unsolved_row_has_none(self, failed):
        assert np.isnan(redundancy(failed, Classifier(above(60), failed.encoder))).all()


class Ramp:
    """The probability is a share of a; it decides for whoever has a >= 60, as `above(60)` does."""

    def predict_proba(self, frame):
        rng = (frame["a"].to_numpy(float) / 200.0)[:, None]
        return np.hstack([1.0 - rng, rng])

    def predict(self, frame):
        return (frame["a"] >= 60).to_numpy(int)


def test_labels_are_the_models_own_decisions(solved, frame):
    """No probability here is above one half."""
    rows, one = solved.encoder.rows(frame), Classifier(above(60), solved.encoder)
    own = Classifier(Ramp(), solved.encoder)
    assert (neighbours(solved, rows, own) == neighbours(solved, rows, one)).all()
    assert (redundancy(solved, own) == redundancy(solved, one)).all()


class TestCosts:
    def test_by_hand(self, frame, schema):
        encoder = Encoder(schema)
        width = frame["a"].max() - frame["a"].min()
        before = pd.DataFrame({"a": [10.0], "b": [50.0], "town": ["x"]})
        after = pd.DataFrame({"a": [40.0], "b": [50.0], "town": ["z"]})
        told = costs(encoder, encoder.rows(before), encoder.rows(after))
        step = 30.0 / width
        assert told["l0"].item() == 2
        assert told["l1"].item() == pytest.approx(step + 1.0)
        assert told["l2"].item() == pytest.approx((step**2 + 2.0) ** 0.5)
        assert told["linf"].item() == pytest.approx(1.0)
