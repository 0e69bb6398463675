"""Notebooks are kept without outputs, and run from top to bottom (`make docs` runs them too)."""

import json
import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS = 180


def read(path):
    return json.loads(path.read_text(encoding="utf8"))


def text(cell):
    return "".join(cell["source"])


def test_there_are_seven_notebooks():
    assert [path.name[:2] for path in NOTEBOOKS] == [f"0{i}" for i in range(1, 8)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_is_stored(path):
    notebook = read(path)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert not any(cell["metadata"] for cell in notebook["cells"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_have_ids_and_the_first_is_a_title(path):
    cells = read(path)["cells"]
    ids = [cell["id"] for cell in cells]
    assert len(set(ids)) == len(ids)
    assert not any(each.isdigit() for each in ids)
    assert text(cells[0]).startswith("# ")
    assert all(text(cell).strip() for cell in cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_indirect_changes_are_called_associations_and_not_effects(path):
    words = " ".join(text(cell) for cell in read(path)["cells"] if cell["cell_type"] == "markdown")
    assert "association" in words
    assert "effect" in words


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_in_a_clean_kernel_without_network(path, tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.delenv("DEAR_DATA_HOME", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=SECONDS, resources=resources).execute()
