"""Grids: the values that a search tries are observed, cover what there is, and are admissible."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from dear_plugin import ActionSets, Constraints, Encoder, Schema, Target
from dear_plugin.decoders import Transport
from dear_plugin.methods.base import Case
from dear_plugin.methods.optimizer import Optimizer
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.constraints import feasible
from dear_plugin.search.candidates import CandidateGrids, numbers, others, snapped, together

COARSE = 16
SETS = ["few", "some", "many", "town", "owner", ("few", "many"), ("town", "few", "owner")]
FEW, SOME, MANY, TOWN, OWNER, PAIR, TRIPLE = range(len(SETS))


def crowd(n=4000, seed=0):
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
    return crowd()


@pytest.fixture(scope="module")
def encoder(frame):
    return Encoder(Schema.infer(frame, increasing=["few"]))


@pytest.fixture(scope="module")
def moves(frame, encoder):
    sets = ActionSets.of(encoder.schema, SETS)
    model = Classifier(nn.Linear(encoder.d, 1), encoder)
    return Optimizer.learned(encoder.rows(frame), sets, Transport(), model, COARSE)


@pytest.fixture(scope="module")
def grids(moves):
    return moves.grids


@pytest.fixture(scope="module")
def problem(frame, encoder, moves):
    """Three hundred people, some of whom may not live in A or C, nor go beyond 600."""
    people = frame.iloc[:300]
    x = encoder.rows(people)
    within = Constraints(
        ranges={"many": (100.0, np.where(np.arange(300) % 2, 1000.0, 600.0))},
        categories=[{"town": ["A", "B", "C"]} if i % 3 else {} for i in range(300)],
        frozen=[["owner"] if i % 5 == 0 else [] for i in range(300)],
    )
    box = feasible(within, x, encoder, encoder.units.resolutions(people))
    goal = Target.of_class(1).resolve(300, None)
    return moves.problem(Case(x, goal, box, 1e-4, torch.arange(300)))


def user(encoder, j, values):
    """Scaled values of a number in the user's units, sorted and distinct."""
    feature = encoder.schema.features[j]
    return (
        (feature.bounds[0] + feature.width * values.double()).round(decimals=3).unique().tolist()
    )


class TestWhatThereIsToTry:
    def test_sets_are_told_apart(self, grids):
        assert grids.numeric.nonzero()[:, 0].tolist() == [FEW, SOME, MANY]
        assert grids.several.nonzero()[:, 0].tolist() == [PAIR, TRIPLE]
        assert grids.counts.tolist() == [0, 0, 0, 5, 2, 0, 0]

    def test_few_values_are_all_tried_first(self, grids, encoder):
        coarse, _ = grids.values
        assert user(encoder, 0, coarse[FEW]) == [0.0, 1.0, 2.0, 3.0, 10.0]

    def test_some_values_are_all_tried_in_two_passes(self, grids, encoder):
        coarse, between = grids.values
        assert coarse.shape == between.shape == (len(SETS), COARSE)
        assert len(user(encoder, 1, coarse[SOME])) == COARSE
        assert user(encoder, 1, grids.values[:, SOME]) == list(range(30))

    def test_many_values_are_spread_over_the_range_and_the_people(self, grids, encoder, frame):
        coarse = np.array(user(encoder, 2, grids.values[:, MANY]))
        assert coarse.min() <= frame["many"].quantile(0.01)
        assert coarse.max() >= frame["many"].quantile(0.99)
        assert np.diff(coarse).max() <= 100.0

    def test_the_dense_pass_knows_every_value_or_the_commonest(self, grids, encoder, frame):
        assert user(encoder, 1, grids.dense[SOME]) == list(range(30))
        many = user(encoder, 2, grids.dense[MANY])
        assert 777.0 in many
        assert len(many) >= 60
        assert min(many) == pytest.approx(frame["many"].min(), abs=1e-2)
        assert max(many) == pytest.approx(frame["many"].max(), abs=1e-2)

    def test_the_values_are_in_order(self, grids):
        for grid in (*grids.values, grids.dense):
            assert (grid[grids.numeric].diff(dim=1) >= 0).all()

    def test_a_constant_column_does_no_harm(self):
        frame = crowd(200).assign(many=5.0)
        encoder = Encoder(Schema.infer(frame))
        sets = ActionSets.of(encoder.schema, ["few", ("few", "some")])
        made = CandidateGrids.of(encoder.rows(frame), encoder, sets, COARSE)
        assert made.values.isfinite().all()


