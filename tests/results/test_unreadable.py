"""Rows that cannot be read are returned unchanged, with a reason; an empty frame is valid."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Constraints, Target
from dear_plugin.errors import InputError, SettingError
from dear_plugin.rivals import NearestAccepted


@pytest.fixture(params=[DEAR, NearestAccepted], scope="module")
def method(request, mixed):
    return request.param(mixed.pipeline, mixed.schema).fit(mixed.frame)


@pytest.fixture
def query(mixed) -> pd.DataFrame:
    frame = mixed.refused(12).copy()
    frame.iloc[3, frame.columns.get_loc("town")] = "Atlantis"
    frame.iloc[7, frame.columns.get_loc("income")] = np.nan
    return frame


class TestUnreadableRows:
    def test_they_are_returned_unchanged_with_the_reason(self, method, query):
        result = method.generate(query)
        bad = query.iloc[[3, 7]]
        pd.testing.assert_frame_equal(result.counterfactuals.iloc[[3, 7]], bad)
        actions = result.actions.iloc[[3, 7]]
        assert not actions["success"].any()
        assert "column 'town' has 'Atlantis', expected one of" in actions["reason"].iloc[0]
        assert "column 'income' has a missing value" in actions["reason"].iloc[1]
        assert (actions["cost"] == 0.0).all()
        assert actions["score_after"].isna().all()
        assert actions[["confidence", "reliance", "plausibility"]].isna().all(axis=None)
        assert not actions["credible"].any()

    def test_support_descriptions_and_alternatives_include_them(self, method, query):
        result = method.generate(query)
        assert result.support.isna().tolist() == [i in (3, 7) for i in range(12)]
        assert "Atlantis" in result.describe(query.index[3])
        first = result.alternatives(2).query("rank == 0")
        assert first["index"].tolist() == query.index.tolist()

    def test_a_selection_keeps_them_with_the_answers_of_the_others(self, method, query):
        result = method.generate(query)
        labels = query.index[[7, 2, 5]]
        some, table = result[labels], result.alternatives(2)
        pd.testing.assert_frame_equal(some.actions, result.actions.loc[labels])
        pd.testing.assert_frame_equal(some.direct, result.direct.loc[labels])
        pd.testing.assert_series_equal(some.support, result.support[labels])
        assert some.describe().equals(result.describe()[labels])
        parts = [table[table["index"] == label] for label in labels]
        expected = pd.concat(parts).reset_index(drop=True)
        pd.testing.assert_frame_equal(some.alternatives(2), expected)

    def test_a_value_for_each_row_belongs_to_that_row(self, method, query):
        ages = query["age"].to_numpy(dtype=float)
        within = Constraints(ranges={"age": (ages, ages)}, frozen=[["debt"]] * 12)
        result = method.generate(query, Target.of_class([1] * 12), within=within)
        pd.testing.assert_series_equal(result.counterfactuals["age"], query["age"])

    def test_on_error_raise_rejects_the_frame(self, method, query):
        with pytest.raises(
            InputError, match=r"'income' has missing.*'town' has values never seen"
        ):
            method.generate(query, on_error="raise")
        with pytest.raises(SettingError, match="on_error"):
            method.generate(query, on_error="ignore")


class TestEmptyFrame:
    def test_it_gives_an_empty_result_of_the_same_types(self, method, query):
        empty, some = method.generate(query.iloc[:0]), method.generate(query)
        assert len(empty) == 0
        pd.testing.assert_frame_equal(empty.counterfactuals, query.iloc[:0])
        assert empty.actions.dtypes.equals(some.actions.dtypes)
        assert len(empty.support) == 0
        assert empty.describe().empty
        assert len(empty.alternatives(3)) == len(empty.obstacles) == len(empty.changes) == 0
        assert list(empty.changes) == list(some.changes)
