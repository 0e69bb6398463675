"""Proposals: every solver has what a search asks of it."""

import pytest

from dear_plugin.paper.descent import Descent
from dear_plugin.search.sums import Solver
from dear_plugin.search.values import Line

METHODS = {name for name in vars(Solver) if not name.startswith("_")} | {"derives"}


@pytest.mark.parametrize("solver", [Line, Descent])
def test_a_solver_has_what_a_search_asks_of_it(solver):
    assert set(dir(solver)) >= METHODS
