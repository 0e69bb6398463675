"""`method="dear"`, for a while."""

import pickle

import dice_ml
import pytest
from dice_ml import dice
from dice_ml.explainer_interfaces.dice_random import DiceRandom
from raiutils.exceptions import UserConfigValidationException

import dear_dice
from dear_dice import DiceDEAR
from tests.adapters.dice.asked import examples

DICES_OWN = dice.decide


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    yield
    found = dice.decide
    dice.decide = DICES_OWN
    assert found is DICES_OWN


@pytest.fixture
def interfaces(loan, torch_model):
    return loan.data, torch_model


def test_registering_gives_the_method_and_unregistering_ends_it(interfaces, refused):
    dear_dice.register()
    explainer = dice_ml.Dice(*interfaces, method="dear", act_on=["savings"])
    assert type(explainer) is DiceDEAR and explainer.dear.sets.names == (("savings",),)
    assert len(examples(explainer, refused.iloc[:2])) == 2
    dear_dice.unregister()
    with pytest.raises(UserConfigValidationException, match="Unsupported sample strategy dear"):
        dice_ml.Dice(*interfaces, method="dear")


def test_both_may_be_called_again():
    for _ in range(3):
        dear_dice.register()
    for _ in range(2):
        dear_dice.unregister()
        assert dice.decide is DICES_OWN


def test_the_end_of_a_block_and_an_error_in_it_end_it(interfaces):
    with pytest.raises(KeyError), dear_dice.register():
        assert type(dice_ml.Dice(*interfaces, method="dear")) is DiceDEAR
        raise KeyError("anything")
    assert dice.decide is DICES_OWN


def test_a_block_inside_another_ends_nothing(interfaces):
    with dear_dice.register():
        with dear_dice.register():
            pass
        assert type(dice_ml.Dice(*interfaces, method="dear")) is DiceDEAR


def test_dices_own_methods_are_as_they_were(interfaces):
    with dear_dice.register():
        assert type(dice_ml.Dice(*interfaces)) is DiceRandom
        with pytest.raises(UserConfigValidationException, match="Unsupported sample strategy x"):
            dice_ml.Dice(*interfaces, method="x")


class TestDefaults:
    """Options for software that makes `Dice(data, model, method=method)` and gives none."""

    def test_they_hold_where_a_call_gives_none_and_pickle(self, interfaces):
        with dear_dice.register(immutable=["gender"], act_on=["savings"], increasing=["age"]):
            explainer = dice_ml.Dice(*interfaces, method="dear")
            other = dice_ml.Dice(*interfaces, method="dear", act_on=["income"])
        for made, acted in ((explainer, "savings"), (other, "income")):
            schema = made.dear.schema
            gender, age = (schema.features[j] for j in schema.index(["gender", "age"]))
            assert gender.immutable and age.direction == 1
            assert made.dear.sets.names == ((acted,),)
        assert type(pickle.loads(pickle.dumps(explainer))) is DiceDEAR
        assert len(DiceDEAR(*interfaces).dear.sets) > 1  # the class itself has no defaults

    def test_a_further_call_replaces_them_until_its_block_ends(self, interfaces):
        def acted():
            return dice_ml.Dice(*interfaces, method="dear").dear.sets.names

        with dear_dice.register(act_on=["savings"]):
            with dear_dice.register(act_on=["income"]):
                assert acted() == (("income",),)
            assert acted() == (("savings",),)

    def test_an_unknown_option_is_refused_with_a_suggestion(self, interfaces):
        words = r"'imutable' \(did you mean 'immutable'"
        with pytest.raises(TypeError, match=words):
            dear_dice.register(imutable=["gender"])
        with dear_dice.register(), pytest.raises(TypeError, match=words):
            dice_ml.Dice(*interfaces, method="dear", imutable=["gender"])

    def test_copies_may_be_registered_and_replaced(self, interfaces, refused):
        data, model = interfaces
        with dear_dice.register(copies=[model, model]):
            registered = dice_ml.Dice(data, model, method="dear")
            given = dice_ml.Dice(data, model, method="dear", copies=[model])
        for explainer, count in ((registered, 2), (given, 1)):
            assert len(explainer.dear.get_params()["copies"]) == count
            for example in examples(explainer, refused.iloc[:3], total_CFs=2):
                assert (example.actions["agreement"] == 1.0).all()
