"""What `Schema.to_toml` writes, `Schema.from_toml` reads unedited, as an equal schema."""

import numpy as np
import pandas as pd
import pytest

from dear_plugin import Schema
from dear_plugin.datasets import load_loan

ROWS = 600
RNG = np.random.default_rng(0)
AMOUNT, TENS = RNG.gamma(3, 10, ROWS).round(1), RNG.integers(0, 5, ROWS) * 10
GROUP, YEAR, FLAG = RNG.choice(4, ROWS), RNG.integers(2000, 2012, ROWS), RNG.integers(0, 2, ROWS)
# Names that TOML, a comment or a group of dummies may trip over.
NAMES = ["a b", "a.b", "a/b", 'a"b', "a\\b", "größe [m]", "[features.x]", "# c", "", " x ", "a\nb"]
NAMES += ["a\tb", "2020", "true", '"""', "x\x07y", "self", "\u2028", "{x}", "%s"]


def dummies(*names, cells=GROUP) -> dict:
    return {name: (cells % len(names) == at) * 1 for at, name in enumerate(names)}


def again(frame, path, **stated) -> None:
    schema = Schema.infer(frame, **stated)
    schema.to_toml(path / "schema.toml")
    read = Schema.from_toml(path / "schema.toml", frame)
    assert read == schema
    read.to_toml(path / "again.toml")
    assert (path / "again.toml").read_bytes() == (path / "schema.toml").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_any_name(name, tmp_path):
    frame = pd.DataFrame({name: AMOUNT, "tens": TENS, "sum": AMOUNT + TENS})
    again(frame.assign(city=np.where(FLAG, "u", "w")), tmp_path)
    labels = {name: {name: f"the {name}", "u": "one"}}
    cells = RNG.choice(["u", "v", name], ROWS)
    again(
        pd.DataFrame({name: cells, "x": AMOUNT}), tmp_path, labels=labels, excluded={name: ["v"]}
    )
    again(pd.DataFrame({**dummies(name, "q", "r"), "x": AMOUNT}), tmp_path, costs={name: 3})
    again(pd.DataFrame({**dummies(f"{name}_0", f"{name}_1"), "x": AMOUNT}), tmp_path)


@pytest.mark.parametrize(
    "columns",
    [
        dummies("black", "hispan", "white", "other"),
        dummies("mort/no", 'mort "perf"', "mort.lat", "größe [m]"),
        {**dummies("a", "b"), "a/b": AMOUNT},
        {**dummies("job_a", "job_b"), "job": AMOUNT},
        {**dummies(*"abcd"), **dummies(*"efgh", cells=RNG.choice(4, ROWS))},
        {name: cells == 1 for name, cells in dummies(*"abcd").items()},
    ],
)
def test_columns_of_which_one_is_1_whatever_their_names_share(columns, tmp_path):
    again(pd.DataFrame({**columns, "x": AMOUNT}), tmp_path)


@pytest.mark.parametrize(
    ("columns", "stated"),
    [
        # Two definitions of one column; a flag that a year determines; a near-function.
        ({"total": AMOUNT + TENS, "amount": AMOUNT, "tens": TENS, "code": TENS // 10 + 7}, {}),
        ({"year": YEAR, "late": (YEAR > 2005) * 1, "amount": AMOUNT}, {}),
        ({"fat": AMOUNT, "energy": (AMOUNT * 9 * RNG.normal(1, 0.02, ROWS)).round(1)}, {}),
        ({"amount": AMOUNT, "log": np.log(AMOUNT + 1)}, {}),
        ({"low": TENS, "high": TENS + RNG.integers(0, 4, ROWS)}, {"orders": [("low", "high")]}),
        # What is stated of the whole, of levels and of numbers.
        ({"x": AMOUNT, "flag": FLAG}, {"central": 0.9}),
        ({"x": AMOUNT, "flag": FLAG}, {"causes": {"x": ["flag"]}}),
        ({"x": AMOUNT, "two": RNG.choice([1.0, 2.0, np.nan], ROWS)}, {"ordered": {"two": [2, 1]}}),
        (
            {"x": AMOUNT, "any": AMOUNT / 7},
            {"steps": {"x": 5, "any": None}, "units": {"x": "# €"}},
        ),
        (
            {"x": AMOUNT, "o": pd.Categorical(RNG.choice([*"lmh"], ROWS), [*"lmh"], ordered=True)},
            {"ranges": {"o": ("l", "m"), "x": (None, 99)}},
        ),
        (
            {"x": AMOUNT, "t": RNG.choice(["True", "true", "1"], ROWS)},
            {"labels": {"t": {"True": "A", "true": "B"}}},
        ),
    ],
)
def test_what_holds_and_what_is_stated(columns, stated, tmp_path):
    again(pd.DataFrame(columns), tmp_path, **stated)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "float32", "int8", "string", "category"])
def test_any_dtype(dtype, tmp_path):
    again(pd.DataFrame({"a": pd.Series(GROUP).astype(dtype), "x": AMOUNT}), tmp_path)


def test_a_data_set(tmp_path):
    again(load_loan(1_000).frame, tmp_path, target="approved", immutable=["gender"])
