"""Proposals: every solver that `Search` takes is an entry of one registry."""

from pkgutil import resolve_name
from typing import get_args, get_type_hints

import pytest

from dear_plugin import Search
from dear_plugin.methods.answering import SOLVERS
from dear_plugin.search.sums import Solver

METHODS = {name for name in vars(Solver) if not name.startswith("_")} | {"derives"}


def test_each_solver_of_a_search_is_an_entry():
    assert set(get_args(get_type_hints(Search)["solver"])) == set(SOLVERS)


@pytest.mark.parametrize("name", SOLVERS)
def test_an_entry_has_what_a_search_asks_of_it(name):
    assert set(dir(resolve_name(SOLVERS[name]))) >= METHODS
