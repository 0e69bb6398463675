"""Alternatives: several recourses per row on different sets, ordered by kind and cost."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Constraints, Schema, Search
from dear_plugin.benchmark.meter import Meter, in_fresh_process
from dear_plugin.decoders import Autoencoder, Design, Training
from dear_plugin.methods.dear import MOST
from dear_plugin.results.proposal import KINDS as EVERY_KIND

K = 10
KINDS = OTHER, PAIR = EVERY_KIND[1:]

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
        pd.testing.assert_frame_equal(first[same], result.actions[same], check_names=False)

    def test_one_alternative_is_the_answer_itself(self, answered):
        result, table = answered
        pd.testing.assert_frame_equal(
            result.alternatives(1), table[table["rank"] == 0].reset_index(drop=True)
        )

    def test_a_smaller_k_gives_the_first_of_them(self, usual, mixed, table):
        few = usual.generate(mixed.refused(30)).alternatives(3)
        expected = table[table["rank"] < 3].reset_index(drop=True)
        # More pairs are examined for more answers.
        fixed = (few["kind"] == OTHER) & (expected["kind"] == OTHER)
        assert fixed.mean() > 0.4
        pd.testing.assert_frame_equal(few[fixed], expected[fixed])


class TestAllOfThem:
    def test_ranks_count_from_zero(self, answered):
        _, table = answered
        for own in by_row(table):
            assert own["rank"].tolist() == list(range(len(own)))

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
            assert own["acted_on"].is_unique

    def test_a_pair_acts_on_two_features(self, table):
        pairs = table[table["kind"] == PAIR]
        assert len(pairs)
        assert pairs["acted_on"].str.count(r" \+ ").isin([0, 1]).all()

    def test_the_reason_is_empty_where_it_is_credible_and_names_what_is_lacking(self, answered):
        result, table = answered
        reason, search = table["reason"], result.question.method.search
        search = search if search.has_criteria else Search()
        assert ((reason == "") == table["credible"]).all()
        notes = "by less than the required margin|no credible action was found"
        lacking = table[~reason.str.contains(notes)]
        for name, unmet in {
            "confidence": lacking["confidence"] < search.min_confidence - 1e-6,
            "reliance": lacking["reliance"] > search.max_reliance + 1e-6,
        }.items():
            assert lacking["reason"].str.contains(name).equals(unmet)
        named = "confidence|reliance|plausibility|support"
        assert lacking.loc[~lacking["credible"], "reason"].str.contains(named).all()


class TestOneFeatureToVary:
    """There is one set, and so one answer."""

    def test_of_the_method(self, loan):
        only = dear(loan, act_on=["income"], search=Search.cheapest())
        table = only.generate(loan.refused(20)).alternatives(10)
        assert set(table["acted_on"]) == {"income"} and table["index"].is_unique

    def test_of_the_call(self, loan):
        within, every = Constraints(act_on=["income"]), dear(loan, search=Search.cheapest())
        table = every.generate(loan.refused(20), within=within).alternatives(10)
        assert set(table["acted_on"]) == {"income"} and table["index"].is_unique


class TestWhenThereAreFew:
    def test_a_row_without_recourse_has_one_line_and_a_reason(self, usual, mixed):
        query = mixed.refused(5)
        table = usual.generate(query, within=Constraints(act_on=["member"])).alternatives(4)
        failed = table[~table["success"]]
        assert len(failed)
        assert (failed["rank"] == 0).all()
        assert failed["reason"].str.len().gt(0).all()
        assert failed["index"].is_unique

    def test_pairs_are_left_out_where_groups_are_not_wanted(self, mixed):
        found = dear(mixed, search=Search(max_features=1)).generate(mixed.refused(10))
        table = found.alternatives(K)
        assert PAIR not in set(table["kind"])
        assert not table["acted_on"].str.contains(r"\+").any()

    def test_a_row_that_needs_a_pair_gets_it_first(self, mixed):
        """A row that passes neither bar needs both features."""
        encoder = mixed.encoder
        a, b = (encoder.starts[j] for j in mixed.schema.index(["income", "debt"]))

        class Both(torch.nn.Module):
            def forward(self, x):
                return torch.minimum(x[:, a] - 0.7, 0.05 - x[:, b])[:, None]

        query = mixed.frame[(mixed.frame["income"] < 40) & (mixed.frame["debt"] > 4)].iloc[:5]
        method = DEAR(Both(), mixed.schema, act_on=["income", "debt", "age"]).fit(mixed.frame)
        table = method.generate(query).alternatives(3)
        assert table["success"].all()
        assert set(table["acted_on"]) == {"income + debt"}


class TestIndex:
    def answers(self, method, query):
        return method.generate(query).alternatives(3)

    def test_labels_may_repeat(self, usual, mixed):
        query = mixed.refused(4)
        twice = query.set_axis([7, 7, 8, 7])
        plain, table = self.answers(usual, query), self.answers(usual, twice)
        names = list(dict(zip(query.index, twice.index, strict=True)).values())
        count = plain.groupby("index", sort=False).size().tolist()
        assert table["index"].tolist() == np.repeat(names, count).tolist()
        pd.testing.assert_frame_equal(
            plain.drop(columns="index"), table.drop(columns="index"), check_exact=True
        )


class TestMany:
    """There are as many as there are sets, and memory is bounded."""

    def test_more_than_there_are_sets_is_no_more(self, loan):
        result = dear(loan, act_on=["income", "savings"]).generate(loan.refused(6))
        table = result.alternatives(MOST)
        # A pair counts only if it is cheaper than its parts.
        assert table["index"].value_counts().max() <= 3
        pd.testing.assert_frame_equal(result.alternatives(10_000), table)

    def test_there_are_fewer_where_no_more_exist(self, mixed):
        """Each set has one answer."""
        method = dear(mixed, act_on=["owner", "member", "job"], search=Search(max_features=1))
        table = method.generate(mixed.refused(40)).alternatives(1000)
        assert table["index"].value_counts().max() <= 3
        assert not table[["index", *mixed.schema.names]].duplicated().any()

    @pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux forgets a peak")
    @pytest.mark.slow
    def test_they_fit_into_memory(self):
        """Memory is bounded by the size of a chunk."""
        grown, count = in_fresh_process(_grown, 40, 40, 1000)
        assert count > 40 * 30
        assert grown < 128


def _grown(features, count, k):
    """The peak of memory, MiB, of a search for many alternatives in many features."""
    rows = np.random.default_rng(0).normal(size=(1500, features)).round(3)
    frame = pd.DataFrame(rows, columns=[f"x{j}" for j in range(features)])
    schema = Schema.infer(frame)
    net = torch.nn.Linear(features, 1)
    torch.nn.init.constant_(net.weight, 1.0)
    torch.nn.init.constant_(net.bias, -0.5 * features)
    method = DEAR(net, schema, search=Search(max_features=1)).fit(frame)
    with torch.no_grad():
        margin = net(method.encoder.encode(frame))[:, 0]
    near = (-margin).masked_fill(margin > 0, torch.inf).argsort()[:count]
    result = method.generate(frame.iloc[near.numpy()])
    with Meter() as meter:
        table = result.alternatives(k)
    return meter.peak_mib, len(table)
