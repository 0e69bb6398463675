"""Rules: what holds between the columns of a row, and must hold in its counterfactual."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress

import numpy as np
import torch
from torch import Tensor

from dear_plugin._lazy import lazy
from dear_plugin._threads import users_threads
from dear_plugin.data.encoder import Encoder
from dear_plugin.errors import SchemaError
from dear_plugin.problem.relations import Relations


@dataclass(frozen=True)
class Rules:
    """The r relations between numbers and u rules of the user of a schema.

    Attributes:
        encoder: converts rows to frames.
        relations: numbers that are nearly a function of others, and orders.
    """

    encoder: Encoder
    relations: Relations

    @classmethod
    def of(cls, encoder: Encoder) -> Rules:
        """The rules of a schema, which may have none."""
        return cls(encoder, Relations.of(encoder))

    @lazy
    def near(self) -> Tensor:
        """(r + u) bool, the relations that hold nearly always but define nothing."""
        schema = self.encoder.schema
        near = [not (each.is_order or each.is_definition) for each in schema.relations]
        return torch.tensor([*near, *[False] * len(schema.rules)], dtype=torch.bool)

    def satisfied(self, rows: Tensor) -> Tensor:
        """(m, r + u) bool: the relations and rules that rows satisfy."""
        return torch.cat([self.relations.hold(rows), self._user_rules(rows)], 1)

    @property
    def names(self) -> list[str]:
        """(r + u) the names of the relations and rules."""
        schema = self.encoder.schema
        names = [each.text for each in schema.relations]
        return names + [getattr(rule, "__name__", repr(rule)) for rule in schema.rules]

    def broken_text(self, rows: Tensor, required: Tensor) -> list[str]:
        """(m,) the names of what is required, (m, r + u) bool, and violated by rows."""
        broken = (required & ~self.satisfied(rows)).tolist()
        return [", ".join(compress(self.names, row)) for row in broken]

    def _user_rules(self, rows: Tensor) -> Tensor:
        """(m, u) bool: the user-defined rules that rows, (m, p), satisfy."""
        rules = self.encoder.schema.rules
        if not rules or not len(rows):
            return torch.ones(len(rows), len(rules), dtype=torch.bool)
        frame = self.encoder.frame(rows)
        with users_threads():
            results = [np.asarray(rule(frame.copy())) for rule in rules]
        for rule, result in zip(rules, results, strict=True):
            if result.shape != (len(rows),) or result.dtype.kind not in "bO":
                raise SchemaError(
                    f"a rule must return {len(rows)} truth values for a frame of {len(rows)} rows,"
                    f" got shape {result.shape} of {result.dtype} from {rule!r}"
                )
        return torch.from_numpy(np.stack(results, 1).astype(bool))
