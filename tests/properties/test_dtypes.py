"""The model gets the dtypes of the schema, whatever is called and whatever these are."""

from itertools import cycle

import numpy as np
import pandas as pd
import pytest

from dear_plugin import DEAR, Schema

pytest.importorskip("pyarrow")

FLOATS = [
    "float64",
    "float32",
    "float16",
    "Float64",
    "Float32",
    "double[pyarrow]",
    "float[pyarrow]",
]
WHOLE = [
    *("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64"),
    *("Int64", "Int32", "Int16", "Int8", "UInt8", "UInt16", "UInt32", "UInt64"),
    *("int64[pyarrow]", "int32[pyarrow]", "int16[pyarrow]", "int8[pyarrow]", "uint8[pyarrow]"),
]
FLAGS = ["bool", "boolean", "bool[pyarrow]", "int64", "object"]
TEXTS = ["object", "string", "string[pyarrow]", "category", "large_string[pyarrow]"]
MISSING = {"float64", "Float64", "double[pyarrow]", "float[pyarrow]", "Int64", "int64[pyarrow]"}


def table(dtypes: tuple[str, str, str, str], missing: bool) -> pd.DataFrame:
    """Rows with an amount, a count, a flag and a text, of which numbers may be missing."""
    rng, n = np.random.default_rng(1), 160
    frame = pd.DataFrame(
        {
            "amount": rng.gamma(2, 30, n).round(1),
            "count": rng.poisson(3, n),
            "flag": rng.random(n) < 0.5,
            "text": rng.choice(["one", "two", "three"], n),
        }
    )
    frame = frame.astype(dict(zip(frame, dtypes, strict=True)))
    for name in [
        n for n, dtype in zip(frame, dtypes, strict=True) if missing and dtype in MISSING
    ]:
        frame.loc[::9, name] = pd.NA if str(frame[name].dtype) != "float64" else np.nan
    return frame


class Recorder:
    """A model that keeps the dtypes of all frames that it gets."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, ...]] = set()

    def __call__(self, rows: pd.DataFrame) -> np.ndarray:
        self.seen.add(tuple(map(str, rows.dtypes)))
        amount, count = (
            rows[name].astype("Float64").fillna(40).to_numpy(float) for name in ("amount", "count")
        )
        return 1 / (1 + np.exp(-(amount + 5 * count - 85) / 8))


CASES = list(zip(cycle(FLOATS), WHOLE, cycle(FLAGS), cycle(TEXTS), strict=False))


@pytest.mark.parametrize("dtypes", CASES, ids=" ".join)
def test_every_call_keeps_them(dtypes, tmp_path):
    frame, model, copy = table(dtypes, CASES.index(dtypes) % 2 == 1), Recorder(), Recorder()
    own = tuple(map(str, frame.dtypes))
    dear = DEAR(model, Schema.infer(frame), copies=[copy]).fit(frame)
    rows = frame[model(frame) < 0.4].head(1)
    for query in (rows, rows.astype({"amount": "float64"}), rows.astype(object)):
        found = dear.generate(query)
        assert found.counterfactuals.dtypes.equals(query.dtypes)
    found = dear.generate(rows)
    index = rows.index[0]
    found.describe(), found.letter(index), found.record(index), found.advice(), found.support
    found.alternatives(k=2)
    dear.apply(rows, {"amount": 90.0})
    dear.explore(rows.head(1))
    dear.diagnose(frame, progress=False)
    dear.save(tmp_path / "saved")
    DEAR.load(tmp_path / "saved", model, copies=[copy]).generate(rows)
    assert model.seen == {own} and copy.seen == {own}
