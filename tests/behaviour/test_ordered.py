"""Categories with an order are numbers whose cells are labels, by every way in."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Constraints, Schema
from dear_plugin.errors import ConstraintError, SchemaError
from tests.asked import Scored

LEVELS = ["none", "school", "college", "master", "phd"]
ORDER = [["age"], ["schooling"], ["income"]]


def score(frame):
    """Probabilities by income and schooling."""
    place = frame["schooling"].astype(object).map(LEVELS.index).astype(float)
    return (1.0 / (1.0 + np.exp(-((frame["income"] - 40.0) / 6.0 + 0.3 * place)))).to_numpy()


@pytest.fixture(scope="module")
def people():
    """Rows whose income rises by 8 with each step of schooling."""
    rng = np.random.default_rng(0)
    age = rng.integers(20, 70, 3000)
    steps = np.digitize(rng.normal(size=3000) + (age - 45) / 40, [-1.0, 0.0, 0.8, 1.6])
    income = np.round(20 + 8 * steps + 5 * rng.normal(size=3000), 1)
    schooling = pd.Categorical([LEVELS[i] for i in steps], LEVELS, ordered=True)
    return pd.DataFrame({"age": age, "schooling": schooling, "income": income})


@pytest.fixture(scope="module")
def dear(people):
    schema = Schema.infer(people, immutable=["age"], increasing=["schooling"], tiers=ORDER)
    return DEAR(score, schema, act_on=["schooling"]).fit(people)


@pytest.fixture(scope="module")
def refused(people):
    return people[score(people) < 0.5].head(30)


def places(column):
    return column.astype(object).map(LEVELS.index)


def test_answers_are_levels_and_only_rise(dear, refused):
    found = dear.generate(refused)
    assert found.actions["success"].mean() > 0.9
    after = found.counterfactuals["schooling"]
    assert after.dtype == refused["schooling"].dtype
    assert (places(after) >= places(refused["schooling"])).all()


def test_what_follows_a_step_is_its_effect(dear, people):
    some = people[people["schooling"] == "school"]
    told = dear.apply(some, {"schooling": "college"}).counterfactuals
    assert (told["income"] - some["income"]).mean() == pytest.approx(8.0, abs=0.6)


@pytest.mark.parametrize(
    "within",
    [
        Constraints(ranges={"schooling": ("none", "college")}),
        Constraints(ranges={"schooling": (None, "college")}),
        Constraints(categories={"schooling": ["none", "school", "college"]}),
    ],
    ids=["both ends", "one end", "levels"],
)
def test_ranges_are_of_levels(dear, refused, within):
    found = dear.generate(refused, within=within)
    highest = np.maximum(places(refused["schooling"]), 2)
    assert (places(found.counterfactuals["schooling"]) <= highest).all()
    assert found.actions["success"].any()


def test_an_unknown_level_fails_alone(dear, refused):
    odd = refused.head(2).assign(schooling=["diploma", "none"])
    reasons = dear.generate(odd).actions["reason"].tolist()
    assert reasons[0].startswith("column 'schooling' has 'diploma', expected one of ['none', ")
    assert not reasons[1].startswith("column")


def test_a_stated_order_has_every_value_once(people):
    for wrong in (LEVELS[:-1], [*LEVELS, "none"]):
        with pytest.raises(SchemaError, match=r"ordered\['schooling'\]: expected all values"):
            Schema.infer(people, ordered={"schooling": wrong})


def test_a_curve_has_its_levels(dear, refused):
    pytest.importorskip("panel")
    from dear_plugin.page.session import curve

    row = refused[refused["schooling"] == "school"].head(1)
    found = curve(dear, row, "schooling", {}, within=Constraints(), target=None)
    assert found["value"].tolist() == LEVELS
    # It may only rise.
    assert found["with_what_follows"].notna().tolist() == [False, True, True, True, True]


def test_dice_keeps_the_order_of_its_frame(dear, people, refused):
    dice_ml = pytest.importorskip("dice_ml")
    from dear_dice import DiceDEAR

    labelled = people.assign(accepted=Scored(score).predict(people))
    names = ["age", "income"]
    data = dice_ml.Data(dataframe=labelled, continuous_features=names, outcome_name="accepted")
    explainer = DiceDEAR(
        data,
        dice_ml.Model(model=Scored(score), backend="sklearn"),
        act_on=["schooling"],
        immutable=["age"],
        increasing=["schooling"],
        tiers=ORDER,
    )
    found = explainer.generate_counterfactuals(refused.head(5), 1, desired_class=1)
    expected = dear.generate(refused.head(5)).counterfactuals["schooling"]
    levels = [each.final_cfs_df["schooling"].iloc[0] for each in found.cf_examples_list]
    assert levels == expected.astype(object).tolist()


def test_alibi_takes_the_order_of_its_codes(dear, people, refused):
    pytest.importorskip("alibi")
    from dear_alibi import DEAR as Explainer

    def predictor(rows):
        levels = pd.Categorical.from_codes(rows[:, 1].astype(int), LEVELS)
        frame = pd.DataFrame({"schooling": levels, "income": rows[:, 2]})
        return Scored(score).predict_proba(frame)

    def codes(frame):
        return frame.assign(schooling=frame["schooling"].cat.codes).to_numpy(float)

    explainer = Explainer(
        predictor,
        list(people),
        {1: LEVELS},
        immutable_features=["age"],
        tiers=ORDER,
        ordered=["schooling"],
        act_on=["schooling"],
    )
    found = explainer.fit(codes(people)).explain(codes(refused.head(5)), Y_t=1)
    expected = dear.generate(refused.head(5)).counterfactuals
    assert found.data["cf"]["X"][:, 1].tolist() == codes(expected)[:, 1].tolist()


def test_allowed_levels_are_neighbours(dear, refused):
    with pytest.raises(ConstraintError, match=r"neighbours; got .* without \['college'\]"):
        dear.generate(refused, within=Constraints(categories={"schooling": ["school", "master"]}))
