"""Bad input gives one clear error with the value, or a defined result."""

import logging
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn

from dear_plugin import DEAR, Constraints, Encoder, Schema, Target
from dear_plugin.errors import (
    ConstraintError,
    DearError,
    InputError,
    ModelError,
    SchemaError,
    SettingError,
    TargetError,
)


@pytest.fixture(params=["fit", "generate"])
def method_call(request, mixed):
    """`fit`, and `generate` of a fitted method."""
    dear = DEAR(mixed.net, mixed.schema)
    if request.param == "fit":
        return dear.fit
    return partial(dear.fit(mixed.frame).generate, on_error="raise")


@pytest.fixture
def frame(mixed) -> pd.DataFrame:
    return mixed.refused(20).copy()


def rejects(method_call, frame, match):
    with pytest.raises(InputError, match=match):
        method_call(frame)


class TestFrames:
    def test_a_missing_column(self, method_call, frame):
        rejects(method_call, frame.drop(columns="income"), r"missing columns: .*'income'")

    def test_a_misspelt_column_gets_a_suggestion(self, method_call, frame):
        renamed = frame.rename(columns={"income": "incom"})
        rejects(method_call, renamed, r"'income' \(did you mean 'incom'\?\)")

    def test_several_missing_columns_at_once(self, method_call, frame):
        rejects(method_call, frame.drop(columns=["income", "town"]), r"'income'.*'town'")

    def test_duplicate_columns(self, method_call, frame):
        twice = pd.concat([frame, frame[["debt"]]], axis=1)
        rejects(method_call, twice, r"duplicate columns: \['debt'\]")

    def test_a_fit_needs_rows(self, mixed):
        rejects(DEAR(mixed.net, mixed.schema).fit, mixed.frame.iloc[:0], "no rows; at least one")

    def test_no_columns(self, method_call):
        rejects(method_call, pd.DataFrame(index=[1, 2]), "missing columns")

    @pytest.mark.parametrize("thing", [None, [[1, 2]], np.zeros((2, 8)), {"age": [1]}])
    def test_another_object_than_a_frame(self, method_call, thing):
        rejects(method_call, thing, f"a pandas DataFrame, got {type(thing).__name__}")

    def test_a_series(self, method_call, frame):
        rejects(method_call, frame.iloc[0], "a pandas DataFrame, got Series")

    def test_numbers_for_names(self, method_call, frame):
        renamed = frame.set_axis(range(frame.shape[1]), axis=1)
        rejects(method_call, renamed, r"missing columns: .*'age'.*known are: 0, 1")


