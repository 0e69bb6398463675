"""What an error advises runs, and is enough."""

import datetime
import decimal
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

from dear_plugin import DEAR, Constraints, Encoder, Schema, Target
from dear_plugin.errors import DearError, InputError, SchemaError
from tests.asked import Scored

DAYS = pd.Series(pd.date_range("2024-01-01", periods=60))
SPANS = DAYS - DAYS[0]
NUMBERS = pd.Series(np.arange(60.0))
# Columns, each with the value of its second cell after the advice, where that is a number.
COLUMNS = {
    "dates": (DAYS, 8767),
    "dates of a time zone": (DAYS.dt.tz_localize("Europe/Paris"), 8766),
    "such dates as objects": (DAYS.dt.tz_localize("Europe/Paris").astype(object), 8766),
    "days": (DAYS.dt.date, 8767),
    "durations": (SPANS, 1.0),
    "durations as objects": ([datetime.timedelta(days=i) for i in range(60)], 1.0),
    "months": (DAYS.dt.to_period("M"), None),
    "quarters as objects": (DAYS.dt.to_period("D").astype(object), 8767),
    "intervals": (pd.Series(pd.IntervalIndex.from_breaks(np.arange(61.0))), 1.5),
    "classes of intervals": (pd.cut(NUMBERS, 4), None),
    "bytes": ([b"a", b"b", b"c"] * 20, None),
    "decimals": ([decimal.Decimal(i) / 2 for i in range(60)], 0.5),
    "complex numbers": (NUMBERS * 1j, 1.0),
    "sparse": (NUMBERS.astype(pd.SparseDtype("float64", 0.0)), 1.0),
    "times of day": ([datetime.time(i % 24) for i in range(60)], None),
    "tuples": ([(1,), (2,), (3,)] * 20, None),
    "lists": ([[1], [2], [3]] * 20, None),
    "text, then tuples": (["a", (2,), (3,)] * 20, None),
}
ARROW = {
    "dates": [*DAYS],
    "days": [*DAYS.dt.date],
    "durations": [*SPANS],
    "bytes": [b"a", b"b", b"c"] * 20,
    "decimals": [decimal.Decimal(i) / 2 for i in range(60)],
    "lists": [[1], [2], [3]] * 20,
}


def advised(error, name):
    """The line of code of an error that assigns a column."""
    return re.search(rf"frame\['{name}'\] = .*", str(error)).group(0)


def refused(frame, **marks):
    with pytest.raises(SchemaError) as caught:
        Schema.infer(frame, **marks)
    return caught.value


def converted(column, **marks):
    """A column after what the error advises, which then is of some kind."""
    frame = pd.DataFrame({"c": column, "x": NUMBERS**0.5})
    exec(advised(refused(frame, **marks), "c"), {"pd": pd, "frame": frame})
    Schema.infer(frame, **marks)
    return frame["c"]


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_another_kind_is_converted(name, gap):
    values, second = COLUMNS[name]
    column = pd.Series(values)
    if gap and not isinstance(column.dtype, pd.SparseDtype):
        column[3] = None
        assert column.isna().any()
    found = converted(column)
    assert second is None or found[1] == pytest.approx(second)


@pytest.mark.parametrize("name", ARROW)
def test_so_is_one_of_arrow(name):
    pa = pytest.importorskip("pyarrow")
    converted(pd.Series(pd.arrays.ArrowExtensionArray(pa.array(ARROW[name]))))
    text = pa.array([*"abc", None] * 15).dictionary_encode()
    assert converted(pd.Series(pd.arrays.ArrowExtensionArray(text))).dtype == "category"


