"""Line search: against exhaustive scans, on plateaus and in windows, within constraints."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from dear_plugin import DEAR, ActionSets, Constraints, Encoder, Kind, Schema, Target
from dear_plugin.decoders import Transport
from dear_plugin.methods.base import Case
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.constraints import feasible_set
from dear_plugin.search import Incumbents, Search, line_search
from tests.fitted import fitted_optimizer
from tests.rule import Rule

SEEDS = range(4)
FACTUALS = 300


def discrete_frame(n=3000, seed=0):
    """Dependent features: integers of few values, four categories and a binary one."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    return pd.DataFrame(
        {
            "years": np.clip(np.round(7 + 3 * z + rng.normal(0, 2, n)), 0, 14).astype(int),
            "visits": np.clip(rng.poisson(np.exp(0.8 + 0.5 * z)), 0, 12),
            "rooms": rng.integers(1, 9, n),
            "class": np.array(list("ABCD"))[
                np.clip(np.round(1.5 + z + 0.5 * rng.normal(size=n)), 0, 3).astype(int)
            ].astype(object),
            "owner": (rng.random(n) < 0.3 + 0.02 * (7 + 3 * z)).astype(int),
        }
    )


def random_network(frame, encoder, seed):
    """A ReLU network with large random weights, not monotone, that rejects 70 % of rows."""
    rng = torch.Generator().manual_seed(seed)
    net = nn.Sequential(nn.Linear(encoder.d, 12), nn.ReLU(), nn.Linear(12, 1))
    with torch.no_grad():
        for layer in (net[0], net[2]):
            scale = 3.0 / layer.weight.shape[1] ** 0.5
            layer.weight.copy_(torch.randn(layer.weight.shape, generator=rng) * scale)
            layer.bias.copy_(torch.randn(layer.bias.shape, generator=rng))
        net[2].bias -= net(encoder.encode(frame)).quantile(0.7)
    return net


def refused(model, encoder, frame, n=FACTUALS):
    with torch.no_grad():
        return frame[(model(encoder.encode(frame))[:, 0] <= 0).numpy()].iloc[:n]


def problem_of(model, schema, frame, factuals, *, within=None, act_on=None, search=None):
    """The search problem of a frame of factuals, and the candidate grids."""
    encoder = Encoder(schema)
    classifier = Classifier(model, encoder)
    sets, coarse = ActionSets.of(schema, act_on), (search or Search()).coarse
    optimizer = fitted_optimizer(encoder.rows(frame), sets, Transport(), classifier, coarse)
    x = encoder.rows(factuals)
    feasible = feasible_set(within, x, encoder, encoder.units.resolutions(factuals))
    goal = Target.of_class(1).resolve(len(x), None)
    return optimizer.problem(Case(x, goal, feasible, 1e-4, torch.arange(len(x)))), optimizer.grids


def searched(problem, grids, search=None, prune=True):
    incumbents = Incumbents.none(problem)
    line_search(problem, grids, search or Search(), incumbents, prune)
    return incumbents


def exhaustive(problem):
    """(n, s) the cost of the cheapest success among all whole numbers and all categories."""
    cost = torch.full((len(problem), len(problem.sets)), torch.inf)
    for i, (j,) in enumerate(problem.sets.members):
        feature = problem.classifier.encoder.schema.features[j]
        rows = problem.actionable[:, i].nonzero()[:, 0]
        low, high = map(int, feature.bounds)
        values = (
            torch.arange(high - low + 1) / feature.width
            if feature.kind is Kind.NUMERIC
            else torch.arange(len(feature.categories)).float()
        ).expand(len(rows), -1)
        evaluation = problem.evaluate(rows, torch.full((len(rows),), i), values[..., None], 1e-4)
        valid = evaluation.valid & problem.feasible.admits(
            values, torch.full((len(rows),), j), rows
        )
        cost[rows, i] = torch.where(valid, evaluation.cost, torch.inf).amin(1)
    return cost


