"""A Series has its values of rows by its index, in any order; also through hosts."""

import re

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Constraints, Schema, Target
from dear_plugin.errors import ConstraintError, SchemaError, TargetError

rng = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "income": rng.gamma(4, 8, 600).round(1),
        "debt": rng.gamma(2, 5, 600).round(2),
        "job": rng.choice(["cook", "judge"], 600),
    }
)


def chance(rows):
    return 1 / (1 + np.exp(-(rows["income"].to_numpy(float) - 40) / 4))


QUERY = FRAME[chance(FRAME) < 0.4].head(6)
OTHER_ORDERS = {
    "reversed": lambda s: s.iloc[::-1],
    "shuffled": lambda s: s.sample(frac=1.0, random_state=1),
}
# A limit of each row that only its own answer keeps, and other values of rows.
LIMIT = (43.0 + np.arange(6)).tolist()
PER_ROW = {
    "ranges": {"income": (None, pd.Series(LIMIT, QUERY.index))},
    "frozen": pd.Series([["income"], [], ["debt"], [], [], ["job"]], QUERY.index),
    "act_on": pd.Series([["income"], ["debt", "income"]] * 3, QUERY.index),
    "categories": pd.Series([{"job": ["cook"]}, {}, None] * 2, QUERY.index),
}


@pytest.fixture(scope="module")
def dear():
    return DEAR(chance, Schema.infer(FRAME)).fit(FRAME)


def mapped(value, function):
    """A value per row with a function of its Series."""
    if isinstance(value, dict):
        return {name: (low, function(high)) for name, (low, high) in value.items()}
    return function(value)


@pytest.mark.parametrize("order", OTHER_ORDERS)
@pytest.mark.parametrize("name", PER_ROW)
def test_a_constraint_in_another_order_is_the_same(dear, name, order):
    listed = Constraints(**{name: mapped(PER_ROW[name], lambda s: s.tolist())})
    moved = Constraints(**{name: mapped(PER_ROW[name], OTHER_ORDERS[order])})
    expected = dear.generate(QUERY, within=listed)
    result = dear.generate(QUERY, within=moved)
    pd.testing.assert_frame_equal(result.counterfactuals, expected.counterfactuals)
    applied = dear.apply(QUERY, {"income": 43.5}, moved)
    expected = dear.apply(QUERY, {"income": 43.5}, listed)
    pd.testing.assert_frame_equal(applied.counterfactuals, expected.counterfactuals)


@pytest.mark.parametrize("order", OTHER_ORDERS.values(), ids=OTHER_ORDERS)
def test_a_target_in_another_order_is_the_same(dear, order):
    wanted = pd.Series([1, 0] * 3, QUERY.index)
    result = dear.generate(QUERY, Target.of_class(order(wanted)))
    assert (result.actions["reason"].eq("already accepted") == wanted.eq(0)).all()
    values = DEAR(lambda rows: 2.0 * rows["income"], Schema.infer(FRAME), output="values")
    low = 2.5 * QUERY["income"]
    result = values.fit(FRAME).generate(QUERY, Target.of_range(order(low), low + 40.0))
    done = result.actions["success"]
    reached = 2.0 * result.counterfactuals["income"]
    assert done.any() and (reached.between(low, low + 40.0) | ~done).all()


def test_text_labels_of_a_target_have_an_index_too():
    target = Target.of_class(pd.Series(["no", "yes"], ["a", "b"])).for_rows(pd.Index(["b", "a"]))
    assert target == Target.of_class(["yes", "no"])


def test_a_series_of_names_is_a_list_for_all_rows(dear):
    result = dear.generate(QUERY, within=Constraints(frozen=pd.Series(["income"])))
    assert result.counterfactuals["income"].equals(QUERY["income"])


