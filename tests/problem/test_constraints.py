"""Constraints of one call, and the admissible rows A_d that they leave."""

import numpy as np
import pandas as pd
import pytest
import torch

from dear_plugin import ActionSets, Constraints, Encoder, Schema
from dear_plugin.errors import ConstraintError
from dear_plugin.problem.constraints import feasible_set

PEOPLE = pd.DataFrame(
    {
        "age": [20, 40, 60, 30],
        "pay": [10.5, 20.25, 30.0, 50.0],
        "owner": [0, 1, 0, 1],
        "job": ["cook", "nurse", "judge", "cook"],
        "sex": ["f", "m", "f", "m"],
    }
)
SCHEMA = Schema.infer(PEOPLE, immutable=["sex"], increasing=["age"], ranges={"pay": (12.0, 99.0)})
AGE, PAY, OWNER, JOB, SEX = range(5)


def box(within=None, people=PEOPLE, schema=SCHEMA):
    encoder = Encoder(schema)
    return feasible_set(within, encoder.rows(people), encoder, encoder.units.resolutions(people))


def user(column: torch.Tensor, j: int) -> list[float]:
    """Scaled ends in the user's units."""
    feature = SCHEMA.features[j]
    return (feature.bounds[0] + column.double() * feature.width).round(decimals=3).tolist()


def project(moved, within=None):
    """The admissible row nearest to each person's `moved` features, {column: scaled value}."""
    encoder = Encoder(SCHEMA)
    x = encoder.rows(PEOPLE)
    there = x.clone()
    for j, value in moved.items():
        there[:, j] = torch.as_tensor(value)
    return box(within).project(x, there[:, None], torch.arange(len(x)))[:, 0], x


class TestOneCall:
    """What is drawn up once holds for every call; what a call asks for holds for that call."""

    @pytest.mark.parametrize("count", [1, 4])
    @pytest.mark.parametrize(
        "within",
        [
            Constraints(ranges={"pay": (20.0, 30.0)}),
            Constraints(categories={"owner": [0]}),
            Constraints(frozen=["age"]),
            Constraints(act_on=["pay"]),
        ],
        ids=["ranges", "categories", "frozen", "act_on"],
    )
    def test_leaves_nothing_behind(self, within, count):
        people = PEOPLE.iloc[:count]
        before, asked, after = (box(each, people) for each in (None, within, None))
        for name in ("low", "high", "floor", "ceiling", "barred"):
            torch.testing.assert_close(getattr(before, name), getattr(after, name))
        torch.testing.assert_close(before.ends, after.ends)
        names = ("low", "high", "floor", "barred")
        assert not all(torch.equal(getattr(before, n), getattr(asked, n)) for n in names)

    @pytest.mark.parametrize("count", [1, 4])
    def test_whoever_writes_on_what_it_hands_out_writes_on_nothing_else(self, count):
        people = PEOPLE.iloc[:count]
        before, spoilt = box(people=people), box(people=people)
        for drawn in (
            spoilt.low,
            spoilt.high,
            spoilt.not_actionable,
            spoilt.ends[0][:1],
            spoilt.steps,
        ):
            drawn.zero_()
        after = box(people=people)
        for name in ("low", "high", "barred", "steps", "ends"):
            torch.testing.assert_close(getattr(after, name), getattr(before, name))

    def test_columns_of_other_dtypes_have_ends_of_their_own(self):
        schema = SCHEMA.replace("pay", limits=(12.5, 49.5))
        before, whole, after = (
            box(people=people, schema=schema)
            for people in (PEOPLE, PEOPLE.astype({"pay": int}), PEOPLE)
        )
        assert user(whole.low[:, PAY], PAY) == [13.0] * 4
        assert user(whole.high[:, PAY], PAY) == [49.0] * 4
        for drawn in (before, after):
            assert user(drawn.low[:, PAY], PAY) == [12.5] * 4
            assert user(drawn.high[:, PAY], PAY) == [49.5] * 4


