"""DiCE's data interface as a schema, and its options for one call as constraints."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from raiutils.exceptions import UserConfigValidationException

from dear_plugin import Constraints, Schema, errors

logger = logging.getLogger("dear_dice")

# What `dice_ml.Data` makes of missing text.
MISSING = {"None", "nan", "<NA>"}
# Rows of `Interface.sample`: enough to reveal a wrong order of columns, or logits.
SAMPLE = 256


# What `Schema.infer` takes of features besides what DiCE's data say.
OF_FEATURES = [
    name
    for name in inspect.signature(Schema.infer).parameters
    if name not in ("frame", "target", "numeric", "categorical")
]


class Interface:
    """A public data interface of DiCE, read once and not changed; `marks` are for `Schema.infer`.

    Attributes:
        data: the data interface.
        frame: its training rows without the outcome: categories as text, numbers with the
            decimals that they had before DiCE made them float32.
        schema: their schema; what DiCE calls continuous is numeric.
        spans: (low, high) of every continuous feature in the training rows, as DiCE computes it.
        levels: the categories of every other feature.
    """

    def __init__(self, data_interface: Any, **marks: Any) -> None:
        errors.check_arguments(marks, OF_FEATURES)
        if not hasattr(data_interface, "data_df"):
            raise UserConfigValidationException(
                "Private data interface is not supported with the dear explainer since DEAR learns"
                " indirect changes from the training rows: use dice_ml.Data with dataframe=,"
                f" continuous_features= and outcome_name=; got a {type(data_interface).__name__}"
            )
        self.data = data_interface
        self.frame = _frame(data_interface)
        self.schema = _schema(data_interface, self.frame, marks)
        ranges, _ = data_interface.get_features_range()
        self.spans = {name: ranges[name] for name in data_interface.continuous_feature_names}
        names = data_interface.categorical_feature_names
        self.levels: dict[str, list[str]] = {
            name: [v for v in ranges[name] if not pd.isna(v)] for name in names
        }
        if lost := [name for name, levels in self.levels.items() if MISSING & {*levels}]:
            logger.warning(
                "columns %s have a category 'None' or 'nan', which dice_ml.Data makes of missing"
                " text: the model gets text; with pandas below 3, they stay missing in columns of"
                " dtype category",
                lost,
            )

    @property
    def names(self) -> list[str]:
        """The features, in DiCE's order."""
        return list(self.schema.column_names)

    @property
    def sample(self) -> pd.DataFrame:
        """Some training rows that contain every level of every category."""
        every = [self.frame.drop_duplicates(name) for name in self.levels]
        return pd.concat([self.frame.head(SAMPLE), *every])

    def form(self, rows: pd.DataFrame) -> tuple[list[Any], ...]:
        """How rows are written: the dtypes of columns, and the types of their objects."""
        return [*rows.dtypes], [{*map(type, c)} for _, c in rows.items() if c.dtype == object]

    def written(self, rows: pd.DataFrame) -> Iterator[Schema]:
        """The schemas by which a query may be passed to the model, the query's own dtypes first.

        A row of a web service has lost the dtypes of the rows that a model was trained on:
        objects that are no text have their own dtype; then text, or every category, is a pandas
        category besides; last, every category is an object.
        """
        yield self.schema.as_written(rows)
        rows = rows.astype(dict.fromkeys(self._text(rows), object)).infer_objects()
        every = [*self.levels]
        for names in ([], self._text(rows), every):
            yield self.schema.as_written(rows.astype(dict.fromkeys(names, "category")))
        yield self.schema.as_written(rows.astype(dict.fromkeys(every, object)))

    def _text(self, rows: pd.DataFrame) -> list[str]:
        """The categories that rows have as text or objects."""
        return [n for n in self.levels if pd.api.types.is_string_dtype(rows[n].dtype)]

    def text(self, permitted: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """A call's `permitted_range` with levels as text, as DiCE stores them."""
        if permitted is None:
            return None
        return {n: list(map(str, r)) if n in self.levels else r for n, r in permitted.items()}

    def costs(self, weights: Any) -> dict[str, float] | None:
        """What a unit of every feature costs by `feature_weights`; None leaves the schema's.

        DiCE multiplies changes by them, of numbers scaled by min and max; 1 where it has none.
        DEAR's unit of cost is another, the range of the central training values.
        """
        if weights is None:
            return None
        if isinstance(weights, str) and weights in ("equal", "inverse_mad"):
            mads = self._deviations() if weights != "equal" else {}
            weights = {name: round(1.0 / mad, 2) for name, mad in mads.items()}
        if not isinstance(weights, Mapping) or set(weights) - set(self.names):
            raise UserConfigValidationException(
                "feature_weights should be 'inverse_mad', 'equal' or a weight by the name of each"
                f" feature, of {self.names}, got {weights!r}"
            )
        # Of a feature of several columns the last one that is named counts.
        units = {c.name: c.unit_of_cost / c.width for c in self.schema.columns}
        named = {n: w * units[n] if is_real(w) else w for n, w in weights.items()}
        return {n: unit for n, unit in units.items() if n not in named} | named

    def _deviations(self) -> dict[str, float]:
        """What DiCE's `get_valid_mads` has of scaled numbers, without missing values; 1 for 0."""
        scaled = self.data.normalize_data(self.data.data_df)[self.data.continuous_feature_names]
        mads = (scaled - scaled.median()).abs().median()
        return {str(name): float(mad) for name, mad in mads.where(mads > 0.0, 1.0).items()}

    def check(self, permitted: Mapping[str, Any] | None) -> None:
        """Refuse a call's range, levels as text, of no feature or level, with DiCE's messages."""
        data = copy.copy(self.data)
        data.permitted_range = self.text(data.permitted_range)
        data.check_permitted_range(permitted)

    def constraints(
        self, schema: Schema, permitted: Any, vary: Sequence[str], weights: Any = None
    ) -> Constraints:
        """The constraints of one call, by DiCE's `permitted_range` and others.

        Ranges are the data's own, or the interface's, or the call's; `schema` has levels as the
        query does.
        """
        ranges = {**self.spans, **self.levels, **self.data.permitted_range, **(permitted or {})}
        levels = {n: [str(v) for v in ranges[n] if not pd.isna(v)] for n in self.levels}
        limited = {n: some for n, some in levels.items() if set(some) != set(self.levels[n])}
        pairs = zip(self.schema.columns, schema.columns, strict=True)
        own = {a.name: dict(zip(a.choices, b.choices, strict=True)) for a, b in pairs}
        return Constraints(
            frozen=[name for name in self.names if name not in vary],
            ranges={n: tuple(ranges[n]) for n, s in self.spans.items() if list(ranges[n]) != s},
            categories={n: [own[n].get(v, v) for v in some] for n, some in limited.items()},
            costs=self.costs(weights),
        )


def as_numbers(rows: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Rows whose numbers are no longer objects or text, and whose dates are text, as in DiCE."""
    text = [n for n in names if pd.api.types.is_string_dtype(rows[n].dtype)]
    dates = [n for n in rows if rows[n].dtype.kind in "mM"]
    rows = rows.copy() if text or dates else rows
    for name in dates:
        rows[name] = rows[name].map(str)
    for name in text:
        numbers = pd.to_numeric(rows[name], errors="coerce")
        if len(odd := rows[name][numbers.isna() & rows[name].notna()]):
            words = f"{name} is continuous in DiCE's data and should hold numbers, got"
            raise UserConfigValidationException(f"{words} {odd.iat[0]!r}")
        rows[name] = numbers
    return rows


def _frame(data: Any) -> pd.DataFrame:
    categorical = set(data.categorical_feature_names)
    columns = {name: data.data_df[name] for name in data.feature_names}
    return pd.DataFrame(
        {n: _text(c) if n in categorical else _decimal(c) for n, c in columns.items()}
    )


def _text(column: pd.Series) -> pd.Series:
    """A column of categories as text; one whose levels have an order keeps it."""
    dtype = column.dtype
    in_order = isinstance(dtype, pd.CategoricalDtype) and dtype.ordered
    return column if in_order else column.astype(object)


def _decimal(column: pd.Series) -> pd.Series:
    """A column with each float32 as the double that prints alike: 0.1, not 0.10000000149."""
    if column.dtype != np.float32:
        return column
    return pd.Series(column.to_numpy().astype(str).astype(np.float64), index=column.index)


def _in_text(mark: Any, names: Collection[str]) -> Any:
    """What is stated by feature, with levels of the named ones as text, as DiCE stores them."""
    if not isinstance(mark, Mapping):
        return mark
    return {name: _levels(own) if name in names else own for name, own in mark.items()}


def _levels(own: Any) -> Any:
    if isinstance(own, Mapping):
        return {str(level): text for level, text in own.items()}
    return own if isinstance(own, str) or not isinstance(own, Iterable) else [*map(str, own)]


def _schema(data: Any, frame: pd.DataFrame, marks: Mapping[str, Any]) -> Schema:
    own = {name: _in_text(mark, data.categorical_feature_names) for name, mark in marks.items()}
    schema = Schema.infer(frame, **own, numeric=data.continuous_feature_names)
    features = {feature.name: feature for feature in schema}
    for name in {*data.categorical_feature_names} & {*features}:
        dtype, levels = data.data_df[name].dtype, features[name].choices
        if isinstance(dtype, pd.CategoricalDtype) and {*levels} - {None} <= {*dtype.categories}:
            # A model that uses the codes of categories depends on their order in training.
            schema = schema.replace(name, stored=tuple(dtype.categories))
    for name, places in (data.continuous_features_precision or {}).items():
        if name in features:  # not one of the columns of a group
            # A precision that the host states is what its users expect; a step of theirs is, too.
            step = features[name].step or 0.0
            schema = schema.replace(name, precision=int(places), step=step)
    return schema


def is_real(value: Any) -> bool:
    """Whether a value is a real number."""
    return isinstance(value, Real) and not isinstance(value, bool)


# Of "random", "genetic", "kdtree" and "gradient".
_OF_OTHERS = """
    algorithm categorical_penalty diversity_loss_type diversity_weight
    features_weights init_near_query_instance initialization learning_rate limit_steps_ls
    loss_converge_maxiter loss_diff_thres max_iter maxiterations min_iter optimizer project_iter
    proximity_weight random_seed sample_size sparsity_weight thresh tie_random yloss_type
"""
IGNORED = tuple(_OF_OTHERS.split())


def check_ignored(given: Collection[str], own: Iterable[str]) -> None:
    """Log given arguments of DiCE's other methods, and refuse those that are not its `own`."""
    errors.check_arguments(given, [*own, *IGNORED])
    if given:
        logger.warning("method 'dear' ignores %s: only other methods use them", ", ".join(given))
