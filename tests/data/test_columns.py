"""Columns: what they can hold, and new rows written into a copy of the user's frame."""

import pandas as pd
import pytest
import torch

from dear_plugin import Encoder, Schema
from dear_plugin.data.encoder import patch


@pytest.fixture
def encoder(mixed) -> Encoder:
    return mixed.encoder


def test_a_label_outside_the_columns_categories_is_added(mixed, encoder):
    cooks = mixed.frame[mixed.frame["job"] == "cook"].iloc[:2].copy()
    cooks["job"] = cooks["job"].cat.remove_unused_categories()
    x = encoder.rows(cooks)
    rows = x.clone()
    rows[0, encoder.schema.index(["job"])[0]] = 3
    after, _ = patch(encoder, cooks, x, rows=rows)
    assert after["job"].tolist() == ["judge", "cook"]
    assert list(after["job"].cat.categories) == ["cook", "judge"]


@pytest.fixture(params=["shared memory", "copy on write"])
def writing(request):
    """Both copy modes of pandas 2; pandas 3 has copy on write alone."""
    if pd.__version__.startswith("2."):
        with pd.option_context("mode.copy_on_write", request.param == "copy on write"):
            yield
    else:
        yield


KINDS = {
    "number": ["int64", "int8", "uint16", "float32", "float64", "Int64", "Float32"],
    "word": ["object", "category", "string"],
    "flag": ["bool", "object", "boolean"],
}


@pytest.mark.usefixtures("writing")
@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, kinds in KINDS.items() for d in kinds])
def test_cells_of_every_dtype_are_written_into_a_copy(name, dtype):
    frame = pd.DataFrame(
        {"number": [1, 2, 3, 4], "word": list("abca"), "flag": [True, False, True, False]},
        index=list("wxyz"),
    ).astype({name: dtype})
    encoder = Encoder(Schema.infer(frame))
    before, column = frame.copy(deep=True), frame[name]
    x = encoder.rows(frame)
    after, seen = patch(encoder, frame, x, rows=x[[0, 0, 2, 1]])
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_series_equal(column, before[name])
    expected = before.iloc[[0, 0, 2, 1]].set_axis(before.index)
    pd.testing.assert_frame_equal(after, expected)
    assert torch.equal(seen, x[[0, 0, 2, 1]])


class Shallow(pd.DataFrame):
    """A frame whose copies share its memory."""

    @property
    def _constructor(self):
        return Shallow

    def copy(self, deep=True):
        return super().copy(deep=False)


class CopyingFrame(pd.DataFrame):
    """A frame whose columns are returned as copies."""

    @property
    def _constructor(self):
        return CopyingFrame

    def __getitem__(self, key):
        return super().__getitem__(key).copy()


@pytest.mark.parametrize("kind", [Shallow, CopyingFrame])
def test_subclasses_of_dataframe_are_patched_through_their_own_methods(kind):
    plain = pd.DataFrame({"number": [1, 2, 3, 4], "word": list("abca")})
    frame, encoder = kind(plain), Encoder(Schema.infer(plain))
    x = encoder.rows(frame)
    after, seen = patch(encoder, frame, x, rows=x[[0, 0, 2, 1]])
    pd.testing.assert_frame_equal(pd.DataFrame(frame), plain)
    assert isinstance(after, kind)
    assert after["word"].tolist() == ["a", "a", "c", "b"]
    assert torch.equal(seen, encoder.rows(after))


def test_what_columns_hold_is_computed_once_for_their_dtypes_and_told_each_time(caplog):
    frame = pd.DataFrame({"x": [1.0, 300.0, 20.0], "town": list("aba")})
    narrow = frame.assign(x=frame["x"].clip(upper=99).astype("int8"))
    encoder = Encoder(Schema.infer(frame))
    first, other, again, same = map(encoder.held, (frame, narrow, frame.head(1), narrow))
    assert (first is again, other is same) == (True, True)
    assert [first[1].tolist(), other[1].tolist()] == [[300.0, 1.0], [127.0, 1.0]]
    told = [text for text in caplog.messages if "too narrow" in text]
    assert len(told) == 2
