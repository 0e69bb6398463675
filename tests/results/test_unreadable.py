"""Rows that cannot be read come back as they are, with a reason; an empty frame is no error."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from dear_plugin import DEAR, Constraints, Schema, Target
from dear_plugin.baselines import NearestAccepted
from dear_plugin.datasets import load_adult
from dear_plugin.errors import InputError, SettingError


@pytest.fixture(params=[DEAR, NearestAccepted], scope="module")
def method(request, mixed):
    return request.param(mixed.pipeline, mixed.schema).fit(mixed.frame)


@pytest.fixture
def asked(mixed) -> pd.DataFrame:
    frame = mixed.refused(12).copy()
    frame.iloc[3, frame.columns.get_loc("town")] = "Atlantis"
    frame.iloc[7, frame.columns.get_loc("income")] = np.nan
    return frame


class TestUnreadableRows:
    def test_they_come_back_as_they_are_with_the_reason(self, method, asked):
        result = method.generate(asked)
        bad = asked.iloc[[3, 7]]
        pd.testing.assert_frame_equal(result.counterfactuals.iloc[[3, 7]], bad)
        actions = result.actions.iloc[[3, 7]]
        assert not actions["success"].any()
        assert "column 'town' has 'Atlantis', expected one of" in actions["reason"].iloc[0]
        assert "column 'income' has a missing value" in actions["reason"].iloc[1]
        assert (actions["cost"] == 0.0).all()
        assert actions["score_after"].isna().all()

    def test_the_others_are_answered_as_if_alone(self, method, asked):
        rest = [i for i in range(12) if i not in (3, 7)]
        result, alone = method.generate(asked), method.generate(asked.iloc[rest])
        pd.testing.assert_frame_equal(result.counterfactuals.iloc[rest], alone.counterfactuals)
        pd.testing.assert_frame_equal(result.actions.iloc[rest], alone.actions)
        assert result.counterfactuals.dtypes.equals(asked.dtypes)

    def test_support_descriptions_and_alternatives_know_them(self, method, asked):
        result = method.generate(asked)
        assert result.support.isna().tolist() == [i in (3, 7) for i in range(12)]
        assert "Atlantis" in result.describe(asked.index[3])
        first = result.alternatives(2).query("rank == 0")
        assert first["index"].tolist() == asked.index.tolist()

    def test_a_value_for_each_row_belongs_to_that_row(self, method, asked):
        ages = asked["age"].to_numpy(dtype=float)
        within = Constraints(ranges={"age": (ages, ages)}, frozen=[["debt"]] * 12)
        result = method.generate(asked, Target.of_class([1] * 12), within=within)
        pd.testing.assert_series_equal(result.counterfactuals["age"], asked["age"])

    def test_the_whole_frame_is_refused_on_demand(self, method, asked):
        with pytest.raises(
            InputError, match=r"'income' has missing.*'town' has values never seen"
        ):
            method.generate(asked, on_error="raise")
        with pytest.raises(SettingError, match="on_error"):
            method.generate(asked, on_error="ignore")

    def test_no_row_may_be_readable(self, method, asked):
        result = method.generate(asked.iloc[[3, 7]])
        assert len(result) == 2
        assert not result.actions["success"].any()

    def test_the_result_pickles(self, method, asked):
        result = pickle.loads(pickle.dumps(method.generate(asked)))
        assert result.support.notna().sum() == 10


class TestEmptyFrame:
    def test_it_gives_an_empty_result_of_the_same_types(self, method, asked):
        empty, some = method.generate(asked.iloc[:0]), method.generate(asked)
        assert len(empty) == 0
        pd.testing.assert_frame_equal(empty.counterfactuals, asked.iloc[:0])
        assert empty.actions.dtypes.equals(some.actions.dtypes)
        assert len(empty.support) == 0
        assert len(empty.alternatives(3)) == 0


@pytest.mark.real_data
def test_all_categories_of_adult_pass_diagnose_on_their_own_split(data_home):
    data = load_adult(categories="full", data_home=data_home)
    train, test = train_test_split(data.features.iloc[:6000], random_state=0)
    dear = DEAR(lambda f: np.full(len(f), 0.5), Schema.infer(train)).fit(train)
    assert 0.0 < dear.diagnose(test).fidelity <= 1.2
