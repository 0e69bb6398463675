"""What training rows say that a user could have stated: arguments of `Schema.infer`.

`look(frame)` returns them with their evidence. `Schema.infer` asks for what is not stated, unless
`guess=False`; nothing else in the engine does.
"""

from dear_plugin.look.guesses import Guess, Guesses, look

__all__ = ["Guess", "Guesses", "look"]
