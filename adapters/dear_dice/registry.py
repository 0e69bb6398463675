"""`method="dear"` for `dice_ml.Dice`, by a patch that can be taken back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

from dice_ml import dice

from dear_dice.explainer import DiceDEAR
from dear_dice.interface import OF_FEATURES
from dear_plugin import errors

METHOD = "dear"


@dataclass(frozen=True)
class _Decide:
    """`dice_ml.dice.decide`, which picks the class of a method, with one method more.

    Attributes:
        original: DiCE's own function.
        defaults: options of `DiceDEAR` that hold where a call does not give them.
    """

    original: Callable[[Any, Any], Any]
    defaults: Mapping[str, Any]

    def __call__(self, model_interface: Any, method: Any) -> Any:
        is_own = isinstance(method, str) and method == METHOD
        return _WithDefaults if is_own else self.original(model_interface, method)


class _WithDefaults(DiceDEAR):
    """What DiCE makes an explainer of, which it first gives a class and then its arguments."""

    def __init__(self, data_interface: Any, model_interface: Any, **options: Any) -> None:
        self.__class__ = DiceDEAR
        defaults = getattr(dice.decide, "defaults", {})
        DiceDEAR.__init__(self, data_interface, model_interface, **{**defaults, **options})


def register(**options: Any) -> AbstractContextManager[object]:
    """Let `dice_ml.Dice(d, m, method="dear", **options)` return a `DiceDEAR`.

    It wraps `dice_ml.dice.decide` and changes nothing else. `unregister` undoes it, and the end of
    `with register(): ...` restores what was registered before.

    Args:
        **options: defaults of the options of `DiceDEAR`, for software that calls
            `dice_ml.Dice(d, m, method="dear")` and passes none; a further call replaces them.

    Raises:
        ArgumentError: an option that `DiceDEAR` does not have.

    Example:
        >>> import dear_dice
        >>> with dear_dice.register(immutable=["gender"], increasing=["age"]):
        ...     pass  # dice_ml.Dice(d, m, method="dear") keeps to them
    """
    known = [*inspect.signature(DiceDEAR).parameters][2:-1] + OF_FEATURES
    errors.check_arguments(options, known)
    before, ending = dice.decide, ExitStack()
    dice.decide = _Decide(getattr(before, "original", before), options)
    ending.callback(setattr, dice, "decide", before)
    return ending


def unregister() -> None:
    """Undo `register`; no effect if nothing is registered.

    Example:
        >>> unregister()
    """
    if isinstance(dice.decide, _Decide):
        dice.decide = dice.decide.original
