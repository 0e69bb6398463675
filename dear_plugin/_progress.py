"""Progress: bars for work that takes seconds, off unless the log of dear_plugin is at INFO."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TypeVar

Step = TypeVar("Step")

# Seconds before a bar appears: short work shows none.
DELAY = 3.0
logger = logging.getLogger("dear_plugin")


def bar(items: Sequence[Step], what: str, *, shown: bool = False) -> Iterable[Step]:
    """Items one by one, with a progress bar on stderr where it is switched on.

    `logging.getLogger("dear_plugin").setLevel("INFO")` switches all bars on.

    Args:
        items: the steps of the work.
        what: is being done, in a few words.
        shown: at any level of the log, and at once.
    """
    from tqdm.auto import tqdm

    disabled, delay = not (shown or logger.isEnabledFor(logging.INFO)), 0.0 if shown else DELAY
    steps: Iterable[Step] = tqdm(items, desc=what, delay=delay, leave=False, disable=disabled)
    return steps
