"""Random tables with the traits of tables in use: a part of `python -m tests.sweep.audit`."""

import pytest

from tests.sweep.audit import audited
from tests.sweep.models import fitted
from tests.sweep.routes import ROUTES
from tests.sweep.tables import DTYPES, random_table

# Those on which a fault was found once: dummies as amounts, codes of few rows.
FOUND = (404, 643, 952, 3035)
# What a host or a pipeline does not take.
WITHOUT = {
    *("missing", "nullable", "identifier", "sparse number", "group number", "limits"),
    *("labels", "object cells"),
}


@pytest.mark.ci
@pytest.mark.parametrize("seed", [*range(36), *FOUND])
def test_an_answer_keeps_what_it_must_whatever_the_table_the_model_and_the_route(seed):
    pytest.importorskip("dice_ml")
    pytest.importorskip("alibi")
    traits, faults = audited(seed)
    assert not faults, traits


@pytest.mark.ci
@pytest.mark.parametrize("seed", range(6))
def test_hosts_have_the_same_rows(seed):
    """Cell by cell, and so those that `changes` gives, as a law of `tests/properties` says."""
    pytest.importorskip("dice_ml")
    pytest.importorskip("alibi")
    table = random_table(seed, tuple(DTYPES), WITHOUT)
    model = fitted("pipeline", table)
    own, *others = (route(table, model)(table.query)[:2] for route in ROUTES.values())
    for rows, success in others:
        assert list(success) == list(own[1])
        assert rows[success].astype(object).equals(own[0][success].astype(object))
