"""The settings of a search: `Search`, and `DescentSchedule` of the paper's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from dear_plugin._threads import lazy
from dear_plugin._validation import (
    boolean,
    instance,
    number,
    one_of,
    optional,
    setting,
    several,
    validated,
    whole,
)

# The criteria of answers, the cheapest to evaluate first.
CRITERIA = (
    *("consistency", "plausibility", "gain", "reliance", "support", "agreement"),
    "confidence",
)


@validated
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

    step: float = setting(0.01, number())
    weights: tuple[float, ...] = setting((0.01,), several(number()))
    target: float = setting(0.5, number())
    steps: int = setting(500, whole(0))


@validated
@dataclass(frozen=True)
class Search:
    """Settings of a search.

    Attributes:
        solver: "line" tries values, then values between them (any model, any decoder); "paper" is
            the paper's Algorithm 1 to the letter, which needs a torch module and a differentiable
            decoder.
        margin: how far past the boundary an answer must lie, as a share of the unit of the
            model's scores (`Goal.unit`); answers then survive a retraining of the model.
        min_confidence: the least share of resamples of the decoder under which an answer still
            succeeds; 0 requires none. The search asks for more, see `stricter`.
        min_plausibility: the least plausibility of an answer, or the factual's own where that is
            less; 0 requires none.
        max_reliance: the largest share of the indirect change that an answer may need; at 0 the
            direct change alone must suffice.
        own_gain: whether, without an order of causes, the action of an answer that counts on what
            follows must help: by itself it does not lower the score, and without it what follows
            is refused.
        prefer_alone: how much more an answer that needs no indirect change may cost, as a share.
        indirect_weight: what a unit of indirect change counts for when answers are compared: 1 as
            in the paper, 0 to compare by what has to be done. Where costs are stated, the median
            one of what a row may act on is the unit. Reported costs do not depend on it.
        min_consistency: the least share of training rows that gain by the same kind of change of
            what is acted on, as far as the model alone says; 0 requires none.
        min_agreement: the least share of the copies of the model that accept an answer, where
            copies are given; 0 requires none.
        min_support: the least share of accepted neighbours of an answer; None requires none.
        steps: whether numbers that are acted on move by steps of `Schema.steps`, at least by one,
            and stay within the central training values, unless the row is outside, a range is
            stated, or most accepted training rows lie outside. solver="paper" does not.
        max_features: the largest number of features acted on together, for rows that no given
            set solves; 1 tries the given sets only.
        schedule: the settings of solver="paper".

    Raises:
        SettingError: an invalid value of a setting.

    Example:
        >>> from dear_plugin import Search
        >>> near_accepted = Search(min_support=0.6)
        >>> Search.cheapest().has_criteria
        False
    """

    solver: Literal["line", "paper"] = setting("line", one_of("line", "paper"))
    margin: float = setting(0.3, number())
    min_confidence: float = setting(0.9, number(1.0))
    min_plausibility: float = setting(0.05, number(1.0))
    max_reliance: float = setting(1.0, number(1.0))
    prefer_alone: float = setting(0.25, number())
    indirect_weight: float = setting(1.0, number())
    own_gain: bool = setting(True, boolean)
    min_consistency: float = setting(0.0, number(1.0))
    min_agreement: float = setting(1.0, number(1.0))
    min_support: float | None = setting(None, optional(number(1.0)))
    steps: bool = setting(True, boolean)
    max_features: int = setting(5, whole(1))
    schedule: DescentSchedule = setting(  # noqa: RUF009
        DescentSchedule(), instance(DescentSchedule)
    )

    @classmethod
    def cheapest(cls, **options: Any) -> Search:
        """The settings of the paper: the cheapest action that succeeds, of any size.

        Args:
            options: any other settings.
        """
        names = "margin", "min_confidence", "min_plausibility", "min_agreement", "prefer_alone"
        return cls(**{**dict.fromkeys(names, 0.0), "own_gain": False, "steps": False, **options})

    @property
    def required(self) -> dict[str, float]:
        """The least value of each criterion that is required, the cheapest to evaluate first."""
        own, reliance = (self.min_plausibility, self.own_gain), 1.0 - self.max_reliance
        others = self.min_support or 0.0, self.min_agreement, self.min_confidence
        least = self.min_consistency, *own, reliance, *others
        return {name: float(each) for name, each in zip(CRITERIA, least, strict=True) if each}

    @lazy
    def stricter(self) -> Search:
        """What a search asks for, so that its answers have the confidence that is required.

        It chooses among many actions by few resamples, under which its choice looks better than
        under others: half of what may fail is left for that.
        """
        half = 0.5 + 0.5 * self.min_confidence
        return replace(self, min_confidence=half) if self.min_confidence else self

    @property
    def in_steps(self) -> bool:
        """Whether what is searched are multiples of steps."""
        return self.steps and self.solver != "paper"

    @property
    def has_criteria(self) -> bool:
        """Whether answers must meet criteria besides success and the margin."""
        return bool(self.required) or bool(self.prefer_alone)