@pytest.fixture(scope="module", params=SEEDS)
def case(request):
    """A random network's problem; one feature may only increase, one range is narrow."""
    frame = discrete_frame()
    schema = Schema.infer(frame, increasing=["years"], ranges={"rooms": (2, 6)})
    encoder = Encoder(schema)
    model = random_network(frame, encoder, request.param)
    return problem_of(model, schema, frame, refused(model, encoder, frame))


class TestAgainstAnExhaustiveScan:
    def test_the_coarse_grid_contains_every_value(self):
        frame = discrete_frame()
        for name in ("years", "visits", "rooms"):
            low, high = frame[name].min(), frame[name].max()
            assert frame[name].nunique() == high - low + 1 <= Search().coarse

    def test_the_same_rows_are_solved(self, case):
        problem, grids = case
        expected = exhaustive(problem).isfinite()
        assert 0.5 < expected.any(1).float().mean() < 1.0
        assert (searched(problem, grids, prune=False).solved_pairs == expected).all()
        assert (searched(problem, grids).solved == expected.any(1)).all()

    def test_at_the_same_cost(self, case):
        problem, grids = case
        least = searched(problem, grids).cost.amin(1)
        torch.testing.assert_close(least, exhaustive(problem).amin(1))

    def test_at_the_same_cost_on_every_set_without_pruning(self, case):
        problem, grids = case
        incumbents = searched(problem, grids, prune=False)
        torch.testing.assert_close(incumbents.cost, exhaustive(problem))

    def test_pruning_does_not_change_the_cheapest_cost(self, case):
        problem, grids = case
        every, pruned = (searched(problem, grids, prune=p).cost for p in (False, True))
        torch.testing.assert_close(every.amin(1), pruned.amin(1))

    def test_incumbents_are_reproduced_by_an_evaluation(self, case):
        problem, grids = case
        incumbents = searched(problem, grids)
        rows, sets = incumbents.solved_pairs.nonzero(as_tuple=True)
        again = problem.evaluate(rows, sets, incumbents.values[rows, sets][:, None], 0.0)
        assert again.valid.all()
        torch.testing.assert_close(again.cost[:, 0], incumbents.cost[rows, sets])

    def test_a_row_without_success_has_its_largest_margin(self, case):
        problem, grids = case
        incumbents = searched(problem, grids)
        unsolved = (~incumbents.solved).nonzero()[:, 0]
        sets, values = incumbents.tried_set[unsolved], incumbents.tried_values[unsolved]
        margins = problem.evaluate(unsolved, sets, values[:, None], 0.0).margin[:, 0]
        torch.testing.assert_close(margins, incumbents.tried_margin[unsolved])
        assert (margins < 1e-4).all()


def test_it_is_nearly_exact_with_more_values_than_coarse_ones():
    frame = discrete_frame()
    frame["years"] += discrete_frame(seed=1)["years"]
    frame["visits"] *= 3
    frame["visits"] += discrete_frame(seed=1)["rooms"] - 1
    schema = Schema.infer(frame)
    encoder = Encoder(schema)
    for seed in SEEDS:
        model = random_network(frame, encoder, seed)
        problem, grids = problem_of(model, schema, frame, refused(model, encoder, frame))
        found, best = searched(problem, grids).cost.amin(1), exhaustive(problem).amin(1)
        assert (found.isfinite() == best.isfinite()).float().mean() >= 0.99
        both = found.isfinite() & best.isfinite()
        assert (found >= best - 1e-5)[both].all()
        assert ((found - best)[both] <= 1e-5).float().mean() >= 0.95


def number_frame(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.random((n, 3)) * 100.0, columns=["a", "b", "c"])


