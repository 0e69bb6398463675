"""The laws of DESIGN §7 for DEAR, for any table, any model and anything that may be asked for."""

from hypothesis import event, given

from tests.properties import laws
from tests.properties.worlds import worlds


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
