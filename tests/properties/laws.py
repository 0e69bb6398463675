"""What a world asks for besides the laws of `dear_plugin.testing`: a call's constraints, saves."""

from itertools import compress
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from dear_plugin import DEAR
from dear_plugin.data.relations import Lookup
from dear_plugin.testing import Subject
from dear_plugin.testing import laws as common

# The laws of `dear_plugin.testing` that ask nothing more of the method.
OF_EVERY_SUBJECT = (
    common.columns_dtypes_index_and_labels_are_those_of_the_query,
    common.every_row_is_returned_and_failures_have_a_reason,
    common.the_schema_is_obeyed,
    common.exactly_one_of_a_group_stays_so,
    common.what_an_action_holds_stays,
    common.costs_are_finite_add_up_and_belong_to_changes,
    common.success_is_the_decision_of_the_model,
    common.an_accepted_row_is_not_changed,
)


def check(world, laws):
    """Fit a world's method, ask its question once, and hold the answer against some laws."""
    frame, query = world.frame.copy(deep=True), world.query.copy(deep=True)
    method = world.fitted()
    result = world.ask(method)
    for law in laws:
        law(world, method, result)
    subject = Subject(method, world.query, result, world.accepted, world.target)
    for shared in OF_EVERY_SUBJECT:
        shared(subject)
    # What goes in is untouched, whatever is done to what comes out.
    for name in result.counterfactuals:
        result.counterfactuals[name] = result.counterfactuals[name].iloc[0]
    pd.testing.assert_frame_equal(world.frame, frame, check_exact=True)
    pd.testing.assert_frame_equal(world.query, query, check_exact=True)
    return result


def per_row(value, m: int) -> list:
    """A constraint as one value for each of m rows."""
    if value is None:
        return [None] * m
    single = isinstance(value, dict) or all(isinstance(item, str) for item in value)
    return [value] * m if single else list(value)


def what_may_not_change_is_equal_bit_for_bit(world, method, result):
    after = result.counterfactuals
    frozen = per_row(world.within.frozen if world.within else (), len(world.query))
    fixed = {column.name for column in world.schema.columns if column.immutable}
    for i, names in enumerate(frozen):
        for name in fixed | set(names):
            assert after[name].iloc[[i]].equals(world.query[name].iloc[[i]])
            assert not result.proposal.direct[i, world.schema.index([name])].any()
    others = [c for c in world.query if c not in world.schema.column_names]
    pd.testing.assert_frame_equal(world.query[others], after[others], check_exact=True)


def ranges_of_the_call_are_kept(world, method, result):
    """As far as a column can tell: -4.600000000000001 is -4.6 where it has one decimal."""
    ranges = per_row(world.within.ranges if world.within else None, len(world.query))
    for feature in filter(lambda feature: not feature.choices, world.schema.columns):
        column = result.counterfactuals[feature.name]
        single = column.dtype == np.float32
        slack = 0.0 if feature.precision is None else 1e-6 * 10.0**-feature.precision
        for old, new, mine in zip(world.query[feature.name], column, ranges, strict=True):
            low, high = (mine or {}).get(feature.name, (None, None))
            low, high = -np.inf if low is None else low, np.inf if high is None else high
            low, high = map(np.float32, (low, high)) if single else (low, high)
            assert new == old or low - slack <= new <= high + slack


def categories_are_allowed_and_keep_their_direction(world, method, result):
    kept = per_row(world.within.categories if world.within else None, len(world.query))
    for feature in world.schema.columns:
        if not feature.choices:
            continue
        known = feature.choices
        old = world.query[feature.name].astype(object).tolist()
        new = result.counterfactuals[feature.name].astype(object).tolist()
        for before, after, allowed in zip(old, new, kept, strict=True):
            levels = (allowed or {}).get(feature.name, known)
            assert after == before or after in levels
            places = known.index(before), known.index(after)
            assert feature.direction * (places[1] - places[0]) >= 0


def a_batch_of_n_is_n_batches_of_one(world, method, result):
    within, m = world.within, len(world.query)
    for i in range(m):
        mine = within and type(within)(
            **{k: per_row(v, m)[i] for k, v in vars(within).items() if v is not None}
        )
        one = method.generate(world.query.iloc[[i]], world.target, within=mine)
        close(one.counterfactuals, result.counterfactuals.iloc[[i]])
        close(one.actions, result.actions.iloc[[i]])


