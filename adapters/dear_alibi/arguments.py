"""Arguments: what Alibi's users pass, as targets and constraints of the engine."""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from torch import nn

from dear_alibi.table import Array
from dear_plugin import Constraints, Decoder, Feature, Kind, Schema, errors

Ranges = Mapping[str, Sequence[float]]
Condition = Mapping[str, Sequence[Any]]

logger = logging.getLogger("dear_alibi")

UNBOUNDED = (-math.inf, math.inf)
# Arguments of CounterfactualRLTabular, CounterfactualProto, Counterfactual, CEM and AnchorTabular.
_CONSTRUCTOR = """
    encoder encoder_preprocessor decoder_inv_preprocessor coeff_sparsity coeff_consistency
    latent_dim weight_num weight_cat act_noise act_low act_high replay_buffer_size batch_size
    num_workers shuffle exploration_steps update_every update_after train_steps reward_func
    postprocessing_funcs conditional_func callbacks actor critic optimizer_actor optimizer_critic
    lr_actor lr_critic actor_hidden_dim critic_hidden_dim
    shape kappa beta gamma ae_model enc_model theta use_kdtree learning_rate_init max_iterations
    c_init c_steps eps clip update_num_grad no_info_val write_dir sess distance_fn max_iter
    early_stop lam_init max_lam_steps tol init decay debug dtype
"""
_FIT = (
    "trustscore_kwargs d_type w disc_perc standardize_cat_vars smooth center update_feature_range"
)
_EXPLAIN = """
    diversity num_samples patience tolerance k k_type print_every log_every verbose
    threshold delta tau coverage_samples beam_size stop_on_first max_anchor_size min_samples_start
    n_covered_ex binary_cache_size cache_margin verbose_every
"""
IGNORED = {
    "__init__": frozenset(_CONSTRUCTOR.split()),
    "fit": frozenset(_FIT.split()),
    "explain": frozenset(_EXPLAIN.split()),
}
# Arguments that change the result have another name here, and are never ignored.
RENAMED = {
    "Y": "Y_t",
    "target_class": "Y_t",
    "feature_range": "ranges",
    "cat_vars": "category_map",
    "categorical_names": "category_map",
}


def check_ignored(call: Callable[..., Any], given: Iterable[str]) -> None:
    """Log given arguments of Alibi's other explainers, and refuse those unknown to all."""
    names, ignored = list(given), IGNORED[call.__name__]
    unknown = [name for name in names if name not in ignored]
    if unknown:
        own = [n for n in inspect.signature(call).parameters if n not in ("self", "of_others")]
        renamed = [f"{name!r} is {RENAMED[name]!r} here" for name in unknown if name in RENAMED]
        message = errors.unknown("arguments", unknown, own)
        raise errors.ArgumentError("; ".join([message, *renamed]))
    if names:
        _warn_ignored(names)


def decoder_of(decoder: Any) -> Any:
    """The decoder; CounterfactualRL's own network is an ignored argument of the same name."""
    if isinstance(decoder, nn.Module) and not isinstance(decoder, Decoder):
        _warn_ignored(["decoder"])
        return "transport"
    return decoder


def check_backend(backend: str) -> None:
    """Refuse any backend but torch's."""
    if backend != "pytorch":
        raise errors.ModelError(
            f"backend must be 'pytorch', got {backend!r}; a model of another framework is passed"
            " as a function of label-encoded rows, without a backend"
        )


def target_classes(Y_t: Any, n: int) -> Array | None:
    """Wanted classes of n rows, (n, 1) int64; None stays None.

    Y_t is one class or one per row: an int, a list, or an array (1,), (n,), (1, 1) or (n, 1).
    """
    if Y_t is None:
        return None
    given = np.asarray(Y_t)
    if given.size not in (1, n) or given.ndim > 2 or given.shape[1:] not in ((), (1,)):
        raise errors.TargetError(
            f"Y_t must be one class or one per row, n = {n}; got shape {given.shape}"
        )
    numbers = _floats(given)
    if not (np.isfinite(numbers) & (numbers >= 0) & (numbers == np.round(numbers))).all():
        raise errors.TargetError(
            f"Y_t must hold classes, integers from 0; got {given.ravel()[:3].tolist()}"
        )
    return np.broadcast_to(numbers.astype(np.int64).reshape(-1, 1), (n, 1))


def resolve_targets(wanted: Array | None, classes: Array, count: int) -> Array:
    """The wanted class of m rows, (m, 1): `wanted`, or the other one of two classes.

    `classes`, (m, 1), are the predicted ones of the predictor's `count` classes.
    """
    if wanted is not None and wanted.max() >= count:
        raise errors.TargetError(
            f"Y_t asks for class {wanted.max()}; the predictor has classes 0 ... {count - 1}"
        )
    if wanted is None and count > 2:
        raise errors.TargetError(
            f"Y_t=None means the other one of two classes; the predictor has {count}: give Y_t"
        )
    return np.where(classes == 0, 1, 0) if wanted is None else wanted


def _warn_ignored(names: list[str]) -> None:
    logger.warning("DEAR ignores %s: only other explainers use them", ", ".join(names))


def _floats(given: Array) -> Array:
    """The values as floats, NaN if they are not numbers."""
    if given.dtype.kind not in "iufO":
        return np.array(np.nan)
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError):
        return np.array(np.nan)


