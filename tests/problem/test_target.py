"""Target: a wanted class or range as a signed margin, >= 0 for the wanted decision."""

import math
import re

import numpy as np
import pandas as pd
import pytest
import torch
from torch import tensor

from dear_plugin import DEAR, Schema, Search, Target, Vetted
from dear_plugin.errors import TargetError
from dear_plugin.problem.goals import goal_of
from dear_plugin.rivals import NearestAccepted


def logit(p: float) -> float:
    return math.log(p / (1 - p))


class TestTwoClasses:
    @pytest.mark.parametrize("p", [0.1, 0.4, 0.6, 0.9])
    def test_the_margin_is_the_logit_of_the_wanted_class(self, p):
        one, pair = tensor([[logit(p)]]), tensor([[math.log(1 - p), math.log(p)]])
        for scores in (one, pair):
            for wanted, sign in ((1, 1), (0, -1)):
                goal = Target.of_class(wanted).resolve(1, None)
                assert goal.margin(scores)[0] == pytest.approx(sign * logit(p), abs=1e-5)
                assert goal.score(scores)[0] == pytest.approx(p if wanted else 1 - p, abs=1e-6)

    @pytest.mark.parametrize(
        ("threshold", "p", "accepted"),
        [(0.7, 0.69, False), (0.7, 0.71, True), (0.3, 0.29, False), (0.3, 0.31, True)],
    )
    def test_a_threshold_moves_the_boundary(self, threshold, p, accepted):
        goal = Target.of_class(1, threshold).resolve(1, None)
        for scores in (tensor([[logit(p)]]), tensor([[math.log(1 - p), math.log(p)]])):
            assert goal.margin(scores)[0] == pytest.approx(logit(p) - logit(threshold), abs=1e-5)
            assert bool(goal.accepts(scores)) is accepted

    @pytest.mark.parametrize("scores", [tensor([[0.0]]), tensor([[1.0, 1.0]])])
    def test_an_exact_tie_is_the_first_class(self, scores):
        assert not Target.of_class(1).resolve(1, None).accepts(scores)
        assert Target.of_class(0).resolve(1, None).accepts(scores)


class TestManyClasses:
    scores = tensor([[0.0, 1.0, 3.0], [2.0, 1.9, 0.0]])

    def test_the_margin_is_to_the_strongest_other(self):
        margin = Target.of_class(1).resolve(2, None).margin(self.scores)
        assert margin.tolist() == pytest.approx([-2.0, -0.1])

    def test_only_the_leader_is_accepted(self):
        goal = Target.of_class([2, 1]).resolve(2, None)
        assert goal.accepts(self.scores).tolist() == [True, False]

    def test_without_rows_every_class_may_be_wanted(self):
        """Scores of no rows do not reveal the number of classes."""
        goal, no_scores = Target.of_class(2).resolve(3, None), torch.zeros(0, 1)
        assert goal.margin(no_scores, torch.arange(0)).shape == (0,)
        assert goal.accepts(no_scores, torch.arange(0)).shape == (0,)

    def test_a_threshold_requires_a_probability_as_well(self):
        p = self.scores.softmax(1)[0, 2]
        for threshold, accepted in ((float(p) - 0.01, True), (float(p) + 0.01, False)):
            goal = Target.of_class(2, threshold).resolve(2, None)
            assert bool(goal.accepts(self.scores)[0]) is accepted

    def test_a_threshold_below_one_half_requires_the_decision_as_well(self):
        goal = Target.of_class(1, threshold=0.2).resolve(2, None)
        assert goal.score(self.scores)[1] > 0.2
        assert not goal.accepts(self.scores)[1]

    def test_a_class_the_model_does_not_have_is_refused(self):
        with pytest.raises(TargetError, match="class 3 wanted, the model has 3 classes"):
            Target.of_class(3).resolve(2, None).margin(self.scores)
        with pytest.raises(TargetError, match="wanted"):
            Target.of_class(-1).resolve(2, None).margin(self.scores)


