"""Bad input gives one clear error with the value, or a defined result."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dear_plugin import DEAR, Constraints, Schema, Search, Target
from dear_plugin.errors import DearError, InputError, SchemaError


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


def with_cell(name, value, at=3, dtype=object):
    """A change of one cell of a frame."""

    def change(frame):
        column = frame[name].astype(dtype)
        column.iat[at] = value
        return frame.assign(**{name: column})

    return change


def cast(name, dtype):
    return lambda frame: frame.astype({name: dtype})


def unhashable(value):
    """Two cells that cannot be looked up."""
    return lambda frame: frame.assign(
        town=[value if i < 2 else town for i, town in enumerate(frame["town"])]
    )


# "ROW 3" in a message is the label of the fourth row.
NEVER = r"'{}' has values never seen: \[{}\]".format
INVALID_FRAMES = {
    "a missing column": (lambda f: f.drop(columns="income"), r"missing columns: .*'income'"),
    "a misspelt column": (
        lambda f: f.rename(columns={"income": "incom"}),
        r"did you mean 'incom'\?",
    ),
    "a duplicate column": (lambda f: pd.concat([f, f[["debt"]]], axis=1), r"columns: \['debt'\]"),
    "numbers for names": (
        lambda f: f.set_axis(range(f.shape[1]), axis=1),
        r"missing columns: .*'age'.*known are: \d, \d",
    ),
    "a series": (lambda f: f.iloc[0], r"DataFrame, got pandas.Series: a row is rows.loc\[\[label"),
    "a dict": (
        lambda f: f.iloc[0].to_dict(),
        r"DataFrame, got dict: a row is pd.DataFrame\(\[row",
    ),
    "records": (lambda f: f.to_dict("records"), r"got list: rows are pd.DataFrame\(rows\)"),
    "an array": (lambda f: np.zeros((2, 8)), r"got numpy.ndarray: pass pd.DataFrame\(array, col"),
    "nothing": (lambda f: None, "a pandas DataFrame, got NoneType"),
    "another library's frame": (
        lambda f: pytest.importorskip("pyarrow").Table.from_pandas(f),
        r"got pyarrow.Table: pass frame.to_pandas\(\)",
    ),
    **{
        f"{bad} in debt": (
            with_cell("debt", bad, dtype=float),
            r"'debt' has missing or infinite.*in 1 rows, first \[ROW 3\]",
        )
        for bad in (np.nan, np.inf, -np.inf)
    },
    "a missing whole number": (
        with_cell("age", pd.NA, dtype="Int64"),
        "'age' has missing or infinite values in 1 rows",
    ),
    **{f"a missing {n}": (with_cell(n, None), NEVER(n, "(None|nan)")) for n in ("town", "job")},
    **{
        f"{value!r} for {name}": (with_cell(name, value), NEVER(name, repr(value)))
        for name, value in (("job", "king"), ("town", 1), ("owner", 2), ("member", "yes"))
    },
    "a level that no training row has": (
        lambda f: f.assign(job=pd.Categorical(["king"] * len(f), f["job"].cat.categories)),
        NEVER("job", "'king'"),
    ),
    "numbers as text": (
        cast("income", str),
        r"'income' must hold numbers, got dtype (object|str).*to_numeric",
    ),
    # `pd.to_numeric` does not convert it.
    "a truth value for a number": (
        lambda f: f.assign(income=f["income"] > 3),
        r"'income' must hold numbers, got dtype bool: .*astype\(int\)$",
    ),
    "sparse numbers": (
        cast("owner", pd.SparseDtype("float64", 0.0)),
        r"'owner' holds sparse.*frame\['owner'\]\.sparse\.to_dense\(\)",
    ),
    **{
        f"the unhashable {value}": (
            unhashable(value),
            r"'town' has values never seen: .*\(first rows \[ROW 0",
        )
        for value in ([1, 2], np.zeros(2), ("A", [1]))
    },
    "several complaints in one error": (
        lambda f: f.assign(age=pd.Timestamp("1980-01-01"), town="Z"),
        "'age' must hold numbers, got dtype datetime64.*; .*'town' has values never seen",
    ),
}


@pytest.mark.parametrize("name", INVALID_FRAMES)
def test_an_invalid_frame_is_refused(method_call, frame, name):
    change, match = INVALID_FRAMES[name]
    for at in (0, 3):
        match = match.replace(f"ROW {at}", str(frame.index[at]))
    with pytest.raises(InputError, match=match):
        method_call(change(frame))


def test_a_fit_needs_rows(mixed):
    with pytest.raises(InputError, match="no rows; at least one"):
        DEAR(mixed.net, mixed.schema).fit(mixed.frame.iloc[:0])


@pytest.mark.parametrize(
    "names", [[0, 1, 2], ["a", 1, "c"], [("a", 1), "b", "c"], ["a", None, "c"], ["a", np.nan, "c"]]
)
def test_names_that_are_no_strings(names):
    frame = pd.DataFrame(np.arange(9).reshape(3, 3))
    frame.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    with pytest.raises(SchemaError, match=r"column names must be strings.*columns\.map\(str\)"):
        Schema.infer(frame)


def test_a_failed_call_does_not_change_the_method(mixed, frame):
    dear = DEAR(mixed.net, mixed.schema).fit(mixed.frame)
    before = dear.generate(frame).counterfactuals
    for bad in (frame.drop(columns="age"), frame.assign(town="Z")):
        with pytest.raises(InputError):
            dear.generate(bad, on_error="raise")
        with pytest.raises(InputError):
            dear.fit(bad)
    pd.testing.assert_frame_equal(dear.generate(frame).counterfactuals, before)


CELLS = pd.DataFrame({"income": np.arange(40) * 1234.5, "debt": np.arange(40)[::-1] * 1.5})
KNOWN = Schema.infer(CELLS)


def rich(frame):
    return (frame["income"] > 9000.0).astype(float)


MISTAKES = {
    "a frame for the schema": (
        lambda: DEAR(rich, CELLS),
        r"got a DataFrame of shape \(40, 2\): Sch",
    ),
    "arguments swapped": (lambda: DEAR(KNOWN, rich), "the model comes first"),
    "a frame for the model": (lambda: DEAR(CELLS, KNOWN), "callable on frames; got DataFrame"),
    "a class for the model": (
        lambda: DEAR(LinearRegression, KNOWN, output="values"),
        r"got its class: LinearRegression\(\.\.\.\)\.fit",
    ),
    "a model that is not fitted": (
        lambda: DEAR(make_pipeline(StandardScaler(), LogisticRegression()), KNOWN).fit(CELLS),
        "the model, a Pipeline, is not fitted",
    ),
    "an outlier detector": (
        lambda: DEAR(IsolationForest().fit(CELLS), KNOWN),
        "pass the function model.decision_function with output='logits'",
    ),
    "an unknown setting": (
        lambda: Search(min_confidense=0.9),
        r"Search: unknown arguments: .*did you mean 'min_confidence'\?",
    ),
    "an unknown argument": (
        lambda: DEAR(rich, KNOWN, act_onn=["debt"]),
        r"DEAR: unknown arguments: 'act_onn' \(did you mean 'act_on'\?\)",
    ),
    "an argument of a call": (
        lambda: DEAR(rich, KNOWN, target=1),
        "'target' is an argument of apply, explore, generate",
    ),
    "an unknown constraint": (lambda: Constraints(frosen=["debt"]), "did you mean 'frozen'"),
    "an unknown part of a target": (lambda: Target(1, treshold=0.5), "did you mean 'threshold'"),
    "an unknown attribute": (
        lambda: KNOWN.replace("debt", immutabel=True),
        "Feature: .*did you mean 'immutable'",
    ),
    "a frame for a target": (lambda: asked(CELLS), "got a DataFrame of shape"),
    "a list for a target": (lambda: asked([1, 0]), "must be a Target or the label of a class"),
    "a dict for a target": (lambda: asked({"label": 1}), "must be a Target or the label of a cl"),
    "a regression without a target": (
        lambda: asked(model=lambda rows: rows["income"], output="values"),
        r"pass target=Target\.of_range",
    ),
    "a model without probabilities": (
        lambda: DEAR(LinearRegression(), KNOWN),
        "got LinearRegression. For a regression.*output='values'. Wrap a classifier.*Calibrated",
    ),
    "only constants": (
        lambda: DEAR(rich, Schema.infer(pd.DataFrame({"a": [1, 1], "b": ["x", "x"]}))),
        "nothing to act on: every feature is immutable",
    ),
    "a name for a list": (
        lambda: Schema.infer(CELLS, immutable="debt"),
        r"immutable.* list.*'debt'",
    ),
    "a frame for constraints": (
        lambda: asked(within=CELLS),
        r"within must be a Constraints\(\.\.\.\), got a DataFrame of shape",
    ),
    "a frame for an output": (lambda: DEAR(rich, KNOWN, output=CELLS), "output must be one of"),
    "a frame for a decoder": (
        lambda: DEAR(rich, KNOWN, decoder=CELLS),
        "unknown decoder: a DataF",
    ),
    "a series for the target": (
        lambda: Schema.infer(CELLS, CELLS["debt"]),
        r"the name of a column, got a Series of shape \(40,\)",
    ),
    "a frame for codes": (
        lambda: Schema.infer(CELLS, special=CELLS),
        r"special must be \{feature: ",
    ),
    "bounds of a row as a frame": (
        lambda: asked(within=Constraints(ranges={"debt": (CELLS["debt"], None)})),
        r"got 40 values with another index for 2 rows",
    ),
}


def asked(target=None, within=None, model=rich, **how):
    return DEAR(model, KNOWN, **how).fit(CELLS).generate(CELLS.head(2), target, within=within)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_clear_error_without_cells(mistake):
    call, expected = MISTAKES[mistake]
    with pytest.raises(DearError, match=expected) as error:
        call()
    assert "1234.5" not in str(error.value) and "58.5" not in str(error.value)


def test_a_decision_function_is_a_model():
    detector = IsolationForest(random_state=0).fit(CELLS)
    dear = DEAR(detector.decision_function, KNOWN, output="logits").fit(CELLS)
    assert dear.generate(CELLS[detector.predict(CELLS) < 0]).actions["success"].all()


def test_a_model_of_ones_own_with_a_fit_is_no_estimator():
    class Own:
        def fit(self, frame):
            return self

        def predict_proba(self, frame):
            return np.stack([1 - rich(frame), rich(frame)], 1)

    assert DEAR(Own(), KNOWN).fit(CELLS)
