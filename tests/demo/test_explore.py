"""The command `explore`: what it shows, and what it says of wrong arguments."""

import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dear_plugin import DEAR, Schema
from dear_plugin.__main__ import main
from dear_plugin.datasets import load_loan
from dear_plugin.demo.explore import Explore, subject
from dear_plugin.errors import InputError


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """The folder of a saved DEAR, beside a module with its model, and a file of applicants."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scoring.py").write_text(
        "def model(rows):\n    return (rows['savings'] / 60).clip(0, 1)\n", encoding="utf8"
    )
    frame = load_loan(500).frame[["savings", "income"]]
    dear = DEAR(lambda rows: (rows["savings"] / 60).clip(0, 1), Schema.infer(frame))
    dear.fit(frame).save(tmp_path / "saved")
    frame.head(7).to_csv(tmp_path / "rows.csv", index=False)
    return {"saved": tmp_path / "saved", "applicants": tmp_path / "rows.csv"}


def test_a_saved_dear_with_a_model_of_the_present_folder(saved):
    dear, rows, _ = subject(Explore(**saved, model="scoring:model"))
    assert len(rows) == 7
    answers = dear.generate(rows)
    assert answers.actions["success"].all()
    assert np.allclose(answers.actions["score_before"], (rows["savings"] / 60).clip(0, 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": ""}, "needs --model and --applicants"),
        ({"model": "scoring:nothing"}, "--model scoring:nothing: expected a file of joblib"),
        ({"model": "no_such_module:model"}, "or module:attribute; No module"),
        ({"applicants": Path("absent.csv")}, "--applicants absent.csv"),
    ],
)
def test_wrong_arguments_are_errors(saved, change, message):
    with pytest.raises(InputError, match=message):
        subject(Explore(**{**saved, "model": "scoring:model", **change}))


def test_it_says_at_once_what_it_does_and_where(monkeypatch, capsys):
    def _training(_):
        assert "Training a model of loan; the page will be at http://localhost:5006" in (
            capsys.readouterr().out
        )
        raise InputError("this test needs no model")

    monkeypatch.setattr(sys.modules["dear_plugin.demo.explore"], "subject", _training)
    assert main(["explore", "--port", "5006"]) == 2


def test_the_command_serves_refused_applicants_of_a_data_set(monkeypatch):
    pytest.importorskip("panel")
    from dear_plugin.page import Explorer

    shown = []
    monkeypatch.setattr(Explorer, "show", lambda *given, **how: shown.append((*given, how)))
    assert main(["explore", "--rows", "5", "--port", "5006", "--no-browser"]) == 0
    ((page, port, how),) = shown
    assert (repr(page), port, how) == ("Explorer(5 applicants)", 5006, {"open_browser": False})


def test_the_wanted_class_is_named_as_in_letters(saved, monkeypatch, capsys):
    """A model with classes of other names had a page without ways."""
    pytest.importorskip("panel")
    from dear_plugin.page import Explorer

    rows, shown = load_loan(500).frame, []
    decided = np.where(rows["approved"] == 1, "granted", "declined")
    model = LogisticRegression().fit(rows[["savings", "income"]], decided)
    joblib.dump(model, "model.joblib")
    monkeypatch.setattr(Explorer, "show", lambda page, *given, **how: shown.append(page._given[2]))
    files = [f"--{name}={path}" for name, path in saved.items()]
    command = ["explore", *files, "--model", "model.joblib", "--trust", "--port", "5006"]
    assert main(command) == 2
    assert "expected --want with the wanted class, one of declined, granted" in (
        capsys.readouterr().err
    )
    assert main([*command, "--want", "granted"]) == 0
    assert shown == ["granted"]


def test_a_model_that_names_its_columns_is_asked_with_these_and_cases_are_texts(saved, tmp_path):
    """scikit-learn refused the other columns; "007" became 7."""
    rows = load_loan(500).frame
    model = LogisticRegression().fit(rows[["savings"]], rows["approved"])
    joblib.dump(model, tmp_path / "model.joblib")
    people = rows[["savings", "income"]].head(3).assign(file=["007", "008", "009"])
    people.to_csv(tmp_path / "people.csv", index=False)
    how = {"model": str(tmp_path / "model.joblib"), "trust": True, "index": "file"}
    dear, found, _ = subject(Explore(**{**saved, "applicants": tmp_path / "people.csv", **how}))
    assert found.index.tolist() == ["007", "008", "009"]
    assert len(dear.generate(found)) == 3
