"""Contestants: the methods of `benchmark contest`, and the dials that are set alike for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dear_plugin.baselines import (
    CCHVAE,
    Clue,
    FaceEpsilon,
    FaceKNN,
    GrowingSpheres,
    NearestAccepted,
    Revise,
    Roar,
    Vae,
    VaeDesign,
    Wachter,
)
from dear_plugin.baselines.latent import LatentConfig
from dear_plugin.benchmark.answer_metrics import DecoderSpec, Fits
from dear_plugin.benchmark.data_splits import DataSplit, ScoredModel
from dear_plugin.decoders import Transport
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.dear import DEAR
from dear_plugin.methods.vetted import Vetted
from dear_plugin.search import Search

# Settings of `Search` that every method is given alike. The default of DEAR is a margin of .3 and
# a plausibility of .05; the other values trace how the cost grows with each requirement.
Dials = Mapping[str, Any]
_NONE: Dials = {"margin": 0.0, "min_plausibility": 0.0, "min_support": None}
_PLAUSIBLE: Dials = {**_NONE, "min_plausibility": 0.05}
NONE, PLAUSIBLE, DEFAULT, SUPPORTED = "none", "plausibility .05", "default", "support .8"
DIALS: Mapping[str, Dials] = {
    NONE: _NONE,
    PLAUSIBLE: _PLAUSIBLE,
    "plausibility .2": {**_NONE, "min_plausibility": 0.2},
    SUPPORTED: {**_PLAUSIBLE, "min_support": 0.8},
    "support 1": {**_PLAUSIBLE, "min_support": 1.0},
    DEFAULT: {**_PLAUSIBLE, "margin": 0.3},
    "margin .6": {**_PLAUSIBLE, "margin": 0.6},
}
# The lines of each figure: dials that differ in one requirement.
FRONTS: Mapping[str, tuple[str, ...]] = {
    "plausibility": (NONE, PLAUSIBLE, "plausibility .2"),
    "support": (PLAUSIBLE, SUPPORTED, "support 1"),
    "still_accepted": (PLAUSIBLE, DEFAULT, "margin .6"),
}

Dialled = Callable[[Dials], RecourseMethod]


@dataclass(frozen=True)
class SplitFits:
    """What the contestants share on one data split.

    Attributes:
        data: the data split.
    """

    data: DataSplit

    @cached_property
    def singles(self) -> Fits:
        """Fits of DEAR on single features."""
        return Fits(self.data, DecoderSpec(lambda _: Transport()))

    @cached_property
    def pairs(self) -> Fits:
        """Fits of DEAR on single features and on pairs."""
        return Fits(self.data, DecoderSpec(lambda _: Transport(), pairs=True))

    @cached_property
    def vae(self) -> Vae:
        """The VAE of REVISE, C-CHVAE and CLUE."""
        train, split = self.data.parts[0], self.data.split
        return Vae.fit(train, self.data.schema, VaeDesign(seed=split))


@dataclass(frozen=True)
class ModelFits:
    """Fits with a model; the larger sets that they fit are kept.

    Attributes:
        fits: the fits of a data split.
        model: the model.
    """

    fits: Fits
    model: ScoredModel

    @cached_property
    def whole(self) -> DEAR:
        """Fitted on all training rows."""
        return self.fits.whole.with_model(self.model.model)

    @cached_property
    def halves(self) -> tuple[DEAR, DEAR]:
        """Fitted on each half of the training rows."""
        first, second = (half.with_model(self.model.model) for half in self.fits.halves)
        return first, second


@dataclass(frozen=True)
class CellFits:
    """What the contestants share for one model.

    Attributes:
        split: the fits of the data split.
        model: the model.
    """

    split: SplitFits
    model: ScoredModel

    @cached_property
    def singles(self) -> ModelFits:
        """Fits of DEAR on single features."""
        return ModelFits(self.split.singles, self.model)

    @cached_property
    def pairs(self) -> ModelFits:
        """Fits of DEAR on single features and on pairs."""
        return ModelFits(self.split.pairs, self.model)


@dataclass(frozen=True)
class Contestant:
    """A method of the contest.

    Attributes:
        make: the fits of a cell in; a function from dials to a fitted method out.
        halves: the same for DEAR fitted on each half of the training rows; None for a method
            without indirect changes.
    """

    make: Callable[[CellFits], Dialled]
    halves: Callable[[CellFits, Dials], tuple[DEAR, DEAR]] | None = None


def _dear(fits: Callable[[CellFits], ModelFits], search: Search) -> Contestant:
    def _make(cell: CellFits) -> Dialled:
        return lambda dials: fits(cell).whole.with_search(replace(search, **dials))

    def _halves(cell: CellFits, dials: Dials) -> tuple[DEAR, DEAR]:
        first, second = (each.with_search(replace(search, **dials)) for each in fits(cell).halves)
        return first, second

    return Contestant(_make, _halves)


def _baseline(method_of: Callable[[CellFits], RecourseMethod]) -> Contestant:
    def _make(cell: CellFits) -> Dialled:
        method = method_of(cell).fit(cell.split.data.parts[0])
        return lambda dials: Vetted(method, Search.cheapest(**dials))

    return Contestant(_make)


def _plain(method: Callable[..., RecourseMethod]) -> Contestant:
    return _baseline(lambda cell: method(cell.model.model, cell.split.data.schema))


def _latent(method: Callable[..., RecourseMethod], **config: Any) -> Contestant:
    return _baseline(
        lambda cell: method(cell.model.model, cell.split.data.schema, vae=cell.split.vae, **config)
    )


# A restart begins nearer to rows that the model accepts; the methods' papers have none.
NO_RESTARTS = LatentConfig(starts=1)
CONTESTANTS: Mapping[str, Contestant] = {
    "DEAR": _dear(lambda cell: cell.singles, Search()),
    "DEAR, pairs": _dear(lambda cell: cell.pairs, Search()),
    "DEAR, cheapest": _dear(lambda cell: cell.singles, Search.cheapest()),
    "Wachter": _plain(Wachter),
    "REVISE": _latent(Revise),
    "REVISE, no restarts": _latent(Revise, config=NO_RESTARTS),
    "C-CHVAE": _latent(CCHVAE),
    "CLUE": _latent(Clue),
    "CLUE, no restarts": _latent(Clue, config=NO_RESTARTS),
    "FACE-K": _plain(FaceKNN),
    "FACE-E": _plain(FaceEpsilon),
    "ROAR": _plain(Roar),
    "growing spheres": _plain(GrowingSpheres),
    "nearest accepted": _plain(NearestAccepted),
}