class TestNumbers:
    def test_it_stops_at_the_boundary(self):
        """With independent features, the change is the margin over the weight."""
        frame = number_frame()
        schema = Schema.infer(frame)
        model = Rule(lambda x: 4.0 * x[:, 0] + 0.1 * x[:, 1] - 3.0)
        factuals = refused(model, Encoder(schema), frame)
        problem, grids = problem_of(model, schema, frame, factuals, act_on=["a"])
        incumbents = searched(problem, grids, Search(refine=16))
        distance = (3.0 - 4.0 * problem.x[:, 0] - 0.1 * problem.x[:, 1]) / 4.0
        step = (incumbents.values[:, 0, 0] - problem.x[:, 0]).abs()
        torch.testing.assert_close(step, distance, atol=2e-3, rtol=0.01)

    @pytest.mark.parametrize("low", np.linspace(0.02, 0.93, 8).round(2).tolist())
    def test_it_finds_an_accepted_window_between_rejected_values(self, low):
        frame = number_frame()
        schema = Schema.infer(frame)
        model = Rule(lambda x: 0.025 - (x[:, 0] - low - 0.025).abs())
        factuals = refused(model, Encoder(schema), frame, 50)
        problem, grids = problem_of(model, schema, frame, factuals, act_on=["a"])
        incumbents = searched(problem, grids)
        assert incumbents.solved.all()
        near = torch.where(problem.x[:, 0] < low, low, low + 0.05)
        torch.testing.assert_close(incumbents.values[:, 0, 0], near, atol=0.005, rtol=0.0)

    def test_the_nearer_of_two_windows_is_taken(self):
        frame = number_frame()
        schema = Schema.infer(frame)
        model = Rule(lambda x: 0.05 - torch.minimum((x[:, 0] - 0.2).abs(), (x[:, 0] - 0.9).abs()))
        factuals = refused(model, Encoder(schema), frame)
        problem, grids = problem_of(model, schema, frame, factuals, act_on=["a"])
        value, x = searched(problem, grids).values[:, 0, 0], problem.x[:, 0]
        nearest = (x[:, None] - torch.tensor([0.15, 0.25, 0.85, 0.95])).abs()
        # Indirect changes cost too: of two nearly equal distances the longer may be cheaper.
        torch.testing.assert_close((value - x).abs(), nearest.amin(1), atol=0.05, rtol=0.0)

    def test_it_leaves_a_plateau_without_gradient(self):
        """Inactive units: the logit is constant around every factual."""
        frame = number_frame()
        schema = Schema.infer(frame)
        net = nn.Sequential(nn.Linear(3, 2), nn.ReLU(), nn.Linear(2, 1))
        with torch.no_grad():
            net[0].weight.copy_(torch.tensor([[10.0, 0.0, 0.0], [0.0, 10.0, 0.0]]))
            net[0].bias.fill_(-8.0)
            net[2].weight.fill_(1.0)
            net[2].bias.fill_(-1.0)
        flat = frame[(frame["a"] < 75) & (frame["b"] < 75)].iloc[:100]
        x = Encoder(schema).encode(flat).requires_grad_(True)
        logits = net(x)
        (gradient,) = torch.autograd.grad(logits.sum(), x)
        assert not gradient.any()
        assert logits.unique().tolist() == [-1.0]
        problem, grids = problem_of(net, schema, frame, flat, act_on=["a", "b"])
        incumbents = searched(problem, grids, prune=False)
        assert incumbents.solved_pairs.all()
        torch.testing.assert_close(
            incumbents.values[..., 0], torch.full((100, 2), 0.9), atol=5e-3, rtol=0.0
        )


