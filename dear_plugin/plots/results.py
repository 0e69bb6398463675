"""Results: the figures of a result, by their names of 0.1; `Recourses.plot` draws the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pandas as pd
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Result(Protocol):
    """What these figures use of `Recourses`."""

    @property
    def actions(self) -> pd.DataFrame:
        """The actions of n rows, with `success` and `credible`."""

    @property
    def changed(self) -> Tensor:
        """(n, p) bool: which features differ from the factual."""

    def plot(self, *, title: str = "") -> Figure:
        """The figure of all rows."""

    def plot_row(self, position: int, axes: Axes) -> None:
        """Draw one row."""


def overview(recourses: Result, title: str = "") -> Figure:
    """The recourse of one row, next to the actions of all rows: `Recourses.plot`.

    Args:
        recourses: a result of at least one row.
        title: of the figure.
    """
    return recourses.plot(title=title)


def person(recourses: Result, position: int, axes: Axes) -> None:
    """Draw the changes of one row, feature by feature: `Recourses.plot_row`.

    Args:
        recourses: the result.
        position: of the row, counted from 0.
        axes: where to draw.
    """
    recourses.plot_row(position, axes)


def telling(recourses: Result) -> int:
    """The position of the solved row with the largest indirect change, a credible one if any."""
    moved, actions = recourses.changed.any(1).numpy(), recourses.actions
    follows = actions["indirect_cost"].fillna(0.0)
    return int(np.lexsort((moved, follows, actions["credible"] & moved, actions["success"]))[-1])
