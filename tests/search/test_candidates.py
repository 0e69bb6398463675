"""Candidates: they are observed values, cover their range, and are admissible."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from dear_plugin import ActionSets, Constraints, Encoder, Schema, Target
from dear_plugin.decoders import Transport
from dear_plugin.methods.base import Case
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.constraints import feasible_set
from dear_plugin.search.candidates import (
    CandidateGrids,
    grid_candidates,
    group_candidates,
    other_categories,
    snapped,
)
from tests.fitted import fitted_optimizer

COARSE = 16
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
def optimizer(frame, encoder):
    sets = ActionSets.of(encoder.schema, SETS)
    model = Classifier(nn.Linear(encoder.d, 1), encoder)
    return fitted_optimizer(encoder.rows(frame), sets, Transport(), model, COARSE)


@pytest.fixture(scope="module")
def grids(optimizer):
    return optimizer.grids


@pytest.fixture(scope="module")
def problem(frame, encoder, optimizer):
    """Rows with different ranges, categories and frozen features."""
    factuals = frame.iloc[:300]
    x = encoder.rows(factuals)
    within = Constraints(
        ranges={"many": (100.0, np.where(np.arange(300) % 2, 1000.0, 600.0))},
        categories=[{"town": ["A", "B", "C"]} if i % 3 else {} for i in range(300)],
        frozen=[["owner"] if i % 5 == 0 else [] for i in range(300)],
    )
    feasible = feasible_set(within, x, encoder, encoder.units.resolutions(factuals))
    goal = Target.of_class(1).resolve(300, None)
    return optimizer.problem(Case(x, goal, feasible, 1e-4, torch.arange(300)))


def user(encoder, j, values):
    """Scaled values of a number in the user's units, sorted and distinct."""
    feature = encoder.schema.features[j]
    return (
        (feature.bounds[0] + feature.width * values.double()).round(decimals=3).unique().tolist()
    )


class TestGrids:
    def test_sets_are_classified(self, grids):
        assert grids.numeric.nonzero()[:, 0].tolist() == [FEW, SOME, MANY]
        assert grids.several.nonzero()[:, 0].tolist() == [PAIR, TRIPLE]
        assert grids.counts.tolist() == [0, 0, 0, 5, 2, 0, 0]

    def test_few_values_are_all_coarse(self, grids, encoder):
        coarse, _ = grids.values
        assert user(encoder, 0, coarse[FEW]) == [0.0, 1.0, 2.0, 3.0, 10.0]

    def test_some_values_are_all_coarse_or_between(self, grids, encoder):
        coarse, between = grids.values
        assert coarse.shape == between.shape == (len(SETS), COARSE)
        assert len(user(encoder, 1, coarse[SOME])) == COARSE
        assert user(encoder, 1, grids.values[:, SOME]) == list(range(30))

    def test_many_values_are_spread_over_the_range_and_the_rows(self, grids, encoder, frame):
        coarse = np.array(user(encoder, 2, grids.values[:, MANY]))
        assert coarse.min() <= frame["many"].quantile(0.01)
        assert coarse.max() >= frame["many"].quantile(0.99)
        assert np.diff(coarse).max() <= 100.0

    def test_the_dense_grid_has_every_value_or_the_most_frequent(self, grids, encoder, frame):
        assert user(encoder, 1, grids.dense[SOME]) == list(range(30))
        many = user(encoder, 2, grids.dense[MANY])
        assert 777.0 in many
        assert len(many) >= 60
        assert min(many) == pytest.approx(frame["many"].min(), abs=1e-2)
        assert max(many) == pytest.approx(frame["many"].max(), abs=1e-2)

    def test_the_values_are_ascending(self, grids):
        for grid in (*grids.values, grids.dense):
            assert (grid[grids.numeric].diff(dim=1) >= 0).all()

    def test_a_constant_column_is_handled(self):
        frame = training_frame(200).assign(many=5.0)
        encoder = Encoder(Schema.infer(frame))
        sets = ActionSets.of(encoder.schema, ["few", ("few", "some")])
        made = CandidateGrids.of(encoder.rows(frame), encoder, sets, COARSE)
        assert made.values.isfinite().all()


