"""Search: the smallest change of x_S that reaches the target, for all rows and sets at once."""

import copy

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, ActionSets, Constraints, Encoder, Schema, Search
from dear_plugin.decoders import Transport
from dear_plugin.methods.optimizer import Optimizer
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.constraints import feasible_set
from dear_plugin.problem.target import Target
from dear_plugin.search import Answer, CandidateGrids, Incumbents, SearchProblem

N = 1200


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Independent features, so that nothing else is expected to move but by chance."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "units": rng.integers(0, 101, N),
            "cents": np.round(rng.uniform(0, 100, N), 2),
            "depth": rng.uniform(0, 100, N),
            "colour": rng.choice(["blue", "green", "red", "teal"], N),
            "ready": rng.integers(0, 2, N),
        }
    )


def method(frame, accepts, act_on=None, search=None) -> DEAR:
    """DEAR for a black box that accepts where a rule on frames holds."""
    schema = Schema.infer(frame)
    groups_off = search or Search.cheapest(groups=False)
    model = Rule(accepts)
    return DEAR(model, schema, act_on=act_on, search=groups_off).fit(frame)


class Rule:
    """Probabilities .9 where a rule holds and .1 elsewhere: no slope anywhere."""

    def __init__(self, accepts):
        self.accepts = accepts

    def __call__(self, frame):
        return np.where(self.accepts(frame), 0.9, 0.1)


def asked(frame, rule, column, search=None):
    """The answers to those whom a rule on one column refuses, acting on that column alone."""
    refused = frame[~rule(frame)].iloc[:40]
    others = Constraints(frozen=[c for c in frame if c != column])
    recourses = method(frame, rule, [column], search).generate(refused, within=others)
    assert recourses.actions["success"].all()
    return refused[column], recourses.counterfactuals[column]


class TestOneNumber:
    """Known truth on plateaus, where every gradient is zero."""

    @pytest.mark.parametrize("column", ["units", "cents", "depth"])
    def test_the_smallest_change_that_succeeds_is_found(self, frame, column):
        _, after = asked(
            frame, lambda f: f[column] >= 70, column, Search.cheapest(groups=False, refine=16)
        )
        unit = {"units": 0, "cents": 0.005, "depth": 0.005}[column]
        assert after.between(70, 70 + unit).all()

    def test_either_way_is_tried_and_the_nearer_taken(self, frame):
        before, after = asked(frame, lambda f: (f["units"] <= 20) | (f["units"] >= 60), "units")
        nearer = np.where(before < 40, 20, 60)
        assert (after == nearer)[before != 40].all()

    def test_a_success_in_a_narrow_band_is_found(self, frame):
        _, after = asked(frame, lambda f: f["units"].between(43, 47), "units")
        assert after.between(43, 47).all()

    def test_beyond_the_band_the_near_side_is_taken(self, frame):
        before, after = asked(frame, lambda f: f["units"].between(43, 57), "units")
        assert after.tolist() == np.where(before < 43, 43, 57).tolist()

    def test_more_bisections_come_nearer(self, frame):
        def excess(refine):
            search = Search.cheapest(groups=False, coarse=4, refine=refine)
            return asked(frame, lambda f: f["depth"] >= 70, "depth", search)[1].max() - 70

        assert excess(2) > excess(6) > excess(12) >= 0

    def test_an_end_of_the_range_is_reached(self, frame):
        _, after = asked(frame, lambda f: f["units"] >= 100, "units")
        assert (after == 100).all()

    def test_beyond_the_observed_nothing_is_promised(self, frame):
        result = method(frame, lambda f: f["units"] >= 101, ["units"]).generate(frame.iloc[:5])
        assert not result.actions["success"].any()


class TestOneCategory:
    def test_every_other_category_is_tried(self, frame):
        _, after = asked(frame, lambda f: f["colour"] == "teal", "colour")
        assert (after == "teal").all()

    def test_a_binary_flips(self, frame):
        _, after = asked(frame, lambda f: f["ready"] == 1, "ready")
        assert (after == 1).all()

    def test_one_that_the_call_forbids_is_not_tried(self, frame):
        def rule(f):
            return f["colour"].isin(["red", "teal"])

        refused = frame[~rule(frame)].iloc[:20]
        within = Constraints(categories={"colour": ["blue", "red"]})
        result = method(frame, rule, ["colour"]).generate(refused, within=within)
        assert (result.counterfactuals["colour"] == "red").all()


