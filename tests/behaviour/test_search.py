"""Search: the smallest change of x_S that reaches the target, for all rows and sets at once."""

import copy

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Constraints, Schema, Search, Target
from tests.asked import fitted

N = 1200


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Independent features: indirect changes are small."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "units": rng.integers(0, 101, N),
            "cents": np.round(rng.uniform(0, 100, N), 2),
            "depth": rng.uniform(0, 100, N),
            "colour": rng.choice(["blue", "green", "red", "teal"], N),
            "ready": rng.integers(0, 2, N),
        }
    )


def method(frame, accepts, act_on=None, search=None) -> DEAR:
    """DEAR for a black box that accepts where a rule on frames holds."""
    search = search or Search.cheapest(max_features=1)
    return fitted(Rule(accepts), frame, act_on=act_on, search=search)


class Rule:
    """Probabilities 0.9 where a rule holds and 0.1 elsewhere: a piecewise constant model."""

    def __init__(self, accepts):
        self.accepts = accepts

    def __call__(self, frame):
        return np.where(self.accepts(frame), 0.9, 0.1)


def before_and_after(frame, rule, column, search=None):
    """A column of rows that a rule on it rejects, before and after acting on that column."""
    refused = frame[~rule(frame)].iloc[:40]
    others = Constraints(frozen=[c for c in frame if c != column])
    recourses = method(frame, rule, [column], search).generate(refused, within=others)
    assert recourses.actions["success"].all()
    return refused[column], recourses.counterfactuals[column]


class TestOneNumber:
    """Known solutions on plateaus, where every gradient is zero."""

    @pytest.mark.parametrize("column", ["units", "cents", "depth"])
    def test_the_smallest_change_that_succeeds_is_found(self, frame, column):
        _, after = before_and_after(
            frame, lambda f: f[column] >= 70, column, Search.cheapest(max_features=1)
        )
        unit = {"units": 0, "cents": 0.05, "depth": 0.05}[column]
        assert after.between(70, 70 + unit).all()

    def test_both_directions_are_tried_and_the_nearer_taken(self, frame):
        before, after = before_and_after(
            frame, lambda f: (f["units"] <= 20) | (f["units"] >= 60), "units"
        )
        nearer = np.where(before < 40, 20, 60)
        assert (after == nearer)[before != 40].all()


def test_every_other_category_is_tried(frame):
    _, after = before_and_after(frame, lambda f: f["colour"] == "teal", "colour")
    assert (after == "teal").all()


class TestAmongSets:
    def test_the_cheapest_set_is_taken(self, frame):
        """One unit of `units` costs 0.01, a colour costs 1."""

        def rule(f):
            return (f["units"] >= 50) | (f["colour"] == "teal")

        refused = frame[~rule(frame)].iloc[:40]
        actions = method(frame, rule, ["colour", "units"]).generate(refused).actions
        assert (actions["acted_on"] == "units").all()

    @pytest.mark.parametrize("tiers", [(), [["units"], ["cents"]]], ids=["no tiers", "tiers"])
    def test_pairs_solve_rows_that_no_single_feature_solves(self, frame, tiers):
        """With tiers each has to move by more than its smallest step, which gains as much."""
        model = Rule(lambda rows: (rows["units"] >= 80) & (rows["cents"] >= 80))
        low = frame[(frame["units"] < 50) & (frame["cents"] < 50)].head(20)
        alone, together = (
            fitted(model, frame, act_on=["units", "cents"], search=search, tiers=tiers)
            for search in (Search.cheapest(max_features=1), Search.cheapest())
        )
        assert not alone.generate(low).actions["success"].any()
        actions = together.generate(low).actions
        assert actions["success"].all()
        assert (actions["acted_on"] == "units + cents").all()


