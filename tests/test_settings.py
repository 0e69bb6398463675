"""A setting that is none is refused where it is given, by name, with what it may be."""

from dataclasses import asdict, fields, replace

import numpy as np
import pytest

from dear_plugin import DEAR, Design, Search, Training
from dear_plugin.errors import SettingError

KINDS = (Search, Training, Design)
FIELDS = [(kind, field.name) for kind in KINDS for field in fields(kind)]
NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(("kind", "name"), FIELDS)
@pytest.mark.parametrize("value", [object, "word", NAN, -1, [], {}], ids=repr)
def test_every_one_has_a_rule(kind, name, value):
    with pytest.raises(SettingError, match=rf"^{kind.__name__}: {name}\b"):
        kind(**{name: value})


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"solver": "lines"}, r"'lines' \(did you mean 'line'\?\); known are: line, gradient"),
        ({"coarse": 0}, "coarse must be a whole number from 1, 0 came"),
        ({"coarse": 16.0}, "coarse must be a whole number from 1, 16.0 came"),
        ({"coarse": True}, "coarse must be a whole number from 1, True came"),
        ({"refine": -1}, "refine must be a whole number from 0, -1 came"),
        ({"slack": INFINITY}, "slack must be a finite number from 0, inf came"),
        ({"min_support": 60}, "min_support must be a number from 0 to 1, 60 came"),
        ({"k_neighbours": 0}, "k_neighbours must be a whole number from 1, 0 came"),
        ({"groups": None}, "groups must be True or False, None came"),
    ],
)
def test_the_error_says_what_came_and_what_was_hoped_for(settings, match):
    with pytest.raises(SettingError, match=match):
        Search(**settings)


def test_a_wrong_one_does_not_come_in_by_replacement():
    with pytest.raises(SettingError, match="coarse"):
        replace(Search(), coarse=0)


@pytest.mark.parametrize("layers", [(), 8, "16", (16, 0), (16, 2.5)], ids=repr)
def test_layers_are_one_or_more_widths(layers):
    with pytest.raises(SettingError, match="Design: layers must be"):
        Design(layers=layers)


def test_numbers_of_numpy_become_pythons():
    """A save is JSON, which knows no others."""
    found = Search(coarse=np.int64(8), slack=np.float32(0.5), min_support=np.float64(1))
    assert [type(v) for v in (found.coarse, found.slack, found.min_support)] == [int, float, float]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_a_setting_stays_as_it_is(kind):
    assert kind(**asdict(kind())) == kind()


@pytest.mark.parametrize("search", ["gradient", {"coarse": 8}, 0, Search])
def test_something_that_is_no_search(mixed, fitted, search):
    for door in (
        lambda: DEAR(mixed.net, mixed.schema, search=search),
        lambda: fitted.with_search(search),
    ):
        with pytest.raises(SettingError, match=r"search must be a Search\(...\)"):
            door()
