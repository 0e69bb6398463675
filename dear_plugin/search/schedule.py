"""DescentSchedule: the step, the weights and the target score of the paper's Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass

from dear_plugin._validation.settings import number, several, validate, whole


@dataclass(frozen=True)
class DescentSchedule:
    """Settings of `Search(solver="paper")`.

    The paper gives the loss and the loop, but no values. The defaults are those of the gradient
    search in CARLA, the library of the paper's first author (`wachter`: rate .01, lambda .01);
    500 steps is the limit that the paper's appendix gives for REVISE. Of the target score it says
    `s >= 0`: with s on the decision boundary, the l1 term keeps the minimum of the loss below the
    boundary, so s lies past it.

    Attributes:
        step: alpha, the learning rate.
        weights: lambda, the weight of the l1 cost; where there are several, each next one is for
            rows and sets that none before has solved. The paper has one.
        target: s, the target score of the squared error, as a margin past the boundary; log-odds
            for a classifier. The descent stops when the decision changes.
        steps: the limit on steps for each weight; the paper's loop has none.

    Raises:
        SettingError: an invalid value of a setting.

    Example:
        >>> from dear_plugin import DescentSchedule, Search
        >>> quick = Search.cheapest(
        ...     solver="paper", schedule=DescentSchedule(steps=100), max_features=1
        ... )
    """

    step: float = 0.01
    weights: tuple[float, ...] = (0.01,)
    target: float = 0.5
    steps: int = 500

    def __post_init__(self) -> None:
        """Validate the settings."""
        validate(
            self,
            step=number(),
            weights=several(number()),
            target=number(),
            steps=whole(0),
        )