class TestCells:
    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("name", ["income", "debt"])
    def test_missing_and_infinite_numbers(self, method_call, frame, name, bad):
        frame.loc[frame.index[3], name] = bad
        rejects(
            method_call,
            frame,
            rf"'{name}' has missing or infinite.*in 1 rows, first \[{frame.index[3]}\]",
        )

    def test_a_missing_whole_number(self, method_call, frame):
        frame["age"] = frame["age"].astype("Int64")
        frame.loc[frame.index[0], "age"] = pd.NA
        rejects(method_call, frame, r"'age' has missing or infinite values in 1 rows")

    @pytest.mark.parametrize("name", ["gender", "town", "job"])
    def test_a_missing_category(self, method_call, frame, name):
        frame.loc[frame.index[0], name] = None
        rejects(method_call, frame, rf"'{name}' has values never seen: \[(None|nan)\]")

    @pytest.mark.parametrize(
        ("name", "value"), [("gender", "other"), ("town", "Z"), ("owner", 2), ("member", "yes")]
    )
    def test_an_unseen_category(self, method_call, frame, name, value):
        frame[name] = frame[name].astype(object)
        frame.loc[frame.index[5], name] = value
        rejects(
            method_call, frame, rf"'{name}' has values never seen: \[{value!r}\].*expected one of"
        )

    def test_letters_in_another_case_are_another_category(self, method_call, frame):
        rejects(
            method_call, frame.assign(gender=frame["gender"].str.upper()), r"'gender'.*'FEMALE'"
        )

    def test_numbers_as_text(self, method_call, frame):
        frame["income"] = frame["income"].astype(str)
        rejects(
            method_call, frame, r"'income' must hold numbers, got dtype (object|str).*to_numeric"
        )

    def test_numbers_as_objects(self, method_call, frame):
        frame["income"] = frame["income"].astype(object)
        rejects(method_call, frame, r"columns \['income'\] hold numbers as objects.*infer_objects")

    @pytest.mark.parametrize("kind", ["bool", "boolean"])
    def test_booleans_in_a_numeric_column(self, method_call, frame, kind):
        """`pd.to_numeric` does not convert them."""
        frame["income"] = (frame["income"] > 3).astype(kind)
        rejects(
            method_call, frame, rf"'income' must hold numbers, got dtype {kind}: .*astype\(int\)$"
        )
        method_call(frame.assign(income=frame["income"].astype(int)))

    def test_a_row_of_a_frame_gets_one_advice_which_works(self, fitted, frame):
        row = frame.iloc[0].to_frame().T
        with pytest.raises(InputError) as caught:
            fitted.generate(row)
        assert str(caught.value).count("frame = frame.infer_objects()") == 1
        assert "pd.to_numeric" not in str(caught.value)
        assert len(fitted.generate(row.infer_objects())) == 1

    @pytest.mark.parametrize("name", ["income", "owner"])
    def test_sparse_columns(self, method_call, frame, name):
        frame[name] = frame[name].astype(pd.SparseDtype("float64", 0.0))
        rejects(
            method_call, frame, rf"'{name}' is sparse.*frame\['{name}'\]\.sparse\.to_dense\(\)"
        )

    @pytest.mark.parametrize("value", [[1, 2], np.zeros(2), {"a": 1}, ("A", [1])], ids=str)
    def test_an_unhashable_category(self, method_call, frame, value):
        frame["town"] = frame["town"].astype(object)
        frame["town"] = [value if i < 2 else town for i, town in enumerate(frame["town"])]
        where = frame.index[:2].tolist()
        rejects(method_call, frame, rf"'town' has values never seen: .*\(first rows \[{where[0]}")

    def test_dates(self, method_call, frame):
        frame["age"] = pd.Timestamp("1980-01-01")
        rejects(method_call, frame, r"'age' must hold numbers, got dtype datetime64")

    def test_all_complaints_are_in_one_error(self, method_call, frame):
        frame["age"] = "old"
        frame["town"] = "Z"
        rejects(method_call, frame, r"'age' must hold numbers.*; .*'town' has values never seen")


class TestDefinedResults:
    def test_an_extra_column_is_kept(self, fitted, frame):
        note = [object() for _ in range(len(frame))]
        after = fitted.generate(frame.assign(note=note)).counterfactuals
        assert after["note"].tolist() == note

    def test_values_outside_the_observed_range_are_not_clipped(self, fitted, frame):
        frame["income"] = 1e6
        result = fitted.generate(frame)
        assert result.actions["success"].all()
        assert (result.counterfactuals["income"] <= 1e6).all()

    def test_a_constant_column_never_changes(self, mixed):
        frame = mixed.frame.assign(country="here", year=2024, rate=0.5)
        schema = Schema.infer(frame)
        net = nn.Linear(Encoder(schema).d, 1)
        dear = DEAR(net, schema).fit(frame)
        assert not {"country", "year", "rate"} & set("".join(dear.sets.labels).split(" + "))
        after = dear.generate(frame.iloc[:20]).counterfactuals
        for name, value in (("country", "here"), ("year", 2024), ("rate", 0.5)):
            assert (after[name] == value).all()

    def test_a_constant_column_may_have_another_value_later(self, mixed):
        frame = mixed.frame.assign(year=2024)
        schema = Schema.infer(frame)
        dear = DEAR(mixed_pipeline(mixed), schema).fit(frame)
        after = dear.generate(frame.iloc[:5].assign(year=2025)).counterfactuals
        assert (after["year"] == 2025).all()

    def test_only_constants_leave_nothing_to_act_on(self, mixed):
        schema = Schema.infer(pd.DataFrame({"a": [1, 1], "b": ["x", "x"]}))
        with pytest.raises(ConstraintError, match="nothing to act on: every feature is immutable"):
            DEAR(mixed.net, schema)

    @pytest.mark.parametrize("n", [1, 2, 5, 20])
    def test_few_rows_are_enough_to_run(self, mixed, n, caplog):
        few = mixed.frame.iloc[:n]
        schema = Schema.infer(few) if n > 1 else mixed.schema
        dear = DEAR(mixed_pipeline(mixed), schema)
        with caplog.at_level(logging.WARNING):
            result = dear.fit(few).generate(few)
        assert len(result) == n
        assert len(result.support) == n
        own = mixed.pipeline.predict(result.counterfactuals) == 1
        assert result.actions["success"].tolist() == own.tolist()
        assert f"fitted on {n} rows" in caplog.text

    def test_few_rows_cause_a_log_message_and_no_warning(self, mixed, caplog):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            DEAR(mixed.net, mixed.schema).fit(mixed.frame.iloc[:500])
        assert {r.levelname for r in caplog.records} == {"WARNING"}
        assert "fitted on 500 rows" in caplog.text

    def test_all_rows_accepted(self, mixed):
        dear = DEAR(lambda f: np.full(len(f), 0.9), mixed.schema).fit(mixed.frame)
        result = dear.generate(mixed.frame.iloc[:10])
        pd.testing.assert_frame_equal(result.counterfactuals, mixed.frame.iloc[:10])
        assert (result.actions["cost"] == 0).all()

    def test_no_row_solvable(self, mixed):
        dear = DEAR(lambda f: np.full(len(f), 0.1), mixed.schema, act_on=["debt"]).fit(mixed.frame)
        result = dear.generate(mixed.frame.iloc[:10])
        assert not result.actions["success"].any()
        assert (result.actions["reason"] != "").all()