class TestAmongSets:
    def test_the_cheapest_set_is_taken(self, frame):
        """One unit of `units` costs .01, a colour costs 1."""

        def rule(f):
            return (f["units"] >= 50) | (f["colour"] == "teal")

        refused = frame[~rule(frame)].iloc[:40]
        actions = method(frame, rule, ["colour", "units"]).generate(refused).actions
        assert (actions["acted_on"] == "units").all()

    def test_no_alternative_is_cheaper_than_the_answer(self, mixed, fitted):
        """The search prunes; what it leaves out may not be cheaper."""
        refused, cheapest = mixed.refused(60), fitted.with_search(Search.cheapest())
        answer = cheapest.generate(refused).actions["cost"]
        singles = cheapest.generate(refused).alternatives(7).query("kind == 'another set'")
        cheapest = singles.groupby("index")["cost"].min()
        assert (answer <= cheapest[answer.index] + 1e-6).all()

    def test_pairs_help_whom_no_single_feature_helps(self, frame):
        def rule(f):
            return (f["units"] >= 60) & (f["cents"] >= 60)

        refused = frame[(frame["units"] < 50) & (frame["cents"] < 50)].iloc[:20]
        alone = method(frame, rule, ["units", "cents"]).generate(refused)
        together = method(frame, rule, ["units", "cents"], Search.cheapest()).generate(refused)
        assert not alone.actions["success"].any()
        assert together.actions["success"].all()
        assert (together.actions["acted_on"] == "units + cents").all()

    def test_a_group_moves_no_further_than_it_must(self, frame):
        def rule(f):
            return f["units"] + f["cents"] >= 120

        refused = frame[(frame["units"] < 50) & (frame["cents"] < 50)].iloc[:20]
        result = method(frame, rule, [("units", "cents")]).generate(refused)
        assert result.actions["success"].all()
        total = result.counterfactuals["units"] + result.counterfactuals["cents"]
        assert (total <= 125).all()

    def test_a_group_gives_back_a_feature_it_does_not_need(self, frame):
        refused = frame[frame["units"] < 50].iloc[:20]
        result = method(frame, lambda f: f["units"] >= 60, [("units", "colour")]).generate(refused)
        near = result.counterfactuals["units"].between(60, 65)
        assert near.mean() >= 0.9
        assert (result.counterfactuals["colour"] == refused["colour"]).mean() > 0.9


class TestFailures:
    def test_the_nearest_miss_is_the_attempt(self, loan):
        """Refused whatever they do: the attempt is the row with the greatest margin."""
        net = copy.deepcopy(loan.net)
        net[-1].bias.data -= 100.0
        dear = DEAR(net, loan.schema, search=Search.cheapest(groups=False)).fit(loan.frame)
        result = dear.generate(loan.frame.iloc[:30])
        assert not result.actions["success"].any()
        assert (result.actions["score_after"] >= result.actions["score_before"]).all()
        tried = "no change of a single one of the 6 actionable features was found"
        assert result.actions["reason"].str.startswith(tried).all()

    def test_without_anything_to_act_on_the_factual_is_the_attempt(self, frame):
        dear = method(frame, lambda f: f["units"] >= 101)
        result = dear.generate(frame.iloc[:5], within=Constraints(act_on=[]))
        pd.testing.assert_frame_equal(result.counterfactuals, frame.iloc[:5])
        assert set(result.actions["reason"]) == {"nothing admissible to act on"}

    def test_an_empty_range_leaves_nothing_to_act_on(self, frame):
        """Between 2.3 and 2.7 there is no whole number."""
        dear = method(frame, lambda f: f["units"] >= 101, ["units"])
        result = dear.generate(frame.iloc[:5], within=Constraints(ranges={"units": (2.3, 2.7)}))
        assert set(result.actions["reason"]) == {"nothing admissible to act on"}


def question_of(people: torch.Tensor, moves: Optimizer) -> SearchProblem:
    encoder = moves.encoder
    box = feasible_set(None, people, encoder, encoder.units.resolutions(encoder.frame(people)))
    return SearchProblem(
        people,
        moves.decoder.encode(people),
        Target.of_class(1).resolve(len(people), None),
        box,
        moves.sets,
        moves.decoder,
        moves.classifier,
        box.may_act(moves.sets),
    )


class TestQuestions:
    @pytest.fixture
    def moves(self, mixed) -> Optimizer:
        encoder = mixed.encoder
        sets = ActionSets.of(mixed.schema)
        classifier = Classifier(mixed.net, encoder)
        return Optimizer.fit(encoder.rows(mixed.frame), sets, Transport(), classifier, 8)

    def test_memory_is_bounded_by_chunks_that_do_not_change_the_answer(
        self, mixed, moves, monkeypatch
    ):
        question = question_of(mixed.encoder.rows(mixed.refused(30)), moves)
        whole = moves.find(question, Search())
        monkeypatch.setattr("dear_plugin.search.problem.CELLS_A_BATCH", 500)
        parts = moves.find(question, Search())
        assert torch.allclose(whole.cost, parts.cost, atol=1e-6)
        assert torch.allclose(whole.values, parts.values, atol=1e-6)

    def test_some_people_can_be_selected(self, mixed, moves):
        question = question_of(mixed.encoder.rows(mixed.refused(10)), moves)
        some = question.select(torch.tensor([3, 7]))
        cost = moves.find(question, Search(), prune=False).cost
        assert torch.allclose(moves.find(some, Search(), prune=False).cost, cost[[3, 7]])