def test_a_unit_is_left_out_and_other_text_is_counted():
    schema = Schema.infer(pd.DataFrame({"c": NUMBERS, "x": NUMBERS}))
    frame = pd.DataFrame({"c": [f"{each} kg" for each in NUMBERS], "x": NUMBERS})
    with pytest.raises(InputError) as caught:
        Encoder(schema).rows(frame)
    exec(advised(caught.value, "c"), {"pd": pd, "frame": frame})
    assert frame["c"].tolist() == [*NUMBERS]
    frame = frame.astype({"c": object})
    frame.loc[5, "c"] = "-"
    with pytest.raises(InputError, match=r"no number in 1 rows, first \[5\]") as caught:
        Encoder(schema).rows(frame)
    exec(advised(caught.value, "c"), {"pd": pd, "frame": frame})
    assert frame["c"].isna().tolist() == [at == 5 for at in range(len(frame))]


TEXTS = {"plain": "3.5", "decimal commas": "3,5", "thousands": "1,234", "lakhs": "1,23,456"}
TEXTS["typographic"] = "1’234"
READ = {"plain": 3.5, "decimal commas": 3.5, "thousands": 1234.0, "lakhs": 123456.0}
READ["typographic"] = 1234.0


@pytest.mark.parametrize("dtype", [object, "category"])
@pytest.mark.parametrize("name", TEXTS)
def test_text_becomes_the_numbers_that_it_writes(name, dtype, caplog):
    text = pd.Series([TEXTS[name], "2", "1"] * 20, dtype=dtype)
    assert converted(text, numeric=["c"])[0] == READ[name]
    frame = pd.DataFrame({"c": text, "x": NUMBERS})
    Schema.infer(frame)
    exec(re.search(r"frame\['c'\] = .*\)", caplog.text).group(0), {"pd": pd, "frame": frame})
    assert frame["c"][0] == READ[name]
    schema, frame = Schema.infer(frame), pd.DataFrame({"c": text, "x": NUMBERS})
    with pytest.raises(InputError) as caught:
        Encoder(schema).rows(frame)
    exec(advised(caught.value, "c"), {"pd": pd, "frame": frame})
    assert Encoder(schema).rows(frame)[0, 0] == READ[name]


def test_dates_are_converted_at_every_step():
    frame = pd.DataFrame({"c": DAYS.dt.tz_localize("UTC"), "x": NUMBERS})
    line, rows = advised(refused(frame), "c"), frame.copy()
    exec(line, {"pd": pd, "frame": frame})
    with pytest.raises(InputError) as caught:
        Encoder(Schema.infer(frame)).rows(rows)
    assert line in str(caught.value)


LEVELS = ["School", "Bachelor", "Master"]
FRAME = pd.DataFrame({"education": LEVELS * 20, "hours": NUMBERS, "rate": NUMBERS / 7})


def chance(rows):
    return rows["hours"].to_numpy(float) / 60


