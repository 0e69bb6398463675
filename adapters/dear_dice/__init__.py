"""DEAR as a method of DiCE: which feature to act on, by how much, and which changes follow.

Two entry points give the same explainer:

* `DiceDEAR(data_interface, model_interface)`, the explainer itself;
* `register()`, after which `dice_ml.Dice(d, m, method="dear")` returns it, until `unregister()`.

`wrap_dice(explainer)` is the inverse: any DiCE explainer as a `dear_plugin.RecourseMethod`.
"""

from __future__ import annotations

try:
    import dice_ml as _dice_ml
except ModuleNotFoundError as error:
    if error.name != "dice_ml":
        raise  # dice-ml is installed but one of its dependencies is not: keep that message
    raise ModuleNotFoundError(
        "dear_dice needs dice-ml: pip install 'dear-plugin[dice]'", name="dice_ml"
    ) from error

from dear_dice.explainer import DiceDEAR
from dear_dice.registry import METHOD, register, unregister
from dear_dice.results import Examples, Explanations
from dear_dice.wrapped import wrap_dice

__all__ = ["METHOD", "DiceDEAR", "Examples", "Explanations", "register", "unregister", "wrap_dice"]

del _dice_ml
