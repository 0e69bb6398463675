"""Advice: a line for each kind among the answers, and what excludes it."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema
from dear_plugin.errors import SchemaError
from dear_plugin.tell.advice import COLUMNS
from dear_plugin.tell.schemas import DOWN, UP


@pytest.fixture(scope="module")
def result(fitted, mixed):
    return fitted.generate(mixed.refused(60).set_axis([f"p{i}" for i in range(60)]))


@pytest.fixture(scope="module")
def advice(result):
    return result.advice()


def rows_of(result, feature, change, new):
    """The rows with a kind of advice, by the frames alone."""
    before, after = result.factuals[feature], result.counterfactuals[feature]
    names = result.actions["acted_on"].str.split(" + ", regex=False)
    acts = names.map(lambda each: feature in each)
    kept = acts & result.actions["success"]
    if change in (UP, DOWN):
        return kept & ((after > before) if change == UP else (after < before))
    called = {"True": "yes", "False": "no"}
    old, now = (column.astype(str).replace(called) for column in (before, after))
    return kept & (old + " → " + now == change) & (after == new)


class TestLines:
    def test_every_change_that_is_acted_on_is_in_one_line(self, result, advice):
        assert tuple(advice) == COLUMNS
        acted = (result.proposal.direct & result.changed).numpy()
        done = result.actions["success"].to_numpy()
        assert advice["rows"].sum() == acted[done].sum()
        assert (advice["rows"].diff().dropna() <= 0).all()
        assert np.allclose(advice["share"], advice["rows"] / done.sum())

    def test_a_line_counts_its_rows_and_has_their_medians(self, result, advice):
        assert len(advice) > 4
        for line in advice.itertuples():
            at = rows_of(result, line.feature, line.change, line.new)
            assert at.sum() == line.rows
            assert at[line.example]
            assert result.actions["credible"][line.example] == result.actions["credible"][at].any()
            consistency = result.actions["consistency"][at]
            assert (consistency <= line.consistency + 1e-9).all()
            if line.change in (UP, DOWN):
                new = result.counterfactuals[line.feature][at].astype(float).median()
                assert line.new == pytest.approx(new, abs=0.51)

    def test_a_value_that_all_rows_lack_has_no_median(self):
        values = np.random.default_rng(0).normal(50, 10, 300).round(1)
        frame = pd.DataFrame({"pay": np.where(np.arange(300) % 5, values, np.nan)})
        schema = Schema.infer(frame).replace("pay", leave_special=True)
        dear = DEAR(lambda rows: rows["pay"].fillna(0.0) / 100, schema).fit(frame)
        (line,) = dear.generate(frame[frame["pay"].isna()].head(5)).advice().itertuples()
        assert (line.change, line.rows) == ("from or to a special value", 5)
        assert np.isnan(line.old)
        assert line.new > 50

    def test_what_usually_follows_is_named(self):
        rng = np.random.default_rng(0)
        pay = rng.normal(50, 10, 1500)
        frame = pd.DataFrame({"pay": pay, "tax": 0.4 * pay + rng.normal(0, 1, 1500)}).round(1)
        schema = Schema.infer(frame, labels={"tax": "the tax"})
        dear = DEAR(lambda f: 1 / (1 + np.exp(6 - f["pay"] / 10)), schema, act_on=["pay"])
        advice = dear.fit(frame).generate(frame[frame["pay"] < 50].head(20)).advice()
        (line,) = advice.itertuples()
        assert (line.feature, line.change, line.rows) == ("pay", "up", 20)
        assert line.follows == "the tax up in 100%"
        assert line.consistency == 1.0
        assert line.excludes == "decreasing=['pay']"


class TestExcluding:
    @pytest.mark.parametrize("line", range(5))
    def test_no_answer_has_a_kind_that_is_excluded(self, mixed, result, advice, line):
        schema = mixed.schema.excluding(advice.loc[[line]])
        chosen = advice.loc[line]
        again = DEAR(mixed.net, schema).fit(mixed.frame).generate(result.factuals).advice()
        same = (again["feature"] == chosen["feature"]) & (again["change"] == chosen["change"])
        assert not same.any()
        assert len(again)

    def test_the_text_is_the_argument_that_does_the_same(self, result, advice, mixed):
        infer = {
            "immutable": ["gender"],
            "increasing": ["age", "owner"],
            "decreasing": ["debt"],
            "ranges": {"income": (0.0, 90.0)},
        }
        for i, line in advice.iterrows():
            (more,) = eval(f"[dict({line['excludes']})]")
            (argument, value) = next(iter(more.items()))
            own = infer.get(argument, [])
            stated = value if isinstance(value, dict) else [*own, *value]
            if argument == "immutable":
                stated = [*own, *value]
            schema = Schema.infer(mixed.frame, **{**infer, argument: stated})
            assert schema == mixed.schema.excluding(advice.loc[[i]])

    def test_both_directions_make_a_number_immutable(self, mixed):
        both = pd.DataFrame({"feature": ["income"] * 2, "change": [UP, DOWN], "new": [60, 20]})
        assert mixed.schema.excluding(both).features[1].immutable
        up = mixed.schema.excluding(both.iloc[:1])
        assert up.features[1].direction == -1
        assert mixed.schema.features[1].direction == 0

    def test_nothing_enters_the_excluded_level_of_a_group(self):
        rng = np.random.default_rng(0)
        job = rng.choice(["a", "b", "c"], 800)
        frame = pd.get_dummies(pd.Series(job), prefix="job", dtype=int)
        frame["pay"] = rng.normal(50, 10, 800).round(1)

        def model(f):
            return 1 / (1 + np.exp(1.0 - 2.0 * f["job_c"] - 1.8 * f["job_b"]))

        schema = Schema.infer(frame)
        dear = DEAR(model, schema, act_on=["job"]).fit(frame)
        refused = frame[frame["job_a"] == 1].head(10)
        advice = dear.generate(refused).advice()
        assert set(advice["change"]) <= {"a → b", "a → c"}
        first = advice.loc[0]
        assert first["excludes"] == f"decreasing=['job_{first['new']}']"
        other = DEAR(model, schema.excluding(advice.loc[[0]]), act_on=["job"]).fit(frame)
        (again,) = other.generate(refused).advice().itertuples()
        assert again.new != first["new"]

    def test_what_is_no_line_is_refused(self, mixed, advice):
        with pytest.raises(SchemaError, match=r"advice.loc\[\[0, 2\]\]"):
            mixed.schema.excluding(["income"])
        unknown = advice.loc[[0]].assign(feature="wage")
        with pytest.raises(SchemaError, match="unknown features: 'wage'"):
            mixed.schema.excluding(unknown)
