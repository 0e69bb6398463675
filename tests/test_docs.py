"""What the documentation shows runs as it stands, and prints what it says it prints."""

import contextlib
import doctest
import io
import re
import warnings
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from dear_plugin.datasets import load_loan

ROOT = Path(__file__).parent.parent
PAGES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/guides").glob("*.md")])
PAGES = [page for page in PAGES if not page.name.startswith("_")]
HOSTS = {"dice.md": "dice_ml", "alibi.md": "alibi", "many-rows.md": "dask.dataframe"}
INCLUDE = re.compile(r"^```\{include\} (\S+_start\.md)\n```$", re.M)
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.M | re.S)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page):
    """The code of a page and what each piece should print, None where nothing is said."""
    text = INCLUDE.sub(lambda m: (page.parent / m[1]).read_text("utf8"), page.read_text("utf8"))
    found = [*BLOCK.findall(text), ("end", "")]
    return [
        (code, told if follows == "text" else None)
        for (kind, code), (follows, told) in pairwise(found)
        if kind == "python"
    ]


def run(code, told, place, here):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, place, "exec"), here)
    if told is not None:
        same = doctest.OutputChecker().check_output(told, said.getvalue(), FLAGS)
        assert same, f"{place} should print\n{told}\nand prints\n{said.getvalue()}"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda p: p.name)
def test_code_on_a_page_runs_from_the_top(page, tmp_path, monkeypatch):
    if page.name in HOSTS:
        pytest.importorskip(HOSTS[page.name])
    monkeypatch.chdir(tmp_path)
    here = {"__name__": "page"}
    with warnings.catch_warnings():
        for i, (code, told) in enumerate(blocks(page)):
            run(code, told, f"{page.name}, block {i + 1}", here)
    if page.name == "dice.md":
        here["dear_dice"].unregister()


def readme_names():
    """What a reader of the README has: a frame, a model, people refused."""
    data = load_loan(2000)
    frame = data.frame.assign(sex=data.frame["gender"]).drop(columns="gender")
    test = load_loan(400, seed=1).frame.rename(columns={"gender": "sex"})[list(frame)]

    def model(rows):
        return ((rows["income"] + rows["savings"]) / 140).clip(0, 1).to_numpy()

    rejected = test[model(test) < 0.5].head(20)
    return {"frame": frame, "model": model, "rejected": rejected, "held_out": test}


def test_the_engine_s_code_in_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = readme_names() | {"index": None, "pd": pd}
    here["index"] = here["rejected"].index[0]
    code, _ = blocks(ROOT / "README.md")[0]
    run(code, None, "README, block 1", here)


def links(page):
    """The files that a page links to, relative to it."""
    found = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text("utf8"))
    return [page.parent / target for target in found]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_to_files_lead_somewhere(name):
    missing = [str(target) for target in links(ROOT / name) if not target.exists()]
    assert not missing


def test_every_guide_says_that_associations_are_not_effects_where_it_shows_them():
    for page in PAGES:
        text = page.read_text("utf8")
        if "describe(" in text or "expected to move" in text:
            assert re.search(r"associations?\b", text), f"{page.name} shows and does not say"
