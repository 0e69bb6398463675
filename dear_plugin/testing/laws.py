"""The laws that hold for every fitted method and its result, as functions of a `Subject`."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import torch

from dear_plugin.data.cells import read_column
from dear_plugin.data.schema import Feature
from dear_plugin.models.foreign import isolated
from dear_plugin.problem.constraints import Constraints
from dear_plugin.problem.feasible import Reason
from dear_plugin.results.recourses import Recourses
from dear_plugin.testing.subject import Subject

# Scores of networks, and numbers without a precision, round differently in other batch sizes.
TOLERANCE = 1e-5
# A descent magnifies such differences: the largest difference of its costs.
OF_DESCENTS = 0.02


def columns_dtypes_index_and_labels_are_those_of_the_query(subject: Subject) -> None:
    """An answer changes only cells."""
    before, after = subject.query, subject.result.counterfactuals
    pd.testing.assert_frame_equal(before.iloc[:0], after.iloc[:0], check_exact=True)
    pd.testing.assert_index_equal(before.index, after.index, exact=True)
    pd.testing.assert_index_equal(before.index, subject.result.actions.index, exact=True)
    for name in before.select_dtypes("category"):
        _require(before[name].dtype == after[name].dtype, f"{name} has other labels")


def the_query_is_not_modified(subject: Subject) -> None:
    """Neither the call nor a change of its result modifies the query."""
    before = subject.query.copy(deep=True)
    answer = subject.generate(subject.query).counterfactuals
    for name in answer:
        answer[name] = answer[name].iloc[0]
    _equal(before, subject.query)


def unchanged_cells_are_equal_bit_for_bit(subject: Subject) -> None:
    """This holds for numbers with more decimals than their feature, too."""
    after, changed = subject.result.counterfactuals, subject.result.changed.numpy()
    schema = subject.method.schema
    for j, name in zip(schema.owner, schema.column_names, strict=True):
        kept = ~changed[:, j]
        pd.testing.assert_series_equal(
            subject.query[name][kept], after[name][kept], check_exact=True
        )


def every_row_is_returned_and_failures_have_a_reason(subject: Subject) -> None:
    """No row is lost."""
    result, actions = subject.result, subject.result.actions
    counts = len(actions), len(result.counterfactuals)
    _require(counts == (len(subject.query),) * 2, "rows are missing")
    _require(actions["reason"][~actions["success"]].str.len().gt(0).all(), "no reason")
    _require(all(result.describe_row(i) for i in range(len(result))), "no description")


def a_solved_row_has_no_reason_to_fail(subject: Subject) -> None:
    """Its reason is empty, or a remark."""
    solved = subject.result.actions["success"] & ~subject.accepts(subject.query)
    reasons = subject.result.actions["reason"][solved]
    failed = (Reason.UNREACHED, Reason.NOTHING_ADMISSIBLE, Reason.REFUSED_ROUNDED)
    wrong = reasons.str.startswith(tuple(reason.start for reason in failed))
    _require(not wrong.any(), "a reason of a failure")


def the_schema_is_obeyed(subject: Subject) -> None:
    """Answers keep immutable features, categories, ranges, directions and decimals."""
    for feature in subject.method.schema.columns:
        obeys(feature, subject.query[feature.name], subject.result.counterfactuals[feature.name])


def exactly_one_of_a_group_stays_so(subject: Subject) -> None:
    """If exactly one column of a group is 1 in the factual, so it is in the answer."""
    for columns in map(list, subject.method.schema.exactly_one):
        before, after = (
            frame[columns].astype(int).sum(axis=1)
            for frame in (subject.query, subject.result.counterfactuals)
        )
        _require((after[before == 1] == 1).all(), f"not exactly one of {columns}")


def what_an_action_holds_stays(subject: Subject) -> None:
    """Immutable features, and those of earlier tiers than the action, keep their values."""
    schema, result = subject.method.schema, subject.result
    for direct, changed in zip(result.proposal.direct, result.changed, strict=True):
        held = schema.causal_order.held(direct.nonzero()[:, 0].tolist())
        moved = [schema.names[j] for j in held if changed[j]]
        _require(not moved, f"{moved} are held for an action and change")


def frozen_features_of_a_call_stay(subject: Subject) -> None:
    """They stay bit for bit, whether they are given for all rows or for each row."""
    schema = subject.method.schema
    names = [c.name for f in schema if not f.immutable for c in f.dummies or (f,)]
    alike = subject.generate(subject.query, Constraints(frozen=names[:2]))
    _equal(subject.query[names[:2]], alike.counterfactuals[names[:2]])
    acted = alike.actions["acted_on"].str.split(" + ", regex=False).explode()
    _require(not acted.isin(names[:2]).any(), "a frozen feature is acted on")
    frozen = [[names[i % len(names)]] for i in range(len(subject.query))]
    after = subject.generate(subject.query, Constraints(frozen=frozen)).counterfactuals
    for i, (name,) in enumerate(frozen):
        _require(after[name].iloc[[i]].equals(subject.query[name].iloc[[i]]), f"{name} changes")


def ranges_of_a_call_are_kept(subject: Subject) -> None:
    """A number outside its range keeps its value, or gets one inside."""
    for feature in _numbers(subject):
        column = subject.query[feature.name].astype(float)
        low, high = column.quantile([0.4, 0.6]).round(feature.precision or 6)
        within = Constraints(ranges={feature.name: (float(low), float(high))})
        after = subject.generate(subject.query, within).counterfactuals[feature.name]
        kept = (after == subject.query[feature.name]) | after.astype(float).between(low, high)
        _require(kept.all(), f"{feature.name} ends outside [{low}, {high}]")


def only_what_a_call_acts_on_is_acted_on(subject: Subject) -> None:
    """Answers keep `Constraints(act_on=...)`."""
    for feature in _numbers(subject):
        result = subject.generate(subject.query, Constraints(act_on=[feature.name]))
        direct = result.proposal.direct & result.changed
        others = [j for j, name in enumerate(result.encoder.schema.names) if name != feature.name]
        _require(not bool(direct[:, others].any()), "another feature is acted on")


def success_is_the_decision_of_the_model(subject: Subject) -> None:
    """It is the decision on the rows of the result's frame."""
    own = subject.accepts(subject.result.counterfactuals)
    _require(subject.result.actions["success"].tolist() == own.tolist(), "another decision")


