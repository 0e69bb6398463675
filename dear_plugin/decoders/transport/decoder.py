"""Transport: the default decoder; rows keep their conditional ranks.

`v_j = F_j|S(x_j | x_S, held)` is the rank of x_j among rows with the same x_S and the same held
features; `g_j(v, a) = F_j|S^-1(v_j | a, held)` is the value at the same rank among rows with
x_S = a. Of a smooth feature v_j is the residual, of a category it breaks ties. How a smooth
feature follows x_S may differ by what is held, and how the distribution of a counted one does.
Each v_j is independent of x_S; their joint distribution given x_S need not be, which is a
known limit of the decoder. There is no training: rows are counted and regressed once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, ClassVar

import torch
from torch import Tensor

from dear_plugin.data.schema import Schema
from dear_plugin.decoders.protocol import Decoder, Members, register
from dear_plugin.decoders.sample import Sample
from dear_plugin.decoders.transport.draws import DRAWS, PEOPLE, sampled
from dear_plugin.decoders.transport.estimate import Estimate
from dear_plugin.errors import ConstraintError, NotFittedError, shown

FEW_ROWS = 1000
# Rows of a call that are encoded and decoded at a time, by entries.
ENTRIES = 1 << 22

logger = logging.getLogger(__name__)


@register
class Transport(Decoder):
    """Conditional ranks of counted features, conditional locations of smooth ones.

    Features with atoms are looked up in tables of observed values; between bins of x_S
    probabilities are mixed, never quantiles. Atom-free features change by the difference of
    locations and keep their residual. A category without an order follows the maximal coupling: it
    is kept unless its probability more than halves, and otherwise replaced by the one whose
    probability increases most. Rows with the same value have the middle of its ranks.

    Args:
        given: features that are conditioned on besides x_S and do not move, for every set; None
            takes those of the schema's order for a set (`CausalOrder.conditioned`), () none.

    Example:
        >>> from dear_plugin import DEAR, Schema, Transport
        >>> from dear_plugin.datasets import load_loan
        >>> schema = Schema.infer(load_loan(200).frame, target="approved", immutable=["gender"])
        >>> model, unconditional = lambda rows: rows["savings"] / 60, Transport(given=())
        >>> dear = DEAR(model, schema, act_on=["savings"], decoder=unconditional)
    """

    draws: ClassVar[int] = DRAWS
    people: ClassVar[int] = PEOPLE

    def __init__(self, given: Iterable[str] | None = None) -> None:
        if isinstance(given, str):
            raise ConstraintError(f"given must be a list of features or None, got {shown(given)}")
        self.given = None if given is None else tuple(dict.fromkeys(given))
        self._estimate: Estimate | None = None

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {"given": self.given}

    def held(self, schema: Schema, acted: Members) -> Members:
        """The held features of a set; see `Decoder.held`.

        Raises:
            ConstraintError: a set that acts on a given feature.
            SchemaError: an unknown given feature.
        """
        if self.given is None:
            return super().held(schema, acted)
        held = schema.index(self.given)
        if both := [schema.names[j] for j in sorted({*held} & {*acted})]:
            raise ConstraintError(
                f"{both} are given, so they cannot be acted on: leave them out of act_on or of"
                " given"
            )
        return held

    def conditioned(self, schema: Schema, acted: Members) -> Members:
        """The held features that it conditions on; see `Decoder.conditioned`."""
        named = self.given is not None
        return self.held(schema, acted) if named else super().conditioned(schema, acted)

    def parts(self, schema: Schema, acted: Members) -> tuple[Members, ...]:
        """The parts of a set; see `Decoder.parts`. With `given` an order has no effect."""
        return super().parts(schema, acted) if self.given is None else (acted,)

    def fit(self, sample: Sample, acted: Members, held: Members) -> None:
        """Estimate the conditional distributions of the training rows for a set."""
        sample.shared(_warn_of_few_rows)
        conditioned = {*self.conditioned(sample.encoder.schema, acted)}
        given = tuple(j for j in held if j in conditioned)
        self._estimate = Estimate(sample, acted, given, still=held)

    def encode(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """The conditional ranks of rows, (m, p) -> (m, p + 1); see `Estimate.encode`."""
        with torch.inference_mode():
            parts = [self._fitted.encode(each, None, generator)[0] for (each,) in _parts(1, x)]
        return torch.cat(parts)

    def decode(self, x: Tensor, v: Tensor, values: Tensor) -> Tensor:
        """The rows that follow from new values of x_S, (m, c, p); see `Decoder.decode`."""
        parts = _parts(values.shape[1], x, v, values)
        with torch.inference_mode():
            reached = [self._fitted.decode(a, b[None], c)[0] for a, b, c in parts]
        return torch.cat(reached)

    def resample(self, x: Tensor, values: Tensor, draws: Tensor, copy: object) -> Tensor:
        """The rows, (m, r, p), that follow under some resamples; see `Decoder.resample`."""
        out, groups = x.new_empty(len(x), len(draws), x.shape[1]), sampled(draws)
        for group in groups.unique().tolist():
            some, fitted = groups == group, self._fitted
            parts = _parts(int(some.sum()), x, values[:, None])
            with torch.inference_mode():
                each = draws[some]
                reached = [fitted.decode(a, fitted.encode(a, each), b, each) for a, b in parts]
            out[:, some] = torch.cat(reached, 1)[:, :, 0].transpose(0, 1)
        return out

    def flip_probabilities(self, x: Tensor, values: Tensor) -> dict[int, tuple[float, float]]:
        """The probability of the second value of each binary feature; see `Decoder`."""
        return self._fitted.flip_probabilities(x, values)

    @property
    def uncompared(self) -> float:
        """The share of rows that are compared with rows unequal in some held feature."""
        return max(self._fitted.cells.uncut_shares.values(), default=0.0)

    @property
    def entries(self) -> int:
        """The number of entries in memory, those of the resamples that were needed included."""
        return self._fitted.entries

    @property
    def _fitted(self) -> Estimate:
        if self._estimate is None:
            raise NotFittedError("the decoder is not fitted; call fit first")
        return self._estimate


def _parts(candidates: int, *tensors: Tensor) -> Iterable[tuple[Tensor, ...]]:
    """Rows of some tensors, (m, ...), in parts, given the number of candidates of each row."""
    size = max(1, ENTRIES // max(candidates, 1) // 64)
    return zip(*(each.split(size) for each in tensors), strict=True)


def _warn_of_few_rows(sample: Sample) -> None:
    if len(sample) < FEW_ROWS:
        text = "fitted on %d rows: below about %d, indirect changes are rough guesses"
        logger.warning(text, len(sample), FEW_ROWS)
