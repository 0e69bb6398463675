"""Values: candidates are observed values, cover their range, and are admissible."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Encoder, Schema
from dear_plugin.decoders import Sample
from dear_plugin.search.values import FeatureValues


def training_frame(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "few": rng.choice([0, 1, 2, 3, 10], n, p=[0.6, 0.2, 0.1, 0.08, 0.02]),
            "some": rng.integers(0, 30, n),
            "many": np.where(rng.random(n) < 0.3, 777.0, rng.random(n) * 1000.0),
            "town": rng.choice(list("ABCDE"), n).astype(object),
            "owner": rng.integers(0, 2, n),
        }
    )


@pytest.fixture(scope="module")
def frame():
    return training_frame()


@pytest.fixture(scope="module")
def encoder(frame):
    return Encoder(Schema.infer(frame, increasing=["few"]))


@pytest.fixture(scope="module")
def known(frame, encoder):
    return FeatureValues.of(Sample(encoder.rows(frame), encoder))


class TestValues:
    @pytest.mark.parametrize("count", [17, 119, 128])
    def test_a_list_of_at_most_128_values_is_tried_whole(self, count):
        frame = training_frame(2000).assign(many=np.arange(2000) % count * 7.0)
        encoder = Encoder(Schema.infer(frame))
        every = FeatureValues.of(Sample(encoder.rows(frame), encoder)).tried[2]
        assert every.tolist() == [7.0 * i for i in range(count)]

    def test_quantiles_and_distant_values_are_spread_over_the_range(self, known, frame):
        many = known.tried[2]
        assert many.min() == frame["many"].min()
        assert many.max() == frame["many"].max()
        assert np.diff(many).max() <= 100.0

    def test_neighbours_are_the_values_at_powers_of_four_in_rank(self, known):
        values = known.known[2]
        near = known.near(2, values[[[100]]])[0]
        expected = [100 - 4**i for i in range(4)] + [0] + [100 + 4**i for i in range(5)]
        assert near.tolist() == values[expected].tolist()

    def test_between_two_are_places_of_the_list_then_even_steps(self, known):
        values, feature = known.known[2], np.array([2, 2, 2])
        start, end = values[[100, 190, 100]], values[[172, 100, 101]]
        between = known.between(feature, start, end)
        rank = np.searchsorted(values, between[:2])
        assert np.array_equal(values[rank], between[:2])
        assert rank[0].tolist() == list(range(103, 172, 3))
        assert (np.diff(rank[1]) < 0).all()
        even = start[2] + (end[2] - start[2]) * np.arange(1, 24) / 24
        assert between[2] == pytest.approx(even)
