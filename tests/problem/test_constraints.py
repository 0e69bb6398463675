"""Constraints of one call, and the admissible rows A_d under them."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Constraints, Encoder, Schema
from dear_plugin.errors import ConstraintError
from dear_plugin.problem.constraints import admissible

FACTUALS = pd.DataFrame(
    {
        "age": [20, 40, 60, 30],
        "pay": [10.5, 20.25, 30.0, 50.0],
        "owner": [0, 1, 0, 1],
        "job": ["cook", "nurse", "judge", "cook"],
        "sex": ["f", "m", "f", "m"],
    }
)
SCHEMA = Schema.infer(
    FACTUALS, immutable=["sex"], increasing=["age"], ranges={"pay": (12.0, 99.0)}
)
AGE, PAY, OWNER, JOB, SEX = range(5)


def limits(within=None, factuals=FACTUALS, schema=SCHEMA):
    encoder = Encoder(schema)
    rows, held = encoder.rows(factuals), encoder.held(factuals)
    return admissible(within, rows, encoder, held).limits


def project(moved, within=None):
    """The admissible rows nearest to rows with moved features, {column: value}."""
    encoder = Encoder(SCHEMA)
    x = encoder.rows(FACTUALS)
    moved_rows = x.clone()
    for j, value in moved.items():
        moved_rows[:, j] = torch.as_tensor(value)
    held = encoder.held(FACTUALS)
    every = torch.arange(len(x))
    found = admissible(within, x, encoder, held).project(x, moved_rows[:, None], every)
    return found[:, 0], x


def same_for_all(*names):
    return [list(names)] * 4


BOUNDS = {
    "the schema's": ({}, PAY, 12.0, 50.0),
    "up from its own value": ({}, AGE, [20.0, 40.0, 60.0, 30.0], 60.0),
    "an open end": ({"pay": (None, 40.0)}, PAY, 12.0, 40.0),
    "an end for each row": (
        {"pay": (None, np.array([20, 25]).repeat(2))},
        PAY,
        12.0,
        [20.0, 20.0, 25.0, 25.0],
    ),
    "a mapping for each row": (
        [{"pay": (15, 20)}, {}, None, {"age": (35, 36)}],
        PAY,
        [15.0, 12.0, 12.0, 12.0],
        [20.0, 50.0, 50.0, 50.0],
    ),
    "never wider than the schema": ({"pay": (0, 1000)}, PAY, 12.0, 50.0),
    "cents inwards": ({"pay": (12.001, 40.009)}, PAY, 12.01, 40.0),
    "years inwards": ({"age": (20.2, 70)}, AGE, [21.0, 40.0, 60.0, 30.0], 60.0),
}
NOT_ACTED = {
    "immutable": ({}, same_for_all("sex")),
    "frozen": ({"frozen": ["pay"]}, same_for_all("pay", "sex")),
    "frozen by row": (
        {"frozen": [["pay"], None, ["age", "job"], []]},
        [["pay", "sex"], ["sex"], ["age", "job", "sex"], ["sex"]],
    ),
    "not among act_on": ({"act_on": ["pay"]}, same_for_all("age", "owner", "job", "sex")),
    "an empty act_on": ({"act_on": []}, same_for_all(*FACTUALS)),
}


class TestActions:
    @pytest.mark.parametrize("what", BOUNDS)
    def test_they_stay_inside_the_bounds(self, what):
        ranges, feature, low, high = BOUNDS[what]
        within_limits = limits(Constraints(ranges=ranges))
        assert (within_limits.low[:, feature] == torch.tensor(low, dtype=torch.float64)).all()
        assert (within_limits.high[:, feature] == torch.tensor(high, dtype=torch.float64)).all()

    def test_a_decreasing_feature_ends_at_its_own_value(self):
        within_limits = limits(schema=SCHEMA.replace("age", direction=-1))
        assert within_limits.high[:, AGE].tolist() == [20.0, 40.0, 60.0, 30.0]

    def test_integer_columns_have_whole_bounds(self):
        schema = SCHEMA.replace("pay", limits=(12.5, 49.5))
        integers = limits(factuals=FACTUALS.astype({"pay": int}), schema=schema)
        assert integers.low[:, PAY].tolist() == [13.0] * 4
        assert integers.high[:, PAY].tolist() == [49.0] * 4

    @pytest.mark.parametrize("what", NOT_ACTED)
    def test_they_leave_out(self, what):
        within, expected = NOT_ACTED[what]
        held = limits(Constraints(**within)).not_actionable
        assert [FACTUALS.columns[row].tolist() for row in held.numpy()] == expected

    def test_act_on_does_not_freeze_the_other_features(self):
        within_limits = limits(Constraints(act_on=["pay"]))
        assert (within_limits.floor[:, AGE] < within_limits.ceiling[:, AGE])[:2].all()

    def test_sets_need_actionable_features_only(self):
        sets = ActionSets.of(SCHEMA, ["age", "pay", ("age", "pay")])
        admitted = limits(Constraints(frozen=[["age"], [], [], []])).may_act(sets)
        assert admitted[0].tolist() == [False, True, False]
        assert admitted[1].all()

    def test_values_are_snapped_to_whole_steps_inside_the_bounds(self):
        rows = limits().low[:, None].clone()
        rows[..., AGE] = 40.52
        snapped = limits().snap_rows(rows, torch.arange(4))
        assert snapped[:, 0, AGE].tolist() == [41.0, 41.0, 60.0, 41.0]

    @pytest.mark.parametrize("empty", [(60.2, 60.8), (1e6, 1e7), (-9.0, -8.0)])
    def test_a_range_without_a_value_freezes_the_feature(self, empty):
        within_limits = limits(Constraints(ranges={"age": empty}))
        assert (within_limits.low > within_limits.high)[:, AGE].all()
        assert torch.equal(within_limits.floor[:, AGE], within_limits.ceiling[:, AGE])

    @pytest.mark.parametrize(
        ("moved", "after"),
        [
            (45.0, [40.0, 40.0, 40.0, 50.0]),
            (40.0, [40.0, 40.0, 40.0, 40.0]),
            (35.0, [35.0, 35.0, 35.0, 35.0]),
            (24.0, [10.5, 20.25, 25.0, 25.0]),
        ],
    )
    def test_a_factual_outside_a_range_stays_or_moves_inside(self, moved, after):
        """Of 10.5, 20.25, 30 and 50 only the third lies inside."""
        reached, x = project({PAY: moved}, Constraints(ranges={"pay": (25, 40)}))
        assert reached[:, PAY].tolist() == after
        stays = torch.tensor(after).double() == torch.tensor(FACTUALS["pay"])
        assert torch.equal(reached[stays, PAY], x[stays, PAY])

    @pytest.mark.parametrize(
        ("categories", "feature", "admitted"),
        [
            ({"job": ["judge", "nurse"]}, JOB, [[False, True, True]] * 4),
            ({"owner": [0]}, OWNER, [[True, False, False]] * 4),
            (
                [{"job": "judge"}, {}, None, {"job": ["cook"]}],
                JOB,
                [[False, True, False], [True] * 3, [True] * 3, [True, False, False]],
            ),
        ],
        ids=["of three", "of two", "by row"],
    )
    def test_only_allowed_categories_may_be_taken(self, categories, feature, admitted):
        within_limits = limits(Constraints(categories=categories))
        every, rows = torch.arange(3.0).expand(4, 3), torch.arange(4)
        found = within_limits.admits(every, torch.full((4,), feature), rows)
        assert found.tolist() == admitted


class TestProjection:
    def test_changes_are_whole_steps(self):
        out, _ = project({AGE: 59.996, PAY: 30.2512})
        assert out[:2, AGE].tolist() == [60.0, 60.0]
        assert out[:, PAY].tolist() == [30.25] * 4

    def test_a_row_that_does_not_move_is_itself_bit_for_bit(self):
        out, x = project({})
        assert torch.equal(out, x)

    def test_what_is_frozen_or_immutable_is_itself_bit_for_bit(self):
        out, x = project({AGE: 60.0, SEX: 0.0}, Constraints(frozen=["age"]))
        assert torch.equal(out[:, [AGE, SEX]], x[:, [AGE, SEX]])

    def test_directions_and_ranges_clip(self):
        out, x = project({AGE: 20.0, PAY: 89.5})
        assert torch.equal(out[:, AGE], x[:, AGE])
        assert out[:, PAY].tolist() == [50.0] * 4

    def test_a_category_that_is_not_allowed_is_not_taken(self):
        judge = Constraints(categories={"job": ["judge"]})
        to_nurse, x = project({JOB: 2.0}, judge)
        to_judge, _ = project({JOB: 1.0}, judge)
        assert torch.equal(to_nurse[:, JOB], x[:, JOB])
        assert (to_judge[:, JOB] == 1.0).all()


class TestErrors:
    @pytest.mark.parametrize(
        ("within", "match"),
        [
            ({"frozen": ["agee"]}, r"frozen: unknown features: 'agee' \(did you mean 'age'"),
            ({"frozen": [["agee"], [], [], []]}, r"frozen: unknown features: 'agee'"),
            ({"act_on": ["wealth"]}, r"act_on: unknown features: 'wealth'"),
            ({"ranges": {"wealth": (0, 1)}}, r"ranges: unknown features: 'wealth'"),
            ({"categories": {"wealth": ["a"]}}, r"categories: unknown features: 'wealth'"),
            ({"frozen": "age"}, r"frozen: expected a list of names.*got 'age'"),
            ({"frozen": 3}, r"frozen: expected a list of names.*got 3"),
            ({"frozen": [["age"]]}, r"a list of 4, one per row"),
            ({"frozen": ["age", None, None, None]}, r"a list of 4, one per row"),
            ({"act_on": [["age"]] * 5}, r"act_on: .*a list of 4"),
            ({"ranges": [{"age": (1, 2)}]}, r"ranges: expected a mapping.*a list of 4"),
            ({"ranges": ["age"] * 4}, r"ranges: expected a mapping"),
            ({"ranges": {"job": (0, 1)}}, r"ranges\['job'\].*use categories="),
            ({"categories": [{}] * 3}, r"categories: .*a list of 4"),
            ({"categories": {"age": [20]}}, r"categories\['age'\].*use ranges="),
            (
                {"categories": {"job": ["cok"]}},
                r"categories\['job'\].*'cok' \(did you mean 'cook'",
            ),
            ({"categories": {"job": []}}, r"categories\['job'\]: .*'cook'.*got \[\]"),
            ({"categories": {"owner": 7}}, r"categories\['owner'\].*unknown values: 7"),
        ],
    )
    def test_what_does_not_fit_the_schema_or_the_rows(self, within, match):
        with pytest.raises(ConstraintError, match=match):
            limits(Constraints(**within))

    @pytest.mark.parametrize(
        ("pair", "match"),
        [
            ((40, 30), "low must not exceed high"),
            ((float("nan"), 30), "low must not exceed high"),
            ((1, 2, 3), r"expected \(low, high\), got \(1, 2, 3\)"),
            (None, r"expected \(low, high\), got None"),
            (5, r"expected \(low, high\), got 5"),
            ((np.array([1, 2]), 50), "a number for all rows, or a list of 4"),
            ((np.array([1, 2]), np.array([1, 2, 3])), "a number for all rows, or a list of 4"),
            (("a", "b"), "an end is a number, .*got 'a'"),
            ((pd.NA, 3), "an end is a number, .*got <NA>"),
            ((0, [1, 2, "x", 4]), "an end is a number, .*got 4 values"),
            ((0, 10**400), "an end is a number"),
        ],
    )
    def test_invalid_ranges(self, pair, match):
        with pytest.raises(ConstraintError, match=rf"ranges\['age'\]: .*{match}"):
            limits(Constraints(ranges={"age": pair}))
