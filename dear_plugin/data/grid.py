"""Grid: the decimals of numbers; values of any shape in, the nearest ones with these decimals out.

A value is the double that its decimals print as: 0.1 + 0.2 becomes 0.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from dear_plugin._lazy import lazy
from dear_plugin.data.kinds.cells import Array

# The rounding error of a bound that was computed, in units of the last decimal.
NEAR = 1e-6
# The rounding error of a number with few decimals, in units of the relative step of its dtype.
ERROR = 4.0


@dataclass(frozen=True)
class Grid:
    """The decimals of p features.

    Attributes:
        up: (p,) double, 10 to the power of the decimals; 1 for tens, hundreds, and so on; NaN for
            numbers that are not rounded.
        down: (p,) double, 1; 10 for tens, 100 for hundreds; NaN likewise.
        codes: (p, c) double, numbers that are no amounts, or NaN.
        beside: (p,) double, how far from a code the next amount is.
    """

    up: Tensor
    down: Tensor
    codes: Tensor
    beside: Tensor

    @classmethod
    def of(
        cls,
        places: Iterable[int | None],
        codes: Iterable[Sequence[float]] = (),
        steps: Iterable[float] = (),
    ) -> Grid:
        """The grid of p features.

        Args:
            places: their decimals; None for numbers that are not rounded, 0 for categories.
            codes: the numbers among their amounts that are codes; nothing for none at all.
            steps: of which amounts beside codes are multiples; 0 for their last decimal.
        """
        known = [
            (math.nan, math.nan) if k is None else (10.0 ** max(k, 0), 10.0 ** max(-k, 0))
            for k in places
        ]
        up, down = torch.tensor(known, dtype=torch.float64).view(-1, 2).T.contiguous()
        each = [torch.tensor(own, dtype=torch.float64) for own in codes] or [up[:0]]
        padded = pad_sequence(each, batch_first=True, padding_value=math.nan)
        own = torch.tensor([*steps], dtype=torch.float64)
        last = (down / up).nan_to_num(0.0)
        return cls(up, down, padded, own.where(own > 0.0, last) if len(own) else last)

    def round(self, values: Tensor, at: Any = slice(None), *, up: bool = True) -> Tensor:
        """Values on the grid, in a new tensor; one that is a code takes the amount beside it.

        Args:
            values: (..., p), or a shape that fits that of `at`.
            at: the features, as an index of (p,).
            up: whether that is the amount above the code, or below it.
        """
        out = self._rounded(values, at)
        for _ in range(self.codes.shape[1]):
            is_code = (out[..., None] == self.codes[at]).any(-1)
            beside = self.beside[at] if up else -self.beside[at]
            out = torch.where(is_code, self._rounded(out + beside, at), out)
        return out

    def _rounded(self, values: Tensor, at: Any) -> Tensor:
        up, down = self.up[at], self.down[at]
        whole = values * up
        # Products and quotients of whole numbers and exact powers are rounded correctly.
        whole = whole.div_(down).round_().mul_(down) if self._is_coarse else whole.round_()
        whole = whole.div_(up)
        return torch.where(whole.isnan(), values, whole) if self._is_partial else whole

    def inward(self, low: Tensor, high: Tensor, at: Any = slice(None)) -> tuple[Tensor, Tensor]:
        """The least and greatest values of the grid between bounds.

        A bound that is a rounding error off the grid, such as 0.1 + 0.2, is on it; one that is a
        code is not.

        Args:
            low: (..., p), or a shape that fits that of `at`.
            high: likewise.
            at: the features, as an index of (p,).
        """
        step = self.step[at]
        ends = []
        for end, up in ((low, True), (high, False)):
            side = 1.0 if up else -1.0
            near = self.round(end, at, up=up)
            short = side * (end - near) > NEAR * step
            ends.append(torch.where(short, self.round(near + side * step, at, up=up), near))
        return ends[0], ends[1]

    @lazy
    def step(self) -> Tensor:
        """(p,) double, one unit of the last decimal; 0 for numbers that are not rounded."""
        return (self.down / self.up).nan_to_num(0.0)

    @lazy
    def _is_coarse(self) -> bool:
        return bool((self.down > 1.0).any())

    @lazy
    def _is_partial(self) -> bool:
        return bool(self.up.isnan().any())


def on_grid(values: Array, places: int | None) -> Array:
    """Numbers, (n,), of which those that are a rounding error off some decimals have these.

    So equal numbers have equal bits, whether they were computed, read or held as a float32.
    """
    numbers = values.astype(np.float64, copy=False)
    if places is None or values.dtype.kind != "f":
        return numbers
    error = ERROR * float(np.finfo(values.dtype).eps)
    with np.errstate(invalid="ignore", over="ignore"):  # of infinite and very large numbers
        near = np.round(numbers, places)
        return np.where(np.abs(near - numbers) <= error * np.abs(numbers), near, numbers)


def in_steps(values: Tensor, step: Tensor, *, up: bool | None = None) -> Tensor:
    """The nearest multiples of steps, of the shape of values; where a step is 0, the values.

    Args:
        values: numbers.
        step: (...) of a shape that fits theirs.
        up: True for the next multiple at or above, False at or below, apart from rounding errors.
    """
    per, error = 1.0 / step, {None: 0.0, True: -NEAR, False: NEAR}[up]
    count = values / step + error
    count = count.round() if up is None else count.ceil() if up else count.floor()
    # The quotient of whole numbers is rounded once: 3 / 10, not 3 * 0.1.
    whole = (per - per.round()).abs() < NEAR
    out = torch.where(whole & (per >= 1.0), count / per.round(), count * step)
    return torch.where(step > 0.0, out, values)


def nearest(values: Tensor, known: Tensor) -> Tensor:
    """The nearest of known values, (l,) ascending, to values of any shape."""
    out: Tensor = known[torch.bucketize(values.contiguous(), (known[1:] + known[:-1]) / 2.0)]
    return out


def among(known: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Bounds, (...) double each, moved inwards to known values, (l,) ascending.

    Without a value between them the lower one is infinite, and the upper one minus infinite.
    """
    infinite = known.new_tensor([torch.inf])
    first = torch.searchsorted(known, low)
    count = torch.searchsorted(known, high, right=True)
    return torch.cat([known, infinite])[first], torch.cat([-infinite, known])[count]
