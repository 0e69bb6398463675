"""A save that anything may have happened to is the one that was saved, or one clear error."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import event, given, settings
from hypothesis import strategies as st
from safetensors.torch import load, save
from torch import nn

from dear_plugin import DEAR, Autoencoder, Design, Schema, Training, Transport
from dear_plugin.errors import DearError, FileFormatError
from dear_plugin.methods import saving
from dear_plugin.methods.saving import FILE

# Each takes milliseconds.
QUICK = 60
RNG = np.random.default_rng(0)
PEOPLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, 40),
        "debt": RNG.normal(3, 1, 40).round(2),
        "job": RNG.choice(["cook", "judge", "nurse"], 40),
    }
)
MODEL = nn.Linear(5, 1)

many = settings(max_examples=max(QUICK, settings().max_examples))
DECODERS = {
    "transport": lambda: "transport",
    "given": lambda: Transport(given=["job"]),
    "autoencoder": lambda: Autoencoder(Design(layers=(4, 2)), Training(epochs=1)),
}


@pytest.fixture(scope="module", params=DECODERS)
def content(request, tmp_path_factory) -> bytes:
    """The file of a save."""
    folder = tmp_path_factory.mktemp("save")
    sets = ["age", "debt", ("age", "debt")]
    dear = DEAR(MODEL, Schema.infer(PEOPLE), act_on=sets, decoder=DECODERS[request.param]())
    dear.fit(PEOPLE).save(folder)
    return (folder / FILE).read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("other")


def loaded(folder, content) -> DEAR:
    (folder / FILE).write_bytes(content)
    return DEAR.load(folder, MODEL)


@st.composite
def damage(draw, content: bytes) -> bytes:
    """The end or some bytes lost, doubled, written over or come out of nowhere."""
    at = draw(st.integers(0, len(content)))
    end = draw(st.sampled_from([len(content), min(len(content), at + draw(st.integers(0, 64)))]))
    return content[:at] + draw(st.binary(max_size=64)) + content[end:]


@many
@given(st.data())
def test_damage_is_found_wherever_it_is(content, folder, data):
    broken = data.draw(damage(content))
    if broken == content:
        loaded(folder, content)
        return
    with pytest.raises(FileFormatError, match=FILE):
        loaded(folder, broken)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=4,
)


@st.composite
def tampering(draw, value):
    """The same JSON with another value somewhere, a part of it gone, or one more."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 4)) == 0:
        return draw(VALUES)
    keys = sorted(value) if isinstance(value, dict) else range(len(value))
    key = draw(st.sampled_from(keys))
    out = value.copy()
    if draw(st.integers(0, 9)) == 0:
        del out[key]
    else:
        out[key] = draw(tampering(value[key]))
    return out


def opened(content) -> dict:
    settings = saving._settings(content)
    del settings["seal"]
    return settings


@many
@given(st.data())
def test_settings_that_somebody_made_up_are_refused_or_make_sense(content, folder, data):
    settings = opened(content)
    key = data.draw(st.sampled_from(sorted(settings)))
    settings[key] = data.draw(tampering(settings[key]))
    outcome(folder, forged(settings, load(content)))


def forged(settings, tensors) -> bytes:
    """A save with a right seal; unlike one of ours it may hold infinite numbers."""
    text = json.dumps({**settings, "seal": saving._seal(settings, tensors)})
    return save(tensors, {saving.KEY: text})


@many
@given(st.data())
def test_tensors_that_somebody_made_up_are_refused_or_fit(content, folder, data):
    tensors = load(content)
    name = data.draw(st.sampled_from(sorted(tensors)))
    kind = data.draw(st.sampled_from([torch.float32, torch.float64, torch.int64, torch.bool]))
    shape = data.draw(st.lists(st.integers(0, 5), max_size=3))
    how = data.draw(st.sampled_from(["gone", "another", "of another type", "more"]))
    if how == "gone":
        del tensors[name]
    elif how == "another":
        tensors[name] = torch.zeros(shape, dtype=kind)
    elif how == "of another type":
        tensors[name] = tensors[name].to(kind)
    else:
        tensors[name + data.draw(st.text(max_size=3))] = torch.zeros(shape, dtype=kind)
    outcome(folder, saving.sealed(opened(content), tensors))


def outcome(folder, content) -> None:
    """It loads and answers, or says in our own words why not."""
    try:
        dear = loaded(folder, content)
        event("loaded")
        dear.generate(PEOPLE.head(2))
        event("answered")
    except DearError:
        event("refused")
