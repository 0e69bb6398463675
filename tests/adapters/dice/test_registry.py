"""`method="dear"`, for a while."""

import dice_ml
import pytest
from dice_ml import dice
from dice_ml.explainer_interfaces.dice_random import DiceRandom
from raiutils.exceptions import UserConfigValidationException

import dear_dice
from dear_dice import DiceDEAR

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
    assert len(explainer.generate_counterfactuals(refused.iloc[:2], total_CFs=1).cf_examples_list)
    dear_dice.unregister()
    with pytest.raises(UserConfigValidationException, match="Unsupported sample strategy dear"):
        dice_ml.Dice(*interfaces, method="dear")


def test_both_may_be_called_again(interfaces):
    for _ in range(3):
        dear_dice.register()
    dear_dice.unregister()
    assert dice.decide is DICES_OWN
    dear_dice.unregister()


def test_the_end_of_a_block_ends_it(interfaces):
    with dear_dice.register():
        assert type(dice_ml.Dice(*interfaces, method="dear")) is DiceDEAR
    assert dice.decide is DICES_OWN


def test_so_does_an_error():
    with pytest.raises(KeyError), dear_dice.register():
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


def test_importing_registers_nothing():
    assert dice.decide is DICES_OWN
