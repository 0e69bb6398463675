"""Rescue: the values that look most likely to succeed, going by what was said of others."""

import numpy as np
import pytest
import torch

from dear_plugin import DEAR, Encoder, Schema
from dear_plugin.search import Search
from dear_plugin.search import line as lines
from dear_plugin.search.incumbent import Missed
from dear_plugin.search.surrogate import Heard, likeliest
from tests.counted import Counted
from tests.search.test_line import (
    Rule,
    asked,
    crooked,
    crowd,
    numbers,
    refused,
    searched,
)

RESCUE = Search().rescue
ALL = 96


def window(low, width):
    """A model that accepts a narrow window of one number, and says how far away it is."""
    return Rule(lambda x: width / 2 - (x[:, 0] - low - width / 2).abs())


def lost_people(model, act_on, frame):
    schema = Schema.infer(frame)
    people = refused(model, Encoder(schema), frame, 100)
    return asked(model, schema, frame, people, act_on=act_on)


@pytest.fixture
def spied(monkeypatch):
    """What was looked for at last, and what came out: (question, dense, missed, chosen)."""
    calls = []

    def look(question, scan, missed, count):
        chosen = likeliest(question, scan, missed, count)
        calls.append((question, scan, missed, chosen))
        return chosen

    monkeypatch.setattr(lines, "likeliest", look)
    return calls


class TestItFinds:
    def test_windows_narrower_than_the_grid_as_all_the_values_do(self):
        """Each of 96 values asked about finds them; so do six of them."""
        frame, solved = numbers(), {}
        for rescue in (0, RESCUE, ALL):
            few = [
                searched(*lost_people(window(low, 0.02), ["a"], frame), Search(rescue=rescue))
                for low in np.linspace(0.02, 0.95, 12)
            ]
            solved[rescue] = sum(int(found.solved.sum()) for found in few)
        assert solved[0] < solved[RESCUE] == solved[ALL]

    @pytest.mark.parametrize("says", [lambda x: x, torch.sign], ids=["how far", "yes or no"])
    @pytest.mark.parametrize("seed", [3, 9, 19, 20, 23, 24, 26, 30])
    def test_nearly_everybody_whom_all_the_values_help(self, seed, says):
        """Where other features jump, the margin is no function of the number alone."""
        frame = crowd()
        rng = np.random.default_rng(seed)
        frame["score"] = (frame["years"] * 7 + rng.normal(0, 5, len(frame))).round(2)
        schema = Schema.infer(frame)
        encoder = Encoder(schema)
        model = crooked(frame, encoder, seed)
        people = refused(model, encoder, frame)
        told = Rule(lambda x: says(model(x))[:, 0])
        question, grids = asked(told, schema, frame, people, act_on=["score"])
        none, some, every = (
            int(searched(question, grids, Search(rescue=r)).solved.sum()) for r in (0, RESCUE, ALL)
        )
        assert none < every
        assert every - 1 <= some <= every


class TestWhatIsAskedAbout:
    @pytest.fixture
    def nobody(self, spied):
        """A model that accepts nobody, more or less reluctantly."""
        question, grids = lost_people(Rule(lambda x: -1.0 - x.sum(1)), ["a", "b"], numbers())
        assert not searched(question, grids).solved.any()
        (call,) = spied
        return call

    def test_no_more_than_so_many_of_the_values_there_are(self, nobody):
        _, dense, _, chosen = nobody
        assert chosen.values.shape == (len(dense.rows), RESCUE)
        for own, every in zip(chosen.values, dense.values, strict=True):
            assert len(own.unique()) == RESCUE
            assert torch.isin(own, every).all()

    def test_nothing_that_was_asked_about(self, nobody):
        question, dense, missed, chosen = nobody
        s = len(question.sets)
        heard = Heard.of(dense.rows * s + dense.sets, missed, s)
        assert not (chosen.values[:, :, None] == heard.values[:, None]).any()

    def test_who_has_tried_everything_is_left_alone(self, spied):
        frame = numbers().assign(a=np.arange(2000) % 20)
        question, grids = lost_people(Rule(lambda x: -1.0 - x[:, 0]), ["a"], frame)
        searched(question, grids)
        ((_, _, _, chosen),) = spied
        assert not chosen.cheaper(torch.inf).any()

    def test_it_is_not_looked_for_where_nobody_wants_it(self, spied):
        question, grids = lost_people(Rule(lambda x: -torch.ones(len(x))), ["a"], numbers())
        searched(question, grids, Search(rescue=0))
        assert not spied

    def test_the_same_in_every_company(self, spied):
        question, grids = lost_people(Rule(lambda x: -1.0 - x.prod(1)), ["a", "b"], numbers())
        searched(question, grids)
        ((_, dense, _, together),) = spied
        for row in range(0, len(question), 9):
            searched(question.select(torch.tensor([row])), grids)
            alone = spied[-1][-1]
            torch.testing.assert_close(alone.values, together.values[dense.rows == row])

    def test_what_others_were_told_more_of_fills_up_and_teaches_nothing(self, spied):
        """Of a narrow range fewer values are to be had than of a wide one."""
        frame = numbers()
        model = Rule(lambda x: -1.0 - (x[:, 0] - 0.15).abs())
        people = frame.iloc[:30]
        schema = Schema.infer(frame, ranges={"a": (0, 30)})
        for act_on in (["a"], ["a", "b"]):
            question, grids = asked(model, schema, frame, people, act_on=act_on)
            searched(question, grids)
        (_, _, _, alone), (_, _, _, together) = spied
        fewer, more = (
            Heard.of(dense.rows * len(who.sets) + dense.sets, told, len(who.sets))
            for who, dense, told, _ in spied
        )
        assert fewer.values.shape[1] < more.values.shape[1]
        torch.testing.assert_close(alone.values, together.values[together.sets == 0])


