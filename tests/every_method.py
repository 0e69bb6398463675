"""Every method that must obey the laws, small enough for many fits.

A new method joins with one line in `METHODS`: anything that is called as `DEAR` is, with a model,
a schema and `output=`, and returns an unfitted `RecourseMethod`.
"""

from collections.abc import Callable, Mapping
from functools import partial

from dear_plugin import DEAR, DescentSchedule, RecourseMethod, Search, Transport, Vetted
from dear_plugin.paper import Autoencoder, Design, Training
from dear_plugin.rivals import (
    CCHVAE,
    CCHVAEConfig,
    Clue,
    FaceConfig,
    FaceEpsilon,
    FaceKNN,
    GrowingSpheres,
    LatentConfig,
    NearestAccepted,
    Revise,
    Roar,
    RoarConfig,
    VaeDesign,
    Wachter,
    WachterConfig,
)

SMALL = Autoencoder(Design(layers=(6, 3)), Training(epochs=3))
# With the paper's reconstruction, under which an action may have size zero.
LITERAL = Autoencoder(Design(layers=(6, 3), reconstruct="paper"), Training(epochs=3))
DESCENT = Search.cheapest(solver="paper", schedule=DescentSchedule(step=0.05, steps=40))
VAE = VaeDesign(layers=(8, 4), training=Training(epochs=20))
BRIEF = LatentConfig(steps=12, rate=0.3, starts=2, places=32)
FEW = WachterConfig(rounds=2, steps=10, starts=2)


def vetted(inner, search, **options):
    """A method like DEAR, whose answers meet the criteria of a search."""
    return lambda model, schema, **rest: Vetted(inner(model, schema, **options, **rest), search)


OF_DEAR: Mapping[str, Callable[..., RecourseMethod]] = {
    "DEAR": DEAR,
    "DEAR alone": partial(DEAR, search=Search(max_reliance=0.0)),
    "DEAR cheapest": partial(DEAR, search=Search.cheapest()),
    "DEAR with support": partial(DEAR, search=Search.cheapest(min_support=0.6)),
    "DEAR given nothing": partial(DEAR, decoder=Transport(given=())),
    "DEAR autoencoder": partial(DEAR, decoder=SMALL, search=Search.cheapest()),
    "DEAR to the letter": partial(DEAR, decoder=LITERAL, search=DESCENT),
}
RIVALS: Mapping[str, Callable[..., RecourseMethod]] = {
    "Wachter": partial(Wachter, config=FEW),
    "ROAR": partial(Roar, config=RoarConfig(rounds=2, steps=10, starts=2)),
    "REVISE": partial(Revise, vae=VAE, config=BRIEF),
    "C-CHVAE": partial(CCHVAE, vae=VAE, config=CCHVAEConfig(width=0.5, count=20, draws=32)),
    "CLUE": partial(Clue, vae=VAE, config=BRIEF),
    "FACE-K": FaceKNN,
    "FACE-E": partial(FaceEpsilon, config=FaceConfig(radius=1.5)),
    "growing spheres": GrowingSpheres,
    "nearest accepted": NearestAccepted,
    "nearest accepted, vetted": vetted(NearestAccepted, Search(min_support=0.8)),
    "Wachter, vetted": vetted(Wachter, Search.cheapest(min_plausibility=0.05), config=FEW),
}
METHODS = {**OF_DEAR, **RIVALS}