class TestOrders:
    def test_an_order_is_stated_as_the_error_says(self):
        error = refused(FRAME, increasing=["education"])
        assert "ordered={'education': [...]} states one" in str(error)
        Schema.infer(FRAME, increasing=["education"], ordered={"education": LEVELS})

    def test_names_alone_are_none(self):
        assert "ordered must be {feature: ...}" in str(refused(FRAME, ordered=["education"]))

    @pytest.mark.parametrize("wrapped", [False, True])
    @pytest.mark.parametrize("dtype", [object, "category", int])
    def test_through_dice_too(self, dtype, wrapped):
        dice_ml = pytest.importorskip("dice_ml")
        from dear_dice import DiceDEAR, wrap_dice

        def probability(rows):
            first = rows["education"].astype(str).eq(str(levels[0])).to_numpy()
            return 1 / (1 + np.exp(-2.0 * first - (rows["hours"].to_numpy(float) - 45) / 5))

        levels = [3, 1, 2] if dtype is int else LEVELS
        education = FRAME["education"].map(dict(zip(LEVELS, levels, strict=True))).astype(dtype)
        frame = FRAME.assign(education=education)
        model, numbers = Scored(probability), ["hours", "rate"]
        label = model.predict(frame)
        data = dice_ml.Data(
            dataframe=frame.assign(y=label), continuous_features=numbers, outcome_name="y"
        )
        host = dice_ml.Model(model=model, backend="sklearn")
        random = dice_ml.Dice(data, host, method="random")

        def made(**options):
            return wrap_dice(random, **options) if wrapped else DiceDEAR(data, host, **options)

        with pytest.raises(SchemaError, match=r"ordered={'education'"):
            made(increasing=["education"])
        explainer = made(increasing=["education"], ordered={"education": levels})
        query = frame[(label == 0) & (frame["education"] == levels[2])].head(5)
        if wrapped:
            found = explainer.fit(frame).generate(query).counterfactuals
            assert (found["education"].astype(str) == str(levels[2])).all()
            return
        found = explainer.generate_counterfactuals(query, 1, desired_class=1).cf_examples_list
        answers = pd.concat([each.final_cfs_df for each in found])
        assert (answers["education"] == levels[2]).all()

    def test_in_alibi_the_codes_have_it(self):
        pytest.importorskip("alibi")
        from dear_alibi import DEAR as AlibiDEAR

        description = {"feature_names": ["education", "hours"], "category_map": {0: LEVELS}}
        made = AlibiDEAR(lambda X: X[:, 1:] / 60, **description, ordered=["education"])
        assert made.meta["params"]["ordered"] == ["education"]
        with pytest.raises(InputError, match="whose codes have the order"):
            AlibiDEAR(len, **description, ordered={"education": LEVELS[::-1]})


# What is refused, by whom, and what it advises.
CALLS = {
    "classes without a default": (
        lambda: DEAR(NAMED, SCHEMA).fit(FRAME).generate(FRAME.head(2)),
        "target=Target.of_class('yes')",
        lambda: DEAR(NAMED, SCHEMA).fit(FRAME).generate(FRAME.head(2), Target.of_class("yes")),
    ),
    "no probabilities": (
        lambda: DEAR(SVC().fit(X, Y), SCHEMA),
        "sklearn.calibration.CalibratedClassifierCV(model).fit(X, y)",
        lambda: DEAR(calibrated(), SCHEMA).fit(FRAME),
    ),
    "logits as probabilities": (
        lambda: DEAR(lambda f: 9 * chance(f), SCHEMA).fit(FRAME).generate(FRAME.head(2)),
        "output='logits'",
        lambda: (
            DEAR(lambda f: 9 * chance(f), SCHEMA, output="logits")
            .fit(FRAME)
            .generate(FRAME.head(2))
        ),
    ),
    "a range of a category": (
        lambda: within(ranges={"education": (0, 1)}),
        "use categories= instead",
        lambda: within(categories={"education": LEVELS[:1]}),
    ),
    "categories of a number": (
        lambda: within(categories={"hours": [40]}),
        "use ranges= instead",
        lambda: within(ranges={"hours": (40, 40)}),
    ),
    "names that are no text": (
        lambda: Schema.infer(pd.DataFrame({1: NUMBERS})),
        "frame.columns = frame.columns.map(str)",
        lambda: Schema.infer(pd.DataFrame({1: NUMBERS}).rename(columns=str)),
    ),
}
X, Y = FRAME[["hours", "rate"]], (NUMBERS > 30).astype(int)
SCHEMA = Schema.infer(FRAME, immutable=["education"])
NAMED = Scored(chance, ["no", "yes"])


def calibrated():
    from sklearn.calibration import CalibratedClassifierCV

    return CalibratedClassifierCV(SVC()).fit(X, Y)


def within(**constraints):
    return (
        DEAR(chance, SCHEMA).fit(FRAME).generate(FRAME.head(2), within=Constraints(**constraints))
    )


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_follows_the_error_runs(name):
    call, advice, remedy = CALLS[name]
    with pytest.raises(DearError, match=re.escape(advice)):
        call()
    remedy()
