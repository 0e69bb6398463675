"""Tensors: checks of the dtype, shape and entries of saved tensors."""

from __future__ import annotations

import torch
from torch import Tensor


def check_tensor(
    name: str,
    tensor: Tensor,
    shape: tuple[int | None, ...],
    *,
    dtype: torch.dtype = torch.float32,
    is_finite: bool = True,
) -> None:
    """Check a saved tensor before it is used.

    Args:
        name: of the tensor, for the error.
        tensor: as it was read.
        shape: the expected size of each dimension; None is any size from 1.
        dtype: the expected dtype.
        is_finite: whether all its entries must be finite; if not, only NaN is refused.

    Raises:
        ValueError: it does not match.
    """
    sizes = tuple(tensor.shape)
    expected = [s or 1 if e is None else e for s, e in zip(sizes, shape, strict=False)]
    if tensor.dtype != dtype or len(sizes) != len(shape) or list(sizes) != expected:
        raise ValueError(f"{name} must be {dtype} of {shape}, got {tensor.dtype} of {sizes}")
    if not bool((tensor.isfinite() if is_finite else ~tensor.isnan()).all()):
        raise ValueError(f"{name} must hold {'finite numbers' if is_finite else 'numbers'}")