class TestCombinations:
    @pytest.mark.parametrize("kind", ["combinations", "lattice"])
    def test_each_value_of_a_feature_comes_about_equally_often(self, grids, kind):
        made = getattr(grids, kind)[PAIR, :, 0]
        values, counts = made.unique(return_counts=True)
        assert len(values) == 5
        assert counts.min() >= 0.5 * len(made) / 5

    @pytest.mark.parametrize("kind", ["combinations", "lattice"])
    def test_so_does_every_category_beside_every_value(self, grids, kind):
        made = getattr(grids, kind)[TRIPLE]
        assert made[:, 0].unique().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
        assert made[:, 2].unique().tolist() == [0.0, 1.0]
        pairs = made[:, [0, 1]].unique(dim=0)
        assert len(pairs) >= 0.8 * 25

    def test_a_number_is_spread_over_its_range(self, grids):
        for made in (grids.combinations[PAIR, :, 1], grids.lattice[PAIR, :, 1]):
            share = torch.histc(made, 4, 0.0, 1.0) / len(made)
            assert share.min() >= 0.1

    def test_a_shorter_set_repeats_its_first_feature(self, moves, problem):
        rows, sets = torch.arange(300), torch.full((300,), PAIR)
        made = snapped(problem, rows, sets, moves.grids.combinations[sets])
        assert torch.equal(made[..., 2], made[..., 0])


class TestWhatIsAsked:
    def test_every_other_category_is_asked_and_never_the_own_one(self, problem, grids):
        seen = set()
        for rows, sets, values in others(problem, problem.may, grids):
            own = problem.x[rows, problem.sets.positions[sets, 0]]
            for row, which, tried, mine in zip(
                rows.tolist(), sets.tolist(), values[..., 0].tolist(), own.tolist(), strict=True
            ):
                seen |= {(row, which, t) for t in tried if t != mine}
        town, owner = problem.x[:, 3], problem.x[:, 4]
        allowed = [range(3) if i % 3 else range(5) for i in range(300)]
        expected = {(i, TOWN, float(t)) for i in range(300) for t in allowed[i] if t != town[i]}
        expected |= {(i, OWNER, 1.0 - float(owner[i])) for i in range(300) if i % 5}
        assert seen == expected

    def test_numbers_are_asked_within_ranges_and_directions(self, problem, grids, encoder):
        for grid in (*grids.values, grids.dense):
            rows, sets, values = numbers(problem, problem.may & grids.numeric, grid)
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

    def test_combinations_are_snapped_to_what_may_be(self, problem, grids):
        asked = problem.may & grids.several
        met = torch.zeros_like(asked)
        for rows, sets, values in together(problem, asked, grids.combinations):
            met[rows, sets] = True
            for i in range(values.shape[2]):
                feature = problem.sets.positions[sets, i]
                own = problem.x[rows, feature][:, None]
                fine = problem.feasible.admits(values[..., i].contiguous(), feature, rows)
                assert (fine | (values[..., i] == own)).all()
        assert torch.equal(met, asked)

    def test_nobody_is_asked_about_what_is_frozen(self, problem, grids):
        frozen = torch.arange(300) % 5 == 0
        assert not problem.may[frozen][:, [OWNER, TRIPLE]].any()
        for rows, sets, _ in grids.everything(problem):
            assert problem.may[rows, sets].all()

    def test_everything_is_every_set_of_everybody(self, problem, grids):
        met = torch.zeros_like(problem.may)
        for rows, sets, values in grids.everything(problem):
            assert values.shape[0] == len(rows)
            met[rows, sets] = True
        assert torch.equal(met, problem.may)

    def test_where_there_are_no_groups_nothing_is_asked_about_them(self, problem, grids):
        nobody = torch.zeros_like(problem.may)
        assert list(together(problem, nobody, grids.combinations)) == []
        assert list(others(problem, nobody, grids)) == []
        assert [len(each) for each in numbers(problem, nobody, grids.dense)] == [0, 0, 0]
