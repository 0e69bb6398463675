"""Older saves: what version 0.1.0 wrote loads, takes people where it took them, and says so.

`saved_by_0_1_0` was written by that version: 24 rows of the loan data, two single features and a
group, and beside each save where its decoder took five people (`decoded.json`).
"""

import json
import logging
from pathlib import Path

import pandas as pd
import pytest
import torch

from dear_plugin import DEAR, Schema
from dear_plugin.datasets import load_loan
from dear_plugin.methods.persistence import FORMAT, SETTINGS

HOME = Path(__file__).parent / "saved_by_0_1_0"
KINDS = ("transport", "autoencoder")


def people():
    return load_loan(1200, seed=0).features.iloc[:24]


def model():
    net = torch.nn.Linear(7, 1)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[0.1, 0.4, 0.9, -1.5, -1.0, 3.0, 2.0]]))
        net.bias.fill_(-2.6)
    return net


@pytest.fixture(params=KINDS)
def folder(request):
    return HOME / request.param


def test_it_is_what_that_version_wrote(folder):
    settings = json.loads((folder / SETTINGS).read_text(encoding="utf8"))
    assert (settings["format"], settings["version"]) == (1, "0.1.0")


def test_people_go_where_that_version_took_them(folder):
    dear = DEAR.load(folder, model())
    rows = dear.encoder.rows(people().iloc[:5])
    v = dear.decoder.encode(rows)
    told = json.loads((folder / "decoded.json").read_text(encoding="utf8"))
    assert tuple(told) == dear.sets.labels
    for i, expected in enumerate(told.values()):
        width = dear.sets.positions.shape[1]
        values = torch.tensor([0.2, 0.9])[None, :, None].expand(5, 2, width).contiguous()
        reached = dear.decoder.decode(rows, v[:, i], values, torch.full((5,), i))
        torch.testing.assert_close(reached, torch.tensor(expected), rtol=0.0, atol=1e-5)


def test_its_answers_are_those_of_the_model(folder):
    dear = DEAR.load(folder, model())
    recourses = dear.generate(people())
    with torch.no_grad():
        accepted = model()(dear.encoder.encode(recourses.counterfactuals))[:, 0] >= 0
    assert recourses.actions["success"].tolist() == accepted.tolist()
    assert bool(accepted.any())
    answered = dear.apply(people(), recourses.direct)
    pd.testing.assert_frame_equal(answered.counterfactuals, recourses.counterfactuals)


def test_a_warning_says_who_saved_it_and_what_to_do(folder, caplog):
    with caplog.at_level(logging.WARNING, "dear_plugin"):
        DEAR.load(folder, model())
    (told,) = caplog.messages
    assert "saved by version 0.1.0" in told
    assert "fit and save again" in told
    assert str(folder) in told


def test_saved_again_it_is_of_this_format_and_answers_alike(folder, tmp_path):
    old = DEAR.load(folder, model())
    old.save(tmp_path)
    assert json.loads((tmp_path / SETTINGS).read_text(encoding="utf8"))["format"] == FORMAT
    again = DEAR.load(tmp_path, model())
    tables = [d.generate(people()).counterfactuals for d in (old, again)]
    pd.testing.assert_frame_equal(*tables, check_exact=True)


def test_a_save_of_this_version_is_loaded_without_a_word(tmp_path, caplog):
    DEAR(model(), Schema.infer(people()), act_on=["education"]).fit(people()).save(tmp_path)
    caplog.clear()
    DEAR.load(tmp_path, model())
    assert not caplog.messages
