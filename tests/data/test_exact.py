"""Rows are float64 in user units: what is read, allowed, tried and written is the same."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Constraints, Encoder, Schema, Search
from dear_plugin.data.encoder import patch
from dear_plugin.errors import InputError, SchemaError

N = 600
SECONDS = 1_700_000_000


RNG = np.random.default_rng(0)
# Values with more digits beside their range than a float32 has.
COLUMNS = {
    "sixteen digits": 4_000_000_000_000_000 + RNG.integers(0, 10**15, N),
    "tiny steps": 1.0 + RNG.integers(0, 1000, N) * 1e-12,
    "epoch seconds": SECONDS + RNG.integers(0, 3 * 10**7, N),
    "outlier": np.append(1e9, RNG.normal(50, 9, N - 1).round(2)),
    "unrounded": RNG.random(N) * 4.0,
    "assets": RNG.choice([1e6, 1e8, 4e8, 2.5e9, 123456.7], N),
    "cents": RNG.normal(50, 9, N).round(2),
    "float32": RNG.normal(50, 9, N).round(2).astype(np.float32),
}


def table(kind: str) -> pd.DataFrame:
    """The column beside one that goes along with it."""
    rng, x = np.random.default_rng(1), pd.Series(COLUMNS[kind])
    along = x.rank(pct=True) * 10.0 + rng.normal(0, 1, N)
    return pd.DataFrame({"x": x, "along": along.round(1)})


def fitted(frame: pd.DataFrame, *, least=-np.inf, most=np.inf) -> DEAR:
    """It accepts rows whose x is between two ends."""

    def model(rows):
        return np.where(rows["x"].between(least, most), 0.9, 0.1)

    return DEAR(model, Schema.infer(frame, numeric=["x"]), act_on=["x"]).fit(frame)


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_frame_read_and_written_is_the_same(kind):
    frame = table(kind)
    encoder = Encoder(Schema.infer(frame))
    pd.testing.assert_frame_equal(encoder.frame(encoder.rows(frame)), frame, check_exact=True)


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_cell_of_an_answer_is_that_of_its_row(kind):
    frame = table(kind)
    dear = fitted(frame, least=frame["x"].quantile(0.6))
    result = dear.generate(frame.head(60))
    assert result.actions["success"].all()
    rows = dear.encoder.rows(result.counterfactuals)
    assert torch.equal(rows, result.proposal.rows)
    same = result.proposal.rows == result.x
    for j, name in enumerate(frame):
        at = same[:, j].numpy()
        assert result.counterfactuals[name][at].equals(frame[name].head(60)[at])


@pytest.mark.parametrize("kind", [kind for kind in COLUMNS if kind != "float32"])
def test_ranges_given_per_row_are_hit_exactly(kind):
    frame = table(kind)
    low, high = frame["x"].quantile(0.7), frame["x"].quantile(0.9)
    rng = np.random.default_rng(2)
    ends = rng.permutation(frame["x"][(frame["x"] >= low) & (frame["x"] <= high)].to_numpy())
    few = frame[frame["x"] < low].head(min(20, len(ends)))
    one = ends[: len(few)]
    result = fitted(frame, least=low).generate(few, within=Constraints(ranges={"x": (one, one)}))
    assert result.actions["success"].all()
    assert (result.counterfactuals["x"] == one).all()


def test_an_end_of_a_range_is_tried_though_no_row_has_it():
    frame = table("cents").query("x < 60 or x > 61")
    within = Constraints(ranges={"x": (None, 60.37)})
    result = fitted(frame, least=60.37).generate(frame[frame["x"] < 50].head(5), within=within)
    assert (result.counterfactuals["x"] == 60.37).all()


def test_neighbouring_values_beside_an_outlier_are_told_apart():
    frame = table("outlier")
    least = frame["x"].nsmallest(2).to_numpy()
    dear = fitted(frame, most=least[0]).with_search(Search(steps=False))
    result = dear.generate(frame[frame["x"] == least[1]])
    assert result.counterfactuals["x"].tolist() == [least[0]]


def test_a_value_that_nobody_changed_is_never_written():
    frame = pd.DataFrame({"x": [0.1 + 0.2, *np.arange(50) / 10.0], "y": np.arange(51)})
    encoder, few = Encoder(Schema.infer(frame)), frame.head(1)
    x = encoder.rows(few)
    after, _ = patch(encoder, few, x, rows=x + torch.tensor([0.0, 1.0]))
    assert after.iloc[0].tolist() == [0.1 + 0.2, 1]


@pytest.mark.parametrize("size", [1e18, 1e150, 1e300])
def test_numbers_of_any_size_are_told_from_missing_ones(size):
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(0, 1, N) * size}).astype("Float64")
    frame.loc[3, "x"] = pd.NA
    encoder = Encoder(Schema.infer(frame))
    assert encoder.special(encoder.rows(frame))[:, 0].nonzero()[:, 0].tolist() == [3]
    pd.testing.assert_frame_equal(encoder.frame(encoder.rows(frame)), frame)


def test_numbers_below_all_that_can_be_told_are_refused():
    frame = pd.DataFrame({"x": np.append(-1e302, np.linspace(-1e300, 1e300, N))})
    with pytest.raises(SchemaError, match="expected numbers above"):
        Schema.infer(frame)
    encoder = Encoder(Schema.infer(frame.iloc[1:]))
    with pytest.raises(InputError, match="x"):
        encoder.rows(frame.iloc[:1])
