"""Method specs: the methods of the paper's experiment."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

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
from dear_plugin.baselines.latent import LatentMethod
from dear_plugin.benchmark.protocol import Cell
from dear_plugin.decoders import PAPER_LAYERS, Autoencoder
from dear_plugin.methods.base import RecourseMethod
from dear_plugin.methods.dear import DEAR
from dear_plugin.search import Search

# The required support, and a larger margin to the boundary. yNN uses five neighbours among all
# data except an identical row, and the factual is one of them; the engine uses training rows only.
SUPPORTS: Mapping[str, Search] = {
    "0.4": Search(min_support=0.4),
    "0.6": Search(min_support=0.6),
    "0.8": Search(min_support=0.8),
    "1": Search(min_support=1.0),
    "1, margin 0.6": Search(min_support=1.0, margin=0.6),
    "1, margin 1": Search(min_support=1.0, margin=1.0),
}

Make = Callable[["FittedMethods"], RecourseMethod]


@dataclass(frozen=True)
class MethodSpec:
    """One line of the tables.

    Attributes:
        family: the lines of a family share a fit and differ in the search.
        make: the method of the family for a cell, not yet fitted.
        search: the search settings of a DEAR, None for those of the method.
        paper: its name in the paper's table, "" if it is not there.
    """

    family: str
    make: Make
    search: Search | None = None
    paper: str = ""


@dataclass
class FittedMethods:
    """The fitted methods of a cell.

    Attributes:
        cell: the data set, the classifier, the seed.
    """

    cell: Cell
    _fitted: dict[str, tuple[RecourseMethod, float]] = field(default_factory=dict)

    @cached_property
    def vae(self) -> tuple[Vae, float]:
        """The VAE that REVISE, C-CHVAE and CLUE share, and the CPU seconds of its training."""
        cell, start = self.cell, time.process_time()
        vae = Vae.fit(cell.train, cell.schema, VaeDesign(seed=cell.seed))
        return vae, time.process_time() - start

    def fitted(self, spec: MethodSpec) -> tuple[RecourseMethod, float]:
        """A fitted method and the CPU seconds of the fit, including a shared VAE."""
        if spec.family not in self._fitted:
            method = spec.make(self)
            shared = self.vae[1] if isinstance(method, LatentMethod) else 0.0
            start = time.process_time()
            method.fit(self.cell.train)
            self._fitted[spec.family] = method, shared + time.process_time() - start
        method, seconds = self._fitted[spec.family]
        if spec.search is not None and isinstance(method, DEAR):
            method = method.with_search(spec.search)
        return method, seconds


def _single(methods: FittedMethods) -> RecourseMethod:
    return DEAR(methods.cell.model, methods.cell.schema)


def _pairs(methods: FittedMethods) -> RecourseMethod:
    names = [f.name for f in methods.cell.schema if not f.immutable]
    act_on = [*names, *combinations(names, 2)]
    return DEAR(methods.cell.model, methods.cell.schema, act_on=act_on)


def _paper(methods: FittedMethods) -> RecourseMethod:
    decoder = Autoencoder.paper(PAPER_LAYERS[methods.cell.dataset], seed=methods.cell.seed)
    return DEAR(methods.cell.model, methods.cell.schema, decoder=decoder)


def _plain(method: Callable[..., RecourseMethod]) -> Make:
    return lambda methods: method(methods.cell.model, methods.cell.schema)


def _with_vae(method: Callable[..., RecourseMethod]) -> Make:
    return lambda methods: method(methods.cell.model, methods.cell.schema, vae=methods.vae[0])


def _supported(family: str, make: Make) -> dict[str, MethodSpec]:
    """A family of DEAR with the default search and with every required support."""
    lines = {family: MethodSpec(family, make, Search(), paper="DEAR")}
    for name, search in SUPPORTS.items():
        lines[f"{family}, support {name}"] = MethodSpec(family, make, search, paper="DEAR")
    return lines


# The fit that the paper's lines share; Algorithm 1 to the letter, and the line search.
_PAPER = "DEAR, the paper"
_LITERAL = Search.cheapest(solver="paper", max_features=1)
_LINE = Search.cheapest(max_features=1)

METHOD_SPECS: Mapping[str, MethodSpec] = {
    **_supported("DEAR", _single),
    **_supported("DEAR, pairs too", _pairs),
    "DEAR, the paper to the letter": MethodSpec(_PAPER, _paper, _LITERAL, "DEAR"),
    "DEAR, the paper with line search": MethodSpec(_PAPER, _paper, _LINE, "DEAR"),
    "Wachter": MethodSpec("Wachter", _plain(Wachter)),
    "ROAR": MethodSpec("ROAR", _plain(Roar)),
    "REVISE": MethodSpec("REVISE", _with_vae(Revise), paper="REVISE"),
    "C-CHVAE": MethodSpec("C-CHVAE", _with_vae(CCHVAE), paper="C-CHVAE"),
    "CLUE": MethodSpec("CLUE", _with_vae(Clue), paper="CLUE"),
    "FACE-K": MethodSpec("FACE-K", _plain(FaceKNN), paper="FACE-K"),
    "FACE-E": MethodSpec("FACE-E", _plain(FaceEpsilon), paper="FACE-E"),
    "growing spheres": MethodSpec("growing spheres", _plain(GrowingSpheres)),
    "nearest accepted": MethodSpec("nearest accepted", _plain(NearestAccepted)),
}
