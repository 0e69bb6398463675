"""Options: what a user may say about DEAR when the explainer is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import dear_plugin
from dear_plugin import Schema, Search

# DiCE and the engine encode alike but round floats in another order; their scores differ by less.
SLACK = 1e-4
# What is asked of a counterfactual, as `Search` has it.
ASKED = ("min_confidence", "max_reliance", "min_plausibility")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `DiceDEAR`, in features of DiCE's data interface.

    Attributes:
        act_on: feature names, or groups of them, to be acted on together; None is every feature
            that may change, one at a time.
        decoder: what else moves: "transport" (people keep their rank), "autoencoder" (the
            paper's), or a decoder.
        search: how to search; None asks for credible counterfactuals, `Search.cheapest()` for the
            cheapest, `Search(min_support=0.6)` for those that look like people who were accepted.
        min_confidence: the least share of redraws of the decoder under which a counterfactual
            still has the wanted outcome; None is 0.9.
        max_reliance: the largest share of what is expected to follow that a counterfactual may
            need: at 0 the action alone is enough; None is 1.
        min_plausibility: the least plausibility, or the query's own where that is less; None is
            0.05.
        pairs: act on all pairs of features from the start, besides the single ones.
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
    search: Search | None = None
    min_confidence: float | None = None
    max_reliance: float | None = None
    min_plausibility: float | None = None
    pairs: bool = False
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

    def engine(self, schema: Schema) -> dict[str, Any]:
        """What goes to `DEAR`.

        Args:
            schema: the features.

        Raises:
            SettingError: `search` together with what is asked of a counterfactual, or a value
                that an option cannot have.
        """
        act_on = dear_plugin.options.paired(schema, self.act_on) if self.pairs else self.act_on
        return {"act_on": act_on, "decoder": self.decoder, "search": self.searching}

    @property
    def searching(self) -> Search:
        """How to search."""
        asked = {name: getattr(self, name) for name in ASKED}
        return dear_plugin.options.search_of(self.search, **asked).with_slack(SLACK)

    def __post_init__(self) -> None:
        """Refuse what contradicts itself before anything is learned."""
        dear_plugin.options.boolean("pairs", self.pairs)
        _ = self.searching
