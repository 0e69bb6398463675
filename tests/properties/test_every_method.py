"""The laws of `test_laws`, for every other decoder, solver and rival in worlds of all kinds."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, reject

from dear_plugin import (
    DEAR,
    Autoencoder,
    DescentSchedule,
    Design,
    RecourseMethod,
    Search,
    Training,
    Transport,
    Vetted,
)
from dear_plugin.baselines import (
    CCHVAE,
    CCHVAEConfig,
    Clue,
    FaceConfig,
    FaceEpsilon,
    FaceKNN,
    GrowingSpheres,
    GrowingSpheresConfig,
    LatentConfig,
    NearestAccepted,
    Revise,
    Roar,
    RoarConfig,
    VaeDesign,
    Wachter,
    WachterConfig,
)
from dear_plugin.errors import ModelError
from tests.properties import laws
from tests.properties.worlds import worlds

NETWORKS = Autoencoder(Design(layers=(4, 2)), Training(epochs=2))
# With the paper's reconstruction, under which an action may have size zero.
LITERAL_NETWORKS = Autoencoder(Design(layers=(4, 2), reconstruct="paper"), Training(epochs=2))
LITERAL = Search.cheapest(
    solver="paper", max_features=1, schedule=DescentSchedule(step=0.05, steps=20)
)
BY_GRADIENT = Search.cheapest(max_features=1)
VAE = VaeDesign(layers=(6, 3), training=Training(epochs=5))
BRIEF = LatentConfig(steps=6, rate=0.3, starts=2, places=8)

METHODS: Mapping[str, Callable[..., RecourseMethod]] = {
    "given nothing": partial(DEAR, decoder=Transport(given=())),
    "autoencoder": partial(DEAR, decoder=NETWORKS, search=Search.cheapest()),
    "gradient": partial(DEAR, decoder=NETWORKS, search=Search.cheapest(max_features=1)),
    "to the letter": partial(DEAR, decoder=LITERAL_NETWORKS, search=LITERAL),
    "Wachter": partial(Wachter, config=WachterConfig(rounds=2, steps=5, starts=2)),
    "ROAR": partial(Roar, config=RoarConfig(rounds=2, steps=5, starts=2)),
    "REVISE": partial(Revise, vae=VAE, config=BRIEF),
    "C-CHVAE": partial(CCHVAE, vae=VAE, config=CCHVAEConfig(width=0.5, count=5, draws=8)),
    "CLUE": partial(Clue, vae=VAE, config=BRIEF),
    "FACE-K": FaceKNN,
    "FACE-E": partial(FaceEpsilon, config=FaceConfig(radius=1.5)),
    "growing spheres": partial(GrowingSpheres, config=GrowingSpheresConfig(draws=20, layers=30)),
    "nearest accepted": NearestAccepted,
    "nearest accepted, vetted": lambda model, schema, **rest: Vetted(
        NearestAccepted(model, schema, **rest), Search(min_support=0.8)
    ),
}


@pytest.mark.parametrize("method", METHODS)
@given(worlds())
def test_the_laws_hold(method, world):
    make = METHODS[method]
    ours = "decoder" in getattr(make, "keywords", {})
    kept = {k: v for k, v in world.options.items() if ours and k == "act_on"}
    try:
        laws.check(replace(world, method=make, options=kept), laws.OF_THE_ANSWER)
    except ModelError as error:
        if "gradient" in str(error) or "entropy" in str(error):
            reject()  # it needs a torch module, or a classifier
        raise