class TestActions:
    def test_they_stay_inside_the_observed_bounds_and_the_ranges(self):
        drawn = box()
        assert user(drawn.low[:, PAY], PAY) == [12.0] * 4
        assert user(drawn.high[:, PAY], PAY) == [50.0] * 4

    def test_an_increasing_feature_starts_at_its_own_value(self):
        assert user(box().low[:, AGE], AGE) == [20.0, 40.0, 60.0, 30.0]

    def test_a_decreasing_feature_ends_at_its_own_value(self):
        drawn = box(schema=SCHEMA.replace("age", direction=-1))
        assert user(drawn.high[:, AGE], AGE) == [20.0, 40.0, 60.0, 30.0]

    def test_immutable_features_are_barred_for_everyone(self):
        assert box().not_actionable[:, SEX].all()
        assert not box().not_actionable[:, :SEX].any()

    def test_only_sets_without_a_barred_feature_may_be_acted_on(self):
        sets = ActionSets.of(SCHEMA, ["age", "pay", ("age", "pay")])
        may = box(Constraints(frozen=[["age"], [], [], []])).may_act(sets)
        assert may[0].tolist() == [False, True, False]
        assert may[1].all()

    def test_values_are_snapped_to_whole_steps_inside_the_ends(self):
        rows, feature = torch.arange(4), torch.full((4,), AGE)
        snapped = box().snap(torch.full((4, 1), 0.513), feature, rows)
        assert user(snapped[:, 0], AGE) == [41.0, 41.0, 60.0, 41.0]


