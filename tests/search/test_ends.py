"""Ends: both ends of a range are tried, however narrow or wide it is, alone and in groups."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Constraints, Encoder, Schema, Search
from dear_plugin.search.candidates import cornered, numbers
from tests.counted import Counts
from tests.search.test_line import Rule, asked, crowd

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
    """Training rows that lie above the range that is asked for."""
    return frame[frame["a"] > 300]


class TestWhereTheTrainingRowsStopShort:
    """The schema knows of values that no training row has."""

    @pytest.mark.parametrize("end", [200.0, 200.5])
    def test_a_range_solves_whom_its_end_solves(self, schema, above, end):
        dear = DEAR(exactly("a", end), schema, act_on=["a"], search=ALONE).fit(above)
        people = above.iloc[:40]
        for low, high in ((end, end), (200.0, 200.5)):
            result = dear.generate(people, within=Constraints(ranges={"a": (low, high)}))
            assert result.actions["success"].all()
            assert (result.counterfactuals["a"] == end).all()

    @pytest.mark.parametrize("end", [100.0, 950.0])
    def test_both_ends_of_a_wide_one_too(self, frame, schema, end):
        middle = frame[frame["a"].between(300, 700)]
        dear = DEAR(exactly("a", end), schema, act_on=["a"], search=ALONE).fit(middle)
        within = Constraints(ranges={"a": (100.0, 950.0)})
        result = dear.generate(middle.iloc[:40], within=within)
        assert result.actions["success"].all()
        assert (result.counterfactuals["a"] == end).all()

    def test_with_support_to_reach(self, schema, above):
        search = Search.cheapest(groups=False, min_support=0.5)
        dear = DEAR(exactly("a", 200.0), schema, act_on=["a"], search=search).fit(above)
        within = Constraints(ranges={"a": (200.0, 200.5)})
        assert dear.generate(above.iloc[:20], within=within).actions["success"].all()


def test_they_are_among_the_alternatives_of_who_has_an_answer(frame, schema):
    """The last value of a grid is not among the coarse ones, but the end of a range is."""

    def either(rows):
        return np.where((rows["b"] > 900) | (rows["a"] == 995.0), 0.9, 0.1)

    people = frame[(frame["a"] < 500) & (frame["b"] < 800)].iloc[:30]
    dear = DEAR(either, schema, act_on=["a", "b"], search=ALONE).fit(frame)
    within = Constraints(ranges={"a": (0.0, 995.0)})
    table = dear.generate(people, within=within).alternatives(2)
    assert (table["index"].value_counts() == 2).all()
    assert set(table["acted_on"]) == {"a", "b"}


@pytest.mark.parametrize("together", [("a", "b"), ("a", "b", "c"), ("d", "a", "b", "c")])
def test_groups_reach_all_ends_at_once(frame, schema, together):
    """Only the very corner is accepted."""
    tops = {"a": 990.0, "b": 985.0, "c": 995.0}
    asked_for = [name for name in together if name in tops]

    def corner(rows):
        return np.where(np.all([rows[n] == tops[n] for n in asked_for], axis=0), 0.9, 0.1)

    people = frame[(frame[asked_for] < 500).all(axis=1)].iloc[:20]
    within = Constraints(ranges={name: (None, tops[name]) for name in asked_for})
    dear = DEAR(corner, schema, act_on=[together]).fit(frame)
    for result in (
        dear.generate(people, within=within),
        dear.with_search(Search.cheapest(min_support=0.1)).generate(people, within=within),
    ):
        assert result.actions["success"].all()
    table = dear.generate(people, within=within).alternatives(1)
    assert set(table["acted_on"]) == {" + ".join(asked_for)}


class TestNothingElseChanges:
    @pytest.fixture
    def problem(self):
        def evaluate(within=None, **marks):
            people = crowd().iloc[:50]
            model = Rule(lambda x: x[:, 0] - 2.0)
            schema = Schema.infer(crowd(), **marks)
            return asked(model, schema, crowd(), people, within=within)

        return evaluate

    def test_without_a_range(self, problem):
        whole, grids = problem(increasing=["years"], decreasing=["visits"])
        at = whole.may & grids.numeric
        coarse = grids.values[0]
        for plain, outer in zip(
            numbers(whole, at, coarse), numbers(whole, at, coarse, coarse.shape[1]), strict=True
        ):
            assert torch.equal(plain, outer)
        assert not list(cornered(whole, whole.may))

    def test_with_one_that_is_wider_than_what_was_observed(self, problem):
        whole, _ = problem(Constraints(ranges={"rooms": (-5, 50), "years": (None, None)}))
        assert not list(cornered(whole, whole.may))

    def test_of_an_empty_one_nothing_is_tried(self, problem):
        within = Constraints(ranges={"rooms": (2.2, 2.8)}, act_on=["rooms"])
        whole, grids = problem(within)
        assert not (whole.may & grids.numeric).any()


@pytest.mark.parametrize("high", [990.0, 200.5])
def test_they_count_among_the_hundred(frame, schema, high):
    """A black box is asked no more often where there is a range."""
    below = frame[frame["a"].between(300, 700)]
    counted = Counts(Rule(lambda x: -1.0 - x[:, 0]), Encoder(schema))
    dear = DEAR(counted, schema, act_on=["a"], search=ALONE).fit(below)
    within = Constraints(ranges={"a": (100.0, high)})
    for i in range(10):
        counted.calls.clear()
        assert not dear.generate(below.iloc[[i]], within=within).actions["success"].item()
        assert counted.rows <= 100