def mixed_pipeline(mixed):
    """The study's pipeline on its own columns, ignoring others."""
    return lambda frame: mixed.pipeline.predict_proba(frame[list(mixed.frame)])


class TestSchemas:
    @pytest.mark.parametrize("names", [[0, 1, 2], ["a", 1, "c"], [("a", 1), "b", "c"]])
    def test_names_that_are_no_strings(self, names):
        frame = pd.DataFrame(np.arange(9).reshape(3, 3))
        frame.columns = pd.Index(names, dtype=object, tupleize_cols=False)
        with pytest.raises(
            SchemaError, match=r"column names must be strings.*columns\.map\(str\)"
        ):
            Schema.infer(frame)

    def test_the_advice_on_them_works(self):
        frame = pd.DataFrame(np.arange(9).reshape(3, 3))
        frame.columns = frame.columns.map(str)
        assert Schema.infer(frame).names == ("0", "1", "2")

    def test_a_bare_name_instead_of_a_list(self, mixed):
        with pytest.raises(SchemaError, match=r"immutable.* list.*'age'"):
            Schema.infer(mixed.frame, immutable="age")


class TestConstraints:
    @pytest.mark.parametrize(
        ("within", "match"),
        [
            (Constraints(frozen=["sex"]), r"frozen: unknown features: 'sex'"),
            (Constraints(act_on=["incme"]), r"act_on: .*'incme' \(did you mean 'income'\?\)"),
            (Constraints(ranges={"wage": (0, 1)}), r"ranges: unknown features: 'wage'"),
            (Constraints(categories={"work": ["a"]}), r"categories: unknown features: 'work'"),
            (Constraints(categories={"job": ["clerk"]}), r"unknown values: 'clerk'.*porter, cook"),
            (Constraints(frozen=[["age"], ["age"]]), r"a list of 20, one per row"),
            (Constraints(act_on=[["age"]] * 21), r"a list of 20, one per row"),
            (Constraints(ranges=[{}]), r"a list of 20, one per row"),
            (Constraints(categories=[{}] * 3), r"a list of 20, one per row"),
            (Constraints(ranges={"age": ([1, 2], [3, 4])}), r"a number, or 20, one per row"),
            (Constraints(frozen="age"), r"a list of names.*got 'age'"),
        ],
    )
    def test_invalid_constraints(self, fitted, frame, within, match):
        with pytest.raises(ConstraintError, match=match):
            fitted.generate(frame, within=within)

    def test_act_on_of_the_method(self, mixed):
        with pytest.raises(DearError, match=r"'incme' \(did you mean 'income'\?\)"):
            DEAR(mixed.net, mixed.schema, act_on=["incme"])

    def test_one_class_a_row_for_another_number_of_rows(self, fitted, frame):
        with pytest.raises(TargetError, match="got 3 for 20 rows"):
            fitted.generate(frame, Target.of_class([1, 1, 0]))

    @pytest.mark.parametrize("target", [[1, 0], {"label": 1}], ids=str)
    def test_another_object_than_a_target(self, fitted, frame, target):
        with pytest.raises(TargetError, match="must be a Target or the label of a class"):
            fitted.generate(frame, target)


