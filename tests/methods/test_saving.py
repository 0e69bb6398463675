"""Saving: a saved folder gives the same answers; a damaged one raises an error."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load, save

from dear_plugin import DEAR, Schema, Search
from dear_plugin.datasets import load_loan
from dear_plugin.decoders import Decoder, Transport, decoder_class
from dear_plugin.decoders.collection import InOrder
from dear_plugin.errors import FileFormatError, ModelError, SettingError
from dear_plugin.methods import saving
from dear_plugin.methods.saving import FILE, FORMAT
from dear_plugin.paper import Autoencoder, Design, Training

SETS = ["income", "education", ("income", "savings"), ("duration", "loan_amount", "savings")]
KINDS = {
    "transport": Transport,
    "autoencoder": lambda: Autoencoder(Design(layers=(6, 3)), Training(epochs=3), seed=5),
}

# Both processes use the same rows and the same model, and write the answer in full.
SETTING = """
import torch
from dear_plugin.datasets import load_loan

def rows():
    return load_loan(1200, seed=0).features

def model():
    net = torch.nn.Linear(7, 1)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[0.1, 0.4, 0.9, -1.5, -1.0, 3.0, 2.0]]))
        net.bias.fill_(-2.6)
    return net

def answer(dear):
    recourses = dear.generate(rows().iloc[:25])
    tables = recourses.counterfactuals, recourses.actions, recourses.alternatives(2)
    parts = [t.to_json(orient="split", double_precision=15) for t in tables]
    return "\\n".join([*parts, recourses.support.to_json(), recourses.describe_row(0)])
"""
FRESH = f"""{SETTING}
import sys
from dear_plugin import DEAR
for folder in sys.argv[1:]:
    print(answer(DEAR.load(folder, model())))
"""
setting: dict = {}
exec(SETTING, setting)
rows, model, answer = (setting[name] for name in ("rows", "model", "answer"))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A fitted DEAR of each kind and the folder it was saved to."""
    data, home = load_loan(10), tmp_path_factory.mktemp("saved")
    schema = Schema.infer(
        rows(),
        immutable=data.immutable,
        increasing=data.increasing,
        ranges={"duration": (24, np.inf)},
    )
    out = {}
    for name, make in KINDS.items():
        search = Search(min_support=0.4 if name == "transport" else None)
        dear = DEAR(model(), schema, act_on=SETS, decoder=make(), search=search).fit(rows())
        dear.save(home / name)
        out[name] = dear, home / name
    return out


@pytest.fixture
def folder(saved, tmp_path):
    """A copy to be damaged."""
    return shutil.copytree(saved["transport"][1], tmp_path / "copy")


