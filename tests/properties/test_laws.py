"""The laws of DESIGN §7 for any table, any model and anything that may be asked for."""

from dataclasses import replace

import pytest
from hypothesis import event, given, reject

from dear_plugin.errors import ModelError
from tests.every_method import METHODS, RIVALS
from tests.properties import laws
from tests.properties.worlds import related_frames, worlds

# Those that the worlds themselves draw.
DRAWN = ("DEAR", "DEAR alone", "DEAR cheapest", "DEAR with support")


@given(worlds())
def test_the_laws_of_an_answer_hold(world):
    result = laws.check(world, laws.OF_THE_ANSWER)
    event(f"helped: {bool((result.actions['cost'] > 0).any())}")


@given(worlds())
def test_the_laws_of_a_method_hold(world):
    laws.check(world, laws.OF_THE_METHOD)


@given(worlds())
def test_a_batch_of_n_is_n_batches_of_one(world):
    laws.check(world, [laws.a_batch_of_n_is_n_batches_of_one])


@given(worlds(related_frames()))
def test_rows_do_not_depend_on_each_other_and_keep_several_relations(world):
    of_relations = (
        laws.what_is_true_by_definition_stays_true,
        laws.a_batch_of_n_is_n_batches_of_one,
        laws.the_order_of_rows_does_not_matter,
    )
    laws.check(world, of_relations)
    event(f"relations: {len(world.schema.relations)}")


@pytest.mark.parametrize("method", [name for name in METHODS if name not in DRAWN])
@given(worlds())
def test_the_laws_hold_for_every_other_method(method, world):
    kept = {k: v for k, v in world.options.items() if k == "act_on" and method not in RIVALS}
    try:
        laws.check(replace(world, method=METHODS[method], options=kept), laws.OF_THE_ANSWER)
    except ModelError as error:
        if "gradient" in str(error) or "entropy" in str(error):
            reject()  # it needs a torch module, or a classifier
        raise