def an_accepted_row_is_not_changed(subject: Subject) -> None:
    """It succeeds, without cost."""
    accepted = subject.accepts(subject.query)
    actions = subject.result.actions[accepted]
    _require(actions["success"].all(), "an accepted row fails")
    _require((actions["acted_on"] == "").all(), "an accepted row acts")
    _require((actions.filter(like="cost") == 0.0).all(axis=None), "an accepted row costs")
    _equal(subject.query[accepted], subject.result.counterfactuals[accepted])


def costs_are_finite_add_up_and_belong_to_changes(subject: Subject) -> None:
    """Direct and indirect costs add up to the l1 distance, in units of cost, of the answer.

    Direct changes are weighted by the costs of their features.
    """
    result, encoder = subject.result, subject.method.encoder
    costs = result.actions.filter(like="cost")
    _require(bool((np.isfinite(costs) & (costs >= 0)).all(axis=None)), "no cost")
    total = costs["direct_cost"] + costs["indirect_cost"]
    _require(np.allclose(total, costs["cost"], atol=TOLERANCE), "costs do not add up")
    before, after = encoder.encode(subject.query), encoder.encode(result.counterfactuals)
    change, direct = (after - before).abs() * encoder.weights, result.proposal.direct
    stated = result.question.case.feasible.limits.costs
    paid = torch.where(direct, 1.0 if stated is None else stated, 1.0)
    distance = (change * paid[:, encoder.feature_of]).sum(1)
    _require(np.allclose(distance, costs["cost"], atol=TOLERANCE), "the cost of another row")
    indirect = (result.changed & ~result.proposal.direct).any(1).numpy()
    _require((indirect == (costs["indirect_cost"] > 1e-9)).all(), "indirect cost without change")


def a_batch_of_n_is_n_batches_of_one(subject: Subject) -> None:
    """No answer depends on the other rows of the query."""
    for i in range(0, len(subject.query), 2):
        _agree(subject, subject.generate(subject.query.iloc[[i]]), [i])


def the_order_of_rows_does_not_matter(subject: Subject) -> None:
    """Each row has the same answer in another order."""
    order = np.random.default_rng(0).permutation(len(subject.query)).tolist()
    _agree(subject, subject.generate(subject.query.iloc[order]), order)


def alternatives_do_not_depend_on_other_rows(subject: Subject) -> None:
    """They are equal one by one, in a batch, and in another order."""
    if subject.descends:  # a descent may find others, see `OF_DESCENTS`
        return
    query = subject.query.iloc[::2]
    query = query.set_axis(range(len(query)))
    whole = _by_rank(subject, query)
    alone = pd.concat([_by_rank(subject, query.iloc[[i]]) for i in range(len(query))])
    for other in (alone, _by_rank(subject, query.iloc[::-1])):
        pd.testing.assert_frame_equal(other, whole, rtol=TOLERANCE, atol=TOLERANCE)


def the_same_query_has_the_same_answer_whatever_the_global_seed(subject: Subject) -> None:
    """The global random states are not changed either."""
    with isolated(99):
        before = _random_states()
        again = subject.generate(subject.query)
        after = _random_states()
    _require(after == before, "a global random state changes")
    _equal(again.counterfactuals, subject.result.counterfactuals)
    _equal(again.actions, subject.result.actions)


