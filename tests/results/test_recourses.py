"""Recourses: what every person could change, what would move along, and what it costs."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Constraints, Encoder, Schema, Search
from dear_plugin.baselines import NearestAccepted
from dear_plugin.errors import InputError
from dear_plugin.results.describe import LACKING

COLUMNS = [
    "success",
    "reason",
    "acted_on",
    "direct_cost",
    "indirect_cost",
    "cost",
    "suppressed_cost",
    "score_before",
    "score_after",
]
WORTH = ["confidence", "reliance", "plausibility", "credible"]


@pytest.fixture(scope="module")
def people(mixed) -> pd.DataFrame:
    return mixed.refused(12).set_axis([f"p{i}" for i in range(12)])


@pytest.fixture(scope="module")
def result(fitted, people):
    return fitted.generate(people)


class TestTheTables:
    def test_actions_have_the_columns_of_the_contract(self, result):
        assert list(result.actions) == COLUMNS + WORTH

    def test_there_is_one_row_a_person(self, result, people):
        assert len(result) == 12
        assert result.actions.index.equals(people.index)

    def test_the_question_is_kept(self, result, people):
        pd.testing.assert_frame_equal(result.factuals, people)

    def test_scores_rise_to_the_decision(self, result):
        assert (result.actions["score_before"] <= 0.5).all()
        assert (result.actions["score_after"] > 0.5).all()

    def test_scores_are_the_probability_of_the_wanted_class(self, result, mixed):
        before = mixed.net(mixed.encoder.encode(result.factuals)).sigmoid()[:, 0]
        assert result.actions["score_before"].to_numpy() == pytest.approx(before.tolist())

    def test_what_was_acted_on_differs_from_before(self, result):
        for label, name in result.actions["acted_on"].items():
            for part in name.split(" + "):
                before, after = result.factuals[part], result.counterfactuals[part]
                assert before[label] != after[label]

    def test_it_is_frozen(self, result):
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.proposal = None

    def test_its_name_says_how_it_went(self, result):
        cost = result.actions["cost"].median()
        assert repr(result) == f"Recourses(12 of 12 rows solved, median cost {cost:.3g})"


class TestSuppressed:
    def test_what_the_decoder_expected_and_the_call_forbade_is_told(self, fitted, people):
        free = fitted.generate(people, within=Constraints(act_on=["income"]))
        others = [n for n in people if n != "income"]
        alone = fitted.generate(people, within=Constraints(act_on=["income"], frozen=others))
        assert (alone.actions["indirect_cost"] == 0.0).all()
        moved = free.actions["indirect_cost"] > 0.05
        assert (alone.actions["suppressed_cost"][moved] > 0.0).all()

    def test_nothing_is_suppressed_where_everything_may_move(self, mixed):
        schema = Schema.infer(mixed.frame)
        dear = DEAR(mixed.net, schema).fit(mixed.frame)
        inside = mixed.refused(30)
        actions = dear.generate(inside).actions
        assert actions["suppressed_cost"].median() == pytest.approx(0.0, abs=0.02)


class TestDescribe:
    def test_a_person_is_named_by_the_label(self, result):
        words = result.describe("p3")
        assert words == result.describe_row(3)
        assert words.startswith(("raise", "lower", "change"))

    def test_the_words_are_the_change(self, result, people):
        label = result.actions.index[result.actions["acted_on"] == "income"][0]
        before, after = people["income"][label], result.counterfactuals["income"][label]
        assert f"raise income from {before:g} to {after:g}" in result.describe(label)

    def test_an_accepted_person_has_nothing_to_change(self, fitted, mixed):
        accepted = mixed.frame.drop(mixed.refused(len(mixed.frame)).index).iloc[:1]
        words = fitted.generate(accepted).describe(accepted.index[0])
        assert words == "nothing to change: the decision is already the wanted one"

    def test_a_failure_says_why(self, fitted, people):
        words = fitted.generate(people, within=Constraints(act_on=[])).describe("p0")
        assert words == "no recourse found: nothing admissible to act on"

    def test_a_label_of_a_two_level_index_is_a_tuple(self, fitted, people):
        index = pd.MultiIndex.from_product([["a", "b"], range(6)])
        result = fitted.generate(people.set_axis(index))
        assert result.describe(("b", 2)) == result.describe_row(8)

    def test_two_people_with_a_two_level_index_are_told_apart(self, fitted, people):
        index = pd.MultiIndex.from_tuples([("a", 1), ("b", 1)])
        result = fitted.generate(people.iloc[:2].set_axis(index))
        assert result.describe(("b", 1)) == result.describe_row(1)

    @pytest.mark.parametrize("label", [np.nan, None, pd.NaT], ids=str)
    def test_a_missing_label_names_whom_it_belongs_to(self, fitted, people, label):
        index = pd.Index(["a", label, "b"], dtype=object)
        result = fitted.generate(people.iloc[:3].set_axis(index))
        assert result.describe(label) == result.describe_row(1)

    def test_not_a_number_among_numbers(self, fitted, people):
        result = fitted.generate(people.iloc[:2].set_axis([1.0, np.nan]))
        assert result.describe(np.nan) == result.describe_row(1)

    @pytest.mark.parametrize("label", [["p0"], slice(0, 1), {}, 3], ids=str)
    def test_what_is_no_label_names_nobody(self, result, label):
        with pytest.raises(InputError, match="names 0 rows"):
            result.describe(label)

    @pytest.mark.parametrize(("label", "count"), [("nobody", 0), ("twin", 2)])
    def test_a_label_must_name_one_person(self, fitted, people, label, count):
        result = fitted.generate(people.iloc[:3].set_axis(["twin", "twin", "other"]))
        with pytest.raises(InputError, match=f"'{label}' names {count} rows"):
            result.describe(label)


class TestHowSureItIs:
    """What `describe` says beside the change: whether it is enough, and how sure that is."""

    @pytest.fixture(scope="class")
    @classmethod
    def many(cls, fitted, mixed):
        return fitted.generate(mixed.refused(60))

    def test_an_answer_says_whether_the_action_is_enough(self, many):
        follows = (many.changed & ~many.proposal.direct).any(1).numpy()
        told, reliance = many.describe()[follows], many.actions["reliance"][follows]
        alone = told.str.contains("This alone is enough.", regex=False)
        counts = told.str.contains("This counts on what is expected to follow (", regex=False)
        done = many.actions["success"][follows]
        assert (alone == (done & (reliance == 0.0))).all()
        assert (counts == (done & (reliance > 0.0))).all()
        assert alone.any() and counts.any()

    def test_it_says_in_how_many_redraws_the_answer_holds(self, many):
        told = many.describe().str.extract(r"still hold (\d+) times out of (\d+)").dropna()
        shares = told[0].astype(float) / told[1].astype(float)
        assert len(shares)
        np.testing.assert_allclose(shares, many.actions["confidence"][shares.index])

    def test_nothing_is_said_of_what_could_follow_where_nothing_can(self, fitted, people):
        others = [name for name in people if name != "income"]
        alone = fitted.generate(people, within=Constraints(act_on=["income"], frozen=others))
        words = alone.describe()[alone.actions["credible"]]
        assert len(words)
        assert not words.str.contains("expected|hold|enough").any()

    def test_everybody_is_told_as_one_by_one(self, many):
        everybody = many.describe()
        assert everybody.index.equals(many.factuals.index)
        assert everybody.tolist() == [many.describe_row(i) for i in range(len(many))]

    def test_an_empty_result_has_nothing_to_tell(self, fitted, mixed):
        assert fitted.generate(mixed.frame.iloc[:0]).describe().empty

    def test_rows_that_cannot_be_read_stay_in_their_place(self, fitted, people):
        strange = people.assign(town=["Atlantis", *people["town"].iloc[1:]])
        told = fitted.generate(strange).describe()
        assert "Atlantis" in told.iloc[0]
        assert told.iloc[1:].tolist() == fitted.generate(people).describe().iloc[1:].tolist()

    def test_an_answer_that_is_not_credible_says_so_first(self, fitted, people):
        strict = Search(min_confidence=1.0, min_plausibility=1.0)
        result = fitted.with_search(strict).generate(people)
        poor = result.actions["success"] & ~result.actions["credible"]
        assert poor.any()
        assert result.actions["reason"][poor].str.startswith(LACKING).all()
        words = result.describe()[poor]
        assert words.str.startswith("No credible action was found; the nearest: ").all()
        assert words.str.contains("is asked for).", regex=False).all()

    def test_the_cheapest_is_called_what_it_is(self, fitted, people):
        result = fitted.with_search(Search.cheapest()).generate(people)
        words, credible = result.describe(), result.actions["credible"]
        assert not credible.all()
        assert (words.str.startswith("Not credible: ") == ~credible).all()


class TestRanges:
    """What is uncertain is told as a range over redraws of the decoder."""

    def test_it_is_the_10th_to_the_90th_percentile_and_holds_the_answer(self, fitted, mixed):
        result = fitted.generate(mixed.refused(8), within=Constraints(act_on=["income"]))
        spread = result.hooks.ranges(torch.arange(8))
        moves = fitted._moves_of((1,))
        j, income = 0, torch.full((8,), moves.place((1,)))
        there = moves.redraws.decode(
            result.x, result.proposal.rows[:, [1]], income, torch.arange(spread.count)
        )
        case = result.hooks.ranges.case
        steps = case.feasible.project(result.x, there, torch.arange(8))[..., j] - result.x[:, [j]]
        own = (result.proposal.rows - result.x)[:, j]
        ends = torch.tensor(np.quantile(steps, 0.1, axis=1, method="lower"))
        np.testing.assert_allclose(spread.low[:, j], torch.minimum(ends, own), atol=1e-6)
        ends = torch.tensor(np.quantile(steps, 0.9, axis=1, method="higher"))
        np.testing.assert_allclose(spread.high[:, j], torch.maximum(ends, own), atol=1e-6)

    def test_what_somebody_gets_does_not_depend_on_the_others(self, fitted, mixed):
        result = fitted.generate(mixed.refused(20))
        every = result.hooks.ranges(torch.arange(20))
        for at in (3, 17):
            one = result.hooks.ranges(torch.tensor([at]))
            for name in ("low", "high", "moved"):
                assert torch.equal(getattr(one, name)[0], getattr(every, name)[at])

    def test_a_method_without_redraws_has_none(self, mixed):
        rival = NearestAccepted(mixed.net, mixed.schema).fit(mixed.frame)
        result = rival.generate(mixed.refused(5))
        spread = result.hooks.ranges(torch.arange(5))
        assert spread.count == 0
        assert torch.equal(spread.low, spread.high)
        assert not result.describe().str.contains("hold|enough|counts on").any()


class TestAnActionOfSizeZero:
    """It is never advice: nobody is told to do nothing, whatever else moves."""

    @pytest.fixture
    def result(self, fitted, people):
        one = fitted.generate(people.iloc[:1])
        proposal = dataclasses.replace(
            one.proposal, direct=one.proposal.direct & (one.proposal.rows == one.x), reasons=[""]
        )
        return dataclasses.replace(one, proposal=proposal)

    def test_it_is_told_as_nothing(self, result):
        told = result.describe_row(0)
        assert told == "nothing changes: no action is left once the row is rounded"

    def test_it_is_no_alternative(self, fitted, people):
        result = fitted.generate(people)
        ranks = list(result.hooks.alternatives(3))
        assert all(bool(rank.acts[rank.outcome["success"].to_numpy()].all()) for rank in ranks)
        table = result.alternatives(3)
        assert (table["acted_on"] != "").all()


class TestAlternatives:
    @pytest.fixture(scope="class")
    @classmethod
    def table(cls, result):
        return result.alternatives(4)

    def test_it_is_long_by_person_and_rank(self, table, result):
        head = ["index", "rank", *COLUMNS, "kind", *WORTH]
        assert list(table) == [*head, *result.factuals]
        assert table["index"].drop_duplicates().tolist() == list(result.factuals.index)
        assert (table.groupby("index")["rank"].first() == 0).all()

    def test_another_set_each(self, table):
        others = table[table["kind"] == "another set"]
        assert not others.duplicated(["index", "acted_on"]).any()

    def test_within_a_kind_the_cheapest_comes_first_behind_the_answer(self, table):
        for _, own in table[table["rank"] > 0].groupby(["index", "kind"]):
            assert own["cost"].is_monotonic_increasing

    def test_the_answer_is_the_first_of_the_alternatives(self, table, result):
        first = table[table["rank"] == 0].set_index("index")
        solved = first["kind"] == "another set"
        assert (first["cost"] == result.actions["cost"])[solved].all()

    def test_when_the_sets_run_out_larger_actions_follow(self, mixed, people):
        dear = DEAR(mixed.net, mixed.schema, act_on=["income"], search=Search.cheapest())
        table = dear.fit(mixed.frame).generate(people).alternatives(3)
        assert set(table.loc[table["rank"] == 0, "kind"]) == {"another set"}
        assert set(table.loc[table["rank"] > 0, "kind"]) == {"larger action"}
        assert table.groupby("index")["direct_cost"].is_monotonic_increasing.all()

    def test_pairs_come_before_larger_actions(self, mixed, people):
        dear = DEAR(mixed.net, mixed.schema, act_on=["income", "debt"]).fit(mixed.frame)
        kinds = dear.generate(people).alternatives(4)["kind"]
        assert {"another set", "pair of features"} <= set(kinds)

    def test_constraints_of_the_call_hold_for_them_too(self, fitted, people):
        result = fitted.generate(people, within=Constraints(frozen=["debt", "job"]))
        table = result.alternatives(3)
        assert not table["acted_on"].str.contains("debt|job").any()
        assert (table["debt"].to_numpy() == people["debt"][table["index"]].to_numpy()).all()

    def test_who_cannot_be_helped_keeps_one_row(self, fitted, people):
        result = fitted.generate(people, within=Constraints(act_on=[]))
        table = result.alternatives(3)
        assert len(table) == len(people)
        assert not table["success"].any()

    @pytest.mark.parametrize("name", ["rank", "index", "cost", "success", "kind"])
    def test_a_feature_may_have_the_name_of_one_of_our_columns(self, mixed, people, name):
        renamed = {"debt": name}
        schema = Schema.infer(mixed.frame.rename(columns=renamed))
        assert Encoder(schema).d == mixed.encoder.d
        dear = DEAR(mixed.net, schema, search=Search(groups=False))
        result = dear.fit(mixed.frame.rename(columns=renamed)).generate(
            people.rename(columns=renamed)
        )
        table = result.alternatives(2)
        assert f"{name}_" in table
        assert table.columns.is_unique
        assert table[name].between(*schema.features[2].bounds).all()

    def test_two_features_may_have_our_names(self, mixed, people):
        ours = {"debt": "index", "income": "index_"}
        schema = Schema.infer(mixed.frame.rename(columns=ours))
        dear = DEAR(mixed.net, schema, search=Search(groups=False))
        result = dear.fit(mixed.frame.rename(columns=ours)).generate(people.rename(columns=ours))
        table = result.alternatives(2)
        assert table.columns.is_unique
        assert table["index__"].drop_duplicates().tolist() == list(people.index)

    @pytest.mark.parametrize("k", ["3", 2.5, None, True])
    def test_how_many_is_a_whole_number(self, result, k):
        with pytest.raises(InputError, match=f"k must be a whole number.* {k!r} came"):
            result.alternatives(k)

    @pytest.mark.parametrize("k", [0, -1])
    def test_there_is_at_least_one(self, result, k):
        with pytest.raises(InputError, match=f"at least 1, {k} came"):
            result.alternatives(k)


def test_what_becomes_of_the_frame_that_was_asked_about_does_not_matter(fitted, mixed):
    people = mixed.refused(4).copy()
    result = fitted.generate(people)
    told, others = result.describe_row(0), fitted.generate(people).alternatives(2)
    people[["age", "income"]] = 20
    assert result.describe_row(0) == told
    pd.testing.assert_frame_equal(result.alternatives(2), others)
