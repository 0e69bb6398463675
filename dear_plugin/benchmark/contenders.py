"""Contenders: who is compared in the paper's experiment, each made for a cell."""

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
    NearestAccepted,
    Revise,
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

# Support to reach, the neighbours that must have it, and the margin to keep from the boundary. yNN
# counts five neighbours among all data, an identical row left out, and the person who asks is one
# of them; the engine counts those among its training rows. So where all must agree, more of them
# are asked for, farther from the boundary.
SUPPORTS: Mapping[str, Search] = {
    "0.4": Search(min_support=0.4),
    "0.6": Search(min_support=0.6),
    "0.8": Search(min_support=0.8),
    "1": Search(min_support=1.0),
    "1, k=20": Search(min_support=1.0, k_neighbours=20),
    "1, k=50, margin 0.25": Search(min_support=1.0, k_neighbours=50, slack=0.25),
    "1, k=100, margin 0.5": Search(min_support=1.0, k_neighbours=100, slack=0.5),
    "1, k=200, margin 1": Search(min_support=1.0, k_neighbours=200, slack=1.0),
}

Learn = Callable[["Stage"], RecourseMethod]


@dataclass(frozen=True)
class Contender:
    """One line of the tables.

    Attributes:
        family: what several lines have in common: one fit, several supports to reach.
        learn: the method of a family for a cell, not yet fitted.
        search: how a DEAR of the family searches, None for its own way.
        paper: its name in the paper's table, "" where it is not there.
    """

    family: str
    learn: Learn
    search: Search | None = None
    paper: str = ""


@dataclass
class Stage:
    """A cell and what several contenders share on it.

    Attributes:
        cell: the data set, the classifier, the seed.
    """

    cell: Cell
    _learned: dict[str, tuple[RecourseMethod, float]] = field(default_factory=dict)

    @cached_property
    def vae(self) -> tuple[Vae, float]:
        """The autoencoder that REVISE, C-CHVAE and CLUE share, and the CPU seconds to train it."""
        cell, start = self.cell, time.process_time()
        vae = Vae.fit(cell.train, cell.schema, VaeDesign(seed=cell.seed))
        return vae, time.process_time() - start

    def ready(self, contender: Contender) -> tuple[RecourseMethod, float]:
        """A fitted method and the CPU seconds that its family took, a shared VAE's among them."""
        if contender.family not in self._learned:
            method = contender.learn(self)
            shared = self.vae[1] if isinstance(method, LatentMethod) else 0.0
            start = time.process_time()
            method.fit(self.cell.train)
            self._learned[contender.family] = method, shared + time.process_time() - start
        method, seconds = self._learned[contender.family]
        if contender.search is not None and isinstance(method, DEAR):
            method = method.with_search(contender.search)
        return method, seconds


def _single(stage: Stage) -> RecourseMethod:
    return DEAR(stage.cell.model, stage.cell.schema)


def _pairs(stage: Stage) -> RecourseMethod:
    names = [f.name for f in stage.cell.schema if not f.immutable]
    act_on = [*names, *combinations(names, 2)]
    return DEAR(stage.cell.model, stage.cell.schema, act_on=act_on)


def _paper(stage: Stage) -> RecourseMethod:
    decoder = Autoencoder.paper(PAPER_LAYERS[stage.cell.dataset], seed=stage.cell.seed)
    return DEAR(stage.cell.model, stage.cell.schema, decoder=decoder)


def _plain(method: Callable[..., RecourseMethod]) -> Learn:
    return lambda stage: method(stage.cell.model, stage.cell.schema)


def _with_vae(method: Callable[..., RecourseMethod]) -> Learn:
    return lambda stage: method(stage.cell.model, stage.cell.schema, vae=stage.vae[0])


def _supported(family: str, learn: Learn) -> dict[str, Contender]:
    """A family of DEAR as it comes, and at every support to reach."""
    lines = {family: Contender(family, learn, Search(), paper="DEAR")}
    for name, search in SUPPORTS.items():
        lines[f"{family}, support {name}"] = Contender(family, learn, search, paper="DEAR")
    return lines


_GRADIENT = Search(solver="gradient", groups=False)

CONTENDERS: Mapping[str, Contender] = {
    **_supported("DEAR", _single),
    **_supported("DEAR, pairs too", _pairs),
    "DEAR, the paper's preset": Contender("DEAR, the paper's preset", _paper, _GRADIENT, "DEAR"),
    "Wachter": Contender("Wachter", _plain(Wachter)),
    "REVISE": Contender("REVISE", _with_vae(Revise), paper="REVISE"),
    "C-CHVAE": Contender("C-CHVAE", _with_vae(CCHVAE), paper="C-CHVAE"),
    "CLUE": Contender("CLUE", _with_vae(Clue), paper="CLUE"),
    "FACE-K": Contender("FACE-K", _plain(FaceKNN), paper="FACE-K"),
    "FACE-E": Contender("FACE-E", _plain(FaceEpsilon), paper="FACE-E"),
    "nearest accepted": Contender("nearest accepted", _plain(NearestAccepted)),
}
