"""OheMinMax: from the engine's encoded columns to the vector that DiCE hands to torch models."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dear_plugin import Encoder, Feature, Kind

# (our column, factor, offset) of one column of DiCE's.
_Source = tuple[int, float, float]


class OheMinMax:
    """The vector of DiCE's `func="ohe-min-max"`, by names and levels, never by prefixes.

    Continuous features come first, in the order of DiCE's `continuous_features` argument, then
    one group of columns per categorical feature in frame order, its levels sorted. The map is
    differentiable; the class, unlike a closure, can be pickled.

    Args:
        encoder: the engine's gate.
        continuous: DiCE's continuous features, in its order.
    """

    def __init__(self, encoder: Encoder, continuous: Sequence[str]) -> None:
        schema = encoder.schema
        order = [*schema.index(continuous)]
        order += [j for j, name in enumerate(schema.names) if name not in continuous]
        sources = [s for j in order for s in _sources(schema.features[j], encoder.starts[j])]
        self.column = torch.tensor([column for column, _, _ in sources])
        self.factor = torch.tensor([factor for _, factor, _ in sources])
        self.offset = torch.tensor([offset for _, _, offset in sources])

    def __call__(self, x: Tensor) -> Tensor:
        """Encoded columns, (m, d), as DiCE's, (m, D)."""
        column, factor, offset = (t.to(x.device) for t in (self.column, self.factor, self.offset))
        return x[..., column] * factor.to(x.dtype) + offset.to(x.dtype)


def _sources(feature: Feature, start: int) -> list[_Source]:
    if feature.kind is Kind.NUMERIC:
        constant = feature.bounds[0] == feature.bounds[1]
        return [(start, 0.0 if constant else 1.0, 0.0)]
    if feature.kind is Kind.CATEGORICAL:
        return [(start + level, 1.0, 0.0) for level in range(feature.columns)]
    if len(feature.categories) == 1:
        return [(start, 0.0, 1.0)]
    return [(start, -1.0, 1.0), (start, 1.0, 0.0)]
