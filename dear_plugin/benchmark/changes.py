"""Stated and true indirect changes of each draw of a system."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingRegressor

from dear_plugin.benchmark.fits import reject_all
from dear_plugin.benchmark.systems import JOINED, TAIL, WITH, WITHOUT, Noise, System, Values
from dear_plugin.data.schema import Schema
from dear_plugin.methods.dear import DEAR, outcomes
from dear_plugin.results.worth import OF_PEOPLE, around, ends
from dear_plugin.search.criteria import unseen

# The numbers of rows for the fit, for actions, and for resamples.
TRAINING, ROWS, RESAMPLED = 20_000, 10_000, 2_000
TOLERANCE = 0.05
# The outer share that rows move into; the largest number of levels of a held feature that are
# groups, and of held features that are crossed.
OUTER, MOST_LEVELS, MOST_CROSSED = 0.1, 12, 3
Truths = npt.NDArray[np.bool_]


def changes(system: System, seed: int, training: int = TRAINING) -> pd.DataFrame:
    """Stated and true changes of one draw of a system, with and without tiers.

    Args:
        system: the equations. A system with `acted` is measured only with tiers.
        seed: the seed of the draw.
        training: the number of training rows, at most `system.rows`.

    Returns:
        `seed, tiers, step` and the columns of `changes_of`, for each action.
    """
    rng = np.random.default_rng(seed)
    train = system.solve(system.noise(min(training, system.rows), rng), {})
    noise, parts = system.noise(ROWS, rng), []
    for how, tiers in {WITHOUT: (), WITH: system.tiers}.items():
        if how == WITH or not system.acted:
            schema = Schema.infer(train, immutable=system.immutable, tiers=tiers)
            every = [*zip(schema.mutable), *combinations(schema.mutable, 2)]
            sets = [system.acted] if system.acted else every
            dear = DEAR(reject_all, schema, act_on=sets).fit(train)
            other = partial(rival, train) if system.acted else None
            parts += [
                changes_of(system, dear, noise, names, step, other).assign(tiers=how, step=step)
                for names in sets
                for step in system.steps
            ]
    return pd.concat(parts).assign(seed=seed)


def changes_of(
    system: System,
    dear: DEAR,
    noise: Noise,
    names: Sequence[str],
    step: float,
    other: partial[pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """Stated and true changes when all rows act on some features.

    Args:
        system: the equations.
        dear: a fit on rows of the system.
        noise: the noise of the rows.
        names: the features acted on.
        step: the size of the action.
        other: another method that states changes; see `rival`.

    Returns:
        A line for each feature (or level of a category) that may follow, in all rows and `within`
        each group of a held feature: `acted on, feature`, the mean changes `expected`, `rival` and
        `true`, the stated range `low, high`, and `single, wrong, rows`.
    """
    before = system.solve(noise, {})
    actions = pd.DataFrame({n: _other(before[n], dear.schema, step) for n in names})
    stated = outcomes(dear, before, actions, None, None)[1].counterfactuals
    true = system.solve(noise, {name: stated[name] for name in names})
    held = [dear.schema.names[j] for j in dear.schema.causal_order.held(dear.schema.index(names))]
    follow = [k for k in dear.schema.mutable if k not in names]
    rivals = stated if other is None else other(before, true, held, names, follow)
    frames = [stated, true, rivals, *_drawn(dear, before, stated, names)]
    groups = [*_groups(before[held])]
    parts = [
        _measured(*(each[at[: len(each)]] for each in _changes(before[k], frames, k))).assign(
            feature=k, within=name
        )
        for k in follow
        for name, at in groups
    ]
    return pd.concat(parts).assign(**{"acted on": JOINED.join(names)})


def _measured(
    stated: Values, true: Values, rivals: Values, expected: Values, *resampled: Values
) -> pd.DataFrame:
    """The measures of one feature from the changes of its levels in each row, (m, l)."""
    # The true changes of the resampled rows differ by chance from those of all rows.
    few = true[: len(resampled[0])]
    drawn = np.stack(resampled)
    offset = np.nanmean(true, 0) - np.nanmean(few, 0)
    known = np.isfinite(drawn).sum(1).clip(1)
    # Each row of a small group may become missing in some resample.
    means = (np.nansum(drawn, 1) / known)[None]
    middle = np.nanmean(expected[: len(few)], 0)[None]
    both = around(torch.from_numpy(means), torch.from_numpy(middle))
    low, high = (end[0].numpy() + offset for end in both)
    clear = np.minimum(np.abs(stated), np.abs(true)) > TOLERANCE
    # A row that becomes missing keeps its value in the answer.
    draws = torch.from_numpy(np.nan_to_num(drawn).reshape(1, -1, few.size))
    least, most = (end.numpy().reshape(few.shape) for end in ends(draws, OF_PEOPLE))
    inside = (few >= least - TOLERANCE) & (few <= most + TOLERANCE)
    columns = {
        "expected": np.nanmean(expected, 0),
        "rival": np.nanmean(rivals, 0),
        "true": np.nanmean(true, 0),
        "low": low,
        "high": high,
        "single": np.nanmean(np.abs(stated - true), 0),
        "wrong": (clear & (np.sign(stated) != np.sign(true))).mean(0),
        "rows": np.nanmean(np.where(np.isnan(few), np.nan, inside), 0),
    }
    return pd.DataFrame(columns)


def _changes(before: pd.Series, frames: Sequence[pd.DataFrame], name: str) -> list[Values]:
    """(m, l) the change of a number, or of each level, in each row, in standard deviations.

    It is NaN if the number is missing before the action, or after it in the true rows, which are
    the second frame. Stated and true means are then of the same rows.
    """
    one, labels = before.to_numpy()[:, None], None
    if not pd.api.types.is_numeric_dtype(before):
        labels = np.unique(one)

    def _columns(values: npt.NDArray[np.generic]) -> Values:
        if labels is not None:
            return np.asarray(values == labels, dtype=np.float64)
        return np.asarray(values, dtype=np.float64)

    start = _columns(one)
    deviation = np.nanstd(start, 0)
    deviation[deviation == 0.0] = 1.0
    after = [_columns(frame[name].to_numpy()[:, None]) for frame in frames]
    known = np.where(np.isnan(after[1]), np.nan, 1.0)
    return [(each - start[: len(each)]) / deviation * known[: len(each)] for each in after]


def _groups(held: pd.DataFrame) -> Iterator[tuple[str, Truths]]:
    """All rows, the halves or levels of each held feature, and crossings of two features."""
    yield "", np.ones(len(held), dtype=bool)
    codes = pd.DataFrame({name: _codes(column) for name, column in held.items()})
    crossed = [list(each) for each in combinations(held.columns[:MOST_CROSSED], 2)]
    for names in [*([name] for name in held.columns), *crossed]:
        for code, rows in codes.groupby(names).indices.items():
            at = np.isin(np.arange(len(held)), rows)
            if at[:RESAMPLED].sum() >= RESAMPLED // 40:
                yield f"{' x '.join(names)}: {code}", at


def _codes(column: pd.Series) -> pd.Series:
    """The group of each row; rows with missing values are in none."""
    if pd.api.types.is_numeric_dtype(column) and column.nunique() > MOST_LEVELS:
        return (column > column.median()).astype(float).where(column.notna())
    return column


def _other(column: pd.Series, schema: Schema, step: float) -> pd.Series:
    """The new values of an action: the observed value nearest to a step up, or the first level."""
    feature = schema.features[schema.index([str(column.name)])[0]]
    return (
        _farther(column, step)
        if feature.has_order
        else column.where(column.isna(), feature.categories[0])
    )


def _farther(column: pd.Series, step: float) -> pd.Series:
    values = np.unique(column)
    wanted = column + step * column.std()
    if step == TAIL:  # the order of the rows stays
        wanted = column.quantile(1.0 - OUTER + OUTER * column.rank(pct=True)).set_axis(
            column.index
        )
        wanted = np.maximum(wanted, column)
    at = np.searchsorted((values[1:] + values[:-1]) / 2, wanted)
    return pd.Series(values[at], column.index)


def _drawn(
    dear: DEAR, before: pd.DataFrame, stated: pd.DataFrame, names: Sequence[str]
) -> Iterator[pd.DataFrame]:
    """The decoded rows with ties at random, and the first rows under each resample.

    Answers have the most likely values. For categories and numbers with few values, their mean is
    not the expected value.
    """
    encoder, members = dear.encoder, tuple(sorted(dear.schema.index(names)))
    decoder, rows = dear.decoders.of(members), encoder.rows(before)
    values = encoder.rows(stated)[:, list(members)]
    v = decoder.encode(rows, torch.Generator().manual_seed(0))
    yield encoder.frame(encoder.rounded(decoder.decode(rows, v, values[:, None])[:, 0]))
    draws = unseen(dear.decoders.decoder)
    resampled = dear.decoders.resample(members, rows[:RESAMPLED], values[:RESAMPLED], draws)
    yield from map(encoder.frame, encoder.rounded(resampled).unbind(1))


def rival(
    train: pd.DataFrame,
    before: pd.DataFrame,
    after: pd.DataFrame,
    held: Sequence[str],
    acted: Sequence[str],
    follow: Sequence[str],
) -> pd.DataFrame:
    """The rows after an action by boosted trees of the features acted on and held: an S-learner.

    Numbers change by the difference of two predictions. The columns are x_S, the held features,
    and the expectation of x_S given these, which is not cross-fitted: it would differ by fold if
    x_S does not depend on held features, and mislead the trees.

    Args:
        train: the training rows.
        before: the factual rows.
        after: the rows with the new values of the features acted on.
        held: the features that are conditioned on.
        acted: the features acted on.
        follow: the features that may follow; categories keep their factual values.
    """
    given, wanted, there = (
        _codes_of(*each) for each in ((train, held), (train, acted), (before, held))
    )
    for column in wanted.T if held else ():
        score = _trees().fit(given[:, : len(held)], column)
        given, there = (
            np.column_stack([each, score.predict(each[:, : len(held)])]) for each in (given, there)
        )
    columns = np.column_stack([wanted, given])
    out = before.copy()
    for name in follow:
        target = train[name]
        if not pd.api.types.is_numeric_dtype(target):
            continue
        known = target.notna().to_numpy()
        trees = _trees().fit(columns[known], target[known])
        start, end = (
            trees.predict(np.column_stack([_codes_of(frame, acted), there]))
            for frame in (before, after)
        )
        out[name] = before[name] + end - start
    return out


def _trees() -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(max_iter=60, min_samples_leaf=40, random_state=0)


def _codes_of(frame: pd.DataFrame, names: Sequence[str]) -> Values:
    """(n, q) the numbers of a frame, and the codes of its categories."""
    codes = frame[list(names)].apply(
        lambda c: c if pd.api.types.is_numeric_dtype(c) else c.astype("category").cat.codes
    )
    return np.asarray(codes, dtype=np.float64).reshape(len(frame), -1)