class TestTheModelsOwnDecision:
    """The column of the class that `predict` returns besides the probabilities."""

    scores = tensor([[logit(0.6)], [logit(0.8)], [logit(0.2)]])

    @pytest.mark.parametrize(
        ("threshold", "decisions", "succeeds"),
        [
            (None, tensor([0, 1, 1]), [False, True, True]),
            (None, None, [True, True, False]),
            (0.7, tensor([1, 1, 1]), [False, True, False]),
            (0.7, tensor([0, 0, 0]), [False, False, False]),
            (0.3, tensor([0, 0, 0]), [True, True, False]),
        ],
        ids=["instead", "none", "and the threshold", "against it", "below one half"],
    )
    def test_it_replaces_the_likeliest_class(self, threshold, decisions, succeeds):
        goal = Target.of_class(1, threshold).resolve(3, None)
        assert goal.succeeds(self.scores, lambda: decisions).tolist() == succeeds

    def test_a_threshold_of_many_classes_requires_the_probability_as_well(self):
        goal = Target.of_class(2, threshold=0.8).resolve(2, None)
        scores = tensor([[0.0, 1.0, 3.0], [0.0, 0.0, 1.0]])
        assert goal.succeeds(scores, lambda: tensor([2, 2])).tolist() == [True, False]
        assert goal.succeeds(scores, lambda: tensor([1, 2])).tolist() == [False, False]

    def test_cut_offs_move_the_boundary_of_each_class(self):
        cutoffs = tensor([[-1.0, 1.0], [-2.0, 2.0]], dtype=torch.float64)
        goal = Target.of_class([1, 0, 1]).resolve(3, None).bind(self.scores, lambda: cutoffs)
        expected = [logit(0.6) - 1.0, -logit(0.8) + 1.0, logit(0.2) - 1.0]
        assert goal.margin(self.scores).tolist() == pytest.approx(expected, abs=1e-5)
        assert goal.accepts(self.scores).tolist() == [False, False, False]
        assert goal.aim(0.5, surely=True).tolist() == pytest.approx([1.5, -0.5, 1.5])

    def test_the_stricter_of_cut_off_and_threshold_counts(self):
        cutoffs = tensor([[-1.0, 1.0]] * 2, dtype=torch.float64)
        for threshold, bar in ((0.6, 1.0), (0.9, logit(0.9))):
            goal = Target.of_class(1, threshold).resolve(3, None)
            bound = goal.bind(self.scores, lambda: cutoffs)
            assert bound.margin(self.scores)[0] == pytest.approx(logit(0.6) - bar, abs=1e-5)


class TestTheDefault:
    @pytest.mark.parametrize("classes", [None, [0, 1], [False, True], [1, 0], [0.0, 1.0]], ids=str)
    def test_class_one(self, classes):
        column = goal_of(None, 1, classes, "probabilities").columns
        assert column.tolist() == [1 if classes is None else classes.index(1)]

    @pytest.mark.parametrize(
        "classes", [["approved", "rejected"], ["no", "yes"], [1, 2], [-1, 1], ["0", "1"], [1]]
    )
    def test_no_other_classes_have_one(self, classes):
        options = " or ".join(rf"target=Target\.of_class\({c!r}\)" for c in classes)
        with pytest.raises(
            TargetError, match=f"{re.escape(str(classes))} is wanted.*pass {options}"
        ):
            goal_of(None, 1, classes, "probabilities")

    def test_of_many_classes_a_few_are_suggested(self):
        with pytest.raises(TargetError, match=r"pass .*'a'.* or .*'b'.* or .*'c'\)$"):
            goal_of(None, 1, ["a", "b", "c", "d"], "probabilities")


class TestLabels:
    def test_labels_are_looked_up_among_the_models_classes(self):
        goal = Target.of_class("yes").resolve(1, ["no", "yes"])
        assert goal.accepts(tensor([[0.0, 1.0]]))

    @pytest.mark.parametrize(
        ("label", "classes", "match"),
        [
            ("yess", ["no", "yes"], r"'yess' \(did you mean 'yes'\?\); known are: no, yes"),
            ("1", [0, 1], r"'1' \(a str; did you mean 1, of type int\?\); known are: 0, 1"),
            ([1, 0], None, "expected a class for all rows, or a list of 3, one per row; got"),
            *(
                (label, None, r"a number from 0, .* got")
                for label in ("yes", 0.5, 10**30, 10**400, math.inf, math.nan)
            ),
        ],
        ids=str,
    )
    def test_what_is_no_class_of_the_model_is_refused(self, label, classes, match):
        with pytest.raises(TargetError, match=match):
            Target.of_class(label).resolve(3, classes)

    @pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
    def test_one_class_per_row(self, kind):
        goal = Target.of_class(kind([1, 0, 1])).resolve(3, None)
        assert goal.accepts(tensor([[2.0], [2.0], [2.0]])).tolist() == [True, False, True]

    @pytest.mark.parametrize("threshold", [0.0, 1.0, -1.0, 2.0, float("nan"), "a", "0.5", [0.5]])
    def test_a_threshold_is_a_probability(self, threshold):
        with pytest.raises(TargetError, match="between 0 and 1"):
            Target.of_class(1, threshold)


