"""Recourses: the action of each row, its indirect changes and its cost."""

import re

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Constraints, Schema, Search
from dear_plugin.errors import InputError
from dear_plugin.problem.feasible import Reason
from dear_plugin.rivals import NearestAccepted
from tests.rounding import near

COLUMNS = [
    *("success", "reason", "acted_on", "direct_cost", "indirect_cost", "cost", "suppressed_cost"),
    *("score_before", "score_after", "confidence", "reliance", "plausibility", "consistency"),
    *("agreement", "credible"),
]


@pytest.fixture(scope="module")
def query(mixed) -> pd.DataFrame:
    return mixed.refused(12).set_axis([f"p{i}" for i in range(12)])


@pytest.fixture(scope="module")
def result(fitted, query):
    return fitted.generate(query)


class TestTheTables:
    def test_actions_have_the_columns_of_the_contract(self, result):
        assert list(result.actions) == COLUMNS

    def test_scores_are_the_probability_of_the_wanted_class(self, result, mixed):
        before = mixed.net(mixed.encoder.encode(result.factuals)).sigmoid()[:, 0]
        assert result.actions["score_before"].to_numpy() == near(before.tolist())

    def test_repr_has_the_successes_and_the_median_cost(self, result):
        cost = result.actions["cost"].median()
        assert repr(result) == f"Recourses(12 of 12 rows solved, median cost {cost:.3g})"


class TestSuppressed:
    def test_expected_changes_that_the_call_excludes_are_counted(self, fitted, query):
        free = fitted.generate(query, within=Constraints(act_on=["income"]))
        others = [n for n in query if n != "income"]
        alone = fitted.generate(query, within=Constraints(act_on=["income"], frozen=others))
        assert (alone.actions["indirect_cost"] == 0.0).all()
        moved = free.actions["indirect_cost"] > 0.05
        assert (alone.actions["suppressed_cost"][moved] > 0.0).all()


class TestSelection:
    def test_a_label_selects_its_row(self, result):
        one = result["p3"]
        assert len(one) == 1
        pd.testing.assert_frame_equal(one.actions, result.actions.loc[["p3"]])
        pd.testing.assert_frame_equal(one.counterfactuals, result.counterfactuals.loc[["p3"]])
        pd.testing.assert_series_equal(one.support, result.support.loc[["p3"]])
        assert one.describe("p3") == result.describe("p3")

    @pytest.mark.parametrize("as_type", [pd.Index, np.array, pd.Series], ids=str)
    def test_labels_may_be_an_index_or_an_array(self, result, as_type):
        labels = ["p7", "p2"]
        pd.testing.assert_frame_equal(result[as_type(labels)].actions, result[labels].actions)

    def test_a_mask_selects_rows(self, result):
        mask = result.actions["acted_on"] == result.actions["acted_on"].iloc[0]
        assert result[mask].factuals.index.equals(result.factuals.index[mask])

    def test_an_empty_list_selects_no_row(self, result):
        assert len(result[[]]) == 0

    @pytest.mark.parametrize("labels", ["p12", ["p3", "p12"]])
    def test_an_unknown_label_is_an_error(self, result, labels):
        with pytest.raises(InputError, match="got 'p12', expected a label"):
            result[labels]