class TestSameAnswers:
    @pytest.mark.parametrize("kind", KINDS)
    def test_here(self, saved, kind):
        dear, home = saved[kind]
        assert answer(DEAR.load(home, model())) == answer(dear)

    @pytest.mark.ci
    def test_in_a_fresh_process(self, saved):
        folders = [str(home) for _, home in saved.values()]
        done = subprocess.run(
            [sys.executable, "-c", FRESH, *folders], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == "".join(f"{answer(dear)}\n" for dear, _ in saved.values())

    def test_the_loaded_one_can_be_saved_again(self, saved, tmp_path):
        for kind, (dear, home) in saved.items():
            DEAR.load(home, model()).save(tmp_path / kind)
            assert (tmp_path / kind / FILE).read_bytes() == (home / FILE).read_bytes()
            assert answer(DEAR.load(tmp_path / kind, model())) == answer(dear)


class TestTheFolder:
    def test_there_is_one_safetensors_and_no_pickle(self, saved):
        for _, home in saved.values():
            assert [p.name for p in home.iterdir()] == ["dear.safetensors"]
            content = (home / FILE).read_bytes()
            assert b"pickle" not in content
            assert b"torch._utils" not in content

    def test_the_settings_are_strict_json_and_name_their_format(self, saved):
        def refuse(constant):
            raise ValueError(constant)

        for _, home in saved.values():
            with safe_open(home / FILE, "pt") as file:
                text = file.metadata()["dear"]
            assert json.loads(text, parse_constant=refuse)["format"] == FORMAT

    def test_a_second_save_replaces_the_first(self, saved, tmp_path):
        for kind in KINDS:
            saved[kind][0].save(tmp_path)
        assert [p.name for p in tmp_path.iterdir()] == ["dear.safetensors"]
        assert isinstance(DEAR.load(tmp_path, model()).decoder, Autoencoder)

    def test_settings_that_json_cannot_hold_are_refused_before_anything_is_written(
        self, saved, tmp_path
    ):
        dear = saved["transport"][0].with_model(model())
        dear.decoder = Transport()
        dear.decoder.settings = lambda: {"given": {64}}
        with pytest.raises(SettingError, match="plain values that JSON can hold"):
            dear.save(tmp_path / "none")
        assert not (tmp_path / "none").exists()


def refused(folder, name):
    """Loading fails with one clear error, which names the file (or folder)."""
    with pytest.raises(FileFormatError) as caught:
        DEAR.load(folder, model())
    assert str(folder / name if name else folder) in str(caught.value)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


def rewrite(folder, change=lambda settings: None, harm=lambda tensors: None):
    """Change settings or tensors and seal them again, as an attacker would."""
    content = (folder / FILE).read_bytes()
    settings, tensors = saving._settings(content), load(content)
    del settings["seal"]
    change(settings)
    harm(tensors)
    (folder / FILE).write_bytes(saving.sealed(settings, tensors))


# Changes of one tensor of a save.


class TestDamage:
    def test_a_newer_format_says_what_to_do(self, folder):
        rewrite(folder, lambda settings: settings.update(format=FORMAT + 1))
        assert "install a newer version" in refused(folder, FILE)

    def test_an_older_format_says_to_fit_again(self, folder):
        """Format 2 had its settings in a file beside the tensors."""
        (folder / FILE).write_bytes(save(load((folder / FILE).read_bytes())))
        (folder / "dear.json").write_text('{"format": 2, "version": "0.2.0"}', encoding="utf8")
        assert "fitted again on the training rows" in refused(folder, FILE)

    def test_a_decoder_of_another_author_without_its_class(self, folder):
        rewrite(folder, lambda settings: settings.update(decoder="Oracle"))
        with pytest.raises(FileFormatError, match=r"Oracle is no part of a save.*decoder=Oracle"):
            DEAR.load(folder, model())

    def test_another_decoder_than_that_of_the_save(self, folder):
        with pytest.raises(FileFormatError, match="is Transport, got decoder=Autoencoder"):
            DEAR.load(folder, model(), decoder=Autoencoder)

    def test_a_model_that_is_none_is_not_the_files_fault(self, folder):
        with pytest.raises(ModelError, match="a model must be"):
            DEAR.load(folder, 3)


def test_no_code_from_the_folder_is_run(folder, tmp_path):
    """A file that would run code when unpickled is rejected, and nothing is imported."""
    proof = tmp_path / "proof"
    evil = b"cos\nsystem\n(S'touch " + str(proof).encode() + b"'\ntR."
    for content in (evil, save({"rows": torch.zeros(1)}, {"dear": evil.decode()})):
        (folder / FILE).write_bytes(content)
        with pytest.raises(FileFormatError):
            DEAR.load(folder, model())
    assert not proof.exists()


def test_the_decoders_of_the_package_need_no_class_to_be_loaded():
    own = ("dear_plugin.decoders", "dear_plugin.paper")
    ours = {kind for kind in Decoder.__subclasses__() if kind.__module__.startswith(own)}
    # One has no fit of its own, and consists of others.
    assert ours == {Transport, Autoencoder, InOrder}
    assert all(decoder_class(kind.__name__) is kind for kind in ours - {InOrder})
