"""Actions that a person can take: amounts that people name, and none that hardly anybody has."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from dear_plugin import DEAR, Constraints, Schema, Search

N = 3_000
RNG = np.random.default_rng(7)
FRAME = pd.DataFrame(
    {
        "income": RNG.lognormal(10.3, 0.4, N).round().astype(int),
        "savings": RNG.gamma(2.0, 4_000.0, N).round(2),
        "debt": np.where(RNG.random(N) < 0.6, 0.0, RNG.gamma(1.0, 9_000.0, N).round()),
        "years": np.minimum(RNG.poisson(4, N), 15),
    }
)
FRAME.loc[0, "savings"] = 1e7


def model(rows):
    """It asks for income, savings and years, and for little debt."""
    score = (
        rows["income"] / 12_000 + rows["savings"] / 6_000 - rows["debt"] / 9_000
        + rows["years"] / 5 - 5.0
    )  # fmt: skip
    return 1.0 / (1.0 + np.exp(-score.to_numpy(float).clip(-30, 30)))


REFUSED = FRAME[model(FRAME) < 0.5].head(60)


def answers(search=None, query=REFUSED, within=None, act_on=None, **stated):
    """The successful answers: the new values of what is acted on, and the schema."""
    schema = Schema.infer(FRAME, **stated)
    options = {} if search is None else {"search": search}
    result = (
        DEAR(model, schema, act_on=act_on, **options).fit(FRAME).generate(query, within=within)
    )
    assert result.actions["success"].sum() >= min(12, len(query))
    return result.direct[result.actions["success"]], schema


def moves(direct, name):
    """The old and the new values of a number that is acted on."""
    new = direct[name].dropna().astype(float)
    return FRAME.loc[new.index, name].astype(float), new


@pytest.mark.parametrize("act_on", [None, [("income", "savings"), ("debt", "years")]])
def test_numbers_move_to_multiples_of_their_steps_by_one_at_least(act_on):
    direct, schema = answers(act_on=act_on)
    assert schema.steps == {"income": 500.0, "savings": 200.0, "debt": 200.0, "years": 1.0}
    for name, step in schema.steps.items():
        old, new = moves(direct, name)
        moved = new != old
        np.testing.assert_allclose(new[moved] / step, (new[moved] / step).round(), atol=1e-9)
        assert ((new - old).abs()[moved] >= step * (1 - 1e-9)).all()


def test_no_number_goes_beyond_the_central_values():
    direct, schema = answers()
    for feature in schema:
        old, new = moves(direct, feature.name)
        low, high = feature.central
        assert ((new >= np.minimum(low, old)) & (new <= np.maximum(high, old))).all()


def test_a_row_beyond_them_may_come_back_and_goes_no_farther():
    query = FRAME.nlargest(30, "debt")
    direct, schema = answers(query=query, act_on=["debt"])
    old, new = moves(direct, "debt")
    assert (old > schema.features[2].central[1]).any() and (new < old).all()


@pytest.mark.parametrize("per_call", [False, True])
def test_a_stated_range_counts_instead(per_call):
    """Only savings that hardly anybody has suffice for them."""
    query = FRAME[(model(FRAME) < 0.01) & (FRAME["savings"] < 8_000)].head(20)
    ranges = {"savings": (0.0, 90_000.0)}
    beyond = Schema.infer(FRAME).features[1].central[1]
    more = {"within": Constraints(ranges=ranges)} if per_call else {"ranges": ranges}
    direct, _ = answers(
        query=query, act_on=["savings"], search=Search(min_plausibility=0.0), **more
    )
    assert (moves(direct, "savings")[1] > beyond).any()


def test_a_stated_step_and_none():
    direct, _ = answers(steps={"income": 5_000, "savings": None}, act_on=["income", "savings"])
    _, income = moves(direct, "income")
    assert len(income) and (income % 5_000 == 0).all()
    _, savings = moves(direct, "savings")
    assert len(savings) and (savings % 1.0 != 0.0).any()


def test_a_coarse_precision_is_kept_in_columns_of_integers():
    schema = Schema.infer(FRAME).replace("income", precision=-3)
    direct = DEAR(model, schema, act_on=["income"]).fit(FRAME).generate(REFUSED).direct
    income = direct["income"].dropna()
    assert len(income) > 15 and (income % 1_000 == 0).all()


@pytest.mark.parametrize(
    "search", [Search.cheapest(), Search(steps=False)], ids=["cheapest", "off"]
)
def test_searches_without_steps_set_any_value(search):
    direct, schema = answers(search=search, act_on=["savings"])
    _, new = moves(direct, "savings")
    assert (new % schema.steps["savings"] != 0.0).any()


def test_what_follows_and_what_a_person_tries_has_no_steps():
    schema = Schema.infer(FRAME)
    dear = DEAR(model, schema).fit(FRAME)
    tried = dear.apply(REFUSED.head(5), {"savings": 61_234.56})
    assert (tried.counterfactuals["savings"] == 61_234.56).all()


def test_one_row_far_beyond_all_others_changes_no_answer_by_much():
    clean = FRAME.iloc[1:]
    costs = []
    for frame in (FRAME, clean):
        result = DEAR(model, Schema.infer(frame)).fit(frame).generate(REFUSED)
        costs.append(result.actions["direct_cost"].median())
    assert costs[0] == pytest.approx(costs[1], rel=0.05)


def test_the_schema_tells_heavy_tails_and_steps():
    text = repr(Schema.infer(FRAME, ranges={"years": (0, 12)}))
    assert "steps: income 500, savings 200, debt 200" in text
    assert "ranges: years 0 to 12" in text
    assert "heavy tails: savings (the largest value is 1e+07, the 99th percentile" in text


def test_advice_says_how_far_a_kind_goes_and_what_ends_at_the_edge():
    dear = DEAR(model, Schema.infer(FRAME), act_on=["years"], search=Search.cheapest())
    query = FRAME[(model(FRAME) < 0.5) & (FRAME["years"] < 4)].head(80)
    advice = dear.fit(FRAME).generate(query).advice()
    (line,) = advice[advice["change"] == "up"].itertuples()
    result = dear.generate(query)
    new = result.direct.loc[result.actions["success"], "years"].dropna()
    high = Schema.infer(FRAME).features[3].central[1]
    assert line.at_edge == pytest.approx((new >= high - 1).mean())
    assert line.goes.split()[0] == f"{(new - query.loc[new.index, 'years']).median():.3g}"


SEARCH = Search(max_features=1, margin=0.0, prefer_alone=0.0, min_confidence=0.0)


def accepting(gain):
    """Boosted trees that accept one gain, as they do on Adult, large ones, and long hours."""
    rng = np.random.default_rng(0)
    gains = np.where(rng.random(N) < 0.5, 0.0, rng.gamma(2.0, 3_000.0, N)).round()
    gains[np.abs(gains - gain) < 100] = 0.0
    gains[:300] = gain
    frame = pd.DataFrame({"gain": gains, "hours": rng.normal(40, 9, N).round(1)})
    label = (gains == gain) | (gains > 12_000) | (frame["hours"] > 60)
    return frame, GradientBoostingClassifier(random_state=0).fit(frame, label)


@pytest.mark.parametrize("name", ["gain", "hours"])
@pytest.mark.parametrize("gain", [2_400, 4_700])
def test_no_smaller_amount_of_boosted_trees_is_credible(gain, name):
    """No smaller amount of the same feature, in its steps, passes the same checks."""
    frame, trees = accepting(gain)
    refused = frame[~trees.predict(frame)].head(8)
    dear = DEAR(trees, Schema.infer(frame), act_on=[name], search=SEARCH).fit(frame)
    found = dear.generate(refused)
    assert found.actions["credible"].sum() >= 3
    own, step = refused[name].to_numpy()[:, None], dear.schema.steps[name]
    away = np.abs(found.direct[name].to_numpy(float, na_value=0.0)[:, None] - own)
    values = np.arange(0.0, frame[name].max(), step)
    row, at = np.nonzero((np.abs(values - own) < away - step / 2) & (np.abs(values - own) >= step))
    nearer = refused.iloc[row].reset_index(drop=True)
    asked = pd.DataFrame({name: values[at]}, index=nearer.index)
    assert not dear.apply(nearer, asked).actions["credible"].any()