class TestHeard:
    def test_each_value_once_and_in_order(self):
        """Packs fill up with their last value, and whole scans do not."""
        inf = torch.inf
        packs = Missed(
            torch.tensor([3, 3, 5]),
            torch.tensor([0, 0, 1]),
            torch.tensor([[0.5, 0.2], [0.9, 0.9], [0.1, 0.3]])[..., None],
            torch.tensor([[5.0, 2.0], [9.0, 9.0], [1.0, -inf]]),
        )
        others = Missed(
            torch.tensor([3, 4]),
            torch.tensor([1, 0]),
            torch.tensor([[0.7], [0.8]])[..., None],
            torch.tensor([[7.0], [8.0]]),
        )
        pairs = torch.tensor([3 * 2 + 0, 3 * 2 + 1, 5 * 2 + 1, 6 * 2 + 0])
        heard = Heard.of(pairs, [packs, others], 2)
        nan = torch.nan
        expected = [[0.2, 0.5, 0.9], [0.7, nan, nan], [0.1, nan, nan], [nan, nan, nan]]
        torch.testing.assert_close(heard.values, torch.tensor(expected), equal_nan=True)
        torch.testing.assert_close(
            heard.margin, 10.0 * torch.tensor(expected, dtype=torch.float64), equal_nan=True
        )

    def test_of_nothing_said(self):
        heard = Heard.of(torch.tensor([0, 1]), [], 1)
        assert heard.values.isnan().all()


def test_nor_does_filling_up_cost_a_lost_person_more():
    """Five values are left to try, and six might be."""
    frame = numbers(3000).assign(a=np.arange(3000) % 37)
    schema = Schema.infer(frame)
    counted = Counted(Rule(lambda x: -1.0 - x[:, 0]), Encoder(schema))
    dear = DEAR(counted, schema, act_on=["a"], search=Search.cheapest(groups=False)).fit(frame)
    for i in range(0, 37, 5):
        counted.calls.clear()
        assert not dear.generate(frame.iloc[[i]]).actions["success"].item()
        assert counted.rows <= 100


@pytest.mark.parametrize("seed", [3, 9, 11])
def test_a_black_box_is_asked_at_most_a_hundred_times_about_a_row_and_a_number(seed):
    """The factual and the answer are asked about too."""
    frame = crowd()
    frame["score"] = (frame["years"] * 7 + np.random.default_rng(seed).normal(0, 5, 3000)).round(2)
    schema = Schema.infer(frame)
    encoder = Encoder(schema)
    model = crooked(frame, encoder, seed)
    people = refused(model, encoder, frame)
    counted = Counted(model, encoder)
    dear = DEAR(counted, schema, act_on=["score"], search=Search.cheapest(groups=False)).fit(frame)
    soon, done = (
        each.generate(people).actions["success"]
        for each in (dear.with_search(Search.cheapest(groups=False, rescue=0)), dear)
    )
    assert soon.any() and not done.all()
    for who in (soon, done & ~soon, ~done):
        for i in np.flatnonzero(who)[:40]:
            counted.calls.clear()
            dear.generate(people.iloc[[i]])
            assert counted.rows <= 100
