"""Notebooks are kept with the outputs of a run; `make docs` compares them with a fresh one."""

import json
import re
import runpy
from pathlib import Path

import pytest

HOME = Path(__file__).parent.parent
FOLDER = HOME / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
CHECK = runpy.run_path(str(HOME / "docs" / "check_notebooks.py"))
MOST, MOST_BYTES, MOST_CELLS = 7, 300_000, 14
# A path of a machine, an address in memory, a duration.
UNSTABLE = re.compile(
    r"(?<![\w.])/(?:home|root|tmp|work|Users|usr)/|[A-Z]:\\\\|0x[0-9a-f]{6,}"
    r"|\b\d+(?:\.\d+)? ?(?:s|ms|seconds)\b|it/s"
)

# How the sentences of an answer begin.
ANSWERS = re.compile(r"The action is enough|The action alone is|It succeeds in|Weak answer:")

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    return json.loads(path.read_text(encoding="utf8"))


def text(cell):
    return "".join(cell["source"])


def code_cells(path):
    return [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]


def outputs(path):
    return [output for cell in code_cells(path) for output in cell["outputs"]]


def test_they_are_few():
    assert len(NOTEBOOKS) <= MOST


@every_notebook
def test_every_cell_was_run_once_in_order(path):
    counts = [cell["execution_count"] for cell in code_cells(path)]
    assert counts == list(range(1, len(counts) + 1))


@every_notebook
def test_tables_texts_and_pictures_are_stored_and_no_error_or_warning(path):
    kinds = {kind for output in outputs(path) for kind in output.get("data", {})}
    assert {"image/png", "text/html"} <= kinds <= set(CHECK["KEPT"])
    assert {output["output_type"] for output in outputs(path)} <= {
        "stream",
        "display_data",
        "execute_result",
    }
    assert all(output.get("name", "stdout") == "stdout" for output in outputs(path))


@every_notebook
def test_texts_have_nothing_that_differs_between_runs_or_machines(path):
    for cell, found in CHECK["texts"](read(path)).items():
        assert not UNSTABLE.search(found), (cell, UNSTABLE.search(found))


@every_notebook
def test_a_notebook_is_small(path):
    assert path.stat().st_size < MOST_BYTES
    assert 8 <= len(code_cells(path)) <= MOST_CELLS


@every_notebook
def test_cells_have_ids_and_the_first_is_a_title_with_question_and_answer(path):
    cells = read(path)["cells"]
    ids = [cell["id"] for cell in cells]
    assert len(set(ids)) == len(ids)
    assert not any(each.isdigit() for each in ids)
    assert text(cells[0]).startswith("# ")
    assert "**Question.**" in text(cells[0]) and "**Answer" in text(cells[0])
    assert all(text(cell).strip() for cell in cells)


def markdown(path):
    cells = [text(cell) for cell in read(path)["cells"] if cell["cell_type"] == "markdown"]
    return " ".join(" ".join(cells).split())


@every_notebook
def test_indirect_changes_are_called_associations_and_effects_on_conditions(path):
    assert "association" in markdown(path)
    assert "effect" in markdown(path)


@every_notebook
def test_a_sentence_of_an_answer_that_the_text_quotes_is_in_the_outputs(path):
    shown = " ".join(" ".join(CHECK["texts"](read(path)).values()).split())
    quoted = [sentence for sentence in ANSWERS.findall(markdown(path)) if sentence not in shown]
    assert not quoted


@every_notebook
def test_a_notebook_needs_only_what_the_wheel_has(path):
    code = "\n".join(map(text, code_cells(path)))
    assert not re.search(r"import benchmark|dear_plugin\.benchmark|from tests", code)


@pytest.mark.parametrize(
    ("stored", "fresh"),
    [
        ("cost 0.25 of 3", "cost   0.25\nof 3"),
        ("cost 0.25", "cost 0.26"),
        ("cost 0.3", "cost 0.25"),
        ("-0.01", "0.0"),
        ("1.5e-05", "1.6e-05"),
    ],
)
def test_white_space_and_one_unit_in_the_last_decimal_are_free(stored, fresh):
    assert CHECK["same"](stored, fresh)
    assert CHECK["same"](fresh, stored)


@pytest.mark.parametrize(
    ("stored", "fresh"),
    [
        ("cost 0.25", "cost 0.27"),
        ("3 rows", "4 rows"),
        ("raise savings", "raise income"),
        ("0.25 0.5", "0.25"),
        ("1.5e-05", "1.5e-04"),
    ],
)
def test_other_differences_are_reported(stored, fresh):
    assert not CHECK["same"](stored, fresh)
    assert not CHECK["same"](fresh, stored)


def test_differences_name_the_cell_and_ignore_images():
    def notebook(text, image):
        data = [{"data": {"image/png": image}}, {"data": {"text/plain": text}}]
        return {"cells": [{"cell_type": "code", "id": "one", "outputs": data}]}

    differences = CHECK["differences"]
    assert list(differences(notebook("a\nb", "x"), notebook("a\nb", "y"))) == []
    found = list(differences(notebook("a\nb", "x"), notebook("a\nc", "x")))
    assert "'one'" in found[0]
    assert [line.strip() for line in found[-2:]] == ["-b", "+c"]
