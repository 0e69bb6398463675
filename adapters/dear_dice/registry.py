"""Registry: `method="dear"` for `dice_ml.Dice`, for a while, or without any patch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, final

import dice_ml
from dice_ml import dice

from dear_dice.explainer import DiceDEAR

METHOD = "dear"


@dataclass(frozen=True)
class _Decide:
    """DiCE's choice of a method's class, which knows one method more."""

    before: Callable[[Any, Any], Any]

    def __call__(self, model_interface: Any, method: Any) -> Any:
        if isinstance(method, str) and method == METHOD:
            return DiceDEAR
        return self.before(model_interface, method)


@dataclass(frozen=True)
class Registration:
    """What `register` returns: used in a `with` statement, it ends at the end of the block."""

    mine: bool

    def __enter__(self) -> Registration:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.mine:
            unregister()


def register() -> Registration:
    """Let `dice_ml.Dice(d, m, method="dear", **options)` give a `DiceDEAR`.

    It wraps `dice_ml.dice.decide` and touches nothing else. Calling it again changes nothing;
    `unregister` ends it, and so does the end of `with register(): ...`, unless it was registered
    before.
    """
    mine = not isinstance(dice.decide, _Decide)
    if mine:
        dice.decide = _Decide(dice.decide)
    return Registration(mine)


def unregister() -> None:
    """Undo `register`; without it, nothing happens."""
    if isinstance(dice.decide, _Decide):
        dice.decide = dice.decide.before


@final
class Dice(dice_ml.Dice):
    """`dice_ml.Dice` that knows `method="dear"` without anything being registered.

    Args:
        data_interface: DiCE's data interface.
        model_interface: DiCE's model interface.
        method: "dear", or any of DiCE's own.
        **options: what the method takes; for "dear", see `Options`.
    """

    def __new__(
        cls, data_interface: Any, model_interface: Any, method: Any = "random", **options: Any
    ) -> Any:
        """The explainer of the method."""
        if isinstance(method, str) and method == METHOD:
            return DiceDEAR(data_interface, model_interface, **options)
        return super().__new__(cls)