class TestRange:
    @pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
    def test_an_aim_is_in_the_unit_of_the_values(self, unit):
        """An open range has no width: the aim is a share of each row's missing margin."""
        goal = Target.of_range(low=30.0 * unit).resolve(2, None)
        bound = goal.bind(tensor([[20.0], [29.0]], dtype=torch.float64) * unit)
        assert bound.aim(0.1).tolist() == pytest.approx([1.0 * unit, 0.1 * unit])
        closed = Target.of_range(30.0 * unit, 34.0 * unit).resolve(2, None).bind(torch.ones(2, 1))
        assert closed.aim(0.1).tolist() == pytest.approx([0.4 * unit] * 2)

    def test_the_margin_is_the_distance_to_the_nearer_end(self):
        goal = Target.of_range(1.0, 4.0).resolve(5, None)
        scores = tensor([[0.0], [1.0], [1.5], [4.0], [6.0]])
        assert goal.margin(scores).tolist() == pytest.approx([-1.0, 0.0, 0.5, 0.0, -2.0])
        assert goal.accepts(scores).tolist() == [False, True, True, True, False]
        assert goal.score(scores).tolist() == scores[:, 0].tolist()

    def test_none_is_an_open_end(self):
        assert Target.of_range(50, None) == Target.of_range(low=50)
        assert Target.of_range(None, 50) == Target.of_range(high=50)

    @pytest.mark.parametrize(
        ("ends", "match"),
        [
            ((2.0, 1.0), "a range needs"),
            ((math.nan, 1.0), "a range needs"),
            ((-math.inf, math.inf), "a range needs"),
            (("a", 1.0), "a range needs"),
            (("1", 2.0), "a range needs"),
            ((None, None), r"one bound, got \(None, None\)"),
            (([None, 2.0], None), "one bound"),
            (([1.0, "x"], None), "numbers or None"),
            (([1.0, 2.0], [3.0, 1.0]), r"got \(2 values, 2 values\)"),
            (([1.0, 2.0], [3.0, 4.0, 5.0]), r"got \(2 values, 3 values\)"),
            ((None, [1.0, 2.0]), "a range for all rows, or a list of 3, one per row"),
        ],
        ids=str,
    )
    def test_it_needs_an_order_and_a_bound_for_each_row(self, ends, match):
        with pytest.raises(TargetError, match=match):
            Target.of_range(*ends).resolve(3, None)


def test_scores_may_belong_to_given_rows():
    goal = Target.of_class([1, 0]).resolve(2, None)
    scores, rows = tensor([[1.0], [1.0], [1.0]]), tensor([0, 1, 0])
    assert goal.accepts(scores, rows).tolist() == [True, False, True]


class TestRangesOfRows:
    """One range per row: "20 % less than now"."""

    def test_equals_the_range_of_all_rows_where_they_are_equal(self):
        scores = torch.linspace(0.0, 10.0, 101)[:, None]
        for low, high in ((4.0, None), (4.0, 6.0), (None, 3.0)):
            one = Target.of_range(low, high).resolve(101, None).bind(scores)
            each = Target.of_range(
                *(None if end is None else np.full(101, end) for end in (low, high))
            )
            many = each.resolve(101, None).bind(scores)
            assert torch.equal(one.accepts(scores), many.accepts(scores))
            assert torch.equal(one.unit(scores), many.unit(scores))
            assert torch.allclose(one.aim(0.01), many.aim(0.01))

    def test_every_method_keeps_them_with_their_rows(self, loan):
        """Unreadable and accepted rows between, selections, and alternatives."""
        frame = loan.frame
        price = lambda rows: rows["savings"].to_numpy() * 2.0 + rows["income"].to_numpy()  # noqa: E731
        schema = Schema.infer(frame, immutable=["gender", "age"])
        some = frame.head(12).copy()
        some.iloc[3, some.columns.get_loc("income")] = np.nan
        now = price(some)
        wanted = pd.Series(now).fillna(0.0) * np.where(np.arange(12) % 4, 1.1, 0.9)
        dear = DEAR(price, schema, output="values", act_on=["savings", "income"]).fit(frame)
        nearest = Vetted(NearestAccepted(price, schema, output="values"), Search()).fit(frame)
        for method in (dear, nearest):
            result = method.generate(some, Target.of_range(low=wanted))
            success = result.actions["success"].to_numpy()
            assert (success == (price(result.counterfactuals) >= wanted)).all()
            assert success.sum() > 8 and not success[3]
            assert (result.actions["acted_on"] == "").to_numpy()[[0, 4, 8]].all()
            at = [5, 3, 2]
            part = result[some.index[at]]
            assert part.actions["success"].tolist() == success[at].tolist()
            assert part.support.equals(result.support.iloc[at])
            ranks = part.alternatives(k=2)
            ranks = ranks[ranks["success"]]
            assert (price(ranks) >= wanted[ranks["index"]].to_numpy()).all()
