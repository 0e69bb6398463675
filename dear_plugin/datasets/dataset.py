"""Dataset: a frame, its target, and what a person in it can do about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import pandas as pd

from dear_plugin.errors import InputError, SchemaError, unknown

Missing = Literal["drop", "keep"]


def require_missing(missing: str) -> None:
    """Check a loader's `missing`.

    Raises:
        InputError: it is neither "drop" nor "keep".
    """
    if missing not in get_args(Missing):
        raise InputError(unknown("missing", [missing], get_args(Missing)))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Dataset:
    """Rows in the units people use, and what may and may not be changed in them.

    `immutable`, `increasing` and `act_on` answer different questions. An immutable feature never
    changes; an increasing one may change, but not go down; `act_on` lists what a person can set
    out to change. A feature in none of the three may still move along with what is acted on.

    Attributes:
        name: short name, as in the demo's `--dataset`.
        frame: n rows; the features in order, then the target. No value is missing, unless the
            loader was asked with `missing="keep"`.
        target: the target's column; 1 is the wanted class, 0 the other.
        immutable: features that stay as they are.
        increasing: features that may only go up.
        act_on: features that a person can act on: no younger age, no survey weight, no past event,
            nothing protected.
        protected: features that the DEAR paper holds fixed; its benchmark leaves all others free.
        special: per number, the values that are codes and no amounts, as `Schema.infer(special=)`
            takes them.
        units: unit of each numeric feature, in words.
        description: what a row is and how the rows were prepared.
        source: publication or publisher, with its licence where one is given.

    Raises:
        SchemaError: a name that is no feature, or one both immutable and to be acted on.
    """

    name: str
    frame: pd.DataFrame
    target: str
    immutable: tuple[str, ...] = ()
    increasing: tuple[str, ...] = ()
    act_on: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    special: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        if self.target not in self.frame.columns:
            raise SchemaError(unknown("target", [self.target], self.frame.columns))
        marks = self.immutable, self.increasing, self.act_on, self.protected
        for names in (*marks, tuple(self.special), tuple(self.units)):
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
    def labels(self) -> pd.Series:
        """The target, 1 where the row has the wanted class."""
        return self.frame[self.target]

    @property
    def categorical(self) -> tuple[str, ...]:
        """Names of the features whose values are words."""
        words = self.features.select_dtypes(exclude="number").columns
        return tuple(str(name) for name in words)

    def split(self, test: float = 0.2, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Part the rows at random, each part in the frame's own order and with its index.

        Args:
            test: share of the rows that goes to the second part, between 0 and 1.
            seed: of a generator used here alone; the global ones are left as they are.

        Returns:
            (train, test), both with the target.

        Raises:
            InputError: a share that leaves one part without a row.
        """
        size = round(len(self.frame) * test)
        if not 0 < size < len(self.frame):
            raise InputError(
                f"test must be a share of {len(self.frame)} rows that leaves some on both sides, "
                f"got {test!r}"
            )
        drawn = np.zeros(len(self.frame), dtype=bool)
        drawn[np.random.default_rng(seed).permutation(len(drawn))[:size]] = True
        return self.frame[~drawn], self.frame[drawn]

    def _require_features(self, names: Iterable[str]) -> None:
        features = [name for name in self.frame.columns if name != self.target]
        strangers = [name for name in names if name not in features]
        if strangers:
            raise SchemaError(f"{self.name}: {unknown('features', strangers, features)}")
