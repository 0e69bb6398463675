"""An invalid setting raises SettingError at construction, with its name and its domain."""

from dataclasses import fields, replace

import numpy as np
import pytest

from dear_plugin import DEAR, DescentSchedule, Design, Search, Training
from dear_plugin.errors import SettingError

KINDS = (Search, Training, Design, DescentSchedule)
FIELDS = [(kind, field.name) for kind in KINDS for field in fields(kind)]
NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(("kind", "name"), FIELDS)
@pytest.mark.parametrize("value", [object, "word", NAN, -1, [], {}], ids=repr)
def test_every_field_has_a_rule(kind, name, value):
    with pytest.raises(SettingError, match=rf"^{kind.__name__}: {name}\b"):
        kind(**{name: value})


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"solver": "lines"}, r"'lines' \(did you mean 'line'\?\); known are: line, paper"),
        ({"max_features": 0}, "max_features must be a whole number from 1, got 0"),
        ({"max_features": 16.0}, "max_features must be a whole number from 1, got 16.0"),
        ({"max_features": True}, "max_features must be a whole number from 1, got True"),
        ({"margin": INFINITY}, "margin must be a finite number from 0, got inf"),
        ({"min_support": 60}, "min_support must be a number from 0 to 1, got 60"),
    ],
)
def test_the_error_states_the_value_and_its_domain(settings, match):
    with pytest.raises(SettingError, match=match):
        Search(**settings)


def test_replace_validates_as_well():
    with pytest.raises(SettingError, match="max_features"):
        replace(Search(), max_features=0)


@pytest.mark.parametrize("layers", [(), 8, "16", (16, 0), (16, 2.5)], ids=repr)
def test_layers_are_one_or_more_widths(layers):
    with pytest.raises(SettingError, match="Design: layers must be"):
        Design(layers=layers)


def test_numpy_numbers_become_python_numbers():
    """JSON can hold no others."""
    s = Search(max_features=np.int64(3), margin=np.float32(0.5), min_support=np.float64(1))
    assert [type(v) for v in (s.max_features, s.margin, s.min_support)] == [int, float, float]


@pytest.mark.parametrize("kind", KINDS)
def test_valid_settings_are_unchanged(kind):
    assert kind(**vars(kind())) == kind()


@pytest.mark.parametrize("search", ["gradient", {"margin": 0.3}, 0, Search])
def test_an_object_of_another_class_is_no_search(mixed, fitted, search):
    for call in (
        lambda: DEAR(mixed.net, mixed.schema, search=search),
        lambda: fitted.with_search(search),
    ):
        with pytest.raises(SettingError, match=r"search must be a Search\(...\)"):
            call()
