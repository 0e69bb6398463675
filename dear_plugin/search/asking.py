"""Asking: functions that yield rows and are sent the model's scores; answered together."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
# It yields rows, (m, p), is sent their scores, (m, c), perhaps several times, and returns a T.
Asking: TypeAlias = Generator[Tensor, Tensor, T]
Scores: TypeAlias = Callable[[Tensor], Tensor]


def together(scores: Scores, asks: Sequence[Asking[Any]]) -> list[Any]:
    """The results of functions that ask for scores, with one call of the model for all of a round.

    A call costs as much as many rows: a frame has to be made, a pipeline to be walked through.

    Args:
        scores: the model.
        asks: the functions.
    """
    results: list[Any] = [None] * len(asks)
    wanted: dict[int, Tensor] = {}
    sent: dict[int, Any] = dict.fromkeys(range(len(asks)))
    while sent:
        for i, part in sent.items():
            try:
                wanted[i] = asks[i].send(part)
            except StopIteration as end:
                results[i] = end.value
        found = scores(torch.cat(list(wanted.values()))) if wanted else torch.empty(0)
        parts = found.split([len(rows) for rows in wanted.values()]) if wanted else ()
        sent, wanted = dict(zip(wanted, parts, strict=True)), {}
    return results


def answered(scores: Scores, ask: Asking[T]) -> T:
    """The result of a function that asks for scores."""
    result: T = together(scores, [ask])[0]
    return result
