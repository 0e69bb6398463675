"""Values: candidates are observed values, cover their range, and are admissible."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from dear_plugin import ActionSets, Constraints, Encoder, Schema, Target
from dear_plugin.data.columns import column_limits
from dear_plugin.decoders import Decoders, Sample, Transport
from dear_plugin.evaluation.trained import Trained
from dear_plugin.methods.base import Case
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.constraints import admissible
from dear_plugin.search import SearchProblem
from dear_plugin.search.outcomes import direct_cost, evaluate
from dear_plugin.search.values import FeatureValues, admitted, combinations, singles

SETS = ["few", "some", "many", "town", "owner", ("few", "many"), ("town", "few", "owner")]
FEW, SOME, MANY, TOWN, OWNER, PAIR, TRIPLE = range(len(SETS))


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
def world(frame, encoder):
    sets = ActionSets.of(encoder.schema, SETS)
    model = Classifier(nn.Linear(encoder.d, 1), encoder)
    decoders = Decoders(Transport(), Sample(encoder.rows(frame), encoder), sets.members)
    decoders.fit(sets.members)
    return {"sets": sets, "trained": Trained(encoder.rows(frame), model, decoders=decoders)}


@pytest.fixture(scope="module")
def known(frame, encoder):
    return FeatureValues.of(Sample(encoder.rows(frame), encoder))


@pytest.fixture(scope="module")
def problem(frame, encoder, world):
    """Rows with different ranges, categories and frozen features."""
    factuals = frame.iloc[:300]
    x = encoder.rows(factuals)
    within = Constraints(
        ranges={"many": (100.0, np.where(np.arange(300) % 2, 1000.0, 600.0))},
        categories=[{"town": ["A", "B", "C"]} if i % 3 else {} for i in range(300)],
        frozen=[["owner"] if i % 5 == 0 else [] for i in range(300)],
    )
    feasible = admissible(within, x, encoder, column_limits(encoder.schema, factuals))
    goal = Target.of_class(1).resolve(300, None)
    return SearchProblem.of(Case(x, goal, feasible, goal.aim(1e-4)), **world)


@pytest.fixture(scope="module")
def found(problem, known):
    """The candidates of all sets."""
    return joined(singles(problem, known)[0], combinations(problem, known, problem.actionable, 32))


def joined(*parts):
    """Rows, sets and values of several parts."""
    return tuple(map(torch.cat, zip(*parts, strict=True)))


@pytest.fixture(scope="module")
def every(found):
    """{(row, set): the values of its features, each a list of tuples}."""
    out = {}
    columns = [column.tolist() for column in found]
    for row, which, value in zip(*columns, strict=True):
        out.setdefault((row, which), []).append(tuple(value))
    return out


class TestValues:
    @pytest.mark.parametrize("count", [17, 119, 128])
    def test_a_list_of_at_most_128_values_is_tried_whole(self, count):
        frame = training_frame(2000).assign(many=np.arange(2000) % count * 7.0)
        encoder = Encoder(Schema.infer(frame))
        every = FeatureValues.of(Sample(encoder.rows(frame), encoder)).tried[2]
        assert every.tolist() == [7.0 * i for i in range(count)]

    def test_quantiles_and_distant_values_are_spread_over_the_range(self, known, frame):
        many = known.tried[2].numpy()
        assert many.min() == frame["many"].min()
        assert many.max() == frame["many"].max()
        assert np.diff(many).max() <= 100.0

    def test_neighbours_are_the_values_at_powers_of_four_in_rank(self, known):
        values = known.known[2]
        near = known.near(2, values[[100]])[0]
        expected = [100 - 4**i for i in range(4)] + [0] + [100 + 4**i for i in range(5)]
        assert near.tolist() == values[torch.tensor(expected)].tolist()

    def test_between_two_are_places_of_the_list_then_even_steps(self, known):
        values, feature = known.known[2], torch.tensor([2, 2, 2])
        start, end = values[[100, 190, 100]], values[[172, 100, 101]]
        between = known.between(feature, start, end)
        rank = torch.searchsorted(values, between[:2].contiguous())
        assert torch.equal(values[rank], between[:2])
        assert rank[0].tolist() == list(range(103, 172, 3))
        assert (rank[1].diff() < 0).all()
        even = torch.lerp(start[2], end[2], torch.arange(1, 24).double() / 24)
        torch.testing.assert_close(between[2], even)


class TestCandidates:
    def test_every_actionable_row_and_set_has_some(self, problem, every):
        pairs = {tuple(pair) for pair in problem.actionable.nonzero().tolist()}
        # A row at the end of its direction has no other value.
        missing = {pair for pair in pairs - set(every) if pair[1] != FEW}
        assert not missing
        assert set(every) <= pairs

    def test_each_moves_and_is_admissible(self, problem, every):
        for (row, which), values in every.items():
            some, at = torch.tensor(values, dtype=torch.float64), torch.tensor([row])
            positions = problem.sets.positions[which]
            own = problem.x[row, positions]
            assert (some != own).any(1).all()
            for i, feature in enumerate(positions):
                valid = problem.feasible.limits.admits(some[None, :, i], feature[None], at)[0]
                assert (valid | (some[:, i] == own[i])).all()

    def test_a_number_of_few_values_has_each_once(self, problem, every):
        for i in range(20):
            values = [v[0] for v in every.get((i, FEW), [])]
            above = sorted(v for v in (0.0, 1.0, 2.0, 3.0, 10.0) if v > problem.x[i, 0])
            assert sorted(values) == above

    def test_the_ends_of_a_range_are_candidates(self, problem, every, encoder):
        feature = encoder.schema.features[2]
        for i in range(20):
            low, high = 100.0, 1000.0 if i % 2 else 600.0
            values = [v[0] for v in every[i, MANY]]
            for end in (low, high):
                if end < feature.bounds[1]:
                    assert end in values

    def test_each_is_one(self, problem, known):
        (row, sets, values), _ = singles(problem, known)
        keys = torch.cat([row[:, None], sets[:, None], values], 1)
        assert len(keys.unique(dim=0)) == len(keys)

    def test_the_direct_cost_is_a_lower_bound_of_the_cost(self, problem, found):
        row, sets, values = found
        cost, _ = evaluate(problem, row, sets, values)
        assert (cost >= direct_cost(problem, row, sets, values[:, None])[:, 0] - 1e-5).all()

    def test_an_action_of_size_zero_is_none(self, problem):
        rows = torch.arange(3)
        sets = torch.full((3,), TOWN)
        assert not len(admitted(problem, rows, sets, problem.own(rows, sets)[:, None])[1])
