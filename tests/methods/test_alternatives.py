"""Alternatives: several recourses per row on different sets, ordered by kind and cost."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Schema, Search
from dear_plugin.methods.dear import MOST
from dear_plugin.paper import Autoencoder, Design, Training
from dear_plugin.results.proposal import KINDS as EVERY_KIND

K = 10
KINDS = OTHER, PAIR, SAME = EVERY_KIND[1:]

WAYS = {
    "default": {},
    "alone": {"search": Search(max_reliance=0.0)},
    "cheapest": {"search": Search.cheapest()},
    "with support": {"search": Search(min_support=0.8)},
    "autoencoder": {"decoder": Autoencoder(Design(layers=(6, 3)), Training(epochs=5))},
    "groups": {"act_on": ["income", "debt", ("income", "debt"), ("town", "income")]},
}


def dear(study, **options):
    return DEAR(study.net, study.schema, **options).fit(study.frame)


QUICK = ("default", "cheapest")
MARKED = [pytest.param(way, marks=() if way in QUICK else pytest.mark.ci) for way in WAYS]


@pytest.fixture(scope="module", params=MARKED)
def answered(request, mixed):
    """A result and its alternatives, with several settings."""
    result = dear(mixed, **WAYS[request.param]).generate(mixed.refused(12))
    return result, result.alternatives(K)


@pytest.fixture(scope="module")
def usual(mixed):
    return dear(mixed)


@pytest.fixture(scope="module")
def table(usual, mixed):
    return usual.generate(mixed.refused(30)).alternatives(K)


def by_row(table):
    return [group for _, group in table.groupby("index", sort=False)]


class TestTheFirst:
    def test_it_is_the_answer_of_generate(self, answered, mixed):
        result, table = answered
        first = table[table["rank"] == 0].set_index("index")
        names = list(mixed.schema.names)
        pd.testing.assert_frame_equal(
            first[names], result.counterfactuals[names], check_names=False
        )
        same = ["success", "acted_on", "direct_cost", "indirect_cost", "cost", "score_after"]
        same += ["reason", "confidence", "reliance", "plausibility", "credible"]
        pd.testing.assert_frame_equal(first[same], result.actions[same], check_names=False)

    def test_a_smaller_k_gives_the_first_of_them(self, usual, mixed, table):
        few = usual.generate(mixed.refused(30)).alternatives(3)
        expected = table[table["rank"] < 3].reset_index(drop=True)
        # More pairs are examined for more answers.
        fixed = (few["kind"] == OTHER) & (expected["kind"] == OTHER)
        assert fixed.mean() > 0.4
        pd.testing.assert_frame_equal(few[fixed], expected[fixed])


class TestAllOfThem:
    def test_given_sets_come_first_then_pairs(self, answered):
        _, table = answered
        for own in by_row(table):
            kinds = own["kind"].map(KINDS.index).tolist()
            assert kinds == sorted(kinds)

    def test_of_other_sets_the_cheaper_comes_first(self, answered):
        _, table = answered
        for own in by_row(table):
            # An action that suffices alone may cost a quarter more.
            some = own[(own["rank"] > 0) & own["credible"] & (own["kind"] == OTHER)]
            assert (some["cost"] >= some["cost"].cummax() / 1.25 - 1e-5).all()

    def test_another_set_acts_on_other_features_than_those_before(self, answered):
        _, table = answered
        for own in by_row(table):
            assert own["acted_on"][own["kind"] != SAME].is_unique

    def test_the_reason_is_empty_where_it_is_credible_and_names_what_is_lacking(self, answered):
        result, table = answered
        reason, search = table["reason"], result.question.search
        search = search if search.has_criteria else Search()
        assert ((reason == "") == table["credible"]).all()
        notes = "by less than the required margin|no credible action was found"
        lacking = table[~reason.str.contains(notes)]
        for name, unmet in {
            "confidence": lacking["confidence"] < search.min_confidence - 1e-6,
            "reliance": lacking["reliance"] > search.max_reliance + 1e-6,
        }.items():
            assert lacking["reason"].str.contains(name).equals(unmet)
        named = "confidence|reliance|plausibility|support|does not help by itself"
        assert lacking.loc[~lacking["credible"], "reason"].str.contains(named).all()


@pytest.fixture(scope="module")
def frame():
    """Numbers, of which one follows the other, and a category."""
    rng = np.random.default_rng(0)
    x = rng.normal(50.0, 10.0, 3_000).round()
    follows = (x + rng.normal(0.0, 3.0, 3_000)).round()
    job = rng.choice(["cook", "guard", "nurse", "pilot"], 3_000)
    return pd.DataFrame({"x": x, "follows": follows, "job": job})


class TestOnTheSameFeatures:
    """Where there are fewer sets than answers asked for, there are other ways on the same sets."""

    def ways(self, frame, model, **options):
        query = frame[(model(frame) < 0.5) & frame["x"].between(45.0, 52.0)].head(10)
        method = DEAR(model, Schema.infer(frame), **options).fit(frame)
        return method.generate(query).alternatives(K)

    def test_another_level_of_a_category_is_another_way(self, frame):
        def model(rows):
            return np.isin(rows["job"], ["nurse", "pilot"]) * 0.8

        table = self.ways(frame, model, act_on=["job"])
        for own in by_row(table):
            assert own["kind"].tolist() == [OTHER, SAME]
            assert set(own["job"]) == {"nurse", "pilot"}

    def test_the_same_set_farther_is_another_way_if_it_is_enough_by_itself(self, frame):
        def model(rows):
            return 1.0 / (1.0 + np.exp(-(rows["x"] + rows["follows"] - 105.0)))

        table = self.ways(frame, model, act_on=["x"])
        assert (table["kind"] == SAME).any()
        for own in by_row(table[table["credible"]]):
            first, *others = own.itertuples()
            assert len(others) <= 1
            for other in others:
                assert first.reliance > 0.0 and other.reliance == 0.0
                assert other.x > first.x

    def test_a_number_is_no_further_answer_by_a_few_units(self, frame):
        table = self.ways(frame, lambda rows: 1.0 / (1.0 + np.exp(55.0 - rows["x"])), act_on=["x"])
        assert set(table["kind"]) == {OTHER}


class TestMany:
    """There are as many as there are sets, and memory is bounded."""

    def test_more_than_there_are_sets_is_no_more(self, loan):
        result = dear(loan, act_on=["income", "savings"]).generate(loan.refused(6))
        table = result.alternatives(MOST)
        # A pair counts only if it is cheaper than its parts.
        assert table["index"].value_counts().max() <= 3
        pd.testing.assert_frame_equal(result.alternatives(10_000), table)


def counted(pipeline):
    """Its probabilities, and the rows of each call."""
    calls = []
    return lambda frame: calls.append(len(frame)) or pipeline.predict_proba(frame), calls


class TestContinued:
    """Alternatives continue the search of the first answer."""

    def test_they_are_those_of_one_call(self, usual, mixed):
        rows = mixed.refused(8)
        first = usual.generate(rows)
        every = usual.generate(rows, k=4)
        assert every.rank.max() == 3
        kept = every[every.rank == 0]
        pd.testing.assert_frame_equal(kept.counterfactuals, first.counterfactuals)
        pd.testing.assert_frame_equal(kept.actions[[*first.actions]], first.actions)
        assert kept.changes.to_csv() == first.changes.to_csv()
        pd.testing.assert_frame_equal(every.alternatives(4), first.alternatives(4))
        pd.testing.assert_frame_equal(every.alternatives(2), first.alternatives(2))
        pd.testing.assert_frame_equal(every.alternatives(6), first.alternatives(6))

    def test_what_was_tried_is_in_no_pickle_and_in_no_selection(self, usual, mixed):
        result = usual.generate(mixed.refused(8))
        table = result.alternatives(3)
        assert result.search._firsts
        read = pickle.loads(pickle.dumps(result))
        for other in (read, result.select(torch.arange(8))):
            assert not other.search._firsts
            pd.testing.assert_frame_equal(other.alternatives(3), table)

    def test_rows_without_an_answer_are_not_searched_again(self, mixed):
        model, calls = counted(mixed.pipeline)
        search = Search(min_plausibility=1.0, min_confidence=1.0)
        dear = DEAR(model, mixed.schema, search=search).fit(mixed.frame)
        actions = dear.generate(mixed.refused(40)).actions
        rows = mixed.refused(40)[~actions["credible"] & actions["success"]].head(1)
        result = dear.generate(rows)
        first = len(calls)
        result.alternatives(4)
        assert len(calls) - first <= 8

    def test_a_second_call_for_as_many_asks_the_model_of_nothing_more(self, mixed):
        model, calls = counted(mixed.pipeline)
        result = DEAR(model, mixed.schema).fit(mixed.frame).generate(mixed.refused(3))
        result.alternatives(3)
        spent = len(calls)
        result.alternatives(3)
        # The alternatives are written and scored again.
        assert len(calls) - spent <= 3
