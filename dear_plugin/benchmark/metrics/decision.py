"""Decision: a model as a function of frames, m rows in, (m,) bool out: which are accepted."""

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
    """The function that returns which rows of a frame a model assigns to class 1, (m,) bool.

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
    """(n,) bool, rejected rows with a successful answer."""
    needed = recourses.actions["reason"].to_numpy() != "already accepted"
    answered: Truths = recourses.actions["success"].to_numpy(dtype=bool) & needed
    return answered


def where(mask: Truths, values: npt.ArrayLike) -> Floats:
    """(n,) values where the mask is set, NaN elsewhere."""
    return np.where(mask, np.asarray(values, dtype=np.float64), np.nan)