class TestWhatOneCallAdds:
    def test_frozen_for_all_rows_or_one_list_per_row(self):
        everyone = box(Constraints(frozen=["pay"]))
        assert everyone.not_actionable[:, PAY].all()
        own = box(Constraints(frozen=[["pay"], None, ["age", "job"], []]))
        assert own.not_actionable[:, PAY].tolist() == [True, False, False, False]
        assert own.not_actionable[2].tolist() == [True, False, False, True, True]

    def test_act_on_bars_the_others_without_freezing_them(self):
        drawn = box(Constraints(act_on=["pay"]))
        assert drawn.not_actionable[0].tolist() == [True, False, True, True, True]
        assert (drawn.floor[:, AGE] < drawn.ceiling[:, AGE])[:2].all()

    def test_an_empty_act_on_bars_everything(self):
        assert box(Constraints(act_on=[])).not_actionable.all()

    def test_a_range_for_all_rows_with_open_ends(self):
        drawn = box(Constraints(ranges={"pay": (None, 40.0)}))
        assert user(drawn.low[:, PAY], PAY) == [12.0] * 4
        assert user(drawn.high[:, PAY], PAY) == [40.0] * 4

    def test_an_end_may_be_one_value_per_row(self):
        drawn = box(Constraints(ranges={"pay": (None, np.array([20, 25, 30, 35]))}))
        assert user(drawn.high[:, PAY], PAY) == [20.0, 25.0, 30.0, 35.0]

    def test_or_the_ranges_one_mapping_per_row(self):
        drawn = box(Constraints(ranges=[{"pay": (15, 20)}, {}, None, {"age": (35, 36)}]))
        assert user(drawn.high[:, PAY], PAY) == [20.0, 50.0, 50.0, 50.0]
        assert user(drawn.low[:, AGE], AGE) == [20.0, 40.0, 60.0, 35.0]

    def test_a_range_never_widens_what_the_schema_allows(self):
        drawn = box(Constraints(ranges={"pay": (0, 1000)}))
        assert user(drawn.low[:, PAY], PAY) == [12.0] * 4
        assert user(drawn.high[:, PAY], PAY) == [50.0] * 4

    def test_ends_between_two_steps_are_moved_inwards(self):
        drawn = box(Constraints(ranges={"age": (20.2, 70), "pay": (12.001, 40.009)}))
        assert user(drawn.low[:1, AGE], AGE) == [21.0]
        assert user(drawn.low[:1, PAY], PAY) == [12.01]
        assert user(drawn.high[:1, PAY], PAY) == [40.0]

    @pytest.mark.parametrize("nothing", [(60.2, 60.8), (1e6, 1e7), (-9.0, -8.0)])
    def test_a_range_without_a_value_in_it_holds_everyone_where_they_are(self, nothing):
        drawn = box(Constraints(ranges={"age": nothing}))
        assert (drawn.low > drawn.high)[:, AGE].all()
        assert torch.equal(drawn.floor[:, AGE], drawn.ceiling[:, AGE])

    @pytest.mark.parametrize(
        ("moved", "after"),
        [
            (45.0, [40.0, 40.0, 40.0, 50.0]),
            (40.0, [40.0, 40.0, 40.0, 40.0]),
            (35.0, [35.0, 35.0, 35.0, 35.0]),
            (24.0, [10.5, 20.25, 25.0, 25.0]),
        ],
    )
    def test_who_is_outside_a_range_stays_or_lands_inside(self, moved, after):
        """Of 10.5, 20.25, 30 and 50 only the third lies in it; who passes an end is clipped."""
        scaled = (moved - 10.5) / 39.5
        reached, x = project({PAY: scaled}, Constraints(ranges={"pay": (25, 40)}))
        assert user(reached[:, PAY], PAY) == after
        stays = torch.tensor(after) == torch.tensor(PEOPLE["pay"])
        assert torch.equal(reached[stays, PAY], x[stays, PAY])

    def test_only_allowed_categories_may_be_taken(self):
        drawn = box(Constraints(categories={"job": ["judge", "nurse"], "owner": [0]}))
        cook_judge_nurse = torch.arange(3.0).expand(4, 3)
        may = drawn.admits(cook_judge_nurse, torch.full((4,), JOB), torch.arange(4))
        assert may.tolist() == [[False, True, True]] * 4
        binary = torch.arange(2.0).expand(4, 2)
        may = drawn.admits(binary, torch.full((4,), OWNER), torch.arange(4))
        assert may.tolist() == [[True, False]] * 4

    def test_categories_may_differ_by_row(self):
        drawn = box(Constraints(categories=[{"job": "judge"}, {}, None, {"job": ["cook"]}]))
        judge = torch.ones(4, 1)
        may = drawn.admits(judge, torch.full((4,), JOB), torch.arange(4))
        assert may[:, 0].tolist() == [True, True, True, False]


