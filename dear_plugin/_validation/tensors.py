"""Tensors: checks of the dtype, shape and range of saved tensors."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor


class Shape(NamedTuple):
    """The expected dtype, shape and range of one tensor.

    Attributes:
        sizes: its dimensions, separated by spaces. A number is that size; a name is a size shared
            by all tensors, set by the first one that uses it; a trailing "+" excludes zero.
        kind: its dtype.
        least: the lower bound of its entries, which excludes NaN; None allows any.
        below: the exclusive upper bound, a number or a size name; None allows infinity.
    """

    sizes: str
    kind: torch.dtype = torch.float32
    least: float | None = -sys.float_info.max
    below: float | str | None = math.inf

    @classmethod
    def of(cls, tensor: Tensor) -> Shape:
        """The shape of tensors that may replace a tensor."""
        sizes = " ".join(map(str, tensor.shape))
        if bool(tensor.isfinite().all()):
            return cls(sizes, tensor.dtype)
        return cls(sizes, tensor.dtype, -math.inf, None)


def check_tensors(
    tensors: Mapping[str, Tensor], shapes: Mapping[str, Shape], known: Mapping[str, int]
) -> None:
    """Check tensors against their shapes; tensors without one here are not checked.

    Args:
        tensors: by name.
        shapes: by name, in the order in which they define size names.
        known: the size names that are already defined.

    Raises:
        ValueError: the first tensor that does not match.
    """
    sizes = dict(known)
    for name, shape in shapes.items():
        if name not in tensors:
            continue
        tensor = tensors[name]
        if tensor.dtype != shape.kind or not _matches(tensor, shape.sizes.split(), sizes):
            raise ValueError(
                f"{name} must be {shape.kind} of ({shape.sizes}), known are {sizes};"
                f" got {tensor.dtype} of {tuple(tensor.shape)}"
            )
        if not _in_range(tensor, shape.least, sizes.get(str(shape.below), shape.below)):
            raise ValueError(f"{name} must hold numbers from {shape.least} below {shape.below}")


def _matches(tensor: Tensor, words: list[str], sizes: dict[str, int]) -> bool:
    """Whether a tensor has these dimensions; new size names are added to `sizes`."""
    if len(words) != tensor.ndim:
        return False
    for word, size in zip(words, tensor.shape, strict=True):
        name = word.rstrip("+")
        expected = int(name) if name.isdigit() else sizes.setdefault(name, size)
        if size != expected or (size == 0 and name != word):
            return False
    return True


def _in_range(tensor: Tensor, least: float | None, below: float | str | None) -> bool:
    """Whether all entries lie in a range; NaN does not."""
    if least is None or not tensor.numel():
        return True
    low, high = (float(end) for end in tensor.aminmax())
    return least <= low and (below is None or high < float(below))
