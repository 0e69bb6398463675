"""Admissible: the rows A_d of the paper's problem, exactly: limits, seen pairs and rules."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress

import torch
from torch import Tensor

from dear_plugin.problem.limits import Limits, selected
from dear_plugin.problem.rules import Rules
from dear_plugin.problem.seen_pairs import SeenPairs


@dataclass(frozen=True)
class Admissible:
    """The admissible counterfactuals of n rows.

    Attributes:
        limits: what each feature may be.
        rules: what holds between features.
        required: (n, r) bool, the rules that the factual keeps, and its counterfactual must keep.
        seen_pairs: which pairs of values changes may create; None allows all.
    """

    limits: Limits
    rules: Rules
    required: Tensor
    seen_pairs: SeenPairs | None = None

    def select(self, idx: Tensor) -> Admissible:
        """What is admissible of the rows at positions (q,)."""
        return selected(self, idx)

    def project(
        self,
        x: Tensor,
        moved: Tensor,
        idx: Tensor,
        acted: Tensor | None = None,
        held: Tensor | None = None,
    ) -> Tensor:
        """(m, c, p) the nearest admissible rows: A_d of the paper, exactly.

        In this order; the last two undo or adapt what is not acted on:

        1. What is held stays.
        2. Numbers are rounded to the grid and clipped to ranges and directions; one outside of a
           range that does not contain x either stays, and what is frozen is x bit for bit.
        3. A special level is entered or left only by an action, where the schema allows that.
        4. A category that is not allowed is not taken.
        5. Changes that create a pair of values that no training row has are undone.
        6. What breaks a rule is set so that it holds again, see `Rules.repair`.

        Args:
            x: (m, p) the factual rows.
            moved: (m, c, p) the decoder's rows.
            idx: (m,) the position of each factual row in this set.
            acted: (m, p) bool, the features acted on; None for all.
            held: (m, p) bool, those that do not move with them; None for none.
        """
        if held is not None:
            moved = torch.where(held[:, None], x[:, None], moved)
        out = self.limits.clipped(x, moved, idx, acted)
        if acted is None:
            return out
        if self.seen_pairs is not None:
            out = self.seen_pairs.repair(x, out, acted)
        return self.repair(x, out, acted if held is None else acted | held, idx)

    def creates_impossible(self, x: Tensor, reached: Tensor) -> Tensor:
        """(m,) bool: rows, (m, p), with an impossible pair that the factual, (m, p), lacks."""
        if self.seen_pairs is None:
            return torch.zeros(len(x), dtype=torch.bool)
        return self.seen_pairs.created(x, reached)

    def repair(
        self, x: Tensor, reached: Tensor, still: Tensor, idx: Tensor, *, forced: bool = False
    ) -> Tensor:
        """(m, c, p) rows of which what is not acted on is set so that broken rules hold again.

        Args:
            x: (m, p) the factual rows.
            reached: (m, c, p) the projected rows.
            still: (m, p) bool, the features acted on, and those that do not move with them.
            idx: (m,) the position of each factual row in this set.
            forced: only by rules that hold in all rows, not by those that hold nearly always.
        """
        if not len(self.rules):
            return reached
        required = self.required[idx] & (self.rules.forces | (not forced))
        out = self.rules.repair(x, reached, ~still, self.limits.bounds(idx), required)
        none = self.limits.allowed is None
        return out if none else out.where(self.limits.allows(out, idx), reached)

    def keeps_rules(self, reached: Tensor, idx: Tensor, alone: Tensor | bool = False) -> Tensor:
        """(m,) bool: whether rows, (m, p), keep the rules required of factual rows (m,).

        Rules that hold nearly always are not required of rows with an action alone, (m,) bool.
        """
        exempt = ~self.rules.forces & torch.as_tensor(alone)[..., None]
        return (self.rules.hold(reached) | ~self.required[idx] | exempt).all(1)

    def broken_text(self, reached: Tensor, idx: Tensor) -> list[str]:
        """(m,) the names of the required rules that rows break, as text.

        Args:
            reached: (n, p) the counterfactuals of all rows.
            idx: (m,) positions among them.
        """
        broken = self.required[idx] & ~self.rules.hold(reached[idx])
        return [", ".join(compress(self.rules.names, row)) for row in broken.tolist()]