class TestProjection:
    def test_changes_come_in_whole_steps(self):
        out, x = project({AGE: 0.9999, PAY: 0.50003})
        assert user(out[:2, AGE], AGE) == [60.0, 60.0]
        whole = (out - x)[:, PAY].double() * SCHEMA.features[PAY].width * 100
        assert torch.allclose(whole, whole.round(), atol=1e-3)

    def test_a_row_that_does_not_move_is_itself_bit_for_bit(self):
        out, x = project({})
        assert torch.equal(out, x)

    def test_what_is_frozen_or_immutable_is_itself_bit_for_bit(self):
        out, x = project({AGE: 1.0, SEX: 0.0}, Constraints(frozen=["age"]))
        assert torch.equal(out[:, [AGE, SEX]], x[:, [AGE, SEX]])

    def test_directions_and_ranges_clip(self):
        out, x = project({AGE: 0.0, PAY: 2.0})
        assert torch.equal(out[:, AGE], x[:, AGE])
        assert user(out[:, PAY], PAY) == [50.0] * 4

    def test_a_factual_outside_a_range_is_not_forced_inside(self):
        """10.50 lies below the range of pay, which begins at 12."""
        out, x = project({PAY: -1.0})
        assert out[0, PAY] == x[0, PAY]
        assert user(out[1:, PAY], PAY) == [12.0] * 3

    def test_a_category_that_is_not_allowed_is_not_taken(self):
        judge = Constraints(categories={"job": ["judge"]})
        to_nurse, x = project({JOB: 2.0}, judge)
        to_judge, _ = project({JOB: 1.0}, judge)
        assert torch.equal(to_nurse[:, JOB], x[:, JOB])
        assert (to_judge[:, JOB] == 1.0).all()


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("within", "match"),
        [
            ({"frozen": ["agee"]}, r"frozen: unknown features: 'agee' \(did you mean 'age'"),
            ({"frozen": [["agee"], [], [], []]}, r"frozen: unknown features: 'agee'"),
            ({"act_on": ["wealth"]}, r"act_on: unknown features: 'wealth'"),
            ({"ranges": {"wealth": (0, 1)}}, r"ranges: unknown features: 'wealth'"),
            ({"categories": {"wealth": ["a"]}}, r"categories: unknown features: 'wealth'"),
        ],
    )
    def test_unknown_names(self, within, match):
        with pytest.raises(ConstraintError, match=match):
            box(Constraints(**within))

    @pytest.mark.parametrize(
        ("within", "match"),
        [
            ({"frozen": "age"}, r"frozen: give a list of names.*'age' came"),
            ({"frozen": 3}, r"frozen: give a list of names.*3 came"),
            ({"frozen": [["age"]]}, r"a list of 4, one per row"),
            ({"frozen": ["age", None, None, None]}, r"a list of 4, one per row"),
            ({"act_on": [["age"]] * 5}, r"act_on: .*a list of 4"),
            ({"ranges": [{"age": (1, 2)}]}, r"ranges: give a mapping.*a list of 4"),
            ({"ranges": ["age"] * 4}, r"ranges: give a mapping"),
            ({"categories": [{}] * 3}, r"categories: .*a list of 4"),
        ],
    )
    def test_lists_of_another_length_or_kind(self, within, match):
        with pytest.raises(ConstraintError, match=match):
            box(Constraints(**within))

    @pytest.mark.parametrize(
        ("pair", "match"),
        [
            ((40, 30), "low must not exceed high"),
            ((float("nan"), 30), "low must not exceed high"),
            ((1, 2, 3), r"a \(low, high\) is expected, \(1, 2, 3\) came"),
            (None, r"a \(low, high\) is expected, None came"),
            (5, r"a \(low, high\) is expected, 5 came"),
            ((np.array([1, 2]), 50), "a number, or 4, one per row"),
            ((np.array([1, 2]), np.array([1, 2, 3])), "a number, or 4, one per row"),
            (("a", "b"), "an end is a number, .*'a' came"),
            ((pd.NA, 3), "an end is a number, .*<NA> came"),
            ((0, [1, 2, "x", 4]), "an end is a number, .*'x', 4] came"),
            ((0, 10**400), "an end is a number"),
        ],
    )
    def test_ranges_that_are_none(self, pair, match):
        with pytest.raises(ConstraintError, match=rf"ranges\['age'\]: .*{match}"):
            box(Constraints(ranges={"age": pair}))

    @pytest.mark.parametrize(
        ("within", "match"),
        [
            ({"ranges": {"job": (0, 1)}}, r"ranges\['job'\].*use categories="),
            ({"categories": {"age": [20]}}, r"categories\['age'\].*use ranges="),
            (
                {"categories": {"job": ["cok"]}},
                r"categories\['job'\].*'cok' \(did you mean 'cook'",
            ),
            ({"categories": {"job": []}}, r"categories\['job'\]: \[\] came.*'cook'"),
            ({"categories": {"owner": 7}}, r"categories\['owner'\].*unknown values: 7"),
        ],
    )
    def test_categories_of_numbers_and_ranges_of_categories(self, within, match):
        with pytest.raises(ConstraintError, match=match):
            box(Constraints(**within))
