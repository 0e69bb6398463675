"""Of what follows, an answer needs no more than the user's model asks for, and where it does."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema, Search


def table():
    """`far` and `near` follow `a`, the former farther, and `also` less far."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=2_000)
    far, near, also = 4 * a, a, 0.9 * a
    noise = [scale * rng.normal(size=2_000) for scale in (1.0, 0.4, 0.5)]
    frame = pd.DataFrame({"a": a, "far": far, "near": near, "also": also})
    frame[["far", "near", "also"]] += np.stack(noise, 1)
    return frame.round(2)


def needing(model, frame, count=20):
    """The answers that count on what follows `a`."""
    schema = Schema.infer(frame, tiers=[["a"], [*frame.columns.drop("a")]])
    dear = DEAR(model, schema, act_on=["a"], search=Search(own_gain=False)).fit(frame)
    result = dear.generate(frame[model(frame) < 0.3].head(count))
    return result[result.actions.index[result.actions["reliance"] > 0.0]]


def told(result):
    """The changes that must follow."""
    lines = result.changes.query("kind == 'indirect'")
    return lines[lines["least"] != lines["old"]]


def logistic(margin):
    return 1 / (1 + np.exp(-6 * margin))


def test_what_the_model_does_not_look_at_is_not_needed():
    answers = needing(lambda rows: logistic(rows["near"] - 0.5), table())
    assert set(answers.changes.query("kind == 'indirect'")["feature"]) == {"far", "near", "also"}
    assert set(told(answers)["feature"]) == {"near"}
    assert not answers.describe().str.contains("far at").any()


def test_no_change_that_is_needed_can_be_left_out():
    """Of many small parts some are enough together; `far` counts against them."""
    model = lambda r: logistic(2 * r["near"] + 3 * r["also"] - 0.2 * r["far"] - 2)  # noqa: E731
    answers = needing(model, table())
    assert len(answers) > 5
    for label, own in told(answers).groupby("row"):
        acted = answers.factuals.loc[[label]].assign(a=answers.direct["a"][label])
        least = dict(zip(own["feature"], own["least"].astype(float), strict=True))
        assert model(acted.assign(**least)).iloc[0] >= 0.5
        for name in least:
            fewer = {other: value for other, value in least.items() if other != name}
            assert model(acted.assign(**fewer)).iloc[0] < 0.5


def test_the_unit_of_a_column_does_not_choose_what_is_needed():
    """Either of two will do, and the one that changes more is told."""
    frame = table()
    thousand = frame.assign(also=(frame["also"] * 1_000).round())
    chosen = [
        told(needing(lambda r: logistic(r["near"].clip(r["also"] / unit) - 0.5), each))  # noqa: B023
        for unit, each in ((1, frame), (1_000, thousand))
    ]
    assert len(chosen[0]) > 5
    assert [*chosen[0][["row", "feature"]].itertuples(index=False)] == [
        *chosen[1][["row", "feature"]].itertuples(index=False)
    ]


@pytest.mark.parametrize("width", [0.1, 0.3])
def test_all_values_between_the_ends_are_accepted(width):
    """The model refuses a part of what is beyond the least value."""
    model = lambda r: logistic(r["near"] - 0.5) * (r["near"] // width % 3 != 1)  # noqa: E731
    own = told(needing(model, table(), 60))
    ends = own[["least", "new"]].astype(float)
    assert (ends["least"] == ends["new"]).any()
    for least, new in ends.itertuples(index=False):
        assert model(pd.DataFrame({"near": np.linspace(least, new, 100)})).min() >= 0.5


def test_many_followers_take_few_calls_of_the_model():
    rng = np.random.default_rng(0)
    a = rng.normal(size=1_000)
    names = [f"f{i}" for i in range(60)]
    frame = pd.DataFrame({n: a + 0.3 * rng.normal(size=1_000) for n in names}).round(2)
    frame.insert(0, "a", a.round(2))
    calls = []

    def model(rows):
        calls.append(len(rows))
        return logistic(rows[names].mean(axis=1) - 0.5)

    answers = needing(model, frame, 50)
    assert told(answers)["row"].nunique() > 20
    assert len(calls) <= 30
