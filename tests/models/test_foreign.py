"""isolated: foreign code leaves neither output nor other random states behind."""

import random
import sys

import numpy as np
import pytest
import torch

from dear_plugin import isolated


def drawn():
    return random.random(), float(np.random.rand()), float(torch.rand(1))


def states():
    return random.getstate(), repr(np.random.get_state()), torch.get_rng_state().tolist()


@pytest.mark.parametrize("seed", [None, 3])
def test_the_global_generators_are_restored_also_after_an_error(seed):
    before = states()
    with pytest.raises(KeyError), isolated(seed):
        drawn()
        raise KeyError
    assert states() == before


def test_a_seed_gives_the_same_draws():
    with isolated(3):
        one = drawn()
    with isolated(3):
        assert drawn() == one


def test_output_is_hidden(capsys):
    with isolated():
        sys.stdout.write("out")
        sys.stderr.write("err")
    assert capsys.readouterr() == ("", "")
