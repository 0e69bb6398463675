"""Shapes: what the tensors of a save must look like before anything is computed with them."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor


class Shape(NamedTuple):
    """What one tensor must look like.

    Attributes:
        sizes: its dimensions, a word each: a number stands for itself; what another word stands
            for the first tensor says, and "+" behind it that it is not zero.
        kind: its dtype.
        least: its entries are not below it, nor NaN; None allows any.
        below: its entries are below it, a number or one of the words; None allows infinity.
    """

    sizes: str
    kind: torch.dtype = torch.float32
    least: float | None = -sys.float_info.max
    below: float | str | None = math.inf

    @classmethod
    def of(cls, tensor: Tensor) -> Shape:
        """What another must be like to take the place of a tensor."""
        sizes = " ".join(map(str, tensor.shape))
        if bool(tensor.isfinite().all()):
            return cls(sizes, tensor.dtype)
        return cls(sizes, tensor.dtype, -math.inf, None)


def check_tensors(
    tensors: Mapping[str, Tensor], shapes: Mapping[str, Shape], known: Mapping[str, int]
) -> None:
    """Refuse tensors that are not what they must be; what has no shape here is left alone.

    Args:
        tensors: by name.
        shapes: by name, in the order in which they say what their words stand for.
        known: what some words stand for.

    Raises:
        ValueError: the first that does not fit.
    """
    sizes = dict(known)
    for name, shape in shapes.items():
        if name not in tensors:
            continue
        tensor = tensors[name]
        if tensor.dtype != shape.kind or not _measures(tensor, shape.sizes.split(), sizes):
            raise ValueError(
                f"{name} must be {shape.kind} of ({shape.sizes}), known are {sizes};"
                f" {tensor.dtype} of {tuple(tensor.shape)} came"
            )
        if not _spans(tensor, shape.least, sizes.get(str(shape.below), shape.below)):
            raise ValueError(f"{name} must hold numbers from {shape.least} below {shape.below}")


def _measures(tensor: Tensor, words: list[str], sizes: dict[str, int]) -> bool:
    """Whether a tensor has these dimensions; a new word is entered."""
    if len(words) != tensor.ndim:
        return False
    for word, came in zip(words, tensor.shape, strict=True):
        name = word.rstrip("+")
        wanted = int(name) if name.isdigit() else sizes.setdefault(name, came)
        if came != wanted or (came == 0 and name != word):
            return False
    return True


def _spans(tensor: Tensor, least: float | None, below: float | str | None) -> bool:
    """Whether all entries lie in a span; NaN does not."""
    if least is None or not tensor.numel():
        return True
    low, high = (float(end) for end in tensor.aminmax())
    return least <= low and (below is None or high < float(below))
