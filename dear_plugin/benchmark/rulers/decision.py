"""Decision: a model as a function that says of each row of a frame whether it is accepted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from dear_plugin.data.encoder import Encoder
from dear_plugin.data.schema import Schema
from dear_plugin.models.classifier import Classifier
from dear_plugin.problem.target import Target
from dear_plugin.results.recourses import Recourses

Floats: TypeAlias = npt.NDArray[np.float64]
Truths: TypeAlias = npt.NDArray[np.bool_]
Accepts: TypeAlias = Callable[[pd.DataFrame], Truths]


def decision(model: Any, schema: Schema) -> Accepts:
    """Whether a model decides for class 1, (m,) bool of a frame of m rows.

    Args:
        model: as `DEAR` takes it.
        schema: the features.
    """
    classifier = Classifier(model, Encoder(schema))

    def _accepts(frame: pd.DataFrame) -> Truths:
        goal = Target.of_class(1).resolve(len(frame), classifier.classes)
        accepted: Truths = goal.accepts(classifier.frame_scores(frame)).numpy()
        return accepted

    return _accepts


def solved(recourses: Recourses) -> Truths:
    """(n,) bool: rows that were refused and have an answer; accepted ones need none."""
    needed = recourses.actions["reason"].to_numpy() != "already accepted"
    answered: Truths = recourses.actions["success"].to_numpy(dtype=bool) & needed
    return answered


def where(kept: Truths, values: npt.ArrayLike) -> Floats:
    """(n,) values where they are kept, NaN elsewhere."""
    return np.where(kept, np.asarray(values, dtype=np.float64), np.nan)
