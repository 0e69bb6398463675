"""Laws for tables as they come: missing values, codes, orders between columns, unreadable rows."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from hypothesis import event, given
from hypothesis import strategies as st

from dear_plugin import DEAR, Feature, Schema, Search
from tests.properties.worlds import frames, queries, some

CODES = (-9.0, -7.0)


class Points:
    """A black box that takes missing values: points for every cell of a frame."""

    def __init__(self, frame: pd.DataFrame, rng: np.random.Generator) -> None:
        self.weights = {name: rng.normal(0, 1) for name in frame}
        self.scales = {name: self._scale(frame[name]) for name in frame}
        self.shift = 0.0

    @staticmethod
    def _scale(column: pd.Series) -> tuple[float, float] | None:
        if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
            return None
        values = column.dropna().astype(float).to_numpy()
        low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
        return (low, high - low) if 0.0 < high - low < np.inf else (low, 1.0)

    def score(self, frame: pd.DataFrame) -> np.ndarray:
        total = np.zeros(len(frame))
        for name, weight in self.weights.items():
            column, scale = frame[name], self.scales[name]
            if scale is None:
                total += weight * np.array([len(repr(c)) % 3 for c in column.astype(object)])
            else:
                cells = column.to_numpy(dtype=float, na_value=np.nan)
                total += weight * np.nan_to_num((cells - scale[0]) / scale[1], nan=0.7)
        return total - self.shift

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        rng = 1.0 / (1.0 + np.exp(-np.clip(self.score(frame), -30, 30)))
        return np.stack([1.0 - rng, rng], 1)


@dataclass(frozen=True)
class Table:
    """A training frame with missing values and codes, its schema, a model and a query."""

    frame: pd.DataFrame
    schema: Schema
    model: Points
    query: pd.DataFrame

    def fitted(self) -> DEAR:
        return DEAR(self.model, self.schema, search=Search()).fit(self.frame)


@st.composite
def tables(draw) -> Table:
    frame = draw(frames())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kept, special = frame.columns[-1], {}
    for name in frame.columns[:-1]:
        column = frame[name]
        share = draw(st.sampled_from([0.0, 0.1, 0.5]))
        holes = rng.random(len(frame)) < share
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iub":
            continue
        if column.dtype == np.float64 and draw(st.booleans()):
            codes = rng.choice(CODES, len(frame))
            frame[name] = np.where(rng.random(len(frame)) < 0.3, codes, column)
            special[name] = list(CODES)
        frame[name] = frame[name].mask(holes)
    if draw(st.booleans()):
        frame = frame.assign(more=frame[kept].astype(float) + rng.integers(0, 3, len(frame)))
    schema = Schema.infer(frame, special=special)
    model = Points(frame, rng)
    model.shift = float(np.quantile(model.score(frame), draw(st.sampled_from([0.3, 0.9, 1.0]))))
    return Table(frame, schema, model, draw(queries(frame, schema, rng)))


def numbers(frame: pd.DataFrame, name: str) -> np.ndarray:
    return frame[name].to_numpy(dtype=float, na_value=np.nan)


def values(frame: pd.DataFrame, feature: Feature) -> np.ndarray:
    """(n,) the numbers of a feature, NaN where it is missing or special; all NaN of a category."""
    if not feature.holds_numbers:
        return np.full(len(frame), np.nan)
    cells = numbers(frame, feature.name)
    return np.where(np.isin(cells, feature.special), np.nan, cells)


def what_is_missing_stays_missing_and_types_stay(table, dear, result, readable):
    before, after = table.query, result.counterfactuals
    pd.testing.assert_frame_equal(before.iloc[:0], after.iloc[:0], check_exact=True)
    pd.testing.assert_index_equal(before.index, after.index, exact=True)
    pd.testing.assert_frame_equal(before.isna(), after.isna())


def codes_are_neither_entered_nor_left_and_no_answer_lies_between(table, dear, result, readable):
    for feature in table.schema:
        if not feature.special:
            continue
        old, new = (numbers(f, feature.name) for f in (table.query, result.counterfactuals))
        coded = np.isin(old, feature.special)
        assert (new[coded] == old[coded]).all()
        moved = readable & ~coded & (new != old) & ~np.isnan(old)
        assert not np.isin(new[moved], feature.special).any()
        low, high = feature.bounds
        slack = 1e-6 * (feature.width + abs(low) + abs(high))
        inside = (new >= np.minimum(low, old) - slack) & (new <= np.maximum(high, old) + slack)
        assert inside[moved].all()


def orders_that_a_factual_keeps_hold_in_its_answer(table, dear, result, readable):
    done = readable & result.actions["success"].to_numpy()
    kinds = {f.name: f for f in table.schema}
    frames_of = table.query, result.counterfactuals
    old, new = ({name: values(f, kind) for name, kind in kinds.items()} for f in frames_of)
    for a, b in table.schema.orders:
        slack = 1e-5 * max(kinds[a].width, kinds[b].width)
        asked = done & (old[a] <= old[b]) & ~np.isnan(new[a]) & ~np.isnan(new[b])
        assert (new[a][asked] <= new[b][asked] + slack).all()


def success_is_the_model_of_the_returned_row(table, dear, result, readable):
    rng = table.model.predict_proba(result.counterfactuals[list(table.schema.names)])
    own = rng[:, 1] > rng[:, 0]
    assert result.actions["success"].to_numpy()[readable].tolist() == own[readable].tolist()


def a_batch_is_its_rows(table, dear, result, readable):
    alone = [dear.generate(table.query.iloc[[i]]) for i in range(len(table.query))]
    pd.testing.assert_frame_equal(
        result.counterfactuals, pd.concat([a.counterfactuals for a in alone]), check_exact=True
    )


def an_empty_frame_gives_an_empty_result(table, dear, result, readable):
    empty = dear.generate(table.query.iloc[:0])
    pd.testing.assert_frame_equal(empty.counterfactuals, table.query.iloc[:0])
    assert len(empty.actions) == 0


LAWS = (
    what_is_missing_stays_missing_and_types_stay,
    codes_are_neither_entered_nor_left_and_no_answer_lies_between,
    orders_that_a_factual_keeps_hold_in_its_answer,
    success_is_the_model_of_the_returned_row,
    a_batch_is_its_rows,
    an_empty_frame_gives_an_empty_result,
)


@given(tables())
def test_the_laws_hold(table):
    dear = table.fitted()
    result = dear.generate(table.query)
    readable = result.actions["score_before"].notna().to_numpy()
    event(f"helped: {bool((result.actions['cost'] > 0).any())}")
    for law in LAWS:
        law(table, dear, result, readable)


@given(tables(), st.data())
def test_a_row_that_cannot_be_read_fails_alone(table, data):
    words = [
        f.name for f in table.schema if not f.holds_numbers and table.query[f.name].dtype == object
    ]
    if not words:
        return
    dear, m = table.fitted(), len(table.query)
    bad = data.draw(some(range(m)))
    odd = table.query.copy()
    column = odd[words[0]].to_numpy(copy=True)
    column[bad] = "an unknown label"
    odd[words[0]] = pd.Series(column, odd.index, dtype=object)
    result, whole = dear.generate(odd), dear.generate(table.query)
    rest = [i for i in range(m) if i not in bad]
    pd.testing.assert_frame_equal(result.counterfactuals.iloc[bad], odd.iloc[bad])
    assert not result.actions["success"].iloc[bad].any()
    assert all("an unknown label" in r for r in result.actions["reason"].iloc[bad])
    pd.testing.assert_frame_equal(
        result.counterfactuals.iloc[rest], whole.counterfactuals.iloc[rest]
    )
