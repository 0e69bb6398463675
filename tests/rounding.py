"""Rounding: how far the same sums may differ on another processor, in a batch of another size."""

from typing import Any

import pytest
import torch

# Units in the last place: those of the sums and functions of a small network, one after another.
UNITS = 64


def near(expected: Any, dtype: torch.dtype = torch.float32) -> Any:
    """`pytest.approx` of scores that a model of a dtype has computed in another way."""
    tolerance = UNITS * torch.finfo(dtype).eps
    return pytest.approx(expected, rel=tolerance, abs=tolerance)
