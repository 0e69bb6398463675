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
    if not (shown or logger.isEnabledFor(logging.INFO)):
        return items
    from tqdm.auto import tqdm

    # Without tqdm's thread, which redraws bars that stand still and outlives them.
    kind = type("Bar", (tqdm,), {"monitor_interval": 0})
    steps: Iterable[Step] = kind(items, desc=what, delay=0.0 if shown else DELAY, leave=False)
    return steps
