"""The page in a notebook, in a kernel of its own."""

import pytest

pytest.importorskip("panel")
nbclient, nbformat = map(pytest.importorskip, ("nbclient", "nbformat"))

CODE = """
from dear_plugin import DEAR, Schema
from dear_plugin.datasets import load_loan
frame = load_loan(300).frame[["savings", "income"]]
dear = DEAR(lambda rows: (rows["savings"] / 60).clip(0, 1), Schema.infer(frame)).fit(frame)
dear.explore(frame.head(3))
"""


@pytest.mark.ci
def test_a_cell_displays_it():
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CODE)])
    nbclient.NotebookClient(book, timeout=120, kernel_name="python3").execute()
    shown = book.cells[0].outputs[-1]["data"]
    assert "Ways to the wanted decision" in shown["text/html"]
