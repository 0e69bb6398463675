"""Options: what a user may say about DEAR when the explainer is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import dear_plugin
from dear_plugin import Search

# DiCE and the engine encode alike but round floats in another order; their scores differ by less.
SLACK = 1e-4


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `DiceDEAR`, in features of DiCE's data interface.

    Attributes:
        act_on: feature names, or groups of them, to be acted on together; None is every feature
            that may change, one at a time.
        decoder: what else moves: "transport" (people keep their rank), "autoencoder" (the
            paper's), or a decoder.
        search: how to search; `Search(min_support=0.6)` asks for counterfactuals that look like
            people who were accepted.
        immutable: features that never change, in any call.
        increasing: numeric or two-valued features that may only grow.
        decreasing: numeric or two-valued features that may only fall.
        ranges: `{feature: (low, high)}` for numeric features; they hold in every call, beneath
            whatever `permitted_range` allows.
        undo_indirect: let DiCE's post-hoc sparsity undo indirect changes (see
            `DiceDEAR.generate_counterfactuals`).
    """

    act_on: Sequence[str | Sequence[str]] | None = None
    decoder: Any = "transport"
    search: Search = field(default_factory=Search)
    immutable: Sequence[str] = ()
    increasing: Sequence[str] = ()
    decreasing: Sequence[str] = ()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    undo_indirect: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """The options that were given by name.

        Raises:
            ArgumentError: a name that is none of them; it is a `TypeError`.
        """
        known = [each.name for each in fields(cls)]
        strange = [name for name in given if name not in known]
        if strange:
            raise dear_plugin.errors.ArgumentError(
                dear_plugin.errors.unknown("options", strange, known)
            )
        return cls(**given)

    @property
    def marks(self) -> dict[str, Any]:
        """What goes into the schema."""
        names = ("immutable", "increasing", "decreasing", "ranges")
        return {name: getattr(self, name) for name in names}

    @property
    def engine(self) -> dict[str, Any]:
        """What goes to `DEAR`."""
        search = self.search.aiming(SLACK)
        return {"act_on": self.act_on, "decoder": self.decoder, "search": search}
