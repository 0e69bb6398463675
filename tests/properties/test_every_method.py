"""The laws of `test_laws`, for every other decoder, solver and rival in worlds of all kinds."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, reject

from dear_plugin import (
    DEAR,
    Autoencoder,
    Design,
    RecourseMethod,
    Recourses,
    Search,
    Training,
    Transport,
)
from dear_plugin.baselines import (
    CCHVAE,
    Clue,
    Descent,
    FaceEpsilon,
    FaceKNN,
    NearestAccepted,
    Paths,
    Revise,
    Shells,
    Shrinkage,
    VaeDesign,
    Wachter,
)
from dear_plugin.errors import ModelError
from tests.properties import test_laws as laws
from tests.properties.worlds import World, worlds

NETWORKS = Autoencoder(Design(layers=(4, 2)), Training(epochs=2))
VAE = VaeDesign(layers=(6, 3), training=Training(epochs=5))
BRIEF = Descent(steps=6, rate=0.3, starts=2, places=8)

METHODS: Mapping[str, Callable[..., RecourseMethod]] = {
    "given the immutable": partial(DEAR, decoder=Transport(given="immutable")),
    "ties by score": partial(DEAR, decoder=Transport(ties="score")),
    "autoencoder": partial(DEAR, decoder=NETWORKS),
    "gradient": partial(DEAR, decoder=NETWORKS, search=Search(solver="gradient", groups=False)),
    "Wachter": partial(Wachter, how=Shrinkage(rounds=2, steps=5, starts=2)),
    "REVISE": partial(Revise, vae=VAE, how=BRIEF),
    "C-CHVAE": partial(CCHVAE, vae=VAE, how=Shells(width=0.5, count=5, draws=8)),
    "CLUE": partial(Clue, vae=VAE, how=BRIEF),
    "FACE-K": FaceKNN,
    "FACE-E": partial(FaceEpsilon, how=Paths(radius=1.5)),
    "nearest accepted": NearestAccepted,
}
LAWS = (
    laws.test_columns_order_dtypes_index_and_labels_come_back_as_they_went_in,
    laws.test_what_may_not_change_is_equal_bit_for_bit,
    laws.test_ranges_directions_and_precision_are_kept,
    laws.test_categories_are_known_and_allowed_and_keep_their_direction,
    laws.test_success_agrees_with_the_model_on_the_returned_frame,
    laws.test_an_accepted_row_costs_nothing_and_stays_itself,
    laws.test_every_row_comes_back_and_failures_say_why,
    laws.test_costs_are_finite_add_up_and_belong_to_what_changed,
)


@pytest.mark.parametrize("method", METHODS)
@given(worlds())
def test_the_laws_hold(method, world):
    world = answered_once(world, METHODS[method])
    for law in LAWS:
        law.hypothesis.inner_test(world)


class Answered(World):
    """A world whose question has been answered."""

    def ask(self, dear: RecourseMethod) -> Recourses:
        return self.options["answer"]

    def fitted(self) -> RecourseMethod:
        return self.options["fitted"]


def answered_once(world: World, method: Callable[..., RecourseMethod]) -> World:
    """The world with another method, whose answer serves all laws."""
    ours = "decoder" in getattr(method, "keywords", {})
    kept = {k: v for k, v in world.options.items() if ours and k == "act_on"}
    try:
        fitted = replace(world, method=method, options=kept).fitted()
        answer = world.ask(fitted)
    except ModelError as error:
        if "gradient" in str(error) or "entropy" in str(error):
            reject()  # it needs a torch module, or a classifier
        raise
    return Answered(**{**vars(world), "options": {"fitted": fitted, "answer": answer}})