class TestDescribe:
    @pytest.mark.parametrize(
        ("index", "label", "row"),
        [
            (pd.MultiIndex.from_product([["a", "b"], range(2)]), ("b", 0), 2),
            (pd.MultiIndex.from_tuples([("a", 1), ("b", 1)]), ("b", 1), 1),
            (pd.Index(["a", np.nan, "b"], dtype=object), np.nan, 1),
            (pd.Index(["a", None, "b"], dtype=object), None, 1),
            (pd.Index(["a", pd.NaT, "b"], dtype=object), pd.NaT, 1),
            (pd.Index([1.0, np.nan]), np.nan, 1),
        ],
        ids=["two levels", "both levels", "nan", "None", "NaT", "nan among numbers"],
    )
    def test_a_label_of_any_index_names_its_row(self, fitted, query, index, label, row):
        result = fitted.generate(query.iloc[: len(index)].set_axis(index))
        assert result.describe(label) == result.describe_row(row)

    @pytest.mark.parametrize(
        ("label", "told"),
        [
            ("unknown", "0 rows, expected exactly one; the labels are 'twin', 'twin', 'other'"),
            ("twin", "2 rows, expected exactly one"),
        ],
    )
    def test_a_label_must_name_one_row(self, fitted, query, label, told):
        result = fitted.generate(query.iloc[:3].set_axis(["twin", "twin", "other"]))
        with pytest.raises(InputError, match=f"'{label}' names {told}$"):
            result.describe(label)

    def test_of_many_labels_an_error_names_five(self, fitted, query):
        with pytest.raises(InputError, match=r"the labels are 0, 1, 2, 3, 4, \.\.\.$"):
            fitted.generate(query.iloc[:6].reset_index(drop=True)).describe(-1)


class TestHowSureItIs:
    """The sentences of `describe` after the change: reliance and confidence."""

    @pytest.fixture(scope="class")
    @classmethod
    def many(cls, fitted, mixed):
        return fitted.generate(mixed.refused(60))

    def test_it_has_the_number_of_resamples_in_which_the_answer_holds(self, many):
        texts = many.describe().str.extract(r"succeeds in (\d+) of (\d+) resamples").dropna()
        shares = texts[0].astype(float) / texts[1].astype(float)
        assert len(shares)
        np.testing.assert_allclose(shares, many.actions["confidence"][shares.index])

    def test_all_rows_are_described_as_one_by_one(self, many):
        whole = many.describe()
        assert whole.index.equals(many.factuals.index)
        assert whole.tolist() == [many.describe_row(i) for i in range(len(many))]

    def test_an_answer_that_is_not_credible_says_so_first(self, fitted, query):
        strict = Search(min_confidence=1.0, min_plausibility=1.0)
        result = fitted.with_search(strict).generate(query)
        poor = result.actions["success"] & ~result.actions["credible"]
        assert poor.any()
        assert result.actions["reason"][poor].str.startswith(Reason.LACKING.start).all()
        words = result.describe()[poor]
        assert words.str.startswith("Weak answer: ").all()
        assert words.str.contains("is required)", regex=False).all()