def methods_and_results_can_be_pickled(subject: Subject) -> None:
    """Their answers are the same, including those that are computed later."""
    method = pickle.loads(pickle.dumps(subject.method))  # nosec B301: pickled a moment ago
    again = method.generate(subject.query, subject.target)
    _equal(again.counterfactuals, subject.result.counterfactuals)
    result = pickle.loads(pickle.dumps(subject.result))  # nosec B301
    pd.testing.assert_series_equal(result.support, subject.result.support)
    _require(result.describe_row(0) == subject.result.describe_row(0), "another description")


LAWS: Sequence[Callable[[Subject], None]] = (
    columns_dtypes_index_and_labels_are_those_of_the_query,
    the_query_is_not_modified,
    unchanged_cells_are_equal_bit_for_bit,
    every_row_is_returned_and_failures_have_a_reason,
    a_solved_row_has_no_reason_to_fail,
    the_schema_is_obeyed,
    exactly_one_of_a_group_stays_so,
    what_an_action_holds_stays,
    frozen_features_of_a_call_stay,
    ranges_of_a_call_are_kept,
    only_what_a_call_acts_on_is_acted_on,
    success_is_the_decision_of_the_model,
    an_accepted_row_is_not_changed,
    costs_are_finite_add_up_and_belong_to_changes,
    a_batch_of_n_is_n_batches_of_one,
    the_order_of_rows_does_not_matter,
    alternatives_do_not_depend_on_other_rows,
    the_same_query_has_the_same_answer_whatever_the_global_seed,
    methods_and_results_can_be_pickled,
)


def obeys(feature: Feature, old: pd.Series, new: pd.Series) -> None:
    """Check one column of a result against its feature.

    Args:
        feature: the feature, with its limits.
        old: (n,) the factual values.
        new: (n,) the counterfactual values.

    Raises:
        AssertionError: the feature does not allow a value.

    Example:
        >>> from dear_plugin import Schema
        >>> old = pd.Series([30.0, 40.0, 50.0], name="age")
        >>> (age,) = Schema.infer(old.to_frame(), increasing=["age"])
        >>> obeys(age, old, old.clip(lower=40.0))
    """
    if feature.immutable:
        pd.testing.assert_series_equal(old, new, check_exact=True)
    _require(not read_column(feature, new).complaint, f"{feature.name} has an unknown value")
    amounts = [all(map(feature.is_amount, pair)) for pair in zip(old, new, strict=True)]
    old, new = old[amounts], new[amounts]
    before, after = old.astype(float), new.astype(float)
    step = feature.direction * (after - before)
    _require((step >= 0).all(), f"{feature.name} moves the wrong way")
    ends = np.array(feature.limits or feature.bounds)
    # The limits as the column can hold them.
    low, high = ends.astype(np.float32) if new.dtype == np.float32 else ends
    # An end that was computed, such as 0.1 + 0.2, is the number with the column's decimals.
    slack = 0.0 if feature.precision is None else 1e-6 * 10.0**-feature.precision
    inside = (after >= np.minimum(low, before) - slack) & (
        after <= np.maximum(high, before) + slack
    )
    _require(inside.all(), f"{feature.name} leaves its range")
    if feature.observed:
        moved_to = after[after != before]
        _require(
            moved_to.isin(feature.observed).all(),
            f"{feature.name} has a value between the observed ones",
        )
    if feature.precision is not None:
        moved = new[new != old].to_numpy()
        rounded = moved.astype(float).round(feature.precision).astype(moved.dtype)
        _require((moved == rounded).all(), f"{feature.name} has too many decimals")


def _numbers(subject: Subject) -> list[Feature]:
    """The first two numbers that may change."""
    schema = subject.method.schema
    return [f for f in schema if f.name in schema.numbers and not f.immutable][:2]


def _agree(subject: Subject, answer: Recourses, rows: list[int]) -> None:
    """Check that the answers to some rows equal those of the whole query."""
    whole = subject.result.counterfactuals.iloc[rows], subject.result.actions.iloc[rows]
    if subject.descends:
        _require(answer.actions["success"].equals(whole[1]["success"]), "another success")
        same = np.allclose(answer.actions["cost"], whole[1]["cost"], atol=OF_DESCENTS)
        _require(same, "another cost")
        return
    for one, other in zip((answer.counterfactuals, answer.actions), whole, strict=True):
        pd.testing.assert_frame_equal(one, other, rtol=TOLERANCE, atol=TOLERANCE)


def _by_rank(subject: Subject, query: pd.DataFrame) -> pd.DataFrame:
    """The first four answers of each row, sorted by label."""
    table = subject.generate(query).alternatives(4)
    label_and_rank = list(table.columns[:2])
    return table.set_index(label_and_rank).sort_index()


def _random_states() -> tuple[object, ...]:
    return torch.get_rng_state().tolist(), repr(np.random.get_state()), random.getstate()


def _equal(one: pd.DataFrame, other: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(one, other, check_exact=True)


def _require(condition: object, message: str) -> None:
    if not condition:
        raise AssertionError(message)
