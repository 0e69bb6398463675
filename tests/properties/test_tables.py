"""Laws for tables as they come: missing values, codes, orders between columns, unreadable rows."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from hypothesis import event, given
from hypothesis import strategies as st

from dear_plugin import DEAR, Feature, Schema, Search
from dear_plugin.testing import Subject
from dear_plugin.testing import laws as common
from tests.properties.worlds import Rules, frames, numbers, quantile, queries, some

CODES = (-9.0, -7.0)


@dataclass(frozen=True)
class Table:
    """A training frame with missing values and codes, its schema, a model and a query."""

    frame: pd.DataFrame
    schema: Schema
    model: Rules
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
    model = Rules(frame, schema, rng)
    model.shift = quantile(draw, model.score(frame))
    return Table(frame, schema, model, draw(queries(frame, schema, rng)))


def values(frame: pd.DataFrame, feature: Feature) -> np.ndarray:
    """(n,) the numbers of a feature, NaN where it is missing or special; all NaN of a category."""
    if feature.choices:
        return np.full(len(frame), np.nan)
    cells = numbers(frame, feature.name)
    return np.where(np.isin(cells, feature.special), np.nan, cells)


def what_is_missing_stays_missing_and_types_stay(table, dear, result, readable):
    pd.testing.assert_frame_equal(table.query.isna(), result.counterfactuals.isna())


def codes_are_neither_entered_nor_left_and_no_answer_lies_between(table, dear, result, readable):
    for feature in table.schema.columns:
        if not feature.special or feature.choices:
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
    kinds = {f.name: f for f in table.schema.columns}
    frames_of = table.query, result.counterfactuals
    old, new = ({name: values(f, kind) for name, kind in kinds.items()} for f in frames_of)
    for a, b in table.schema.orders:
        slack = 1e-5 * max(kinds[a].width, kinds[b].width)
        asked = done & (old[a] <= old[b]) & ~np.isnan(new[a]) & ~np.isnan(new[b])
        assert (new[a][asked] <= new[b][asked] + slack).all()


LAWS = (
    what_is_missing_stays_missing_and_types_stay,
    codes_are_neither_entered_nor_left_and_no_answer_lies_between,
    orders_that_a_factual_keeps_hold_in_its_answer,
)


@given(tables())
def test_the_laws_hold(table):
    dear = table.fitted()
    result = dear.generate(table.query)
    readable = result.actions["score_before"].notna().to_numpy()
    event(f"helped: {bool((result.actions['cost'] > 0).any())}")
    for law in LAWS:
        law(table, dear, result, readable)

    def accepts(rows):
        own = table.model.predict_proba(rows[list(table.schema.column_names)])
        return readable & (own[:, 1] > own[:, 0])

    subject = Subject(dear, table.query, result, accepts)
    common.columns_dtypes_index_and_labels_are_those_of_the_query(subject)
    common.success_is_the_decision_of_the_model(subject)
    alone = [dear.generate(table.query.iloc[[i]]).counterfactuals for i in range(len(table.query))]
    pd.testing.assert_frame_equal(result.counterfactuals, pd.concat(alone), check_exact=True)


@given(tables(), st.data())
def test_a_row_that_cannot_be_read_fails_alone(table, data):
    # A new label of a feature that nothing acts on is passed to the model.
    words = [
        c.name
        for c in table.schema.columns
        if c.actionable and not c.immutable and table.query[c.name].dtype == object
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