@dataclass(frozen=True)
class AlibiConstraints:
    """Alibi's immutable features, ranges and conditions.

    Attributes:
        immutable: features that do not change.
        ranges: `{feature: (low, high)}`, changes as fractions of the training width.
        rows: no condition, one for all rows, or one per row: `{numeric feature: (low, high)}`,
            changes in the feature's own units, and `{categorical feature: [strings]}`.
    """

    immutable: tuple[str, ...] = ()
    ranges: Mapping[str, tuple[float, float]] | None = None
    rows: Sequence[Condition] = ()

    @classmethod
    def of(
        cls,
        declared: Schema,
        immutable: Iterable[str] | None,
        ranges: Ranges | None,
        C: Sequence[Condition] | None = None,
    ) -> AlibiConstraints:
        """The constraints of a user's arguments, validated."""
        if isinstance(immutable, str) or isinstance(C, str | Mapping):
            raise errors.ConstraintError(
                "immutable_features must be a list, and C a list of dicts"
            )
        names = tuple(immutable or ())
        declared.index(names)
        fractions = {f.name: _fraction(f, (ranges or {})[f.name]) for f in _of(declared, ranges)}
        rows = [{f.name: _condition(f, c[f.name]) for f in _of(declared, c)} for c in C or ()]
        return cls(names, fractions, rows)

    @property
    def params(self) -> dict[str, Any]:
        """`immutable_features` and `ranges` as plain values, for metadata."""
        ranges = {name: list(pair) for name, pair in (self.ranges or {}).items()}
        return {"immutable_features": list(self.immutable), "ranges": ranges}

    def within(self, other: AlibiConstraints) -> AlibiConstraints:
        """Both at once."""
        ranges = dict(self.ranges or {})
        for name, (low, high) in (other.ranges or {}).items():
            own = ranges.get(name, UNBOUNDED)
            ranges[name] = (max(low, own[0]), min(high, own[1]))
        immutable = tuple(dict.fromkeys([*self.immutable, *other.immutable]))
        return AlibiConstraints(immutable, ranges, other.rows or self.rows)

    def check_count(self, n: int) -> None:
        """Refuse a number of conditions other than 0, 1 and n."""
        if len(self.rows) not in (0, 1, n):
            raise errors.ConstraintError(
                f"C must hold one condition or one per row, n = {n}; got {len(self.rows)}"
            )

    def select(self, rows: slice) -> AlibiConstraints:
        """The constraints of some rows."""
        some = self.rows if len(self.rows) <= 1 else self.rows[rows]
        return AlibiConstraints(self.immutable, self.ranges, some)

    def constraints(self, schema: Schema, frame: pd.DataFrame) -> Constraints:
        """The engine's constraints on a frame, with the schema of the training rows."""
        bounded = {*(self.ranges or {}), *(name for c in self.rows for name in c)}
        numbers = [f for f in schema if f.name in bounded and f.kind is Kind.NUMERIC]
        texts = {f.name for f in schema if f.kind is not Kind.NUMERIC}
        levels = [{name: c[name] for name in c if name in texts} or None for c in self.rows]
        categories: Any = levels[0] if len(levels) == 1 else levels
        return Constraints(
            frozen=self.immutable,
            ranges={f.name: self._interval(f, frame[f.name].to_numpy(float)) for f in numbers},
            categories=categories if any(levels) else None,
        )

    def _interval(self, feature: Feature, x: Array) -> tuple[Array, Array]:
        """The least and greatest value of a number in each row, (n,), in the user's units."""
        low, high = (self.ranges or {}).get(feature.name, UNBOUNDED)
        rows = np.array([c.get(feature.name, UNBOUNDED) for c in self.rows or ({},)], dtype=float)
        least = np.maximum(rows[:, 0], low * feature.width)
        most = np.minimum(rows[:, 1], high * feature.width)
        return x + least, x + most


def _of(declared: Schema, given: Mapping[str, Any] | None) -> list[Feature]:
    """The features that a dict names."""
    if given is not None and not isinstance(given, Mapping):
        raise errors.ConstraintError(f"expected a dict of features, got {type(given).__name__}")
    return [declared.features[j] for j in declared.index(given or ())]


def _condition(feature: Feature, value: Any) -> Sequence[Any]:
    if feature.kind is Kind.NUMERIC:
        return _pair(feature, value, "C", math.inf)
    levels = [value] if isinstance(value, str) else [str(v) for v in value]
    unknown = [level for level in levels if level not in feature.categories]
    if unknown or not levels:
        raise errors.ConstraintError(
            f"C: {feature.name!r} may become {list(feature.categories)}; got {unknown or levels}"
        )
    return levels


def _fraction(feature: Feature, value: Any) -> tuple[float, float]:
    if feature.kind is not Kind.NUMERIC:
        raise errors.ConstraintError(
            f"ranges: {feature.name!r} has categories; use C or immutable_features"
        )
    return _pair(feature, value, "ranges", 1.0)


def _pair(feature: Feature, value: Any, argument: str, most: float) -> tuple[float, float]:
    """An interval of changes with low <= 0 <= high, both at most `most` in size."""
    try:
        low, high = (float(v) for v in value)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not (-most <= low <= 0.0 <= high <= most and math.isfinite(high - low)):
        ends = "[-1, 0] and [0, 1]" if math.isfinite(most) else "numbers <= 0 and >= 0"
        raise errors.ConstraintError(
            f"{argument}: {feature.name!r} needs a change [low, high] with ends in {ends};"
            f" got {value!r}"
        )
    return low, high
