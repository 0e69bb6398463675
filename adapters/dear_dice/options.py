"""Options: keyword arguments of `DiceDEAR` as arguments of `dear_plugin.DEAR` and of a schema."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from dear_plugin import Schema, Search, errors, options

logger = logging.getLogger("dear_dice")

# Arguments of "random", "genetic", "kdtree" and "gradient" that DEAR ignores.
_OF_OTHERS = """
    algorithm categorical_penalty diversity_loss_type diversity_weight feature_weights
    features_weights init_near_query_instance initialization learning_rate limit_steps_ls
    loss_converge_maxiter loss_diff_thres max_iter maxiterations min_iter optimizer project_iter
    proximity_weight sample_size sparsity_weight thresh tie_random yloss_type
"""
IGNORED = tuple(_OF_OTHERS.split())


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `DiceDEAR`, in features of DiCE's data interface.

    Attributes:
        act_on: feature names, or groups of them, to act on; None is every feature that may
            change, one at a time.
        decoder: "transport" (ranks are kept), "autoencoder" (the paper's), or a decoder.
        search: how to search; None asks for credible counterfactuals, `Search.cheapest()` for the
            cheapest, `Search(min_support=0.6)` for those that resemble accepted training rows.
        min_confidence: as in `Search`; None is 0.9.
        max_reliance: as in `Search`; None is 1.
        min_plausibility: as in `Search`; None is 0.05.
        pairs: act on all pairs of features as well.
        immutable: features that never change.
        increasing: numeric or two-valued features that may only grow.
        decreasing: numeric or two-valued features that may only fall.
        ranges: `{feature: (low, high)}` for numeric features, in every call and whatever
            `permitted_range` allows.
        tiers: features in tiers, the earliest causes first: an action changes no feature of an
            earlier tier; features that are not named form one more tier at the end.
        undo_indirect: let DiCE's post-hoc sparsity undo indirect changes (see
            `DiceDEAR.generate_counterfactuals`).

    Example:
        >>> from dear_dice import Options
        >>> options = Options(
        ...     act_on=["savings", "duration"], immutable=["gender"], max_reliance=0.0
        ... )
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
    tiers: Sequence[Sequence[str]] = ()
    undo_indirect: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """The options given by name; an unknown name raises `ArgumentError`."""
        _refuse_unknown("options", given, [each.name for each in fields(cls)])
        return cls(**given)

    def __post_init__(self) -> None:
        """Check what needs no schema."""
        options.boolean("pairs", self.pairs)
        _ = self.searching

    @property
    def marks(self) -> dict[str, Any]:
        """The arguments of `Schema.infer`."""
        names = ("immutable", "increasing", "decreasing", "ranges", "tiers")
        return {name: getattr(self, name) for name in names}

    @property
    def searching(self) -> Search:
        """How to search."""
        names = ("min_confidence", "max_reliance", "min_plausibility")
        criteria = {name: getattr(self, name) for name in names}
        return options.search_of(self.search, **criteria)

    def engine(self, schema: Schema) -> dict[str, Any]:
        """The arguments of `DEAR` for a schema."""
        act_on = options.paired(schema, self.act_on) if self.pairs else self.act_on
        return {"act_on": act_on, "decoder": self.decoder, "search": self.searching}


def check_ignored(given: Iterable[str], own: Iterable[str]) -> None:
    """Log given arguments of DiCE's other methods, and refuse those that are not its `own`."""
    names = list(given)
    _refuse_unknown("arguments", names, [*own, *IGNORED])
    if names:
        logger.warning("method 'dear' ignores %s: only other methods use them", ", ".join(names))


def _refuse_unknown(what: str, names: Iterable[str], known: Sequence[str]) -> None:
    unknown = [name for name in names if name not in known]
    if unknown:
        raise errors.ArgumentError(errors.unknown(what, unknown, known))
