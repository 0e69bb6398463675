"""Baseline: settings, models that cannot be used."""

import pytest

from dear_plugin import Schema
from dear_plugin.baselines import FaceConfig, FaceEpsilon, FaceKNN, Wachter, WachterConfig
from dear_plugin.errors import ModelError


def test_without_a_config_the_default_is_used(square, linear):
    model, schema = linear(1.0, 1.0, 0.0), Schema.infer(square)
    assert Wachter(model, schema).config == WachterConfig()
    assert FaceKNN(model, schema).config == FaceConfig()
    assert FaceEpsilon(model, schema).config == FaceConfig(radius=0.25)
    assert Wachter(model, schema, config=WachterConfig(steps=3)).config.steps == 3


def test_a_black_box_without_gradient_is_named(square):
    with pytest.raises(ModelError, match=r"Wachter .*needs a torch module, got function"):
        Wachter(lambda frame: frame["a"], Schema.infer(square))