WRONG = {
    "another index": lambda s: s.reset_index(drop=True).rename(lambda label: -label - 1),
    "a row more": lambda s: pd.concat([s, s.head(1)]),
    "a row less": lambda s: s.head(5),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("name", PER_ROW)
def test_another_index_is_refused_and_the_remedies_run(dear, name, wrong):
    match = rf"{name}.*a Series has the index of the rows.*got \d values"
    with pytest.raises(ConstraintError, match=match):
        dear.generate(QUERY, within=Constraints(**{name: mapped(PER_ROW[name], wrong)}))
    with pytest.raises(TargetError, match="target: a Series has the index of the rows"):
        dear.generate(QUERY, Target.of_class(wrong(pd.Series([1] * 6, QUERY.index))))
    every = pd.Series(50.0, FRAME.index)
    for limit in (every.loc[QUERY.index], every.loc[QUERY.index].to_numpy()):
        dear.generate(QUERY, within=Constraints(ranges={"income": (None, limit)}))


def test_labels_that_repeat_need_the_order_of_the_rows(dear):
    twice = QUERY.iloc[[0, 1, 1]]
    limit = pd.Series([43.0, 44.0, 45.0], twice.index)
    result = dear.generate(twice, within=Constraints(ranges={"income": (None, limit)}))
    listed = Constraints(ranges={"income": (None, limit.to_numpy())})
    assert result.counterfactuals.equals(dear.generate(twice, within=listed).counterfactuals)
    with pytest.raises(ConstraintError, match="where labels repeat"):
        dear.generate(twice, within=Constraints(ranges={"income": (None, limit.iloc[::-1])}))


def test_what_is_no_value_per_row_is_refused(dear):
    limit = pd.Series(LIMIT, QUERY.index)
    with pytest.raises(ConstraintError, match=r"frozen: .* got a DataFrame"):
        dear.generate(QUERY, within=Constraints(frozen=QUERY.notna()))
    with pytest.raises(SchemaError, match=r"the same for all rows.*Constraints\(ranges="):
        Schema.infer(FRAME, ranges={"income": (None, limit)})
    with pytest.raises(TargetError, match="for both ends or none"):
        Target.of_range(limit, [90.0] * 6)


def test_errors_show_no_values_of_rows(dear):
    for ends in ((None, QUERY["income"].to_numpy()[:4]), (QUERY["income"], 1.0)):
        with pytest.raises(ConstraintError) as caught:
            dear.generate(QUERY, within=Constraints(ranges={"income": ends}))
        assert not re.findall(r"\d+\.\d\d?", str(caught.value).replace("1.0", ""))


def test_dice_refuses_values_of_rows():
    dice_ml = pytest.importorskip("dice_ml")
    from raiutils.exceptions import UserConfigValidationException
    from sklearn.linear_model import LogisticRegression

    from dear_dice import DiceDEAR

    columns = ["income", "debt"]
    rows, label = FRAME[columns], (chance(FRAME) > 0.5).astype(int)
    host = dice_ml.Model(model=LogisticRegression().fit(rows, label), backend="sklearn")
    data = dice_ml.Data(
        dataframe=rows.assign(y=label), continuous_features=columns, outcome_name="y"
    )
    explainer, limit = DiceDEAR(data, host), pd.Series(LIMIT, QUERY.index)
    for wrong in (
        {"permitted_range": {"income": [0, limit]}},
        {"desired_class": pd.Series(1, QUERY.index)},
    ):
        with pytest.raises(UserConfigValidationException, match=r"the same for all|number of a"):
            explainer.generate_counterfactuals(QUERY[columns], 1, **wrong)
    with pytest.raises(SchemaError, match="the same for all rows"):
        DiceDEAR(data, host, ranges={"income": (0, limit)})


def test_alibi_takes_a_series_with_the_index_of_its_rows_alone():
    pytest.importorskip("alibi")
    from dear_alibi import DEAR as AlibiDEAR

    def predictor(X):
        p = 1 / (1 + np.exp(-(X[:, :1] - 40) / 4))
        return np.hstack([1 - p, p])

    columns = ["income", "debt"]
    explainer = AlibiDEAR(predictor, columns).fit(FRAME[columns].to_numpy())
    wanted = pd.Series([1, 0] * 3, QUERY.index)
    limits = pd.Series([{"income": [0, 40]}, {}] * 3, QUERY.index)
    data = explainer.explain(QUERY[columns], wanted, limits).data
    assert (data["target"][:, 0] == wanted).all()
    array = QUERY[columns].to_numpy()
    assert (explainer.explain(array, wanted.reset_index(drop=True)).target == data["target"]).all()
    again = explainer.explain(QUERY[columns], wanted.iloc[::-1], limits.iloc[::-1]).data
    assert (again["target"] == data["target"]).all()
    assert (again["cf"]["X"] == data["cf"]["X"]).all()
    with pytest.raises(TargetError, match="Y_t: a Series has the index of the rows"):
        explainer.explain(array, wanted)
    with pytest.raises(ConstraintError, match="C: a Series has the index of the rows"):
        explainer.explain(array, 1, limits)
