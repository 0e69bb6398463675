"""Range ends: both ends of a range are candidates, of single features and in groups."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Constraints, Encoder, Schema, Search
from dear_plugin.search.candidates import corner_candidates, grid_candidates
from tests.counted import Counts
from tests.search.test_line import Rule, discrete_frame, problem_of

ALONE = Search.cheapest(groups=False)


@pytest.fixture(scope="module")
def frame():
    """Independent numbers from 0 to 1000 with one decimal."""
    rng = np.random.default_rng(0)
    return pd.DataFrame((rng.random((3000, 4)) * 1000).round(1), columns=list("abcd"))


@pytest.fixture(scope="module")
def schema(frame):
    return Schema.infer(frame)


def exactly(name, value):
    """A black box that accepts one value of one feature."""
    return lambda frame: np.where((frame[name] - value).abs() < 0.05, 0.9, 0.1)


@pytest.fixture(scope="module")
def above(frame):
    """Training rows above the range of the constraints."""
    return frame[frame["a"] > 300]


class TestOutsideTheTrainingRows:
    """The schema's bounds are wider than the training rows."""

    @pytest.mark.parametrize("end", [200.0, 200.5])
    def test_an_end_of_a_narrow_range_is_found(self, schema, above, end):
        dear = DEAR(exactly("a", end), schema, act_on=["a"], search=ALONE).fit(above)
        factuals = above.iloc[:40]
        for low, high in ((end, end), (200.0, 200.5)):
            result = dear.generate(factuals, within=Constraints(ranges={"a": (low, high)}))
            assert result.actions["success"].all()
            assert (result.counterfactuals["a"] == end).all()

    @pytest.mark.parametrize("end", [100.0, 950.0])
    def test_both_ends_of_a_wide_range_are_found(self, frame, schema, end):
        middle = frame[frame["a"].between(300, 700)]
        dear = DEAR(exactly("a", end), schema, act_on=["a"], search=ALONE).fit(middle)
        within = Constraints(ranges={"a": (100.0, 950.0)})
        result = dear.generate(middle.iloc[:40], within=within)
        assert result.actions["success"].all()
        assert (result.counterfactuals["a"] == end).all()

    def test_an_end_is_found_with_a_required_support(self, schema, above):
        search = Search.cheapest(groups=False, min_support=0.5)
        dear = DEAR(exactly("a", 200.0), schema, act_on=["a"], search=search).fit(above)
        within = Constraints(ranges={"a": (200.0, 200.5)})
        assert dear.generate(above.iloc[:20], within=within).actions["success"].all()


def test_an_end_is_among_the_alternatives_of_a_solved_row(frame, schema):
    """The last value of a grid is not among the coarse ones, but the end of a range is."""

    def either(rows):
        return np.where((rows["b"] > 900) | (rows["a"] == 995.0), 0.9, 0.1)

    factuals = frame[(frame["a"] < 500) & (frame["b"] < 800)].iloc[:30]
    dear = DEAR(either, schema, act_on=["a", "b"], search=ALONE).fit(frame)
    within = Constraints(ranges={"a": (0.0, 995.0)})
    table = dear.generate(factuals, within=within).alternatives(2)
    assert (table["index"].value_counts() == 2).all()
    assert set(table["acted_on"]) == {"a", "b"}


@pytest.mark.parametrize("group", [("a", "b"), ("a", "b", "c"), ("d", "a", "b", "c")])
def test_groups_reach_all_ends_together(frame, schema, group):
    """Only the corner of the ranges is accepted."""
    tops = {"a": 990.0, "b": 985.0, "c": 995.0}
    limited = [name for name in group if name in tops]

    def corner(rows):
        return np.where(np.all([rows[n] == tops[n] for n in limited], axis=0), 0.9, 0.1)

    factuals = frame[(frame[limited] < 500).all(axis=1)].iloc[:20]
    within = Constraints(ranges={name: (None, tops[name]) for name in limited})
    dear = DEAR(corner, schema, act_on=[group]).fit(frame)
    for result in (
        dear.generate(factuals, within=within),
        dear.with_search(Search.cheapest(min_support=0.1)).generate(factuals, within=within),
    ):
        assert result.actions["success"].all()
    table = dear.generate(factuals, within=within).alternatives(1)
    assert set(table["acted_on"]) == {" + ".join(limited)}


class TestWithoutInnerEnds:
    @pytest.fixture
    def problem(self):
        def evaluate(within=None, **marks):
            factuals = discrete_frame().iloc[:50]
            model = Rule(lambda x: x[:, 0] - 2.0)
            schema = Schema.infer(discrete_frame(), **marks)
            return problem_of(model, schema, discrete_frame(), factuals, within=within)

        return evaluate

    def test_without_a_range(self, problem):
        whole, grids = problem(increasing=["years"], decreasing=["visits"])
        at = whole.actionable & grids.numeric
        coarse = grids.values[0]
        for plain, outer in zip(
            grid_candidates(whole, at, coarse),
            grid_candidates(whole, at, coarse, coarse.shape[1]),
            strict=True,
        ):
            assert torch.equal(plain, outer)
        assert not list(corner_candidates(whole, whole.actionable))

    def test_a_range_wider_than_the_observed_values(self, problem):
        whole, _ = problem(Constraints(ranges={"rooms": (-5, 50), "years": (None, None)}))
        assert not list(corner_candidates(whole, whole.actionable))

    def test_an_empty_range_has_no_candidates(self, problem):
        within = Constraints(ranges={"rooms": (2.2, 2.8)}, act_on=["rooms"])
        whole, grids = problem(within)
        assert not (whole.actionable & grids.numeric).any()


@pytest.mark.parametrize("high", [990.0, 200.5])
def test_a_black_box_evaluates_at_most_a_hundred_rows(frame, schema, high):
    """A range does not add evaluations."""
    below = frame[frame["a"].between(300, 700)]
    counted = Counts(Rule(lambda x: -1.0 - x[:, 0]), Encoder(schema))
    dear = DEAR(counted, schema, act_on=["a"], search=ALONE).fit(below)
    within = Constraints(ranges={"a": (100.0, high)})
    for i in range(10):
        counted.calls.clear()
        assert not dear.generate(below.iloc[[i]], within=within).actions["success"].item()
        assert counted.rows <= 100