class TestFound:
    @pytest.fixture
    def found(self, mixed) -> Incumbents:
        n, s, w = 2, 3, 1
        return Incumbents(
            torch.zeros(n, s, w),
            torch.full((n, s), torch.inf),
            torch.zeros(n, w),
            torch.full((n,), -1),
            torch.full((n,), -torch.inf),
            torch.full((n,), torch.inf),
        )

    def note(self, found, row, which, values, cost, good, margin=None):
        margin = torch.tensor([margin or [0.0] * len(values)])
        answer = Answer(torch.tensor([cost]), margin, torch.tensor([good]))
        found.note(
            torch.tensor([row]), torch.tensor([which]), torch.tensor([values])[..., None], answer
        )

    def test_the_cheapest_success_is_kept(self, found):
        self.note(found, 0, 1, [0.1, 0.2, 0.3], [0.5, 0.2, 0.1], [True, True, False])
        self.note(found, 0, 1, [0.9], [0.4], [True])
        assert found.cost[0, 1] == pytest.approx(0.2)
        assert found.values[0, 1, 0] == pytest.approx(0.2)
        assert found.solved.tolist() == [True, False]

    def test_of_equal_costs_the_first_is_kept(self, found):
        self.note(found, 0, 0, [0.1], [0.5], [True])
        self.note(found, 0, 0, [0.9], [0.5], [True])
        assert found.values[0, 0, 0] == pytest.approx(0.1)

    def test_a_pair_may_stand_there_several_times(self, found):
        pairs = torch.tensor([0, 0, 0, 1]), torch.tensor([1, 1, 1, 1])
        values = torch.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]])[..., None]
        cost = torch.tensor([[0.9, 0.5], [0.5, 0.2], [0.7, 0.5], [0.6, 0.6]])
        good = torch.tensor([[True, True], [True, False], [True, True], [False, True]])
        found.note(*pairs, values, Answer(cost, torch.zeros(4, 2), good))
        assert found.cost[:, 1].tolist() == pytest.approx([0.5, 0.6])
        assert found.values[:, 1, 0].tolist() == pytest.approx([0.2, 0.8])

    def test_the_nearest_miss_is_the_greatest_margin(self, found):
        self.note(found, 1, 0, [0.1, 0.2], [1.0, 1.0], [False, False], [-3.0, -2.0])
        self.note(found, 1, 2, [0.7, 0.8], [1.0, 1.0], [False, False], [-2.5, -1.0])
        assert found.tried_set.tolist() == [-1, 2]
        assert found.tried_values[1, 0] == pytest.approx(0.8)

    @pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
    def test_of_misses_that_rounding_alone_tells_apart_the_first_is_kept(self, found, unit):
        a_hair_better = [-2.0000003 * unit, -2.0 * unit]
        self.note(found, 1, 0, [0.1, 0.2], [1.0, 1.0], [False, False], a_hair_better)
        self.note(found, 1, 2, [0.7], [1.0], [False], [-1.9999998 * unit])
        assert found.tried_set.tolist() == [-1, 0]
        assert found.tried_values[1, 0] == pytest.approx(0.1)


class TestGrids:
    def test_few_values_are_all_tried(self):
        frame = pd.DataFrame({"few": np.arange(1200) % 5, "other": np.arange(1200)})
        encoder = Encoder(Schema.infer(frame))
        sets = ActionSets.of(encoder.schema)
        grids = CandidateGrids.of(encoder.rows(frame), encoder, sets, 16)
        assert set(grids.values[:, 0].flatten().tolist()) == {0.0, 0.25, 0.5, 0.75, 1.0}

    def test_the_ends_are_tried(self, mixed):
        encoder = mixed.encoder
        sets = ActionSets.of(mixed.schema, ["age", "income", "debt"])
        grids = CandidateGrids.of(encoder.rows(mixed.frame), encoder, sets, 16)
        tried = grids.values.permute(1, 0, 2).flatten(1)
        assert tried.amin(1).tolist() == [0.0] * 3
        assert tried.amax(1).tolist() == [1.0] * 3
