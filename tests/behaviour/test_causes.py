"""Causes: with a graph only consequences follow, by the effects among rows of equal causes."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema
from dear_plugin.datasets import load_loan

ROWS = 6_000
# By its equations.
LOAN = {
    "education": ["gender", "age"],
    "loan_amount": ["gender", "age"],
    "income": ["gender", "age", "education"],
    "duration": ["gender", "age", "loan_amount"],
    "savings": ["income"],
}


def noise(*names: str) -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(0).normal(size=(ROWS, len(names))), columns=names)


def told(frame: pd.DataFrame, acted: dict[str, float], **stated) -> pd.Series:
    """The mean change of each feature that is told of actions by so much."""
    schema = Schema.infer(frame, **stated)
    dear = DEAR(lambda rows: np.full(len(rows), 0.25), schema, act_on=[tuple(acted)]).fit(frame)
    rows = frame[frame.abs().max(axis=1) < 2.0].head(300)
    after = dear.apply(rows, rows[[*acted]] + pd.Series(acted)).counterfactuals
    return (after - rows).mean()


def mediated(direct: float = 1.0) -> pd.DataFrame:
    """x -> m -> y beside x -> y, and c -> m and c -> y."""
    u = noise("x", "c", "m", "y")
    m = u.x + u.c + u.m
    return pd.DataFrame({"x": u.x, "c": u.c, "m": m, "y": direct * u.x + m + 2.0 * u.c + u.y})


MEDIATED = {"m": ["x", "c"], "y": ["x", "m", "c"]}


class TestKnownEffects:
    """Linear systems, of which the effect of 1 is 1 times the product of the weights."""

    def test_it_passes_a_feature_that_may_follow(self):
        found = told(mediated(), {"x": 1.0}, causes=MEDIATED)
        assert found["m"] == pytest.approx(1.0, abs=0.1)
        assert found["y"] == pytest.approx(2.0, abs=0.15)
        assert found["c"] == 0.0

    def test_it_does_not_pass_an_immutable_one(self):
        """That has another cause in common with what follows, which is conditioned on."""
        found = told(mediated(), {"x": 1.0}, causes=MEDIATED, immutable=["m"])
        assert found["m"] == 0.0
        assert found["y"] == pytest.approx(1.0, abs=0.1)

    def test_nothing_follows_through_an_immutable_one_alone(self):
        causes = {"m": ["x", "c"], "y": ["m", "c"]}
        found = told(mediated(direct=0.0), {"x": 1.0}, causes=causes, immutable=["m"])
        assert (found.drop("x") == 0.0).all()

    def test_an_immutable_consequence_of_both_is_not_conditioned_on(self):
        u = noise("x", "y", "z")
        y = u.x + u.y
        frame = pd.DataFrame({"x": u.x, "y": y, "z": u.x + y + 0.5 * u.z})
        stated = {"causes": {"y": ["x"], "z": ["x", "y"]}, "immutable": ["z"]}
        assert told(frame, {"x": 1.0}, **stated)["y"] == pytest.approx(1.0, abs=0.1)

    def test_an_earlier_feature_that_is_no_cause_of_the_action_is_not_conditioned_on(self):
        """m shares a hidden cause with x, and another one with y; tiers condition on it."""
        u = noise("h", "k", "m", "x", "y")
        x = u.h + 0.3 * u.x
        frame = pd.DataFrame({"m": u.h + u.k + 0.3 * u.m, "x": x, "y": x + 2.0 * u.k + 0.3 * u.y})
        graph = told(frame, {"x": 1.0}, causes={"y": ["x"], "m": []})
        tiers = told(frame, {"x": 1.0}, tiers=[["m"], ["x"], ["y"]])
        assert graph["y"] == pytest.approx(1.0, abs=0.1)
        assert tiers["y"] < 0.5

    def test_a_cause_of_the_action_and_of_what_follows_is_conditioned_on(self):
        u = noise("c", "x", "y")
        x = u.c + u.x
        frame = pd.DataFrame({"c": u.c, "x": x, "y": x - 2.0 * u.c + u.y})
        found = told(frame, {"x": 1.0}, causes={"x": ["c"], "y": ["x", "c"]})
        assert found["y"] == pytest.approx(1.0, abs=0.1)

    @pytest.mark.parametrize("acted", [["x", "z"], ["z", "x"]])
    def test_of_several_actions_causes_act_first(self, acted):
        """x -> m -> z -> y and x -> y: z is acted on, and does not follow x."""
        u = noise("x", "m", "z", "y")
        m = u.x + u.m
        z = m + u.z
        frame = pd.DataFrame({"x": u.x, "m": m, "z": z, "y": u.x + 2.0 * z + u.y})
        causes = {"m": ["x"], "z": ["m"], "y": ["x", "z"]}
        found = told(frame, dict.fromkeys(acted, 0.5), causes=causes)
        assert found["m"] == pytest.approx(0.5, abs=0.1)
        assert found["y"] == pytest.approx(1.5, abs=0.15)


@pytest.fixture(scope="module")
def loan():
    """The data, training rows, and rows with little saved."""
    data = load_loan(4_000)
    train, test = data.split()
    return data, train, test[test["savings"] < 30].head(60)


def fitted(loan, act_on, **order) -> DEAR:
    schema = Schema.infer(loan[1], target="approved", immutable=["gender"], **order)
    return DEAR(lambda rows: rows["savings"] / 60, schema, act_on=act_on).fit(loan[1])


def test_the_graph_of_all_earlier_features_gives_the_answers_of_tiers(loan):
    names = ["gender", "age", *LOAN]
    act_on = ["education", "income", ("income", "loan_amount"), ("duration", "savings")]
    before = {name: names[:i] for i, name in enumerate(names)}
    orders = {"tiers": [[name] for name in names]}, {"causes": before}
    tiers, graph = (fitted(loan, act_on, **order).generate(loan[2]) for order in orders)
    pd.testing.assert_frame_equal(tiers.counterfactuals, graph.counterfactuals, check_exact=True)
    pd.testing.assert_frame_equal(tiers.actions, graph.actions, check_exact=True)


def test_only_consequences_change_and_texts_call_them_effects(loan):
    found = fitted(loan, ["income", "education", "duration"], causes=LOAN).generate(loan[2])
    order, names = found.encoder.schema.causal_order, found.encoder.schema.names
    same = found.counterfactuals.eq(found.factuals)[list(names)].to_numpy()
    assert found.actions["success"].mean() > 0.5
    for acted, kept in zip(found.actions["acted_on"], same, strict=True):
        members = [names.index(name) for name in acted.split(" + ") if name]
        assert kept[list(order.held(members))].all()
    assert "an effect, if the stated order is right" in found.note


def test_held_out_rows_agree_with_the_right_graph(loan):
    """What does not follow is compared with nothing; what is no cause is not matched."""
    dear = fitted(loan, ["loan_amount", "income", ("income", "loan_amount")], causes=LOAN)
    report = dear.diagnose(loan[0].split()[1])
    assert report.fidelity > 0.9
    assert not len(report.misfits)