class TestEachChangeIsNeeded:
    """What an answer of several features still reaches without one of them, it does not change.

    It holds for every rank of the alternatives, and with tiers: what is left of an action is one
    on a smaller set, of which other features may follow.
    """

    @staticmethod
    def superfluous(
        dear: DEAR, refused: pd.DataFrame, k: int, target: Target | None = None
    ) -> tuple[int, int]:
        """How many changes are among several of an answer, and how many of them it does not need.

        Of credible answers, without these changes the row is credible still.
        """
        asked = "credible" if dear.search.has_criteria else "success"
        changes, needless = 0, 0
        every = dear.generate(refused, target, k=k)
        for rank in range(k):
            result = every[every.rank == rank]
            acted = result.direct.notna()
            several = (acted.sum(axis=1) > 1) & result.actions[asked]
            for name in acted.columns[acted.any()]:
                rows = (acted[name] & several).to_numpy()
                if rows.any():
                    fewer = result.direct[rows].assign(**{name: pd.NA})
                    fewer = dear.apply(result.factuals[rows], fewer, target=target)
                    changes += int(rows.sum())
                    needless += int(fewer.actions[asked].sum())
        return changes, needless

    @pytest.mark.parametrize("k", [1, 4])
    @pytest.mark.parametrize("act_on", [None, [("units", "cents", "colour", "ready")]])
    def test_of_rules_that_need_two_of_four(self, frame, act_on, k):
        def rule(f):
            return (f["units"] >= 60) & ((f["cents"] >= 60) | (f["colour"] == "teal"))

        dear = method(frame, rule, act_on, Search.cheapest())
        changes, needless = self.superfluous(dear, frame[~rule(frame)].iloc[:20], k)
        assert changes >= 10
        assert needless == 0

    TIERS = (["gender", "age"], ["education"], ["loan_amount", "income"], ["duration", "savings"])

    # What is applied is not asked for a margin.
    SEARCHES = (Search.cheapest(), Search(margin=0.0))

    @pytest.mark.parametrize("search", SEARCHES, ids=["cheapest", "criteria"])
    @pytest.mark.parametrize("tiers", [(), TIERS], ids=["no tiers", "tiers"])
    @pytest.mark.parametrize(
        "act_on",
        [
            [("savings", "duration", "loan_amount"), ("income", "education")],
            ["duration", "education", "income"],
        ],
        ids=["groups", "pairs"],
    )
    def test_of_a_network(self, loan, search, tiers, act_on):
        schema = Schema.infer(loan.frame, immutable=["gender"], tiers=tiers)
        dear = DEAR(loan.net, schema, act_on=act_on, search=search)
        few = loan.refused(30), 3, Target.of_class(1, 0.97)
        changes, needless = self.superfluous(dear.fit(loan.frame), *few)
        assert changes >= 4
        assert needless == 0


@pytest.fixture(scope="module")
def answers():
    """The answers with and without the preference, and those of each feature by itself."""
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 100, N).round(1)
    b = (a + rng.normal(0, 5, N)).clip(0, 100).round(1)
    frame = pd.DataFrame({"a": a, "b": b, "d": rng.uniform(0, 100, N).round(1)})

    def rule(f):
        return (f["a"] + f["b"] >= 120) | (f["d"] >= 60)

    far = frame["a"].between(30, 50) & (frame["a"] + frame["b"]).between(70, 110)
    rows = frame[far].iloc[:60]
    # What d costs, as a share of what a and b together cost.
    share = np.linspace(0.7, 1.6, len(rows))
    rows = rows.assign(d=(60 - (120 - rows["a"] - rows["b"]) * share).round(1))
    refused, plain = rows[rows["d"] >= 0], Search.cheapest(max_features=1)
    preferring = Search.cheapest(max_features=1, prefer_alone=0.25)
    cases = {
        "plain": (["a", "d"], plain),
        "preferring": (["a", "d"], preferring),
        "a": (["a"], plain),
        "d": (["d"], plain),
    }
    return {
        name: method(frame, rule, *case).generate(refused).actions for name, case in cases.items()
    }


@pytest.mark.parametrize(("search", "more"), [("plain", 1.0), ("preferring", 1.25)])
def test_actions_that_suffice_alone_may_cost_that_much_more(answers, search, more):
    """b follows a, and a + b must reach 120; d alone suffices from 60 on, and nothing follows."""
    follows = answers["a"]["reliance"] > 0
    ratio = answers["d"]["cost"][follows] / answers["a"]["cost"][follows]
    clear = (ratio / more - 1.0).abs() > 0.02
    expected = np.where(ratio <= more, "d", "a")
    assert clear.sum() > 40 and len(set(expected)) == 2
    assert (answers[search]["acted_on"][follows] == expected)[clear].all()


def test_the_nearest_miss_is_the_attempt(loan):
    """The model rejects all rows: the attempt is the row with the greatest margin."""
    net = copy.deepcopy(loan.net)
    net[-1].bias.data -= 100.0
    dear = DEAR(net, loan.schema, search=Search.cheapest(max_features=1)).fit(loan.frame)
    result = dear.generate(loan.frame.iloc[:30])
    assert not result.actions["success"].any()
    assert (result.actions["score_after"] >= result.actions["score_before"]).all()
    tried = "no change of a single one of the 6 actionable features was found"
    assert result.actions["reason"].str.startswith(tried).all()
