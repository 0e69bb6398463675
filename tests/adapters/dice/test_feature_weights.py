"""`feature_weights`: what DiCE's own "gradient" method makes of them, as costs of the engine."""

import dice_ml
import numpy as np
import pandas as pd
import pytest
from raiutils.exceptions import UserConfigValidationException

from dear_dice.interface import Interface
from dear_plugin import Constraints, Search
from tests.adapters.dice.asked import examples, logged


@pytest.fixture(scope="module")
def cheapest(make):
    return make(search=Search.cheapest())


@pytest.fixture
def gradient(loan, torch_model):
    """DiCE's "gradient" method, with its weights of encoded columns by name."""
    theirs = dice_ml.Dice(loan.data, torch_model, method="gradient")

    def weights(given):
        theirs.do_loss_initializations("hinge_loss", "avg_dist", given)
        columns = theirs.data_interface.ohe_encoded_feature_names
        return theirs, dict(zip(columns, theirs.feature_weights_list.tolist(), strict=True))

    return weights


def found_by(explainer, query, **arguments):
    """The counterfactuals and actions of a query."""
    found = examples(explainer, query, 1, **arguments)
    return [pd.concat([getattr(e, name) for e in found]) for name in ("final_cfs_df", "actions")]


def units_of(schema):
    """DEAR's unit of cost of each feature in DiCE's, the range from the least to the greatest."""
    return {feature.name: feature.unit_of_cost / feature.width for feature in schema}


GIVEN = {
    "inverse_mad": "inverse_mad",
    "some": {"savings": 3, "age": 0.5},
    "one of a category": {"income": 2.5, "housing": 1},
    "none": {},
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_weights_are_those_of_dice(cheapest, gradient, loan, given):
    _, theirs = gradient(given)
    ours = cheapest._interface.costs(given)
    assert list(ours) and set(ours) == set(loan.features)
    units = units_of(cheapest.dear.schema)
    for name in loan.continuous:
        assert ours[name] == pytest.approx(theirs[name] * units[name], rel=1e-6)
    # Of a category DiCE weighs each column, 1 by default.
    for name in loan.words:
        assert ours[name] == 1.0
        assert {w for column, w in theirs.items() if column.startswith(f"{name}_")} == {1.0}


def test_weights_of_columns_with_missing_values_are_those_of_the_others():
    """A deviation was NaN, which DiCE takes for a weight and the engine for an error."""
    numbers = {"own": [0.0, 1.0, 2.0, 6.0, 10.0] * 20, "mode": [3.0] * 90 + [4.0] * 10}
    full = pd.DataFrame({**numbers, "y": [0, 1] * 50})
    gaps = pd.concat([full, full.head(30).assign(own=np.nan)], ignore_index=True)
    data = dice_ml.Data(dataframe=gaps, continuous_features=[*numbers], outcome_name="y")
    interface = Interface(data)
    units = units_of(interface.schema)
    assert interface.costs("inverse_mad") == pytest.approx(
        {"own": 5.0 * units["own"], "mode": 1.0 * units["mode"]}
    )


def test_the_direct_cost_is_the_distance_that_dice_weighs(cheapest, gradient, loan, refused):
    theirs, _ = gradient("inverse_mad")
    vary = ["duration"]
    found, actions = found_by(
        cheapest, refused, desired_class=1, features_to_vary=vary, feature_weights="inverse_mad"
    )
    before, after = (loan.vectors(loan.data, f[loan.features.columns]) for f in (refused, found))
    distances = [float(theirs.compute_dist(a, b)) for a, b in zip(after, before, strict=True)]
    assert (actions["direct_cost"] > 0.1).all()
    assert actions["direct_cost"].to_numpy() == pytest.approx(distances, rel=1e-4)


def test_a_dict_is_the_constructor_s_costs_and_the_engine_s(cheapest, make, refused):
    weights = {"loan_amount": 20.0, "duration": 0.5}
    found, actions = found_by(cheapest, refused, desired_class=1, feature_weights=weights)
    units = units_of(cheapest.dear.schema)
    costs = {name: weights.get(name, 1.0) * units[name] for name in units}
    other = make(search=Search.cheapest(), costs=costs)
    pd.testing.assert_frame_equal(found, found_by(other, refused, desired_class=1)[0])
    engine = cheapest.dear.generate(refused, 1, within=Constraints(costs=costs))
    assert actions["direct_cost"].tolist() == engine.actions["direct_cost"].tolist()
    # DiCE's weights are of all features: 1 of those that a dict does not name.
    again = found_by(other, refused, desired_class=1, feature_weights={})[0]
    plain = make(search=Search.cheapest(), costs=units)
    pd.testing.assert_frame_equal(again, found_by(plain, refused, desired_class=1)[0])
    assert not found.equals(again)


def test_equal_is_1_of_each_and_none_is_not_ignored(cheapest, refused, caplog):
    plain, equal, mad = (
        found_by(cheapest, refused, desired_class=1, feature_weights=given)[1]
        for given in ({}, "equal", "inverse_mad")
    )
    pd.testing.assert_frame_equal(plain, equal)
    assert not np.allclose(plain["direct_cost"], mad["direct_cost"])
    assert not [text for text in logged(caplog) if "ignores" in text]


WRONG = {
    "an unknown feature": ({"saving": 2.0}, "by the name of each feature"),
    "a column of the encoding": ({"housing_own": 2.0}, "by the name of each feature"),
    "the outcome": ({"approved": 2.0}, "by the name of each feature"),
    "another word": ("mad", "should be 'inverse_mad', 'equal' or"),
    "a list": ([1.0, 2.0], "should be 'inverse_mad', 'equal' or"),
}


@pytest.mark.parametrize(("given", "message"), WRONG.values(), ids=WRONG)
def test_what_is_neither_is_refused(cheapest, refused, given, message):
    with pytest.raises(UserConfigValidationException, match=message):
        cheapest.generate_counterfactuals(refused, 1, feature_weights=given)


@pytest.mark.parametrize("weight", [0, -1.0, float("nan"), float("inf"), "2", True])
def test_weights_are_finite_and_above_0(cheapest, refused, weight):
    with pytest.raises(
        ValueError, match=r"feature_weights\['savings'\] must be a finite number above 0"
    ):
        cheapest.generate_counterfactuals(refused, 1, feature_weights={"savings": weight})