class TestRanges:
    """What follows has two ranges: of the mean of people like this, and of one person."""

    def test_they_end_where_the_values_of_a_column_end(self):
        """ "Expect the number of transactions (69) to fall by up to 84"."""
        rng, n = np.random.default_rng(0), 400
        pay = rng.lognormal(3, 0.4, n).round(1)
        many = rng.poisson(np.minimum(pay**1.2, 200))
        frame = pd.DataFrame({"pay": pay, "count": np.where(rng.random(n) < 0.5, many, 5)})
        share = 1 / (1 + np.exp((20 - pay) / 5 - rng.normal(0, 2, n)))
        frame = frame.assign(share=share.round(2))
        model = lambda r: 1 / (1 + np.exp(10 - r["pay"] / 3))  # noqa: E731
        schema = Schema.infer(frame, increasing=["count"])
        result = DEAR(model, schema, act_on=["pay"]).fit(frame)
        own = result.generate(frame[model(frame) < 0.5].head(150)).changes
        for name, lines in own[own["kind"] == "indirect"].groupby("feature"):
            old, new = (lines[end].astype(float) for end in ("old", "new"))
            least = old if name == "count" else frame[name].min()
            for end in ("", "_one"):
                low, high = (old + lines[f"{each}{end}"] for each in ("low", "high"))
                assert (low >= least - 1e-9).all() and (high <= frame[name].max() + 1e-9).all()
                assert (low <= new + 1e-9).all() and (high >= new - 1e-9).all()

    def test_they_are_those_of_the_resamples_of_confidence_and_hold_the_answer(
        self, fitted, mixed
    ):
        result = fitted.generate(mixed.refused(8), within=Constraints(act_on=["income"]))
        j, ranges = 0, result.worth
        values, own = result.proposal.rows[:, [1]], (result.proposal.rows - result.x)[:, j]
        there = fitted.decoders.resample((1,), result.x, values, torch.arange(17, 33))
        there = result.question.case.feasible.project(result.x, there, torch.arange(8))
        every, own = there[..., j] - result.x[:, [j]], own.double()
        middle = every.mean(1)
        far = np.quantile((every - middle[:, None]).abs().numpy(), 0.834, axis=1, method="weibull")
        outer = np.quantile(every.numpy(), [0.025, 0.975], axis=1, method="weibull")
        middle, own = middle.numpy(), own.numpy()
        expected = {
            "low": np.minimum(middle - far, own),
            "high": np.maximum(middle + far, own),
            "low_one": np.minimum(outer[0], own),
            "high_one": np.maximum(outer[1], own),
        }
        for name, ends in expected.items():
            np.testing.assert_allclose(getattr(ranges, name)[:, j], ends, atol=1e-4)

    def test_that_of_the_mean_is_narrower_where_people_differ(self, fitted, mixed):
        ranges = fitted.generate(mixed.refused(40)).worth
        of_one, of_all = ranges.high_one - ranges.low_one, ranges.high - ranges.low
        assert float((of_one - of_all).mean()) > 0.0
        assert float((of_one >= of_all - 1e-9).double().mean()) > 0.95

    def test_a_category_has_the_number_of_resamples_in_which_it_changes(self, fitted, mixed):
        result = fitted.generate(mixed.refused(60))
        worth = result.worth
        follows = result.changed & ~result.proposal.direct & ~result.encoder.amounts(result.x)
        follows &= torch.tensor(result.actions["acted_on"].ne("").tolist())[:, None]
        times, said = worth.moved[follows.numpy()], " ".join(result.describe())
        expected = [n for n in times.tolist() if n < worth.count]
        found = map(int, re.findall(r"\((\d+) of 16 resamples\)", said))
        assert sorted(found) == sorted(expected) != []

    def test_a_method_without_resamples_has_none(self, mixed):
        baseline = NearestAccepted(mixed.net, mixed.schema).fit(mixed.frame)
        result = baseline.generate(mixed.refused(5))
        ranges = result.worth
        assert ranges.count == 0
        assert torch.equal(ranges.low, ranges.high)
        assert torch.equal(ranges.low_one, ranges.high_one)
        assert not result.describe().str.contains("succeeds|enough|needs").any()


class TestAnActionOfSizeZero:
    """It is no recourse, whatever changes indirectly."""

    def test_it_is_no_alternative(self, fitted, query):
        every = fitted.generate(query, k=3)
        assert every.actions.query("success")["acted_on"].ne("").all()
        table = every.alternatives(3)
        assert (table["acted_on"] != "").all()


class TestAlternatives:
    @pytest.fixture(scope="class")
    @classmethod
    def table(cls, result):
        return result.alternatives(4)

    def test_constraints_of_the_call_hold_for_them_too(self, fitted, query):
        result = fitted.generate(query, within=Constraints(frozen=["debt", "job"]))
        table = result.alternatives(3)
        assert not table["acted_on"].str.contains("debt|job").any()
        assert (table["debt"].to_numpy() == query["debt"][table["index"]].to_numpy()).all()

    @pytest.mark.parametrize("k", ["3", 2.5, None, True, 0, -1])
    def test_how_many_is_a_whole_number_from_one(self, result, k):
        with pytest.raises(InputError, match=f"k must be a whole number from 1, got {k!r}"):
            result.alternatives(k)


def test_changes_of_the_query_frame_do_not_change_the_result(fitted, mixed):
    query = mixed.refused(4).copy()
    result = fitted.generate(query)
    text, others = result.describe_row(0), fitted.generate(query).alternatives(2)
    query[["age", "income"]] = 20
    assert result.describe_row(0) == text
    pd.testing.assert_frame_equal(result.alternatives(2), others)
