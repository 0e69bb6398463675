"""Missing values and special codes are separate levels that no action enters or leaves."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from dear_plugin import DEAR, Constraints, Encoder, Schema
from dear_plugin.data.numbers import known, row_value
from dear_plugin.rivals import NearestAccepted


@pytest.fixture(scope="module")
def table() -> tuple[pd.DataFrame, pd.Series]:
    """Numbers and a category with missing values, and a number with two codes."""
    rng, n = np.random.default_rng(0), 2000
    savings = rng.normal(50, 10, n).round(1)
    income = (savings / 2 + rng.normal(0, 5, n)).round(1)
    months = rng.integers(0, 30, n).astype(float)
    accepted = savings + income + 2 * months + rng.normal(0, 5, n) > 105
    job = rng.choice(["cook", "judge", "nurse"], n).astype(object)
    income[rng.random(n) < 0.1] = np.nan
    months[rng.random(n) < 0.05], months[rng.random(n) < 0.05] = -9, -7
    job[rng.random(n) < 0.05] = np.nan
    frame = pd.DataFrame({"savings": savings, "income": income, "months": months, "job": job})
    return frame, pd.Series(accepted.astype(int))


@pytest.fixture(scope="module")
def schema(table) -> Schema:
    return Schema.infer(table[0], special={"months": [-9, -7]})


@pytest.fixture(scope="module")
def model(table):
    columns = make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["job"]),
        remainder="passthrough",
    )
    return make_pipeline(columns, HistGradientBoostingClassifier(max_iter=40)).fit(*table)


@pytest.fixture(scope="module")
def rejected(table, model) -> pd.DataFrame:
    return table[0][model.predict(table[0]) == 0].head(150)


class TestRows:
    def test_each_level_has_its_own_row_value(self, table, schema):
        rows = Encoder(schema).rows(table[0])
        months, income = rows[:, 2], rows[:, 1]
        assert set(months[~known(months)].tolist()) == {row_value(0), row_value(1)}
        assert torch.equal(~known(income), torch.tensor(table[0]["income"].isna().tolist()))

    def test_the_encoding_has_an_indicator_and_a_zero(self, table, schema):
        encoder = Encoder(schema)
        x = encoder.encode(table[0])
        assert x.shape[1] == encoder.d == 1 + 2 + 3 + 4
        missing = torch.tensor(table[0]["income"].isna().tolist())
        assert torch.equal(x[:, 2] == 1.0, missing)
        assert (x[missing, 1] == 0.0).all()
        back = encoder.collapse(x, torch.zeros(len(x), encoder.p))
        assert torch.equal(encoder.rounded(back), encoder.rows(table[0]))

    def test_a_change_of_level_costs_one(self, schema, table):
        encoder = Encoder(schema)
        known, unknown = table[0].iloc[[0]].copy(), table[0].iloc[[0]].copy()
        known["income"], unknown["income"] = 20.0, np.nan
        distance = encoder.distance(encoder.rows(known), encoder.rows(unknown))
        assert distance.tolist() == [[0.0, 1.0, 0.0, 0.0]]


@pytest.fixture(scope="module", params=[DEAR, NearestAccepted])
def result(request, table, schema, model, rejected):
    return request.param(model, schema).fit(table[0]).generate(rejected)


class TestCounterfactuals:
    def test_missing_cells_stay_missing_and_others_do_not_become_missing(self, result):
        before, after = result.factuals, result.counterfactuals
        assert result.actions["success"].mean() > 0.5
        pd.testing.assert_frame_equal(before.isna(), after.isna())

    def test_codes_are_neither_entered_nor_left(self, result):
        before, after = result.factuals["months"], result.counterfactuals["months"]
        assert ((before < 0) == (after < 0)).all()
        assert (before[before < 0] == after[before < 0]).all()
        assert after[after >= 0].between(0, 29).all()


class TestEnterAndLeaveSpecial:
    @pytest.fixture
    def reasons(self, table, schema, model, rejected):
        """Why rows of special values have no answer on some features."""

        def asked(act_on, within=None):
            dear = DEAR(model, schema, act_on=act_on).fit(table[0])
            stuck = rejected.head(2).assign(months=-9.0, income=np.nan)
            return set(dear.generate(stuck, within=within).actions["reason"])

        return asked

    def test_an_action_leaves_a_code(self, table, schema, model, rejected):
        free = schema.replace("months", leave_special=True)
        result = DEAR(model, free, act_on=["months"]).fit(table[0]).generate(rejected)
        coded = rejected["months"] < 0
        left = coded & (result.counterfactuals["months"] >= 0)
        assert left.any()
        assert (result.actions.loc[left, "direct_cost"] == 1.0).all()
        assert ((result.counterfactuals["months"] < 0) <= coded).all()

    def test_the_reason_of_a_row_whose_features_are_all_special_names_leave_special(self, reasons):
        assert reasons(["months", "income"]) == {
            "nothing may be acted on: special values (codes, missing values) are kept of"
            " income, months: allow actions to leave them with schema.replace('income',"
            " leave_special=True)"
        }

    def test_leave_special_is_not_named_where_a_feature_is_frozen_besides(self, reasons):
        frozen = Constraints(frozen=["months"])
        assert reasons(["months"], frozen) == {"nothing may be acted on"}

    def test_an_action_enters_a_code(self, table, model, schema):
        frame = table[0][["savings", "months"]]
        free = Schema.infer(frame, special={"months": [-9, -7]})
        free = free.replace("months", enter_special=True)
        dear = DEAR(lambda f: (f["months"] == -7).astype(float), free, act_on=["months"])
        factuals = frame[frame["months"] >= 0].head(20)
        result = dear.fit(frame).generate(factuals)
        assert result.actions["success"].all()
        assert (result.counterfactuals["months"] == -7).all()

    def test_a_missing_category_is_entered_only_with_enter_special(self, table, schema):
        def is_missing(frame):
            return frame["job"].isna().astype(float)

        factuals = table[0][table[0]["job"].notna()].head(10)
        default = DEAR(is_missing, schema).fit(table[0]).generate(factuals)
        assert not default.actions["success"].any()
        free = schema.replace("job", enter_special=True)
        assert DEAR(is_missing, free).fit(table[0]).generate(factuals).actions["success"].all()


class TestCategoriesThatAreNotKnown:
    """The model accepts what is not known; "?" is in three levels and in two."""

    @pytest.fixture(params=[["cook", "judge"], ["cook"]], ids=["three levels", "two levels"])
    def frame(self, request):
        rng = np.random.default_rng(0)
        job = rng.choice([*request.param, "?"], 300)
        hours = np.where(job == "?", rng.integers(40, 60, 300), rng.integers(10, 30, 300))
        return pd.DataFrame({"job": job, "hours": hours})

    @staticmethod
    def accepts(level):
        return lambda frame: frame["job"].eq(level).astype(float)

    def test_neither_actions_nor_what_follows_enters_them(self, frame, caplog):
        schema = Schema.infer(frame)
        assert "special={'job': ['?']} states this" in caplog.text
        known = frame[frame["job"] != "?"].head(20)
        dear = DEAR(self.accepts("?"), schema).fit(frame)
        assert not dear.generate(known).actions["success"].any()
        moved = dear.apply(known, {"hours": 55}).counterfactuals
        assert not moved["job"].eq("?").any()

    def test_a_row_leaves_them_only_if_the_user_says_so(self, frame):
        schema, rows = Schema.infer(frame), frame[frame["job"] == "?"].head(5)
        dear = DEAR(self.accepts("cook"), schema, act_on=["job"]).fit(frame)
        kept = dear.generate(rows)
        assert kept.counterfactuals["job"].eq("?").all()
        assert kept.actions["reason"].str.contains("leave_special=True").all()
        free = DEAR(
            self.accepts("cook"), schema.replace("job", leave_special=True), act_on=["job"]
        )
        assert free.fit(frame).generate(rows).counterfactuals["job"].eq("cook").all()

    def test_a_level_that_is_excluded_is_left_and_not_entered(self, frame):
        schema = Schema.infer(frame, special={"job": []}, excluded={"job": ["?"]})
        for wanted, rows in (("cook", frame["job"] == "?"), ("?", frame["job"] == "cook")):
            dear = DEAR(self.accepts(wanted), schema, act_on=["job"]).fit(frame)
            solved = dear.generate(frame[rows].head(5)).actions["success"]
            assert solved.all() if wanted == "cook" else not solved.any()

    def test_they_are_levels_like_others_if_the_user_says_so(self, frame, caplog):
        # So that no level and hours are a pair that no row has.
        frame = frame.assign(hours=np.arange(len(frame)) % 5)
        schema = Schema.infer(frame, special={"job": []})
        dear = DEAR(self.accepts("?"), schema, act_on=["job"]).fit(frame)
        assert dear.generate(frame[frame["job"] != "?"].head(5)).actions["success"].all()
        assert "not known" not in caplog.text

    def test_a_level_of_another_name_is_declared(self, frame):
        schema = Schema.infer(frame, special={"job": ["cook"]})
        dear = DEAR(self.accepts("cook"), schema).fit(frame)
        assert not dear.generate(frame[frame["job"] == "?"].head(5)).actions["success"].any()


def test_support_uses_complete_rows_if_the_model_rejects_missing_values(table, schema):
    from sklearn.linear_model import LogisticRegression

    complete = table[0].dropna()
    numbers = ["savings", "income", "months"]
    net = LogisticRegression(max_iter=2000).fit(complete[numbers], table[1][complete.index])

    def model(frame):
        return net.predict_proba(frame[numbers])[:, 1]

    factuals = complete[net.predict(complete[numbers]) == 0].head(20)
    result = DEAR(model, schema).fit(table[0]).generate(factuals)
    assert result.actions["success"].any()
    assert result.support.between(0.0, 1.0).all()


class TestCodeAmongAmounts:
    """99 of hours from 0 to 200 is a code: no action sets hours to it, and nothing moves to it."""

    @pytest.fixture
    def worked(self) -> pd.DataFrame:
        rng, n = np.random.default_rng(0), 1_500
        days = rng.integers(0, 40, n)
        hours = (5.0 * days + rng.integers(0, 3, n)).clip(0, 200)
        hours[rng.random(n) < 0.2] = 99
        return pd.DataFrame({"hours": hours, "days": days})

    def test_the_next_amount_is_taken(self, worked):
        schema = Schema.infer(worked, special={"hours": [99]})
        dear = DEAR(lambda f: (f["hours"] >= 99).to_numpy(float), schema, act_on=["hours"])
        refused = worked[worked["hours"].between(60, 98)].head(20)
        result = dear.fit(worked).generate(refused)
        assert result.actions["success"].all()
        assert set(result.counterfactuals["hours"]) == {100.0}
        only = dear.generate(refused, within=Constraints(ranges={"hours": (0, 99)}))
        assert not only.actions["success"].any()

    def test_what_follows_steps_over_it(self, worked):
        schema = Schema.infer(worked, special={"hours": [99]})
        dear = DEAR(lambda f: (f["days"] >= 30).to_numpy(float), schema, act_on=["days"])
        rows = pd.DataFrame({"hours": np.arange(40.0, 60.0), "days": 9})
        dear.fit(worked)
        for days in range(10, 25):
            reached = dear.apply(rows, {"days": days}).counterfactuals["hours"]
            assert (reached > rows["hours"]).any()
            assert 99 not in set(reached)

    def test_no_observed_value_is_a_code(self):
        column = pd.DataFrame({"terms": np.tile(np.arange(10, 400, 10), 50)})
        (feature,) = Schema.infer(column, special={"terms": [90]})
        assert feature.observed == (*range(10, 90, 10), *range(100, 400, 10))
