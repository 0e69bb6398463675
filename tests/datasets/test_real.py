"""The publishers' files: run if DEAR_DATA_HOME is their folder."""

from __future__ import annotations

import os
from functools import partial

import numpy as np
import pytest

from dear_plugin.datasets import load_adult, load_compas, load_give_me_some_credit
from dear_plugin.errors import InputError

pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(
        not os.environ.get("DEAR_DATA_HOME"), reason="DEAR_DATA_HOME names no folder of data"
    ),
]

# Age, survey weights, past events and protected features.
NOT_ACTIONABLE = {
    "age",
    "fnlwgt",
    "race",
    "sex",
    "native-country",
    "two_year_recid",
    "priors_count",
    "c_charge_degree",
    "NumberOfTime30-59DaysPastDueNotWorse",
    "NumberOfTime60-89DaysPastDueNotWorse",
    "NumberOfTimes90DaysLate",
    "NumberOfDependents",
}


@pytest.fixture(scope="module")
def adult():
    return load_adult()


@pytest.fixture(scope="module")
def adult_full():
    return load_adult(categories="full")


@pytest.fixture(scope="module")
def compas():
    return load_compas()


@pytest.fixture(scope="module")
def credit():
    return load_give_me_some_credit()


@pytest.fixture(params=["adult", "adult_full", "compas", "credit"])
def data(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize(
    ("fixture", "rows", "features", "positive"),
    [
        ("adult", 45_222, 13, 11_208),
        ("adult_full", 45_222, 13, 11_208),
        ("compas", 6_172, 7, 5_028),
        ("credit", 115_527, 10, 107_686),
    ],
)
def test_sizes(request, fixture, rows, features, positive):
    data = request.getfixturevalue(fixture)
    assert data.frame.shape == (rows, features + 1)
    assert data.outcome.sum() == positive


def test_frames_are_clean(data):
    assert not data.frame.isna().any().any()
    assert data.frame.columns.is_unique
    assert (data.frame.index == np.arange(len(data.frame))).all()
    assert data.frame.columns[-1] == data.target
    assert set(data.outcome) == {0, 1}


def test_features_that_cannot_be_changed_are_not_actionable(data):
    assert data.act_on
    assert not NOT_ACTIONABLE & set(data.act_on)
    assert not set(data.protected) - set(data.immutable)


def test_tiers_order_all_features_but_the_survey_weight(data):
    named = [name for tier in data.tiers for name in tier]
    assert len(set(named)) == len(named)
    assert set(data.features) - set(named) <= {"fnlwgt"}


def test_binary_adult_groups_the_levels_of_full_adult(adult, adult_full):
    married = adult_full.frame["marital-status"].isin(["Married-civ-spouse", "Married-AF-spouse"])
    assert (adult.frame["marital-status"] == "Married").equals(married.rename("marital-status"))
    american = adult_full.frame["native-country"] == "United-States"
    assert (adult.frame["native-country"] == "United-States").equals(american)
    shared = ["age", "fnlwgt", "capital-gain", "capital-loss", "hours-per-week", "income"]
    assert adult.frame[shared].equals(adult_full.frame[shared])


def test_full_adult_keeps_every_level(adult_full):
    levels = {name: adult_full.frame[name].nunique() for name in adult_full.categorical}
    assert levels == {
        "workclass": 7,
        "education": 16,
        "marital-status": 7,
        "occupation": 14,
        "relationship": 6,
        "race": 5,
        "sex": 2,
        "native-country": 41,
    }


def test_adult_rejects_other_categories():
    with pytest.raises(InputError, match="did you mean 'full'"):
        load_adult(categories="ful")


@pytest.mark.parametrize(
    ("load", "fixture", "rows"),
    [
        (load_adult, "adult", 48_842),
        (partial(load_adult, "full"), "adult_full", 48_842),
        (load_give_me_some_credit, "credit", 144_850),
    ],
)
def test_without_missing_values_and_codes_a_kept_table_is_the_default_one(
    request, load, fixture, rows
):
    kept, dropped = load(missing="keep"), request.getfixturevalue(fixture)
    assert len(kept.frame) == rows
    whole = kept.frame.dropna()
    if fixture == "credit":
        whole = whole[~whole.isin(kept.special).any(axis=1)]
    assert whole.reset_index(drop=True).astype(dropped.frame.dtypes).equals(dropped.frame)


def test_codes_lie_beyond_all_other_values():
    for data, codes, most in (
        (load_adult(missing="keep"), (99_999,), 41_310),
        (load_give_me_some_credit(missing="keep"), (96, 98), 19),
    ):
        for name, special in data.special.items():
            values = data.frame[name]
            assert special == codes and values.isin(codes).any()
            assert values[~values.isin(codes)].max() <= most