class Bad(nn.Module):
    """A module that returns a function of its input."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, x):
        return self.answer(x)


class TestModels:
    @pytest.mark.parametrize(
        ("answer", "output", "match"),
        [
            (lambda x: x.sum(), None, r"m = 20 rows and returned shape \(\)"),
            (lambda x: x[:, None], None, r"returned shape \(20, 1, \d+\)"),
            (lambda x: x[:3, :1], None, r"returned shape \(3, 1\)"),
            (lambda x: x[:, :1] * torch.nan, None, r"NaN or infinity \(first in row 0 of 20\)"),
            (lambda x: x[:, :1] / 0 - 5, None, r"NaN or infinity"),
            (lambda x: x[:, :1] * 9 - 5, "probabilities", r"pass output='logits'"),
            (lambda x: [0.5] * len(x), None, r"must return a tensor, got list"),
        ],
    )
    def test_a_module_with_invalid_outputs(self, mixed, frame, answer, output, match):
        dear = DEAR(Bad(answer), mixed.schema, output=output).fit(mixed.frame)
        with pytest.raises(ModelError, match=match):
            dear.generate(frame)

    @pytest.mark.parametrize(
        ("answer", "match"),
        [
            (lambda f: 0.5, r"m = 20 rows and returned shape \(\)"),
            (lambda f: np.full(3, 0.5), r"returned shape \(3,\)"),
            (lambda f: np.full(len(f), np.nan), r"NaN or infinity"),
            (lambda f: np.full(len(f), 1.5), r"values from 1.5 to 1.5"),
            (lambda f: np.full(len(f), "approved"), r"must return numbers, got dtype <U8"),
            (lambda f: None, r"must return numbers, got dtype object"),
        ],
    )
    def test_a_black_box_with_invalid_outputs(self, mixed, frame, answer, match):
        dear = DEAR(answer, mixed.schema).fit(mixed.frame)
        with pytest.raises(ModelError, match=match):
            dear.generate(frame)

    @pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float64])
    def test_a_black_box_may_return_a_tensor_with_a_gradient(self, mixed, frame, kind):
        net = nn.Linear(1, 1).to(kind)
        answer = lambda f: net(torch.tensor(f[["debt"]].to_numpy()).to(kind)).sigmoid()  # noqa: E731
        dear = DEAR(answer, mixed.schema).fit(mixed.frame)
        score = dear.generate(frame).actions["score_before"]
        with torch.no_grad():
            own = answer(frame)[:, 0].double()
        assert score.to_numpy() == pytest.approx(own.numpy())

    def test_a_module_for_another_encoding_gets_an_error_with_the_width(self, mixed, frame):
        dear = DEAR(nn.Linear(3, 1), mixed.schema).fit(mixed.frame)
        with pytest.raises(ModelError, match=r"rows of shape \(20, 16\).*16 encoded columns"):
            dear.generate(frame)

    def test_a_regressor_needs_its_output(self, mixed):
        with pytest.raises(ModelError, match="output='values'; got LinearRegression"):
            DEAR(LinearRegression(), mixed.schema)

    def test_a_regression_has_no_default_target(self, mixed, frame):
        dear = DEAR(lambda rows: rows["income"], mixed.schema, output="values").fit(frame)
        with pytest.raises(TargetError, match=r"pass target=Target\.of_range"):
            dear.generate(frame)

    def test_model_and_schema_in_the_wrong_order(self, mixed):
        with pytest.raises(SettingError, match="schema must be a Schema"):
            DEAR(mixed.schema, mixed.net)

    def test_constraints_as_a_dict(self, fitted, frame):
        with pytest.raises(SettingError, match="within must be a Constraints"):
            fitted.generate(frame, within={"frozen": ["age"]})

    def test_a_class_that_the_model_does_not_have(self, fitted, frame):
        with pytest.raises(TargetError, match="class 2 wanted, the model has 2 classes"):
            fitted.generate(frame, Target.of_class(2))


def test_a_failed_call_does_not_change_the_method(mixed, frame):
    dear = DEAR(mixed.net, mixed.schema).fit(mixed.frame)
    before = dear.generate(frame).counterfactuals
    for bad in (frame.drop(columns="age"), frame.assign(town="Z")):
        with pytest.raises(InputError):
            dear.generate(bad, on_error="raise")
        with pytest.raises(InputError):
            dear.fit(bad)
    pd.testing.assert_frame_equal(dear.generate(frame).counterfactuals, before)
