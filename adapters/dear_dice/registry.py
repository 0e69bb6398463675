"""Registry: `method="dear"` for `dice_ml.Dice`, by a reversible patch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

from dice_ml import dice

from dear_dice.explainer import DiceDEAR

METHOD = "dear"


@dataclass(frozen=True)
class _Decide:
    """`dice_ml.dice.decide`, which picks the class of a method, with one method more."""

    original: Callable[[Any, Any], Any]

    def __call__(self, model_interface: Any, method: Any) -> Any:
        if isinstance(method, str) and method == METHOD:
            return DiceDEAR
        return self.original(model_interface, method)


def register() -> AbstractContextManager[object]:
    """Let `dice_ml.Dice(d, m, method="dear", **options)` return a `DiceDEAR`.

    It wraps `dice_ml.dice.decide` and changes nothing else; a second call has no effect.
    `unregister` undoes it, and so does the end of `with register(): ...`, unless it was
    registered before.
    """
    ending = ExitStack()
    if not isinstance(dice.decide, _Decide):
        dice.decide = _Decide(dice.decide)
        ending.callback(unregister)
    return ending


def unregister() -> None:
    """Undo `register`; no effect if nothing is registered."""
    if isinstance(dice.decide, _Decide):
        dice.decide = dice.decide.original
