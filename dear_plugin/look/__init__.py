"""Guesses from training rows: the arguments of `Schema.infer` that a user could have stated.

`look(frame)` returns them with their evidence. `Schema.infer` adds them to the stated arguments,
unless `guess=False`. Nothing else in the engine guesses.
"""

from dear_plugin.look.guesses import Guess, Guesses, look

__all__ = ["Guess", "Guesses", "look"]