class TestCombinations:
    @pytest.mark.parametrize("kind", ["combinations", "lattice"])
    def test_each_value_of_a_feature_occurs_about_equally_often(self, grids, kind):
        made = getattr(grids, kind)[PAIR, :, 0]
        values, counts = made.unique(return_counts=True)
        assert len(values) == 5
        assert counts.min() >= 0.5 * len(made) / 5

    @pytest.mark.parametrize("kind", ["combinations", "lattice"])
    def test_every_category_occurs_with_every_value(self, grids, kind):
        made = getattr(grids, kind)[TRIPLE]  # few, town, owner: ascending positions
        assert made[:, 1].unique().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
        assert made[:, 2].unique().tolist() == [0.0, 1.0]
        pairs = made[:, [0, 1]].unique(dim=0)
        assert len(pairs) >= 0.8 * 25

    def test_a_number_is_spread_over_its_range(self, grids):
        for made in (grids.combinations[PAIR, :, 1], grids.lattice[PAIR, :, 1]):
            share = torch.histc(made, 4, 0.0, 1.0) / len(made)
            assert share.min() >= 0.1

    def test_a_shorter_set_repeats_its_first_feature(self, optimizer, problem):
        rows, sets = torch.arange(300), torch.full((300,), PAIR)
        made = snapped(problem, rows, sets, optimizer.grids.combinations[sets])
        assert torch.equal(made[..., 2], made[..., 0])


class TestCandidates:
    def test_every_other_category_is_a_candidate(self, problem, grids):
        seen = set()
        for rows, sets, values in other_categories(problem, problem.actionable, grids):
            own = problem.x[rows, problem.sets.positions[sets, 0]]
            for row, which, tried, factual in zip(
                rows.tolist(), sets.tolist(), values[..., 0].tolist(), own.tolist(), strict=True
            ):
                seen |= {(row, which, t) for t in tried if t != factual}
        town, owner = problem.x[:, 3], problem.x[:, 4]
        allowed = [range(3) if i % 3 else range(5) for i in range(300)]
        expected = {(i, TOWN, float(t)) for i in range(300) for t in allowed[i] if t != town[i]}
        expected |= {(i, OWNER, 1.0 - float(owner[i])) for i in range(300) if i % 5}
        assert seen == expected

    def test_numbers_respect_ranges_and_directions(self, problem, grids, encoder):
        for grid in (*grids.values, grids.dense):
            rows, sets, values = grid_candidates(problem, problem.actionable & grids.numeric, grid)
            feature = problem.sets.positions[sets, 0]
            assert problem.feasible.admits(values[..., 0], feature, rows).all()
            few = feature == 0
            assert (values[few, :, 0] >= problem.x[rows[few], 0, None]).all()
            many = feature == 2
            high = torch.where(rows[many] % 2 == 1, 1000.0, 600.0)
            top = encoder.schema.features[2]
            reached = top.bounds[0] + top.width * values[many, :, 0]
            assert (reached <= high[:, None] + 1e-2).all()
            assert (reached >= 100.0 - 1e-2).all()

    def test_combinations_are_snapped(self, problem, grids):
        pairs = problem.actionable & grids.several
        seen = torch.zeros_like(pairs)
        for rows, sets, values in group_candidates(problem, pairs, grids.combinations):
            seen[rows, sets] = True
            for i in range(values.shape[2]):
                feature = problem.sets.positions[sets, i]
                own = problem.x[rows, feature][:, None]
                valid = problem.feasible.admits(values[..., i].contiguous(), feature, rows)
                assert (valid | (values[..., i] == own)).all()
        assert torch.equal(seen, pairs)

    def test_frozen_features_have_no_candidates(self, problem, grids):
        frozen = torch.arange(300) % 5 == 0
        assert not problem.actionable[frozen][:, [OWNER, TRIPLE]].any()
        for rows, sets, _ in grids.all_candidates(problem):
            assert problem.actionable[rows, sets].all()

    def test_all_candidates_cover_every_actionable_set(self, problem, grids):
        seen = torch.zeros_like(problem.actionable)
        for rows, sets, values in grids.all_candidates(problem):
            assert values.shape[0] == len(rows)
            seen[rows, sets] = True
        assert torch.equal(seen, problem.actionable)

    def test_no_pairs_have_no_candidates(self, problem, grids):
        none = torch.zeros_like(problem.actionable)
        assert list(group_candidates(problem, none, grids.combinations)) == []
        assert list(other_categories(problem, none, grids)) == []
        assert [len(each) for each in grid_candidates(problem, none, grids.dense)] == [0, 0, 0]
