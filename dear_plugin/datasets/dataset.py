"""A frame with its target and the constraints of its features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import pandas as pd

from dear_plugin.errors import InputError, SchemaError, unknown

Missing = Literal["drop", "keep"]


def require_missing(missing: str) -> None:
    """Validate the argument `missing` of a loader.

    Raises:
        InputError: the value is neither "drop" nor "keep".
    """
    if missing not in get_args(Missing):
        raise InputError(unknown("missing", [missing], get_args(Missing)))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Dataset:
    """Rows in user units, and the constraints of their features.

    Features in `act_on` are actionable: they may change directly. Other mutable features may only
    change indirectly.

    Attributes:
        name: the short name, as in the demo's `--dataset`.
        frame: n rows; the features in order, then the target. Values are missing only with
            `missing="keep"`.
        target: the column of the target; 1 is the wanted class, 0 the other class.
        immutable: features that never change.
        increasing: features that may only increase.
        act_on: actionable features.
        tiers: features in tiers, the earliest causes first, as for `Schema.infer(tiers=)`.
        protected: features that are immutable in the DEAR paper; its benchmark has all others
            mutable.
        special: the values of numeric features that are codes, as for `Schema.infer(special=)`.
        labels: the names of features in texts, as for `Schema.infer(labels=)`.
        units: the units of numeric features, as for `Schema.infer(units=)`.
        description: a sentence on what a row is.
        source: the publication or publisher, with its licence if known.

    Raises:
        SchemaError: a name is not a feature, or is both immutable and in `act_on`.

    Example:
        >>> from dear_plugin.datasets import load_loan
        >>> data = load_loan(100)
        >>> data.immutable, len(data.split()[1])
        (('gender',), 20)
    """

    name: str
    frame: pd.DataFrame
    target: str
    immutable: tuple[str, ...] = ()
    increasing: tuple[str, ...] = ()
    act_on: tuple[str, ...] = ()
    tiers: tuple[tuple[str, ...], ...] = ()
    protected: tuple[str, ...] = ()
    special: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if self.target not in self.frame.columns:
            raise SchemaError(unknown("target", [self.target], self.frame.columns))
        marks = self.immutable, self.increasing, self.act_on, self.protected
        texts = tuple(self.labels), tuple(self.units)
        for names in (*marks, *self.tiers, *texts, tuple(self.special)):
            self._require_features(names)
        clash = [name for name in self.act_on if name in self.immutable]
        if clash:
            raise SchemaError(f"{self.name}: both immutable and in act_on: {', '.join(clash)}")

    def __repr__(self) -> str:
        rows, columns = self.frame.shape
        what = f"{rows:,} rows, {columns - 1} features, target {self.target!r}"
        return f"Dataset({self.name!r}: {what})"

    @property
    def features(self) -> pd.DataFrame:
        """A new frame of the features, without the target."""
        return self.frame.drop(columns=self.target)

    @property
    def outcome(self) -> pd.Series:
        """The column of the target, 1 for the wanted class."""
        return self.frame[self.target]

    @property
    def categorical(self) -> tuple[str, ...]:
        """The names of non-numeric features."""
        columns = self.features.select_dtypes(exclude="number").columns
        return tuple(str(name) for name in columns)

    def split(self, test: float = 0.2, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Split the rows at random; each part keeps the order and the index of the frame.

        Args:
            test: the share of test rows, between 0 and 1.
            seed: the seed; global generators are not used.

        Returns:
            (train, test), both with the target.

        Raises:
            InputError: a part would have no rows.
        """
        size = round(len(self.frame) * test)
        if not 0 < size < len(self.frame):
            raise InputError(
                f"test must be a share of {len(self.frame)} rows that leaves rows in both parts, "
                f"got {test!r}"
            )
        drawn = np.zeros(len(self.frame), dtype=bool)
        drawn[np.random.default_rng(seed).permutation(len(drawn))[:size]] = True
        return self.frame[~drawn], self.frame[drawn]

    def _require_features(self, names: Iterable[str]) -> None:
        features = [name for name in self.frame.columns if name != self.target]
        missing = [name for name in names if name not in features]
        if missing:
            raise SchemaError(f"{self.name}: {unknown('features', missing, features)}")
