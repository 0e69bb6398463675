"""Asking: functions that yield rows and are sent the model's scores, by themselves or together."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
# It yields rows, (m, p), is sent their scores, (m, c), perhaps several times, and returns a T.
Asking: TypeAlias = Generator[Tensor, Tensor, T]
Scores: TypeAlias = Callable[[Tensor], Tensor]


def together(asks: Sequence[Asking[Any]]) -> Asking[list[Any]]:
    """The results of functions that ask for scores, what all of them ask for at a time as one.

    A call costs as much as many rows: a frame has to be made, a pipeline to be walked through.
    """
    results: list[Any] = [None] * len(asks)
    sent: dict[int, Any] = dict.fromkeys(range(len(asks)))
    while True:
        wanted: dict[int, Tensor] = {}
        for i, part in sent.items():
            try:
                wanted[i] = asks[i].send(part)
            except StopIteration as end:
                results[i] = end.value
        if not wanted:
            return results
        found = yield torch.cat(list(wanted.values()))
        parts = found.split([len(rows) for rows in wanted.values()])
        sent = dict(zip(wanted, parts, strict=True))


def answered(scores: Scores, ask: Asking[T]) -> T:
    """The result of a function that asks for scores, given the model."""
    sent: Any = None
    while True:
        try:
            rows = ask.send(sent)
        except StopIteration as end:
            result: T = end.value
            return result
        sent = scores(rows)
