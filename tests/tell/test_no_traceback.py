"""No command ends in a traceback: one line says what came, and what to do."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from dear_plugin.__main__ import main
from dear_plugin.tell import run as command

RNG = np.random.default_rng(0)
TRAIN = pd.DataFrame({"debt": RNG.gamma(2, 30, 400).round(), "income": RNG.gamma(4, 9, 400)})
TRAIN["age"] = RNG.integers(20, 60, 400)
WANTED = (TRAIN["income"] - TRAIN["debt"] / 6 > 27).astype(int)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = LogisticRegression().fit(TRAIN, WANTED)
    TRAIN.assign(ok=WANTED).to_csv("train.csv", index=False)
    TRAIN[model.predict(TRAIN) == 0].head(3).to_csv("people.csv", index=False)
    joblib.dump(model, "model.joblib")
    joblib.dump(LogisticRegression().fit(TRAIN.rename(columns={"age": "years"}), WANTED), "other")
    assert main(["schema", "train.csv", "--target", "ok"]) == 0
    return tmp_path


def letters(*more, model="model.joblib", out="out") -> int:
    options = ["--trust", "--train", "train.csv", "--schema", "train.toml", "--act-on", "debt"]
    options += ["--unlabelled"]
    return main(["letters", "people.csv", "--model", model, *options, "--out", out, *more])


def told(capsys) -> str:
    error = capsys.readouterr().err
    assert "Traceback" not in error
    return error


@pytest.mark.parametrize("out", ["people.csv", "people.csv/out", "/proc/none"])
def test_a_folder_that_cannot_be(folder, capsys, out):
    assert letters(out=out) == 2
    assert f"--out {out}: expected a folder to write to" in told(capsys)


def test_a_file_that_cannot_be_written(folder, capsys):
    assert main(["schema", "train.csv", "--out", "none/train.toml"]) == 2
    assert "FileNotFoundError: " in (error := told(capsys))
    assert "none/train.toml" in error


@pytest.mark.parametrize("model", ["train.csv", "train.toml", "none.joblib", "."])
def test_what_is_no_model(folder, capsys, model):
    assert letters(model=model) == 2
    error = told(capsys)
    assert f"--model {model}: expected a file of joblib, pickle or skops" in error
    assert ("got a file of text" in error) == model.startswith("train")


def test_a_model_that_raises(folder, capsys):
    assert letters(model="other") == 2
    line = told(capsys)
    assert "ValueError: The feature names should match" in line or "KeyError" in line
    assert "years" in line


@pytest.mark.parametrize("file", ["people.csv", "train.csv", "train.toml"])
def test_files_that_cannot_be_read(folder, capsys, file):
    (folder / file).unlink()
    (folder / file).mkdir()
    assert letters() == 2
    assert file in told(capsys)


def test_an_interrupted_run_says_how_it_goes_on(folder, capsys, monkeypatch):
    with monkeypatch.context() as context:
        context.setattr(
            command, "_write", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        assert letters() == 130
    assert told(capsys).strip().endswith("interrupted; run the same command to continue")
    assert letters() == 0


def test_what_the_log_says_is_told_once_a_folder(folder, capsys):
    assert letters() == 0
    assert "age" in told(capsys)
    assert letters() == 0
    assert "age" not in told(capsys)
    assert letters("--want", "3", out="new") == 2
    assert "age" not in told(capsys)