class TestCategories:
    @pytest.mark.parametrize("level", range(4))
    def test_every_level_is_tried(self, level):
        frame = discrete_frame()
        schema = Schema.infer(frame)
        encoder = Encoder(schema)
        (j,) = schema.index(["class"])
        model = Rule(lambda x: x[:, encoder.starts[j] + level] - 0.5)
        factuals = refused(model, encoder, frame)
        problem, grids = problem_of(model, schema, frame, factuals, act_on=["class"])
        incumbents = searched(problem, grids)
        assert incumbents.solved.all()
        assert incumbents.values[:, 0, 0].unique().tolist() == [float(level)]

    def test_only_levels_that_are_allowed_are_taken(self):
        frame = discrete_frame()
        schema = Schema.infer(frame)
        encoder = Encoder(schema)
        (j,) = schema.index(["class"])
        model = Rule(lambda x: 0.5 - x[:, encoder.starts[j]])
        factuals = refused(model, encoder, frame)
        assert set(factuals["class"]) == {"A"}
        within = Constraints(categories={"class": ["A", "D"]})
        incumbents = searched(
            *problem_of(model, schema, frame, factuals, within=within, act_on=["class"])
        )
        assert incumbents.solved.all()
        assert incumbents.values[:, 0, 0].unique().tolist() == [3.0]
        only_own = Constraints(categories={"class": ["A"]})
        incumbents = searched(
            *problem_of(model, schema, frame, factuals, within=only_own, act_on=["class"])
        )
        assert not incumbents.solved.any()


class TestConstraints:
    @pytest.mark.parametrize("direction", ["increasing", "decreasing"])
    def test_a_direction_is_kept_even_if_the_other_one_is_nearer(self, direction):
        frame = number_frame()
        schema = Schema.infer(frame, **{direction: ["a"]})
        model = Rule(lambda x: (x[:, 0] - 0.5).abs() - 0.3)
        factuals = refused(model, Encoder(schema), frame)
        problem, grids = problem_of(model, schema, frame, factuals, act_on=["a"])
        incumbents = searched(problem, grids)
        assert incumbents.solved.all()
        moved = incumbents.values[:, 0, 0] - problem.x[:, 0]
        assert (moved > 0).all() if direction == "increasing" else (moved < 0).all()

    def test_ranges_may_differ_by_row(self):
        frame = number_frame()
        schema = Schema.infer(frame)
        model = Rule(lambda x: x[:, 0] - 0.8)
        factuals = frame[frame["a"] < 70].iloc[:100]
        high = np.where(np.arange(100) % 2, 100.0, 75.0)
        within = Constraints(ranges={"a": (0.0, high)})
        problem, grids = problem_of(model, schema, frame, factuals, within=within, act_on=["a"])
        incumbents = searched(problem, grids)
        assert incumbents.solved.tolist() == (high > 75).tolist()
        # The other rows end at their bound.
        (feature,) = (f for f in schema if f.name == "a")
        reached = (
            feature.bounds[0] + feature.width * incumbents.tried_values[~incumbents.solved, 0]
        )
        np.testing.assert_allclose(reached, 75.0, atol=1e-3)

    def test_rows_that_may_not_act_are_not_evaluated(self):
        frame = number_frame()
        schema = Schema.infer(frame)
        model = Rule(lambda x: x[:, 0] - 0.8)
        factuals = frame[frame["a"] < 70].iloc[:10]
        within = Constraints(frozen=[["a"] if i % 2 else [] for i in range(10)])
        incumbents = searched(
            *problem_of(model, schema, frame, factuals, within=within, act_on=["a"])
        )
        assert incumbents.solved.tolist() == [i % 2 == 0 for i in range(10)]
        assert (incumbents.tried_set[~incumbents.solved] == -1).all()

    def test_whole_numbers_and_decimals_are_kept(self):
        frame = number_frame().assign(
            a=lambda t: t["a"].round().astype(int), b=lambda t: t["b"].round(1)
        )
        schema = Schema.infer(frame)
        model = Rule(lambda x: x[:, 0] + x[:, 1] - 1.4)
        factuals = refused(model, Encoder(schema), frame)
        after = DEAR(model, schema).fit(frame).generate(factuals).counterfactuals
        assert after["a"].dtype == factuals["a"].dtype
        assert (after["b"] == after["b"].round(1)).all()