def the_order_of_rows_does_not_matter(world, method, result):
    if world.within is None:
        other = method.generate(world.query.iloc[::-1], world.target)
        close(other.counterfactuals.iloc[::-1], result.counterfactuals)
        close(other.actions.iloc[::-1], result.actions)


def what_is_true_by_definition_stays_true(world, method, result):
    solved = result.actions["success"].to_numpy()
    label = world.schema.labelled
    for each in world.schema.relations:
        frames = label(world.query), label(result.counterfactuals)
        before, after = (kept(each, rows) for rows in frames)
        assert after[solved & before].all()


def kept(relation, rows: pd.DataFrame) -> np.ndarray:
    """(n,) the rows in which a number is what others say, or in which one of them is missing."""
    if isinstance(relation, Lookup):
        table = dict(relation.table)
        pairs = zip(rows[relation.other], rows[relation.name], strict=True)
        return np.array([table.get(x, y) == y for x, y in pairs], dtype=bool)
    y, x = rows[relation.name].astype(float), rows[list(relation.others)].to_numpy(float)
    with np.errstate(all="ignore"):
        parts = np.log(x.clip(0.0) + (relation.shift or 0.0)) if relation.log else x
        total = relation.constant + (parts * relation.weights).sum(1)
        is_product = relation.log and relation.shift is None
        low, high = (
            np.exp(t) if is_product else t for t in (total + relation.low, total + relation.high)
        )
    slack = relation.error + 1e-9 * (1.0 + y.abs())
    outside = (y < low - slack) | (y > high + slack)
    return ~outside.to_numpy()


def the_actions_alone_give_the_same_answers_again(world, method, result):
    again = method.apply(world.query, result.direct, world.within, target=world.target)
    pd.testing.assert_frame_equal(again.counterfactuals, result.counterfactuals, check_exact=True)
    assert again.actions["success"].equals(result.actions["success"])
    for name in result.direct:
        acted = result.direct[name].notna()
        told, cells = result.direct[name][acted], result.counterfactuals[name][acted]
        assert told.tolist() == cells.tolist()


def close(one: pd.DataFrame, other: pd.DataFrame) -> None:
    """Networks round otherwise in batches of another size; so may unrounded numbers."""
    pd.testing.assert_frame_equal(one, other, rtol=1e-5, atol=1e-5)


def what_was_saved_gives_the_same_answers(world, method, result):
    with TemporaryDirectory() as folder:
        method.save(folder)
        again = DEAR.load(folder, world.model)
    other = world.ask(again)
    pd.testing.assert_frame_equal(result.counterfactuals, other.counterfactuals, check_exact=True)
    pd.testing.assert_frame_equal(result.actions, other.actions, check_exact=True)


def support_is_a_share_and_alternatives_have_every_row(world, method, result):
    assert result.support.between(0.0, 1.0).all()
    table = result.alternatives(3)
    assert len(table) >= len(world.query)
    assert table.iloc[:, 1].between(0, 2).all()  # the rank, whatever the features are called


def the_factuals_with_changes_are_the_counterfactuals(world, method, result):
    """Of every rank, cell by cell; what is acted on alone is `direct`."""
    every = world.ask(method, k=3)
    rows, after = (
        world.schema.labelled(frame).astype(object)
        for frame in (every.factuals, every.counterfactuals)
    )
    acted = every.proposal.direct.numpy() & every.changed.numpy()
    for at, lines in enumerate(every.lines):
        for line in lines:
            rows.iat[at, rows.columns.get_loc(line.feature)] = line.new
        direct = [line.feature for line in lines if line.kind == "direct"]
        assert set(direct) == set(compress(world.schema.names, acted[at]))
    assert rows.equals(after)


OF_THE_ANSWER = (
    the_factuals_with_changes_are_the_counterfactuals,
    what_may_not_change_is_equal_bit_for_bit,
    ranges_of_the_call_are_kept,
    categories_are_allowed_and_keep_their_direction,
)
OF_THE_METHOD = (
    the_actions_alone_give_the_same_answers_again,
    what_was_saved_gives_the_same_answers,
    support_is_a_share_and_alternatives_have_every_row,
)
